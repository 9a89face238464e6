// HIP kernels without a fault: what the programming model has beyond Triton's. Host functions end in _.

#include <hip/hip_runtime.h>

#include <cstdint>

namespace {

__constant__ float weights[4] = {0.5f, -1.0f, 2.0f, 0.25f};
__device__ float total_so_far;
__device__ int history[64];

// Blocks of two dimensions, a ragged grid of three, sizes from the dispatch packet.
__global__ void numbers(int* out, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < nx && y < ny && z < nz)
    out[(z * ny + y) * nx + x] = gridDim.x + 10 * gridDim.y + 100 * gridDim.z + 1000 * threadIdx.y + 10000 * blockDim.x;
}

// A block that is no whole number of waves.
__global__ void ragged(const float* x, float* out) {
  out[blockIdx.x * 50 + threadIdx.x] = x[blockIdx.x * 50 + threadIdx.x] * weights[threadIdx.x % 4];
}

// Calls that are not inlined, one of them by a pointer that the data chooses.
__device__ __attribute__((noinline)) float twice(float v) { return v * 2; }
__device__ __attribute__((noinline)) float squared(float v) { return v * v; }
__device__ __attribute__((noinline)) float chained(float v, int depth) {
  for (int i = 0; i < depth; i++) v = twice(v) - squared(v);
  return v;
}
__global__ void calls(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = chained(x[i], 2 + (i & 1));
}
__global__ void by_pointer(const float* x, float* out, int n, int which) {
  float (*function)(float) = which ? twice : squared;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = function(x[i]);
}

__device__ __attribute__((noinline)) int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void recursive(const int* x, int* out) { out[threadIdx.x] = fibonacci(x[threadIdx.x]); }

// A switch with many cases.
__global__ void dispatched(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = x[i];
  switch (v & 15) {
    case 0: v += 3; break;
    case 1: v *= 7; break;
    case 2: v ^= 0x55; break;
    case 3: v = v / 3; break;
    case 4: v = -v; break;
    case 5: v <<= 2; break;
    case 6: v = v % 11; break;
    case 7: v |= 0x100; break;
    case 8: v = v * v; break;
    case 9: v >>= 1; break;
    case 10: v = ~v; break;
    default: v = 1000; break;
  }
  out[i] = v;
}

// Lanes that leave a loop at different times, with a break in a nested one.
__global__ void divergent(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = x[i], steps = 0;
  while (v > 1) {
    for (int k = 2; k <= v; k++)
      if (v % k == 0) {
        v /= k;
        break;
      }
    steps++;
    if (steps > 6) break;
  }
  out[i] = steps * 1000 + v;
}

// An array of a lane's own, sorted: scratch memory.
__global__ void sorted(const int* x, int* out) {
  int own[24];
  const int* from = x + (blockIdx.x * blockDim.x + threadIdx.x) * 24;
  for (int i = 0; i < 24; i++) own[i] = from[i];
  for (int i = 1; i < 24; i++) {
    int v = own[i], k = i;
    while (k > 0 && own[k - 1] > v) {
      own[k] = own[k - 1];
      k--;
    }
    own[k] = v;
  }
  for (int i = 0; i < 24; i++) out[(blockIdx.x * blockDim.x + threadIdx.x) * 24 + i] = own[i];
}

__global__ void lanes(const int* x, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = x[i];
  unsigned long long positive = __ballot(v > 0);
  int result = __shfl_xor(v, 5) + 3 * __shfl_up(v, 1) + 5 * __shfl(v, 31 - threadIdx.x % 32);
  result += 7 * __popcll(positive) + 11 * (__any(v == 77) != 0) + 13 * (__all(v < 100) != 0);
  out[i] = result;
}

__global__ void shared_memory(const float* x, float* out, int n) {
  extern __shared__ float dynamic[];
  __shared__ float fixed[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  dynamic[t] = i < n ? x[i] : 0;
  fixed[t ^ 1] = dynamic[t] * 2;
  __syncthreads();
  for (int half = 32; half; half /= 2) {
    if (t < half) dynamic[t] += dynamic[t + half];
    __syncthreads();
  }
  if (i < n) out[i] = dynamic[0] + fixed[t];
}

__global__ void atomics(const int* x, int* out, float* sum, unsigned long long* wide, int n) {
  __shared__ int count[8];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < 8) count[threadIdx.x] = 0;
  __syncthreads();
  if (i < n) {
    atomicAdd(&count[x[i] & 7], 1);
    atomicAdd(sum, float(x[i]));
    atomicMax(out + 8, x[i]);
    atomicMin(out + 9, x[i]);
    atomicXor(out + 10, x[i]);
    atomicAdd(wide, (unsigned long long)x[i] << 20);
  }
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(out + threadIdx.x, count[threadIdx.x]);
}

__global__ void functions(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = sinf(x[i]) + expf(x[i] * 0.1f) + log1pf(fabsf(x[i])) + powf(fabsf(x[i]), 1.5f) + tanhf(x[i]);
}
__global__ void wide_functions(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = sin(x[i]) + exp(x[i] * 0.1) + sqrt(fabs(x[i])) / (1 + x[i] * x[i]);
}

// Memory of the module: one kernel leaves it, the next one finds it.
__global__ void remember(const float* x) {
  if (threadIdx.x == 0) total_so_far += x[0];
  history[threadIdx.x] += threadIdx.x;
}
__global__ void recall(float* out) { out[threadIdx.x] = total_so_far + history[threadIdx.x]; }

// Pointers in a structure.
struct Pair {
  const float* x;
  float* out;
  int n;
  float scale;
};
__global__ void from_structure(Pair pair) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pair.n) pair.out[i] = pair.x[i] * pair.scale;
}

// A generic pointer: LDS or memory, which only the run decides.
__device__ __attribute__((noinline)) float read(const float* from, int at) { return from[at]; }
__global__ void generic(const float* x, float* out) {
  __shared__ float s[32];
  s[threadIdx.x] = -x[threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 32 + threadIdx.x] = read(blockIdx.x & 1 ? s : x, 31 - threadIdx.x);
}

typedef int int8v __attribute__((vector_size(32)));
typedef int int2v __attribute__((vector_size(8)));
typedef _Float16 half8 __attribute__((vector_size(16)));
typedef short short8 __attribute__((vector_size(16)));

// The matrix unit's other formats: i32 of i4 (K of 16 and 32), f16 and bf16 results.
__global__ void matrices(const int* a, const int* b, int8v* c, int8v* d, const half8* e, half8* f, const short8* g,
                         short8* h) {
  int t = threadIdx.x;
  int8v zero = {};
  c[t] = __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32_gfx12(true, a[t], true, b[t], zero, false);
  int2v left = {a[t], a[32 + t]}, right = {b[t], b[32 + t]};
  d[t] = __builtin_amdgcn_wmma_i32_16x16x32_iu4_w32_gfx12(false, left, true, right, zero, false);
  f[t] = __builtin_amdgcn_wmma_f16_16x16x16_f16_w32_gfx12(e[t], e[32 + t], half8{});
  h[t] = __builtin_amdgcn_wmma_bf16_16x16x16_bf16_w32_gfx12(g[t], g[32 + t], short8{});
}

}  // namespace

extern "C" {
void numbers_(int* out, int64_t nx, int64_t ny, int64_t nz) {
  dim3 block(8, 4, 2), grid((nx + 7) / 8, (ny + 3) / 4, (nz + 1) / 2);
  numbers<<<grid, block>>>(out, nx, ny, nz);
}
void ragged_(const float* x, float* out) { ragged<<<3, 50>>>(x, out); }
void calls_(const float* x, float* out, int64_t n) { calls<<<(n + 63) / 64, 64>>>(x, out, n); }
void by_pointer_(const float* x, float* out, int64_t n, int64_t which) {
  by_pointer<<<(n + 63) / 64, 64>>>(x, out, n, which);
}
void recursive_(const int* x, int* out) { recursive<<<1, 32>>>(x, out); }
void dispatched_(const int* x, int* out, int64_t n) { dispatched<<<(n + 63) / 64, 64>>>(x, out, n); }
void divergent_(const int* x, int* out, int64_t n) { divergent<<<(n + 63) / 64, 64>>>(x, out, n); }
void sorted_(const int* x, int* out) { sorted<<<2, 64>>>(x, out); }
void lanes_(const int* x, int* out) { lanes<<<3, 64>>>(x, out); }
void shared_memory_(const float* x, float* out, int64_t n) { shared_memory<<<(n + 63) / 64, 64, 256>>>(x, out, n); }
void atomics_(const int* x, int* out, float* sum, unsigned long long* wide, int64_t n) {
  atomics<<<(n + 127) / 128, 128>>>(x, out, sum, wide, n);
}
void functions_(const float* x, float* out, int64_t n) { functions<<<(n + 63) / 64, 64>>>(x, out, n); }
void wide_functions_(const double* x, double* out, int64_t n) { wide_functions<<<(n + 63) / 64, 64>>>(x, out, n); }
void module_memory_(const float* x, float* out) {
  remember<<<1, 64>>>(x);
  remember<<<1, 64>>>(x);
  recall<<<1, 64>>>(out);
}
void from_structure_(const float* x, float* out, int64_t n) {
  from_structure<<<(n + 63) / 64, 64>>>(Pair{x, out, int(n), 3.0f});
}
void generic_(const float* x, float* out) { generic<<<4, 32>>>(x, out); }
void matrices_(const int* a, const int* b, int8v* c, int8v* d, const half8* e, half8* f, const short8* g, short8* h) {
  matrices<<<1, 32>>>(a, b, c, d, e, f, g, h);
}
// Memory of the runtime: zeros, then x, doubled twice in place, and copied out.
void allocated_(const float* x, float* out, int64_t n) {
  float* own = nullptr;
  if (hipMalloc(&own, n * 4) != hipSuccess) return;
  (void)hipMemset(own, 0, n * 4);
  (void)hipMemcpy(own, x, n * 4, hipMemcpyHostToDevice);
  for (int i = 0; i < 2; i++) from_structure<<<(n + 63) / 64, 64>>>(Pair{own, own, int(n), 2.0f});
  (void)hipMemcpy(out, own, n * 4, hipMemcpyDeviceToHost);
  (void)hipFree(own);
}
// Errors stay until they are asked for: 1 of a launch of no threads, then none.
void errors_(int* out) {
  ragged<<<0, 50>>>(nullptr, nullptr);
  out[0] = hipGetLastError();
  out[1] = hipGetLastError();
}
}
