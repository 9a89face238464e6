// Row softmax, float32, for Hopper. A row of up to 32,768 values is held in the registers of a warp or a block, so that
// memory is read once and written once. A longer one belongs to a cluster of eight blocks, which pass their maxima and
// sums through distributed shared memory: one launch, and up to 131,072 values are still held in registers.
//
// Loads and stores are of 128 bits wherever a row starts: a row's first and last vector may be partial.

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

namespace {

constexpr int WARP = 32, CLUSTER = 8, WIDE = 1024;
constexpr float LOWEST = -3.402823466e38f, LOG2_E = 1.44269504f;

__device__ inline float exponential(float x, float high) { return exp2f((x - high) * LOG2_E); }

// Maximum of some values, and the sum of exp(value - maximum).
struct Part {
  float high, sum;
};

__device__ inline Part joined(Part a, Part b) {
  const float high = fmaxf(a.high, b.high);
  return {high, a.sum * exponential(a.high, high) + b.sum * exponential(b.high, high)};
}

// Over COUNT neighbouring lanes, in each of them.
template <int COUNT>
__device__ inline float max_of(float value) {
#pragma unroll
  for (int mask = COUNT / 2; mask > 0; mask /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, mask));
  return value;
}

template <int COUNT>
__device__ inline float sum_of(float value) {
#pragma unroll
  for (int mask = COUNT / 2; mask > 0; mask /= 2) value += __shfl_xor_sync(~0u, value, mask);
  return value;
}

template <int COUNT>
__device__ inline Part part_of(Part part) {
#pragma unroll
  for (int mask = COUNT / 2; mask > 0; mask /= 2)
    part = joined(part, Part{__shfl_xor_sync(~0u, part.high, mask), __shfl_xor_sync(~0u, part.sum, mask)});
  return part;
}

// Places of the row's first value in the vector of 128 bits that holds it.
__device__ inline int places_before(const float* row) { return int(reinterpret_cast<uintptr_t>(row) / 4 % 4); }

__device__ inline bool inside(int64_t at, int64_t n) { return at >= 0 && at < n; }

// Values at, ... at + 3 of a row of n; -inf stands for those that it has not. row + at lies on a vector's start. WHOLE:
// the row has all four of them or none.
template <bool WHOLE>
__device__ inline float4 load(const float* row, int64_t at, int64_t n) {
  if constexpr (WHOLE) {
    if (at >= n) return make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    return __ldcs(reinterpret_cast<const float4*>(row + at));
  }
  if (at >= 0 && at + 4 <= n) return __ldcs(reinterpret_cast<const float4*>(row + at));
  float4 v;
  v.x = inside(at, n) ? row[at] : -INFINITY;
  v.y = inside(at + 1, n) ? row[at + 1] : -INFINITY;
  v.z = inside(at + 2, n) ? row[at + 2] : -INFINITY;
  v.w = inside(at + 3, n) ? row[at + 3] : -INFINITY;
  return v;
}

template <bool WHOLE>
__device__ inline void store(float* row, int64_t at, int64_t n, float4 v) {
  if (WHOLE ? at < n : at >= 0 && at + 4 <= n) {
    *reinterpret_cast<float4*>(row + at) = v;
    return;
  }
  if constexpr (WHOLE) return;
  if (inside(at, n)) row[at] = v.x;
  if (inside(at + 1, n)) row[at + 1] = v.y;
  if (inside(at + 2, n)) row[at + 2] = v.z;
  if (inside(at + 3, n)) row[at + 3] = v.w;
}

__device__ inline float highest(float4 v) { return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)); }

__device__ inline float total(float4 v) { return (v.x + v.y) + (v.z + v.w); }

__device__ inline float4 exponentials(float4 v, float high) {
  return make_float4(exponential(v.x, high), exponential(v.y, high), exponential(v.z, high), exponential(v.w, high));
}

__device__ inline float4 scaled(float4 v, float factor) {
  return make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor);
}

// Rows of at most VECTORS * THREADS vectors, THREADS lanes a row: warps have rows of their own, a larger block has one.
template <int THREADS, int VECTORS, bool WHOLE>
__global__ void __launch_bounds__(THREADS > 128 ? THREADS : 128, THREADS == 256 ? 4 : 1)
    held_rows(const float* x, float* y, int64_t rows, int n) {
  __shared__ float highs[WARP], sums[WARP];
  constexpr int WARPS = THREADS / WARP;
  const int thread = threadIdx.x % THREADS, lane = threadIdx.x % WARP;
  const int64_t row = blockIdx.x * int64_t(blockDim.x / THREADS) + threadIdx.x / THREADS;
  if (row >= rows) return;
  const float* from = x + row * n;
  float* to = y + row * n;
  const int start = thread * 4 - (WHOLE ? 0 : places_before(from));
  float4 values[VECTORS];
  float high = LOWEST;
#pragma unroll
  for (int i = 0; i < VECTORS; i++) values[i] = load<WHOLE>(from, start + i * THREADS * 4, n);
#pragma unroll
  for (int i = 0; i < VECTORS; i++) high = fmaxf(high, highest(values[i]));
  high = max_of<WARP>(high);
  if constexpr (WARPS > 1) {
    if (lane == 0) highs[thread / WARP] = high;
    __syncthreads();
    high = max_of<WARPS>(highs[lane % WARPS]);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    values[i] = exponentials(values[i], high);
    sum += total(values[i]);
  }
  sum = sum_of<WARP>(sum);
  if constexpr (WARPS > 1) {
    if (lane == 0) sums[thread / WARP] = sum;
    __syncthreads();
    sum = sum_of<WARPS>(sums[lane % WARPS]);
  }
  const float inverse = 1.0f / sum;
#pragma unroll
  for (int i = 0; i < VECTORS; i++) store<WHOLE>(to, start + i * THREADS * 4, n, scaled(values[i], inverse));
}

// A row a cluster. HELD: its vectors are at most CLUSTER * WIDE * VECTORS, else they are read twice.
template <int VECTORS, bool HELD, bool WHOLE>
__global__ void __launch_bounds__(WIDE) cluster_rows(const float* x, float* y, int64_t n) {
  __shared__ Part of_warps[WARP], of_blocks[CLUSTER];
  const auto cluster = cooperative_groups::this_cluster();
  // Nobody writes into another block's shared memory before that block has come here.
  cluster.barrier_arrive();
  const int block = blockIdx.x % CLUSTER, lane = threadIdx.x % WARP;
  const int64_t row = blockIdx.x / CLUSTER;
  const float* from = x + row * n;
  float* to = y + row * n;
  constexpr int64_t STEP = CLUSTER * WIDE * 4;
  const int64_t start = (block * WIDE + int(threadIdx.x)) * 4 - (WHOLE ? 0 : places_before(from));
  float4 values[VECTORS];
  Part part = {LOWEST, 0};
  for (int64_t first = start; first < n; first += STEP * VECTORS) {
#pragma unroll
    for (int i = 0; i < VECTORS; i++) values[i] = load<WHOLE>(from, first + i * STEP, n);
    float high = LOWEST;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) high = fmaxf(high, highest(values[i]));
    float sum = 0;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) sum += total(exponentials(values[i], high));
    part = joined(part, Part{high, sum});
    if constexpr (HELD) break;
  }
  part = part_of<WARP>(part);
  if (lane == 0) of_warps[threadIdx.x / WARP] = part;
  __syncthreads();
  part = part_of<WARP>(of_warps[lane]);
  cluster.barrier_wait();
  if (threadIdx.x < CLUSTER) *cluster.map_shared_rank(&of_blocks[block], threadIdx.x) = part;
  cluster.sync();
  part = part_of<CLUSTER>(of_blocks[lane % CLUSTER]);
  const float inverse = 1.0f / part.sum;
  for (int64_t first = start; first < n; first += STEP * VECTORS) {
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
      const int64_t at = first + i * STEP;
      if constexpr (!HELD) values[i] = load<WHOLE>(from, at, n);
      store<WHOLE>(to, at, n, scaled(exponentials(values[i], part.high), inverse));
    }
    if constexpr (HELD) break;
  }
}

// Where input and output do not lie alike in vectors: value by value, a warp a row.
__global__ void __launch_bounds__(128) any_rows(const float* x, float* y, int64_t rows, int64_t n) {
  const int64_t row = blockIdx.x * int64_t(blockDim.x / WARP) + threadIdx.x / WARP;
  if (row >= rows) return;
  const float* from = x + row * n;
  float* to = y + row * n;
  Part part = {LOWEST, 0};
  for (int64_t i = threadIdx.x % WARP; i < n; i += WARP) part = joined(part, Part{from[i], 1});
  part = part_of<WARP>(part);
  for (int64_t i = threadIdx.x % WARP; i < n; i += WARP) to[i] = exponential(from[i], part.high) / part.sum;
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), int64_t blocks, int threads, int cluster, Arguments... arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(threads);
  config.attrs = &attribute;
  config.numAttrs = cluster > 1 ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, arguments...);
}

template <int VECTORS, bool WHOLE>
void by_warps(const float* x, float* y, int64_t m, int64_t n) {
  const int warps = m > 8192 ? 4 : 1;  // a block; few rows are spread over all processors
  launch(held_rows<WARP, VECTORS, WHOLE>, (m + warps - 1) / warps, warps * WARP, 1, x, y, m, int(n));
}

template <int THREADS, int VECTORS, bool WHOLE>
void by_blocks(const float* x, float* y, int64_t m, int64_t n) {
  launch(held_rows<THREADS, VECTORS, WHOLE>, m, THREADS, 1, x, y, m, int(n));
}

// `vectors`: in so many a row may lie.
template <bool WHOLE>
void softmax(const float* x, float* y, int64_t m, int64_t n, int64_t vectors) {
  if (vectors <= 1 * WARP) return by_warps<1, WHOLE>(x, y, m, n);
  if (vectors <= 2 * WARP) return by_warps<2, WHOLE>(x, y, m, n);
  if (vectors <= 4 * WARP) return by_warps<4, WHOLE>(x, y, m, n);
  if (vectors <= 8 * WARP) return by_warps<8, WHOLE>(x, y, m, n);
  if (vectors <= 2 * 256) return by_blocks<256, 2, WHOLE>(x, y, m, n);
  if (vectors <= 4 * 256) return by_blocks<256, 4, WHOLE>(x, y, m, n);
  if (vectors <= 8 * 256) return by_blocks<256, 8, WHOLE>(x, y, m, n);
  if (vectors <= 4 * WIDE) return by_blocks<WIDE, 4, WHOLE>(x, y, m, n);
  if (vectors <= 8 * WIDE) return by_blocks<WIDE, 8, WHOLE>(x, y, m, n);
  const bool held = vectors <= 4 * CLUSTER * WIDE;
  launch(held ? cluster_rows<4, true, WHOLE> : cluster_rows<4, false, WHOLE>, m * CLUSTER, WIDE, CLUSTER, x, y, n);
}

}  // namespace

extern "C" void run(const float* x, float* y, int64_t m, int64_t n) {
  if (m < 1 || n < 1) return;
  const uintptr_t at = reinterpret_cast<uintptr_t>(x), to = reinterpret_cast<uintptr_t>(y);
  if ((at - to) % 16)
    launch(any_rows, (m + 3) / 4, 128, 1, x, y, m, n);
  else if (at % 16 == 0 && n % 4 == 0)
    softmax<true>(x, y, m, n, n / 4);
  else
    softmax<false>(x, y, m, n, (n + 3 + 3) / 4);  // up to three places are before a row's first value
}
