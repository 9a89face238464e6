// SiLU of a row's first half times its second half, bfloat16, fp32 inside: eight columns a thread and load of 128 bits.
// A thread asks for all its vectors before it uses one; with little to do it has one of each half, else two.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace {

constexpr int TAKEN = 8;  // values a vector of 128 bits
constexpr int THREADS = 128;
constexpr int64_t MUCH = 132 * 2048;  // vectors of the result: one for every thread that the card holds

__device__ inline float lower(uint32_t pair) { return __uint_as_float(pair << 16); }

__device__ inline float upper(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

__device__ inline uint32_t rounded(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}

__device__ inline float gated(float gate, float linear) { return __fdividef(gate, 1.0f + __expf(-gate)) * linear; }

__device__ inline uint32_t gated_pair(uint32_t gate, uint32_t linear) {
  return rounded(gated(lower(gate), lower(linear)), gated(upper(gate), upper(linear)));
}

// `half` counts vectors, of which block b of a row's `blocks` has those from b * VECTORS * THREADS on.
template <int VECTORS>
__global__ void __launch_bounds__(THREADS) vectors(const uint4* __restrict__ x, uint4* __restrict__ y, int64_t half,
                                                   unsigned blocks) {
  const int64_t row = blockIdx.x / blocks;
  const int64_t first = int64_t(blockIdx.x % blocks) * (VECTORS * THREADS) + threadIdx.x;
  const uint4 *gates = x + row * 2 * half, *linears = gates + half;
  uint4 gate[VECTORS], linear[VECTORS];
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    const int64_t at = first + i * THREADS;
    if (at < half) {
      gate[i] = __ldcs(gates + at);
      linear[i] = __ldcs(linears + at);
    }
  }
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    const int64_t at = first + i * THREADS;
    if (at < half)
      y[row * half + at] = make_uint4(gated_pair(gate[i].x, linear[i].x), gated_pair(gate[i].y, linear[i].y),
                                      gated_pair(gate[i].z, linear[i].z), gated_pair(gate[i].w, linear[i].w));
  }
}

// Halves that do not consist of whole vectors: value by value.
__global__ void __launch_bounds__(THREADS) values(const uint16_t* __restrict__ x, uint16_t* __restrict__ y,
                                                  int64_t full, int64_t half, unsigned blocks) {
  const int64_t row = blockIdx.x / blocks;
  const int64_t at = int64_t(blockIdx.x % blocks) * THREADS + threadIdx.x;
  if (at >= half) return;
  const float gate = lower(x[row * full + at]), linear = lower(x[row * full + half + at]);
  y[row * half + at] = static_cast<uint16_t>(rounded(gated(gate, linear), 0));
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), int64_t rows, int64_t blocks, Arguments... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(rows * blocks));
  config.blockDim = dim3(THREADS);
  cudaLaunchKernelEx(&config, kernel, arguments..., static_cast<unsigned>(blocks));
}

bool aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

template <int VECTORS>
void whole(const uint16_t* input, uint16_t* output, int64_t m, int64_t half) {
  const int64_t blocks = (half + VECTORS * THREADS - 1) / (VECTORS * THREADS);
  launch(vectors<VECTORS>, m, blocks, reinterpret_cast<const uint4*>(input), reinterpret_cast<uint4*>(output), half);
}

}  // namespace

extern "C" void run(const uint16_t* input, uint16_t* output, int64_t m, int64_t full, int64_t half) {
  if (m < 1 || half < 1) return;
  if (full != 2 * half || half % TAKEN != 0 || !aligned(input) || !aligned(output))
    return launch(values, m, (half + THREADS - 1) / THREADS, input, output, full, half);
  if (m * (half / TAKEN) > MUCH)
    whole<2>(input, output, m, half / TAKEN);
  else
    whole<1>(input, output, m, half / TAKEN);
}
