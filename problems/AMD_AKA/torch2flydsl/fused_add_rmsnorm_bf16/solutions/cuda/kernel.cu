// Residual addition and RMS normalisation, bfloat16, fp32 inside. A block takes a row: both operands and the gain are
// asked for at once, 128 bits a load, the sum, rounded to bfloat16, stays in registers, and both results are stored
// once. The statistics are those of the rounded sum.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace {

constexpr int WARP = 32;
constexpr int TAKEN = 8;  // values a vector of 128 bits

__device__ inline float lower(uint32_t pair) { return __uint_as_float(pair << 16); }

__device__ inline float upper(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

__device__ inline uint32_t rounded(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}

__device__ inline uint32_t added(uint32_t a, uint32_t b) { return rounded(lower(a) + lower(b), upper(a) + upper(b)); }

__device__ inline float square(uint32_t pair) { return lower(pair) * lower(pair) + upper(pair) * upper(pair); }

__device__ inline uint32_t normal(uint32_t pair, float inverse, uint32_t gain) {
  return rounded(lower(pair) * inverse * lower(gain), upper(pair) * inverse * upper(gain));
}

// Over COUNT neighbouring lanes, in each of them.
template <int COUNT>
__device__ inline float sum_of(float value) {
#pragma unroll
  for (int mask = COUNT / 2; mask > 0; mask /= 2) value += __shfl_xor_sync(~0u, value, mask);
  return value;
}

// Over a block, in every thread; `of_warps` is not used again.
template <int THREADS>
__device__ inline float block_sum(float value, float* of_warps) {
  value = sum_of<WARP>(value);
  if constexpr (THREADS > WARP) {
    if (threadIdx.x % WARP == 0) of_warps[threadIdx.x / WARP] = value;
    __syncthreads();
    value = sum_of<THREADS / WARP>(of_warps[threadIdx.x % (THREADS / WARP)]);
  }
  return value;
}

// Rows of `count` vectors, at most VECTORS * THREADS.
template <int THREADS, int VECTORS>
__global__ void __launch_bounds__(THREADS)
    held_rows(const uint4* __restrict__ x, const uint4* __restrict__ weight, const uint4* __restrict__ residual,
              float eps, uint4* __restrict__ y, uint4* __restrict__ total, int count) {
  __shared__ float of_warps[WARP];
  const int64_t start = blockIdx.x * int64_t(count);
  uint4 sum[VECTORS], gain[VECTORS];
  uint4 right[VECTORS];
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    const int at = i * THREADS + threadIdx.x;
    sum[i] = right[i] = gain[i] = make_uint4(0, 0, 0, 0);
    if (at < count) {
      sum[i] = __ldcs(x + start + at);
      right[i] = __ldcs(residual + start + at);
      gain[i] = __ldg(weight + at);
    }
  }
  float squares = 0;
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    const int at = i * THREADS + threadIdx.x;
    sum[i] = make_uint4(added(sum[i].x, right[i].x), added(sum[i].y, right[i].y), added(sum[i].z, right[i].z),
                        added(sum[i].w, right[i].w));
    if (at < count) total[start + at] = sum[i];
    squares += (square(sum[i].x) + square(sum[i].y)) + (square(sum[i].z) + square(sum[i].w));
  }
  const float inverse = rsqrtf(block_sum<THREADS>(squares, of_warps) / float(count * TAKEN) + eps);
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    const int at = i * THREADS + threadIdx.x;
    if (at < count)
      y[start + at] = make_uint4(normal(sum[i].x, inverse, gain[i].x), normal(sum[i].y, inverse, gain[i].y),
                                 normal(sum[i].z, inverse, gain[i].z), normal(sum[i].w, inverse, gain[i].w));
  }
}

// Any row: value by value; a thread reads again what it has written itself.
__global__ void __launch_bounds__(256) any_rows(const uint16_t* x, const uint16_t* weight, const uint16_t* residual,
                                                float eps, uint16_t* y, uint16_t* total, int64_t n) {
  __shared__ float of_warps[WARP];
  const int64_t start = blockIdx.x * n;
  float squares = 0;
  for (int64_t i = threadIdx.x; i < n; i += 256) {
    const uint32_t sum = added(x[start + i], residual[start + i]);
    total[start + i] = static_cast<uint16_t>(sum);
    squares += lower(sum) * lower(sum);
  }
  const float inverse = rsqrtf(block_sum<256>(squares, of_warps) / float(n) + eps);
  for (int64_t i = threadIdx.x; i < n; i += 256)
    y[start + i] = static_cast<uint16_t>(normal(total[start + i], inverse, weight[i]));
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), int64_t blocks, int threads, Arguments... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(threads);
  cudaLaunchKernelEx(&config, kernel, arguments...);
}

template <class... Pointers>
bool aligned(Pointers... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) | ...) % 16) == 0;
}

}  // namespace

extern "C" void run(const uint16_t* input, const uint16_t* weight, const uint16_t* residual, float eps,
                    uint16_t* output, uint16_t* residual_out, int64_t m, int64_t n) {
  if (m < 1 || n < 1) return;
  const auto held = [&](auto kernel, int threads) {
    launch(kernel, m, threads, reinterpret_cast<const uint4*>(input), reinterpret_cast<const uint4*>(weight),
           reinterpret_cast<const uint4*>(residual), eps, reinterpret_cast<uint4*>(output),
           reinterpret_cast<uint4*>(residual_out), int(n / TAKEN));
  };
  if (n % TAKEN != 0 || n > 4 * 1024 * TAKEN || !aligned(input, weight, residual, output, residual_out))
    launch(any_rows, m, 256, input, weight, residual, eps, output, residual_out, n);
  else if (n <= 128 * TAKEN)
    held(held_rows<128, 1>, 128);
  else if (n <= 256 * TAKEN)
    held(held_rows<256, 1>, 256);
  else if (n <= 512 * TAKEN)
    held(held_rows<512, 1>, 512);
  else if (n <= 1024 * TAKEN)
    held(held_rows<1024, 1>, 1024);
  else if (n <= 2 * 1024 * TAKEN)
    held(held_rows<1024, 2>, 1024);
  else
    held(held_rows<1024, 4>, 1024);
}
