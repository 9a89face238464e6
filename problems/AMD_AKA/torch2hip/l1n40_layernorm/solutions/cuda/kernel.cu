// Layer normalisation of float32 rows: a row, its gain and its shift are asked for at once, 128 bits a load, stay in
// registers, and the result is stored once. The variance is that of the differences from the mean, so that a large mean
// does not cancel it. A row has a thread for every four values, up to 1,024 threads.

#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int WARP = 32, WIDE = 1024;

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

__device__ inline float total(float4 v) { return (v.x + v.y) + (v.z + v.w); }

__device__ inline float squares(float4 v) { return (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w); }

// Rows of `count` vectors, at most VECTORS * THREADS.
template <int THREADS, int VECTORS>
__global__ void __launch_bounds__(THREADS)
    held_rows(const float4* __restrict__ x, const float4* __restrict__ weight, const float4* __restrict__ bias,
              float eps, float4* __restrict__ y, int count) {
  __shared__ float sums[WARP], deviations[WARP];
  const int64_t start = blockIdx.x * int64_t(count);
  const float n = float(count) * 4;
  float4 values[VECTORS], gain[VECTORS], shift[VECTORS];
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    const int at = i * THREADS + threadIdx.x;
    values[i] = gain[i] = shift[i] = make_float4(0, 0, 0, 0);
    if (at < count) {
      values[i] = __ldcs(x + start + at);
      gain[i] = __ldg(weight + at);
      shift[i] = __ldg(bias + at);
    }
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < VECTORS; i++) sum += total(values[i]);
  const float mean = block_sum<THREADS>(sum, sums) / n;
  float deviation = 0;
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    const float4 v = values[i];
    values[i] = make_float4(v.x - mean, v.y - mean, v.z - mean, v.w - mean);
    if (i * THREADS + int(threadIdx.x) < count) deviation += squares(values[i]);
  }
  const float inverse = rsqrtf(block_sum<THREADS>(deviation, deviations) / n + eps);
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    const int at = i * THREADS + threadIdx.x;
    const float4 v = values[i], g = gain[i], s = shift[i];
    if (at < count)
      y[start + at] = make_float4(v.x * inverse * g.x + s.x, v.y * inverse * g.y + s.y, v.z * inverse * g.z + s.z,
                                  v.w * inverse * g.w + s.w);
  }
}

// Any row: value by value, read three times.
__global__ void __launch_bounds__(256) any_rows(const float* __restrict__ x, const float* __restrict__ weight,
                                                const float* __restrict__ bias, float eps, float* __restrict__ y,
                                                int64_t n) {
  __shared__ float sums[WARP], deviations[WARP];
  const int64_t start = blockIdx.x * n;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += 256) sum += x[start + i];
  const float mean = block_sum<256>(sum, sums) / float(n);
  float deviation = 0;
  for (int64_t i = threadIdx.x; i < n; i += 256) deviation += (x[start + i] - mean) * (x[start + i] - mean);
  const float inverse = rsqrtf(block_sum<256>(deviation, deviations) / float(n) + eps);
  for (int64_t i = threadIdx.x; i < n; i += 256) y[start + i] = (x[start + i] - mean) * inverse * weight[i] + bias[i];
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

extern "C" void run(const float* x, const float* weight, const float* bias, float eps, float* output, int64_t m,
                    int64_t n) {
  if (m < 1 || n < 1) return;
  const auto held = [&](auto kernel, int threads) {
    launch(kernel, m, threads, reinterpret_cast<const float4*>(x), reinterpret_cast<const float4*>(weight),
           reinterpret_cast<const float4*>(bias), eps, reinterpret_cast<float4*>(output), int(n / 4));
  };
  if (n % 4 != 0 || n > 4 * 4 * WIDE || !aligned(x, weight, bias, output))
    launch(any_rows, m, 256, x, weight, bias, eps, output, n);
  else if (n <= 4 * 32)
    held(held_rows<32, 1>, 32);
  else if (n <= 4 * 64)
    held(held_rows<64, 1>, 64);
  else if (n <= 4 * 128)
    held(held_rows<128, 1>, 128);
  else if (n <= 4 * 256)
    held(held_rows<256, 1>, 256);
  else if (n <= 4 * 512)
    held(held_rows<512, 1>, 512);
  else if (n <= 4 * WIDE)
    held(held_rows<WIDE, 1>, WIDE);
  else if (n <= 2 * 4 * WIDE)
    held(held_rows<WIDE, 2>, WIDE);
  else
    held(held_rows<WIDE, 4>, WIDE);
}
