// CUDA's words for a host's C++ compiler, to run a kernel's own source on a CPU: what hip_on_host says holds here too.
//
// The blocks of a cluster share one copy of shared memory. They run one after another up to each barrier of the
// cluster, so that nothing which a block keeps for itself there may be read again behind one. A barrier in two halves
// is played by its second one.
#pragma once

#include "../hip_on_host/hip/hip_runtime.h"

#define __restrict__ __restrict

struct float4 {
  float x, y, z, w;
};
struct uint4 {
  uint32_t x, y, z, w;
};
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }

static inline uint32_t max(uint32_t a, uint32_t b) { return a > b ? a : b; }

static inline float __uint_as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
static inline float __fdividef(float a, float b) { return a / b; }
// The C library has a function of that name.
#define __expf(x) std::exp(float(x))

// A load of a vector from where it may not start ends the process, as it does on a card.
template <class T>
T __ldg(const T* from) {
  if (reinterpret_cast<uintptr_t>(from) % sizeof(T)) on_host::fail("a vector is loaded from where none starts");
  return *from;
}

template <class T>
T __ldcs(const T* from) {
  return __ldg(from);
}

template <class T>
T __shfl_xor_sync(unsigned lanes, T value, int mask) {
  if (lanes != ~0u) on_host::fail("a shuffle of some lanes only");
  const int turn = on_host::exchange(value);
  return on_host::of_lane<T>(turn, (on_host::current % on_host::LANES) ^ mask);
}

enum cudaLaunchAttributeID { cudaLaunchAttributeClusterDimension = 4 };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    struct {
      unsigned x, y, z;
    } clusterDim;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  void* stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

namespace on_host {
template <class... Parameters, class... Arguments>
void launch_clusters(void (*kernel)(Parameters...), unsigned size, dim3 grid, dim3 block, Arguments... arguments) {
  const int threads = block.x;
  if (grid.y * grid.z * block.y * block.z != 1) fail("clusters are of one dimension");
  if (threads % LANES || threads > 1024 || size > 8 || !grid.x || grid.x % size) fail("no such launch of clusters");
  if (fibers.size() < threads * size) fibers = std::vector<Fiber>(threads * size);
  slots.resize(threads * size / LANES * 2 * LANES * SLOT);
  gridDim = grid;
  blockDim = block;
  body = [=] { kernel(arguments...); };
  const bool reverse = std::getenv("HIP_ON_HOST_REVERSE") != nullptr;
  for (unsigned first = 0; first < grid.x; first += size) {
    start(threads * size);
    for (unsigned ended = 0; ended < size;) {
      ended = 0;
      for (unsigned b = 0; b < size; b++) {
        const unsigned of = reverse ? size - 1 - b : b;
        blockIdx = dim3(first + of);
        ended += run_group(of * threads, threads, reverse);
      }
      if (ended != 0 && ended != size) fail("a block ends while others of its cluster wait for it");
    }
  }
}
}  // namespace on_host

template <class... Parameters, class... Arguments>
int cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), Arguments... arguments) {
  if (config->dynamicSmemBytes || config->stream || config->numAttrs > 1) on_host::fail("a launch that is not played");
  const dim3 grid = config->gridDim, block = config->blockDim;
  if (config->numAttrs == 1)
    on_host::launch_clusters(kernel, config->attrs[0].val.clusterDim.x, grid, block, arguments...);
  else
    on_host::launch(kernel, grid, block, arguments...);
  return 0;
}
