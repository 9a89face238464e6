// fp16 matrix product on the matrix unit of RDNA4, summed in float32 over all of K and rounded once.
//
// A work-group of four waves makes 64 x 64 of the output in steps of 32 along K; each wave 32 x 32, as 2 x 2 fragments
// of 16 x 16. The unit's first operand is B transposed and its second one A transposed, so that a lane ends with eight
// neighbours of one output row and stores them at once. While a step is multiplied, the next one is under way from
// memory to registers.
//
// No size needs to be a multiple of anything, and rows of odd length start anywhere, which loads of 128 bits may. Where
// tiles do not cover the output, the last ones are moved back over their neighbours and write the same values again;
// where steps do not cover K, the last one is moved back and what was summed before is masked out. A matrix that is
// smaller than one tile or step goes value by value at its ends.

#include <hip/hip_runtime.h>

#include <cstdint>

namespace {

typedef _Float16 half8 __attribute__((vector_size(16)));
typedef float float8 __attribute__((vector_size(32)));

constexpr int TILE = 64, STEP = 32, THREADS = 128;
// Halves from one row in LDS to the next: 16 lanes that read 16 bytes of 16 rows meet 64 different banks.
constexpr int PITCH = STEP + 8;

// Eight values from p on; those from the `count`-th on are zero and not read.
__device__ inline half8 eight(const _Float16* p, int count) {
  half8 values = {};
  if (count >= 8) {
    __builtin_memcpy(&values, p, sizeof values);
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++)
      if (i < count) values[i] = p[i];
  }
  return values;
}

// A barrier for what is in LDS: loads from memory may still be under way behind it.
__device__ inline void lds_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}

struct Step {
  half8 a[2];  // rows r and r + 32 of A
  half8 b[2];  // rows k and k + 1 of B
};

__device__ inline half8 eight(const _Float16* p) {
  half8 values;
  __builtin_memcpy(&values, p, sizeof values);
  return values;
}

__device__ inline int smaller(int a, int b) { return a < b ? a : b; }

// LARGE: at least one whole tile and step.
template <bool LARGE>
__global__ void __launch_bounds__(THREADS) matmul(const _Float16* __restrict__ a, const _Float16* __restrict__ b,
                                                  _Float16* __restrict__ c, int m, int k, int n) {
  __shared__ __attribute__((aligned(16))) _Float16 rows[TILE * PITCH];     // of A: [m][k]
  __shared__ __attribute__((aligned(16))) _Float16 columns[TILE * PITCH];  // of B: [n][k], groups of 8 k swapped
  const int thread = threadIdx.x, lane = thread % 32, wave = thread / 32;
  const int m0 = LARGE ? smaller(blockIdx.y * TILE, m - TILE) : blockIdx.y * TILE;
  const int n0 = LARGE ? smaller(blockIdx.x * TILE, n - TILE) : blockIdx.x * TILE;

  const int a_row = thread / 4, a_k = thread % 4 * 8;
  const _Float16* a_from[2];
  for (int j = 0; j < 2; j++) a_from[j] = a + int64_t(smaller(m0 + a_row + 32 * j, m - 1)) * k + a_k;
  const int b_k = thread / 8 * 2, b_n = thread % 8 * 8;
  const int b_column = smaller(n0 + b_n, n - 1);
  const _Float16* b_from = b + int64_t(b_k) * n + b_column;

  // What this thread carries of the step at k0.
  auto fetched = [&](int k0) {
    Step step;
    if constexpr (!LARGE) {
      for (int j = 0; j < 2; j++) {
        step.a[j] = eight(a_from[j] + k0, k - k0 - a_k);
        step.b[j] = eight(b_from + int64_t(k0 + j) * n, k0 + b_k + j < k ? n - b_column : 0);
      }
      return step;
    }
    const int from = smaller(k0, k - STEP);
    for (int j = 0; j < 2; j++) {
      step.a[j] = eight(a_from[j] + from);
      step.b[j] = eight(b_from + int64_t(from + j) * n);
    }
    if (from < k0) {
      const int before = k0 - from;  // values of this step that the one before had
      for (int j = 0; j < 2; j++) {
        for (int e = 0; e < 8; e++) step.a[j][e] = a_k + e < before ? _Float16(0) : step.a[j][e];
        if (b_k + j < before) step.b[j] = half8{};
      }
    }
    return step;
  };

  float8 sums[2][2] = {};
  const int wave_m = wave / 2 * 32, wave_n = wave % 2 * 32;
  Step step = fetched(0);
  for (int k0 = 0; k0 < k; k0 += STEP) {
    for (int j = 0; j < 2; j++)
      __builtin_memcpy(rows + (a_row + 32 * j) * PITCH + a_k, &step.a[j], sizeof(half8));
    // Two k at a time, so that B turns on its way into LDS; swapping groups of 8 k keeps the lanes off one bank.
    const int group = b_k / 8 ^ (b_n / 16 & 3);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const _Float16 pair[2] = {step.b[0][i], step.b[1][i]};
      __builtin_memcpy(columns + (b_n + i) * PITCH + group * 8 + b_k % 8, pair, sizeof pair);
    }
    lds_barrier();
    if (k0 + STEP < k) step = fetched(k0 + STEP);
#pragma unroll
    for (int part = 0; part < STEP / 16; part++) {
      // Of a 16 x 16 operand, lane l holds row (or column) l % 16 at the eight k from 8 * (l / 16) on.
      const int half = part * 2 + lane / 16;
      half8 of_a[2], of_b[2];
      for (int j = 0; j < 2; j++) {
        const int row = wave_m + 16 * j + lane % 16, column = wave_n + 16 * j + lane % 16;
        __builtin_memcpy(&of_a[j], rows + row * PITCH + half * 8, sizeof(half8));
        __builtin_memcpy(&of_b[j], columns + column * PITCH + (half ^ (column / 16 & 3)) * 8, sizeof(half8));
      }
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
          sums[i][j] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(of_b[j], of_a[i], sums[i][j]);
    }
    lds_barrier();
  }

#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const int row = m0 + wave_m + 16 * i + lane % 16, column = n0 + wave_n + 16 * j + lane / 16 * 8;
      half8 result;
      for (int e = 0; e < 8; e++) result[e] = static_cast<_Float16>(sums[i][j][e]);
      _Float16* to = c + int64_t(row) * n + column;
      if (LARGE) {
        __builtin_memcpy(to, &result, sizeof result);
      } else if (row < m) {
#pragma unroll
        for (int e = 0; e < 8; e++)
          if (column + e < n) to[e] = result[e];
      }
    }
}

}  // namespace

extern "C" void run(const _Float16* a, const _Float16* b, _Float16* output, int64_t m, int64_t k, int64_t n) {
  const dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  if (m >= TILE && n >= TILE && k >= STEP)
    hipLaunchKernelGGL(matmul<true>, grid, dim3(THREADS), 0, 0, a, b, output, int(m), int(k), int(n));
  else
    hipLaunchKernelGGL(matmul<false>, grid, dim3(THREADS), 0, 0, a, b, output, int(m), int(k), int(n));
}
