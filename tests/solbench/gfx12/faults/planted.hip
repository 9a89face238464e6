// Kernels with one fault each, and their twins without it: RIGHT chooses. A line that ends with FAULT and a name is
// where the emulator is to find it. Each kernel runs in several groups of two waves unless its launch says else.

#include <hip/hip_runtime.h>

#include <cstdint>

namespace {

constexpr int THREADS = 64;
typedef _Float16 half8 __attribute__((vector_size(16)));
typedef float float8 __attribute__((vector_size(32)));

// ---- bounds

template <bool RIGHT>
__global__ void load_past_end(const float* x, float* y, int n) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  float next = 0;
  if (!RIGHT || i + 1 < n) next = x[i + 1];  // FAULT load_past_end
  y[i] = next;
}

template <bool RIGHT>
__global__ void store_past_end(const float* x, float* y, int n) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (RIGHT ? i < n : i <= n) y[i] = x[0] + i;  // FAULT store_past_end
}

template <bool RIGHT>
__global__ void load_before_start(const float* x, float* y, int n) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  float before = 0;
  if (!RIGHT || i > 0) before = x[i - 1];  // FAULT load_before_start
  y[i] = before;
}

template <bool RIGHT>
__global__ void bin_too_many(const int* x, int* bins, int n, int count) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  int bin = RIGHT ? min(x[i], count - 1) : x[i];
  atomicAdd(bins + bin, 1);  // FAULT bin_too_many
}

template <bool RIGHT>
__global__ void null_pointer(const float* x, float* y, const float* bias, int n) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  float b = 0;
  if (!RIGHT || bias) b = bias[i];  // FAULT null_pointer
  y[i] = x[i] + b;
}

// Rows of a matrix whose offsets leave 32 bits: the sum wraps to before the start.
template <bool RIGHT>
__global__ void wrapped_offset(const float* x, float* y, int pitch) {
  int row = RIGHT ? 0 : int(blockIdx.x);
  int offset = row * pitch;
  y[blockIdx.x * THREADS + threadIdx.x] = x[offset + int(threadIdx.x)];  // FAULT wrapped_offset
}

// ---- LDS

template <bool RIGHT>
__global__ void lds_past_end(const float* x, float* y) {
  __shared__ float s[THREADS];
  int t = threadIdx.x;
  int at = RIGHT ? t : t + 1;
  s[at] = x[blockIdx.x * THREADS + t];  // FAULT lds_past_end
  __syncthreads();
  y[blockIdx.x * THREADS + t] = s[RIGHT ? t : t ? t : 1];
}

// The launch gives bytes for half of it.
__global__ void lds_too_small(const float* x, float* y) {
  extern __shared__ float dynamic[];
  int t = threadIdx.x;
  dynamic[t] = x[blockIdx.x * THREADS + t];  // FAULT lds_too_small
  __syncthreads();
  y[blockIdx.x * THREADS + t] = dynamic[THREADS - 1 - t];
}

template <bool RIGHT>
__global__ void lds_not_written(const float* x, float* y) {
  __shared__ float s[THREADS];
  int t = threadIdx.x;
  if (RIGHT || t % 2 == 0) s[t] = x[blockIdx.x * THREADS + t];
  __syncthreads();
  y[blockIdx.x * THREADS + t] = s[THREADS - 1 - t] + 1;  // FAULT lds_not_written
}

// ---- order

template <bool RIGHT>
__global__ void lds_without_barrier(const float* x, float* y) {
  __shared__ float s[THREADS];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * THREADS + t];
  if (RIGHT) __syncthreads();
  y[blockIdx.x * THREADS + t] = s[THREADS - 1 - t];  // FAULT lds_without_barrier
}

// The next step overwrites what another wave may not have read yet.
template <bool RIGHT>
__global__ void loop_without_barrier(const float* x, float* y, int steps) {
  __shared__ float s[THREADS];
  int t = threadIdx.x;
  float v = x[blockIdx.x * THREADS + t];
  for (int i = 0; i < steps; i++) {
    s[t] = v;  // FAULT loop_without_barrier
    __syncthreads();
    v = s[THREADS - 1 - t] + 1;
    if (RIGHT) __syncthreads();
  }
  y[blockIdx.x * THREADS + t] = v;
}

template <bool RIGHT>
__global__ void tree_without_barrier(const float* x, float* y) {
  __shared__ float s[THREADS];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * THREADS + t];
  __syncthreads();
  for (int half = THREADS / 2; half; half /= 2) {
    if (t < half) s[t] += s[t + half];
    if (RIGHT) __syncthreads();
  }
  float sum = s[0];  // FAULT tree_without_barrier
  y[blockIdx.x * THREADS + t] = sum;
}

template <bool RIGHT>
__global__ void memory_without_barrier(const float* x, float* y, float* between) {
  int base = blockIdx.x * THREADS, t = threadIdx.x;
  between[base + t] = x[base + t];
  if (RIGHT) __syncthreads();
  y[base + t] = between[base + THREADS - 1 - t];  // FAULT memory_without_barrier
}

template <bool RIGHT>
__global__ void sum_without_atomic(const float* x, float* sum) {
  float v = x[blockIdx.x];
  if (threadIdx.x) return;
  if (RIGHT)
    atomicAdd(sum, v);
  else
    *sum = *sum + v;  // FAULT sum_without_atomic
}

// All threads of a group write one place, each something else.
template <bool RIGHT>
__global__ void many_writers(const float* x, float* y) {
  int t = threadIdx.x;
  if (RIGHT && t >= 32) return;
  y[blockIdx.x * 32 + t % 32] = x[blockIdx.x * THREADS + t];  // FAULT many_writers
}

// A group reads what its neighbour may not have written yet.
template <bool RIGHT>
__global__ void neighbour(float* x, float* y) {
  int t = threadIdx.x, g = blockIdx.x, groups = gridDim.x;
  x[g * THREADS + t] = g + t;
  y[g * THREADS + t] = x[(RIGHT ? g : (g + 1) % groups) * THREADS + t];  // FAULT neighbour
}

// y begins one value behind x in the same memory.
template <bool RIGHT>
__global__ void overlap(const float* x, float* y, int n) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i < n) y[i] = x[i] * 2;  // FAULT overlap
}

// One group sets a flag by a plain store; the other ones wait for it by plain loads.
template <bool RIGHT>
__global__ void plain_flag(float* x, float* y, int* flag) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) x[0] = 5;
    if (RIGHT) {
      if (threadIdx.x == 0) __hip_atomic_store(flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    } else {
      if (threadIdx.x == 0) *(volatile int*)flag = 1;
    }
    return;
  }
  if (RIGHT)
    while (__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 0) __builtin_amdgcn_s_sleep(1);
  else
    while (*(volatile int*)flag == 0) __builtin_amdgcn_s_sleep(1);
  y[blockIdx.x * THREADS + threadIdx.x] = x[0];  // FAULT plain_flag
}

// ---- what never ends

// One wave waits at a barrier that the other one has not announced.
template <bool RIGHT>
__global__ void barrier_not_announced(const float* x, float* y) {
  int t = threadIdx.x;
  if (RIGHT || __builtin_amdgcn_readfirstlane(t) < 32) asm volatile("s_barrier_signal -1" ::: "memory");
  asm volatile("s_barrier_wait -1" ::: "memory");  // FAULT barrier_not_announced
  y[blockIdx.x * THREADS + t] = x[t];
}

template <bool RIGHT>
__global__ void nobody_sets_it(int* flag, float* y) {
  if (RIGHT && threadIdx.x == 0) atomicExch(flag, 1);
  while (atomicAdd(flag, 0) == 0) __builtin_amdgcn_s_sleep(1);
  y[blockIdx.x * THREADS + threadIdx.x] = 1;
}

// ---- matrix operations and lanes

template <bool RIGHT>
__global__ void half_a_wave(const half8* a, const half8* b, float8* c) {
  int t = threadIdx.x;
  float8 sum = {};
  if (RIGHT || t < 16) sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a[t], b[t], sum);  // FAULT half_a_wave
  c[blockIdx.x * 32 + t] = sum;
}

// c = a b^T of 16 x 16 each; the result lies by columns of lanes.
template <bool RIGHT>
__global__ void transposed_result(const _Float16* a, const _Float16* b, float* c) {
  int t = threadIdx.x;
  half8 left, right;
  for (int i = 0; i < 8; i++) {
    left[i] = a[t % 16 * 16 + t / 16 * 8 + i];
    right[i] = b[t % 16 * 16 + t / 16 * 8 + i];
  }
  float8 sum = {};
  sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(left, right, sum);
  for (int i = 0; i < 8; i++) {
    int row = t / 16 * 8 + i, column = t % 16;
    c[blockIdx.x * 256 + (RIGHT ? row * 16 + column : column * 16 + row)] = sum[i];
  }
}

// Written for waves of 64 lanes: the first step asks a lane that is not there.
template <bool RIGHT>
__global__ void sixty_four_lanes(const float* x, float* y) {
  int t = threadIdx.x;
  float v = x[blockIdx.x * 32 + t];
  for (int step = RIGHT ? 16 : 32; step; step /= 2) v += __shfl_down(v, step, RIGHT ? 32 : 64);
  if (t == 0) y[blockIdx.x] = v;
}

// Lanes that are off have nothing to give.
template <bool RIGHT>
__global__ void lanes_are_off(const float* x, float* y) {
  int t = threadIdx.x;
  float v = x[blockIdx.x * 32 + t], other = 0;
  if (RIGHT) {
    other = __shfl(v, 31 - t);
    if (t >= 16) other = 0;
  } else if (t < 16) {
    other = __shfl(v, 31 - t);
  }
  y[blockIdx.x * 32 + t] = other;
}

// ---- registers and alignment

template <bool RIGHT>
__global__ void register_not_written(const float* x, float* y) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  float v = x[i], w;
  if (RIGHT)
    asm volatile("v_mov_b32 v77, 0\n\tv_add_f32 %0, %1, v77" : "=v"(w) : "v"(v) : "v77");
  else
    asm volatile("v_add_f32 %0, %1, v77" : "=v"(w) : "v"(v) : "v77");  // FAULT register_not_written
  y[i] = w;
}

template <bool RIGHT>
__global__ void odd_atomic(char* counts) {
  unsigned* at = reinterpret_cast<unsigned*>(counts + (RIGHT ? 4 : 2));
  atomicAdd(at, 1u);  // FAULT odd_atomic
}

template <bool RIGHT>
__global__ void writes_input(float* x, float* y, int n) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  float v = x[i] * 2;
  if (!RIGHT) x[i] = v;  // FAULT writes_input
  y[i] = v;
}

// The result is what came last: it depends on the order of the groups.
template <bool RIGHT>
__global__ void last_one_wins(int* out) {
  if (threadIdx.x) return;
  if (RIGHT)
    atomicMax(out, int(blockIdx.x));
  else
    atomicExch(out, int(blockIdx.x));
}

// Scratch of a lane: an array whose index the compiler does not know, not all of it written.
template <bool RIGHT>
__global__ void scratch_not_written(const int* x, int* y) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  volatile int a[40];
  for (int k = 0; k < (RIGHT ? 40 : 20); k++) a[k] = x[k] + i;
  y[i] = a[x[i] & 31];  // FAULT scratch_not_written
}

}  // namespace

#define EITHER(name, ...) \
  if (right) \
    hipLaunchKernelGGL(name<true>, __VA_ARGS__); \
  else \
    hipLaunchKernelGGL(name<false>, __VA_ARGS__)

extern "C" {
void load_past_end_(const float* x, float* y, int64_t right) {
  EITHER(load_past_end, dim3(3), dim3(THREADS), 0, 0, x, y, 150);
}
void store_past_end_(const float* x, float* y, int64_t right) {
  EITHER(store_past_end, dim3(3), dim3(THREADS), 0, 0, x, y, 150);
}
void load_before_start_(const float* x, float* y, int64_t right) {
  EITHER(load_before_start, dim3(3), dim3(THREADS), 0, 0, x, y, 150);
}
void bin_too_many_(const int* x, int* y, int64_t right) {
  EITHER(bin_too_many, dim3(3), dim3(THREADS), 0, 0, x, y, 150, 10);
}
void null_pointer_(const float* x, float* y, int64_t right) {
  EITHER(null_pointer, dim3(3), dim3(THREADS), 0, 0, x, y, nullptr, 150);
}
void wrapped_offset_(const float* x, float* y, int64_t right) {
  EITHER(wrapped_offset, dim3(3), dim3(THREADS), 0, 0, x, y, 1 << 30);
}
void lds_past_end_(const float* x, float* y, int64_t right) {
  EITHER(lds_past_end, dim3(3), dim3(THREADS), 0, 0, x, y);
}
void lds_too_small_(const float* x, float* y, int64_t right) {
  hipLaunchKernelGGL(lds_too_small, dim3(3), dim3(THREADS), right ? THREADS * 4 : THREADS * 2, 0, x, y);
}
void lds_not_written_(const float* x, float* y, int64_t right) {
  EITHER(lds_not_written, dim3(3), dim3(THREADS), 0, 0, x, y);
}
void lds_without_barrier_(const float* x, float* y, int64_t right) {
  EITHER(lds_without_barrier, dim3(3), dim3(THREADS), 0, 0, x, y);
}
void loop_without_barrier_(const float* x, float* y, int64_t right) {
  EITHER(loop_without_barrier, dim3(3), dim3(THREADS), 0, 0, x, y, 4);
}
void tree_without_barrier_(const float* x, float* y, int64_t right) {
  EITHER(tree_without_barrier, dim3(3), dim3(THREADS), 0, 0, x, y);
}
void memory_without_barrier_(const float* x, float* y, float* between, int64_t right) {
  EITHER(memory_without_barrier, dim3(3), dim3(THREADS), 0, 0, x, y, between);
}
void sum_without_atomic_(const float* x, float* y, int64_t right) {
  EITHER(sum_without_atomic, dim3(8), dim3(32), 0, 0, x, y);
}
void many_writers_(const float* x, float* y, int64_t right) {
  EITHER(many_writers, dim3(3), dim3(THREADS), 0, 0, x, y);
}
void neighbour_(float* x, float* y, int64_t right) { EITHER(neighbour, dim3(3), dim3(THREADS), 0, 0, x, y); }
void overlap_(float* x, float* y, int64_t right) {
  EITHER(overlap, dim3(3), dim3(THREADS), 0, 0, x, right ? y : x + 1, 150);
}
void plain_flag_(float* x, float* y, int* flag, int64_t right) {
  EITHER(plain_flag, dim3(3), dim3(THREADS), 0, 0, x, y, flag);
}
void barrier_not_announced_(const float* x, float* y, int64_t right) {
  EITHER(barrier_not_announced, dim3(3), dim3(THREADS), 0, 0, x, y);
}
void nobody_sets_it_(int* flag, float* y, int64_t right) {
  EITHER(nobody_sets_it, dim3(3), dim3(THREADS), 0, 0, flag, y);
}
void half_a_wave_(const half8* a, const half8* b, float8* c, int64_t right) {
  EITHER(half_a_wave, dim3(2), dim3(32), 0, 0, a, b, c);
}
void transposed_result_(const _Float16* a, const _Float16* b, float* c, int64_t right) {
  EITHER(transposed_result, dim3(2), dim3(32), 0, 0, a, b, c);
}
void sixty_four_lanes_(const float* x, float* y, int64_t right) {
  EITHER(sixty_four_lanes, dim3(3), dim3(32), 0, 0, x, y);
}
void lanes_are_off_(const float* x, float* y, int64_t right) { EITHER(lanes_are_off, dim3(3), dim3(32), 0, 0, x, y); }
void register_not_written_(const float* x, float* y, int64_t right) {
  EITHER(register_not_written, dim3(3), dim3(THREADS), 0, 0, x, y);
}
void odd_atomic_(char* counts, int64_t right) { EITHER(odd_atomic, dim3(2), dim3(32), 0, 0, counts); }
void writes_input_(float* x, float* y, int64_t right) { EITHER(writes_input, dim3(3), dim3(THREADS), 0, 0, x, y, 150); }
void last_one_wins_(int* y, int64_t right) { EITHER(last_one_wins, dim3(9), dim3(32), 0, 0, y); }
void scratch_not_written_(const int* x, int* y, int64_t right) {
  EITHER(scratch_not_written, dim3(3), dim3(THREADS), 0, 0, x, y);
}
}
