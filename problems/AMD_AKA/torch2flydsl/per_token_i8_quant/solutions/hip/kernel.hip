// Symmetric int8 quantisation of bfloat16 rows, a row a work-group of eight waves of 32 lanes.
//
// A thread takes 16 neighbours at a time, by two loads and one store of 128 bits, and keeps what it loaded in
// registers: memory is read once. The largest magnitude is found among the bit patterns, which order like the magnitudes,
// and passed on from lane to lane by DPP, between waves through LDS. Codes are truncated quotients of a true division,
// as the definition has them: a multiplication by the reciprocal would turn some whole quotients into the code below.
// Rows that are no multiple of 16, or longer than 16,384, are read twice, value by value.

#include <hip/hip_runtime.h>

#include <cstdint>

namespace {

constexpr int LANES = 32, WAVES = 8, THREADS = LANES * WAVES;
constexpr int TAKEN = 16;  // values a thread takes at a time

typedef uint32_t word4 __attribute__((vector_size(16)));

// The value of the lane whose number differs in the one bit MASK, without a way through LDS.
template <int MASK>
__device__ inline uint32_t across(uint32_t value) {
  if constexpr (MASK < 16)
    return __builtin_amdgcn_update_dpp(0, value, 0x160 + MASK, 0xf, 0xf, true);  // row_xmask
  else
    return __builtin_amdgcn_permlanex16(0, value, 0x76543210, 0xfedcba98, true, true);
}

__device__ inline uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

// Over COUNT neighbours, in every lane.
template <int COUNT>
__device__ inline uint32_t max_of(uint32_t value) {
  if constexpr (COUNT > 1) {
    value = larger(value, across<COUNT / 2>(value));
    return max_of<COUNT / 2>(value);
  }
  return value;
}

// Over the work-group; `shared` holds one value a wave.
__device__ inline uint32_t group_max(uint32_t value, uint32_t* shared) {
  value = max_of<LANES>(value);
  if (threadIdx.x % LANES == 0) shared[threadIdx.x / LANES] = value;
  __syncthreads();
  return max_of<WAVES>(shared[threadIdx.x % WAVES]);
}

// A bfloat16 is the upper half of a float32.
__device__ inline float widened(uint32_t upper_half) { return __builtin_bit_cast(float, upper_half << 16); }

// From the bits of a row's largest magnitude.
__device__ inline float scale_of(uint32_t bits) { return bits ? widened(bits) / 127.0f : 1.0f; }

// No quotient is above 127.5: none needs clamping.
__device__ inline uint32_t code(float value, float scale) { return static_cast<int32_t>(value / scale) & 0xff; }

// Codes of four values, which lie in two words, the first one lowest.
__device__ inline uint32_t codes_of(uint32_t first, uint32_t second, float scale) {
  const float values[4] = {widened(first), __builtin_bit_cast(float, first & 0xffff0000u), widened(second),
                           __builtin_bit_cast(float, second & 0xffff0000u)};
  return code(values[0], scale) | code(values[1], scale) << 8 | code(values[2], scale) << 16 |
         code(values[3], scale) << 24;
}

// Rows of n values, a multiple of TAKEN and at most VECTORS * THREADS * TAKEN, from an address that 16 divides on.
template <int VECTORS>
__global__ void __launch_bounds__(THREADS) held_rows(const uint16_t* __restrict__ input, uint8_t* __restrict__ codes,
                                                     float* __restrict__ scales, int n) {
  __shared__ uint32_t maxima[WAVES];
  const int64_t row = blockIdx.x;
  const word4* from = reinterpret_cast<const word4*>(input + row * n);
  word4* to = reinterpret_cast<word4*>(codes + row * n);
  const int blocks = n / TAKEN;
  word4 words[VECTORS][2];
  uint32_t even = 0, odd = 0;
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int block = v * THREADS + threadIdx.x;
    for (int part = 0; part < 2; part++) {
      words[v][part] = block < blocks ? from[block * 2 + part] : word4{};
#pragma unroll
      for (int w = 0; w < 4; w++) {
        even = larger(even, words[v][part][w] & 0x7fff);
        odd = larger(odd, words[v][part][w] & 0x7fff0000);
      }
    }
  }
  const float scale = scale_of(group_max(larger(even, odd >> 16), maxima));
  if (threadIdx.x == 0) scales[row] = scale;
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int block = v * THREADS + threadIdx.x;
    if (block >= blocks) break;
    word4 result;
#pragma unroll
    for (int w = 0; w < 4; w++)
      result[w] = codes_of(words[v][w / 2][w % 2 * 2], words[v][w / 2][w % 2 * 2 + 1], scale);
    to[block] = result;
  }
}

__global__ void __launch_bounds__(THREADS) any_rows(const uint16_t* __restrict__ input, uint8_t* __restrict__ codes,
                                                    float* __restrict__ scales, int64_t n) {
  __shared__ uint32_t maxima[WAVES];
  const int64_t row = blockIdx.x;
  const uint16_t* from = input + row * n;
  uint32_t high = 0;
  for (int64_t i = threadIdx.x; i < n; i += THREADS) high = larger(high, from[i] & 0x7fff);
  const float scale = scale_of(group_max(high, maxima));
  if (threadIdx.x == 0) scales[row] = scale;
  for (int64_t i = threadIdx.x; i < n; i += THREADS) codes[row * n + i] = code(widened(from[i]), scale);
}

template <int VECTORS>
void held(const uint16_t* input, uint8_t* codes, float* scales, int64_t m, int64_t n) {
  hipLaunchKernelGGL(held_rows<VECTORS>, dim3(m), dim3(THREADS), 0, 0, input, codes, scales, int(n));
}

}  // namespace

extern "C" void run(const uint16_t* input, uint8_t* codes, float* scale, int64_t m, int64_t n) {
  const bool aligned = n % TAKEN == 0 && reinterpret_cast<uintptr_t>(input) % 16 == 0 &&
                       reinterpret_cast<uintptr_t>(codes) % 16 == 0;
  constexpr int64_t WHOLE = THREADS * TAKEN;
  if (aligned && n <= WHOLE) return held<1>(input, codes, scale, m, n);
  if (aligned && n <= 2 * WHOLE) return held<2>(input, codes, scale, m, n);
  if (aligned && n <= 4 * WHOLE) return held<4>(input, codes, scale, m, n);
  hipLaunchKernelGGL(any_rows, dim3(m), dim3(THREADS), 0, 0, input, codes, scale, n);
}
