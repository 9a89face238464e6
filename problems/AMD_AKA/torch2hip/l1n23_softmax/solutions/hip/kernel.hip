// Row softmax, float32, for waves of 32 lanes. A row of up to 1,024 values belongs to one wave, one of up to 8,192 to a
// work-group: both hold it in registers, so that memory is read once and written once, and pass maxima and sums from
// lane to lane by DPP, between waves through LDS. A longer row is cut into pieces, one a work-group; a first launch
// leaves the maximum and the sum of each, a second one brings them to the common denominator.
//
// Loads and stores are of 128 bits wherever a row starts: RDNA4 wants them aligned to 32 bits only.

#include <hip/hip_runtime.h>

#include <cstdint>

namespace {

constexpr int LANES = 32, WAVES = 8, THREADS = LANES * WAVES;
constexpr int PIECE = 4096;           // values of a long row that a work-group takes at a time
constexpr int MAX_PIECES = 1024;      // of one row; a row that is longer still has longer pieces
constexpr int ROWS_AT_ONCE = 64;      // long rows in one launch
constexpr float LOWEST = -3.402823466e38f, LOG2_E = 1.44269504f;

typedef float float4v __attribute__((vector_size(16)));

// Maximum and sum of every piece of the long rows that are under way.
__device__ float2 partial[ROWS_AT_ONCE * MAX_PIECES];

__device__ inline float larger(float a, float b) { return a > b ? a : b; }

__device__ inline float exponential(float x, float high) { return __builtin_amdgcn_exp2f((x - high) * LOG2_E); }

// The value of the lane whose number differs in the one bit MASK, without a way through LDS.
template <int MASK>
__device__ inline float across(float value) {
  int bits = __builtin_bit_cast(int, value);
  if constexpr (MASK < 16)
    bits = __builtin_amdgcn_update_dpp(0, bits, 0x160 + MASK, 0xf, 0xf, true);  // row_xmask
  else
    bits = __builtin_amdgcn_permlanex16(0, bits, 0x76543210, 0xfedcba98, true, true);
  return __builtin_bit_cast(float, bits);
}

// Over LANES or over WAVES neighbours, in every lane.
template <int COUNT>
__device__ inline float max_of(float value) {
  if constexpr (COUNT > 1) {
    value = larger(value, across<COUNT / 2>(value));
    return max_of<COUNT / 2>(value);
  }
  return value;
}

template <int COUNT>
__device__ inline float sum_of(float value) {
  if constexpr (COUNT > 1) {
    value += across<COUNT / 2>(value);
    return sum_of<COUNT / 2>(value);
  }
  return value;
}

// Over a work-group of WAVES waves. `shared` holds one value a wave and is not used again before another barrier.
__device__ inline float group_max(float value, float* shared) {
  value = max_of<LANES>(value);
  if (threadIdx.x % LANES == 0) shared[threadIdx.x / LANES] = value;
  __syncthreads();
  return max_of<WAVES>(shared[threadIdx.x % WAVES]);
}

__device__ inline float group_sum(float value, float* shared) {
  value = sum_of<LANES>(value);
  if (threadIdx.x % LANES == 0) shared[threadIdx.x / LANES] = value;
  __syncthreads();
  return sum_of<WAVES>(shared[threadIdx.x % WAVES]);
}

// Four values from x + at on of the n that are there; LOWEST stands for those beyond.
__device__ inline float4v four(const float* x, int64_t at, int64_t n) {
  float4v values;
  if (at + 4 <= n) {
    __builtin_memcpy(&values, x + at, sizeof values);
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++) values[i] = at + i < n ? x[at + i] : LOWEST;
  }
  return values;
}

__device__ inline void put(float* y, int64_t at, int64_t n, float4v values) {
  if (at + 4 <= n) {
    __builtin_memcpy(y + at, &values, sizeof values);
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (at + i < n) y[at + i] = values[i];
  }
}

__device__ inline float highest(float4v v) { return larger(larger(v[0], v[1]), larger(v[2], v[3])); }

__device__ inline float total(float4v v) { return (v[0] + v[1]) + (v[2] + v[3]); }

// The row's values in registers: vector i of a thread is its place + i * threads.
template <int VECTORS>
struct Held {
  float4v values[VECTORS];

  __device__ float load(const float* x, int place, int threads, int n) {
    float high = LOWEST;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
      values[i] = four(x, (i * threads + place) * 4, n);
      high = larger(high, highest(values[i]));
    }
    return high;
  }

  // What stands beyond the row's end becomes 0.
  __device__ float exponentials(float high) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
#pragma unroll
      for (int e = 0; e < 4; e++) values[i][e] = exponential(values[i][e], high);
      sum += total(values[i]);
    }
    return sum;
  }

  __device__ void store(float* y, int place, int threads, int n, float factor) {
#pragma unroll
    for (int i = 0; i < VECTORS; i++) put(y, (i * threads + place) * 4, n, values[i] * factor);
  }
};

template <int VECTORS>
__global__ void __launch_bounds__(THREADS) row_a_wave(const float* __restrict__ x, float* __restrict__ y, int64_t m,
                                                      int n) {
  const int lane = threadIdx.x % LANES;
  const int64_t row = int64_t(blockIdx.x) * WAVES + threadIdx.x / LANES;
  if (row >= m) return;
  Held<VECTORS> held;
  const float high = max_of<LANES>(held.load(x + row * n, lane, LANES, n));
  const float sum = sum_of<LANES>(held.exponentials(high));
  held.store(y + row * n, lane, LANES, n, 1.0f / sum);
}

template <int VECTORS>
__global__ void __launch_bounds__(THREADS) row_a_group(const float* __restrict__ x, float* __restrict__ y, int n) {
  __shared__ float maxima[WAVES];
  __shared__ float sums[WAVES];
  const int64_t row = blockIdx.x;
  Held<VECTORS> held;
  const float high = group_max(held.load(x + row * n, threadIdx.x, THREADS, n), maxima);
  const float sum = group_sum(held.exponentials(high), sums);
  held.store(y + row * n, threadIdx.x, THREADS, n, 1.0f / sum);
}

// Work-group (p, r) reads piece p of row r, `length` values or what is left of n.
__global__ void __launch_bounds__(THREADS) pieces(const float* __restrict__ x, int64_t n, int64_t length) {
  __shared__ float maxima[WAVES];
  __shared__ float sums[WAVES];
  const float* row = x + blockIdx.y * n;
  const int64_t start = blockIdx.x * length, end = start + length < n ? start + length : n;
  float high = LOWEST, sum = 0;
  for (int64_t at = start; at < end; at += PIECE) {
    Held<PIECE / (4 * THREADS)> held;
    const float* from = row + at;
    const int64_t left = end - at;
    const float now = larger(high, held.load(from, threadIdx.x, THREADS, left < PIECE ? left : PIECE));
    sum = sum * exponential(high, now) + held.exponentials(now);
    high = now;
  }
  const float top = group_max(high, maxima);
  const float all = group_sum(sum * exponential(high, top), sums);
  if (threadIdx.x == 0) partial[blockIdx.y * MAX_PIECES + blockIdx.x] = float2{top, all};
}

__global__ void __launch_bounds__(THREADS) joined(const float* __restrict__ x, float* __restrict__ y, int64_t n,
                                                  int64_t length) {
  __shared__ float maxima[WAVES];
  __shared__ float sums[WAVES];
  const float2* found = partial + blockIdx.y * MAX_PIECES;
  float high = LOWEST, sum = 0;
  for (int p = threadIdx.x; p < int(gridDim.x); p += THREADS) {
    const float2 piece = found[p];
    const float now = larger(high, piece.x);
    sum = sum * exponential(high, now) + piece.y * exponential(piece.x, now);
    high = now;
  }
  const float top = group_max(high, maxima);
  const float factor = 1.0f / group_sum(sum * exponential(high, top), sums);
  const int64_t start = blockIdx.x * length, end = start + length < n ? start + length : n;
  for (int64_t at = start + threadIdx.x * 4; at < end; at += THREADS * 4) {
    float4v values = four(x + blockIdx.y * n, at, end);
#pragma unroll
    for (int e = 0; e < 4; e++) values[e] = exponential(values[e], top) * factor;
    put(y + blockIdx.y * n, at, end, values);
  }
}

template <int VECTORS>
void by_waves(const float* x, float* y, int64_t m, int n) {
  hipLaunchKernelGGL(row_a_wave<VECTORS>, dim3((m + WAVES - 1) / WAVES), dim3(THREADS), 0, 0, x, y, m, n);
}

template <int VECTORS>
void by_groups(const float* x, float* y, int64_t m, int n) {
  hipLaunchKernelGGL(row_a_group<VECTORS>, dim3(m), dim3(THREADS), 0, 0, x, y, n);
}

void by_pieces(const float* x, float* y, int64_t m, int64_t n) {
  const int64_t share = (n + MAX_PIECES - 1) / MAX_PIECES;
  const int64_t length = (share + PIECE - 1) / PIECE * PIECE;
  for (int64_t row = 0; row < m; row += ROWS_AT_ONCE) {
    const dim3 grid((n + length - 1) / length, m - row < ROWS_AT_ONCE ? m - row : ROWS_AT_ONCE);
    hipLaunchKernelGGL(pieces, grid, dim3(THREADS), 0, 0, x + row * n, n, length);
    hipLaunchKernelGGL(joined, grid, dim3(THREADS), 0, 0, x + row * n, y + row * n, n, length);
  }
}

}  // namespace

extern "C" void run(const float* x, float* output, int64_t m, int64_t n) {
  if (n <= 128) return by_waves<1>(x, output, m, n);
  if (n <= 256) return by_waves<2>(x, output, m, n);
  if (n <= 512) return by_waves<4>(x, output, m, n);
  if (n <= 1024) return by_waves<8>(x, output, m, n);
  if (n <= 2048) return by_groups<2>(x, output, m, n);
  if (n <= 4096) return by_groups<4>(x, output, m, n);
  if (n <= 8192) return by_groups<8>(x, output, m, n);
  by_pieces(x, output, m, n);
}
