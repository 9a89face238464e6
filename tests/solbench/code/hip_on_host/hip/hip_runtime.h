// HIP's words for a host's C++ compiler, to run a kernel's own source on a CPU: a test's stand-in, not an emulator.
//
// Work-groups run one after another, the lanes of one as fibers. A lane runs until it meets another's business: a
// barrier, a shuffle, a matrix operation. A wave's lanes must all come to the same one, and a work-group's waves to the
// same barrier; anything else ends the process. HIP_ON_HOST_REVERSE runs waves and lanes in the opposite order, so that
// a missing barrier shows. Shared memory is what the group before left there.
#pragma once

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define __global__ static
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct float2 {
  float x, y;
};

static dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace on_host {

constexpr int LANES = 32, SLOT = 64;
constexpr size_t STACK = 256 << 10;
enum class At { RUNNING, LANES_MEET, BARRIER, CLUSTER, ENDED };

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[STACK]};
  At at;
  int operations;  // meetings of lanes so far: two sets of slots take turns
};

static std::vector<Fiber> fibers;
static std::vector<char> slots;  // [wave][turn][lane][SLOT]
static ucontext_t scheduler;
static int current;
static std::function<void()> body;

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "HIP on the host: %s\n", what);
  std::abort();
}

inline void yield(At at) {
  fibers[current].at = at;
  swapcontext(&fibers[current].context, &scheduler);
}

inline char* slot(int turn, int lane) {
  return slots.data() + (((current / LANES) * 2 + turn) * LANES + lane) * SLOT;
}

// Lay down this lane's value; where those of all lanes are, once they have met.
template <class T>
inline int exchange(const T& value) {
  static_assert(sizeof(T) <= SLOT);
  const int turn = fibers[current].operations++ % 2;
  std::memcpy(slot(turn, current % LANES), &value, sizeof value);
  yield(At::LANES_MEET);
  return turn;
}

template <class T>
inline T of_lane(int turn, int lane) {
  T value;
  std::memcpy(&value, slot(turn, lane), sizeof value);
  return value;
}

inline void entry() {
  body();
  yield(At::ENDED);
}

inline void start(int threads) {
  for (int i = 0; i < threads; i++) {
    Fiber& fiber = fibers[i];
    fiber.at = At::RUNNING;
    fiber.operations = 0;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = STACK;
    makecontext(&fiber.context, entry, 0);
  }
}

// The group whose fibers begin at `base`, until it has ended (true) or waits for the other groups of its cluster.
inline bool run_group(int base, int threads, bool reverse) {
  const int waves = threads / LANES;
  for (;;) {
    int waiting = 0, apart = 0, ended = 0;
    for (int w = 0; w < waves; w++) {
      const int first = base + (reverse ? waves - 1 - w : w) * LANES;
      for (At at = At::LANES_MEET; at == At::LANES_MEET;) {
        if (fibers[first].at == At::ENDED) break;
        for (int l = 0; l < LANES; l++) {
          current = first + (reverse ? LANES - 1 - l : l);
          threadIdx = dim3(current - base);
          swapcontext(&scheduler, &fibers[current].context);
        }
        at = fibers[first].at;
        for (int l = 1; l < LANES; l++)
          if (fibers[first + l].at != at) fail("lanes of a wave part before a barrier, shuffle or matrix operation");
      }
      const At at = fibers[first].at;
      (at == At::ENDED ? ended : at == At::CLUSTER ? apart : waiting)++;
    }
    if (ended == waves) return true;
    if (apart == waves) return false;
    if (waiting != waves) fail("a wave ends or waits for the cluster while others wait at a barrier");
  }
}

template <class Kernel, class... Arguments>
void launch(Kernel kernel, dim3 grid, dim3 block, Arguments... arguments) {
  const int threads = block.x;
  if (block.y != 1 || block.z != 1 || threads % LANES) fail("work-groups are of whole waves in one dimension");
  if (threads > 1024 || !grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535) fail("no such launch");
  if (fibers.size() < size_t(threads)) fibers = std::vector<Fiber>(threads);
  slots.resize(threads / LANES * 2 * LANES * SLOT);
  gridDim = grid;
  blockDim = block;
  body = [=] { kernel(arguments...); };
  const bool reverse = std::getenv("HIP_ON_HOST_REVERSE") != nullptr;
  for (unsigned z = 0; z < grid.z; z++)
    for (unsigned y = 0; y < grid.y; y++)
      for (unsigned x = 0; x < grid.x; x++) {
        blockIdx = dim3(x, y, z);
        start(threads);
        if (!run_group(0, threads, reverse)) fail("a work-group that has no cluster waits for it");
      }
}

}  // namespace on_host

#define hipLaunchKernelGGL(kernel, grid, block, lds, stream, ...) \
  on_host::launch([](auto... passed) { kernel(passed...); }, grid, block, __VA_ARGS__)

static inline void __syncthreads() { on_host::yield(on_host::At::BARRIER); }
static inline void __builtin_amdgcn_s_barrier() { on_host::yield(on_host::At::BARRIER); }
static inline void __builtin_amdgcn_fence(int, const char*, ...) {}  // lanes see what others have written at once

namespace on_host {
inline int from(int value, int mask) {
  const int turn = exchange(value);
  return of_lane<int>(turn, (current % LANES) ^ mask);
}
}  // namespace on_host

// row_xmask of all rows and banks: the lane of the same sixteen whose number differs in the bits of the mask.
static inline int __builtin_amdgcn_update_dpp(int, int value, int control, int rows, int banks, bool) {
  if (control < 0x160 || control > 0x16f || rows != 0xf || banks != 0xf) on_host::fail("DPP other than row_xmask");
  return on_host::from(value, control - 0x160);
}

// The other sixteen lanes' values, in their order.
static inline int __builtin_amdgcn_permlanex16(int, int value, unsigned low, unsigned high, bool, bool) {
  if (low != 0x76543210 || high != 0xfedcba98) on_host::fail("lanes chosen in another order");
  return on_host::from(value, 16);
}

static inline float __builtin_amdgcn_exp2f(float x) { return std::exp2(x); }

// D = A B + C of 16 x 16 matrices. Lane l holds row (A) or column (B) l % 16 at k = 8 * (l / 16) + 0..7, and of C and D
// column l % 16 at rows 8 * (l / 16) + 0..7. Sums in float64, rounded once.
typedef _Float16 on_host_half8 __attribute__((vector_size(16)));
typedef float on_host_float8 __attribute__((vector_size(32)));
static inline on_host_float8 __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(on_host_half8 a, on_host_half8 b,
                                                                              on_host_float8 c) {
  struct Operands {
    float half[16];
  } mine;
  for (int i = 0; i < 8; i++) {
    mine.half[i] = float(a[i]);
    mine.half[8 + i] = float(b[i]);
  }
  const int turn = on_host::exchange(mine), lane = on_host::current % on_host::LANES;
  const auto held = [&](int of) { return reinterpret_cast<const Operands*>(on_host::slot(turn, of)); };
  on_host_float8 d;
  for (int i = 0; i < 8; i++) {
    const int row = lane / 16 * 8 + i, column = lane % 16;
    double sum = c[i];
    for (int k = 0; k < 16; k++)
      sum += double(held(row + k / 8 * 16)->half[k % 8]) * held(column + k / 8 * 16)->half[8 + k % 8];
    d[i] = float(sum);
  }
  return d;
}
