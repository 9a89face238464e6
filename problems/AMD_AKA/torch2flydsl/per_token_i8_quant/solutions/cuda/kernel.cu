// int8 quantisation of bfloat16 rows, a scale a row. A block takes a row and holds it in registers: read once, written
// once, 16 values a thread, two loads and one store of 128 bits. The largest magnitude is found among bit patterns,
// which stand in the order of their magnitudes.
//
// The definition divides by the scale and truncates. A quotient is made from the scale's reciprocal and one correction
// by its remainder, which truncates like the rounded quotient for all significands of bfloat16 while nothing leaves the
// normal range; a scale that is not far from the range's ends divides truly.

#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int WARP = 32;
constexpr int TAKEN = 16;  // values a thread takes at a time
// Scales between which the reciprocal, the quotients of at most 127.5 and their remainders are normal or exactly 0.
constexpr float LEAST = 1e-18f, MOST = 1e18f;

template <int COUNT>
__device__ inline uint32_t max_of(uint32_t value) {
#pragma unroll
  for (int mask = COUNT / 2; mask > 0; mask /= 2) value = max(value, __shfl_xor_sync(~0u, value, mask));
  return value;
}

// Over a block, in every thread; `of_warps` is not used again.
template <int THREADS>
__device__ inline uint32_t block_max(uint32_t value, uint32_t* of_warps) {
  value = max_of<WARP>(value);
  if constexpr (THREADS > WARP) {
    if (threadIdx.x % WARP == 0) of_warps[threadIdx.x / WARP] = value;
    __syncthreads();
    value = max_of<THREADS / WARP>(of_warps[threadIdx.x % (THREADS / WARP)]);
  }
  return value;
}

// A bfloat16 is the upper half of a float32.
__device__ inline float lower(uint32_t pair) { return __uint_as_float(pair << 16); }

__device__ inline float upper(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

// Of a row whose largest magnitude has these bits.
__device__ inline float scale_of(uint32_t bits) { return bits ? lower(bits) / 127.0f : 1.0f; }

// No quotient is above 127.5: none needs clamping.
template <bool NEAR>
__device__ inline uint32_t code(float value, float scale, float reciprocal) {
  float quotient;
  if constexpr (NEAR) {
    quotient = value * reciprocal;
    quotient = fmaf(fmaf(-quotient, scale, value), reciprocal, quotient);
  } else {
    quotient = value / scale;
  }
  return static_cast<int32_t>(quotient) & 0xff;
}

// Codes of four values, which lie in two words, the first one lowest.
template <bool NEAR>
__device__ inline uint32_t codes_of(uint32_t first, uint32_t second, float scale, float reciprocal) {
  return code<NEAR>(lower(first), scale, reciprocal) | code<NEAR>(upper(first), scale, reciprocal) << 8 |
         code<NEAR>(lower(second), scale, reciprocal) << 16 | code<NEAR>(upper(second), scale, reciprocal) << 24;
}

template <bool NEAR>
__device__ inline uint4 codes_of(const uint4* words, float scale, float reciprocal) {
  const uint4 a = words[0], b = words[1];
  return make_uint4(codes_of<NEAR>(a.x, a.y, scale, reciprocal), codes_of<NEAR>(a.z, a.w, scale, reciprocal),
                    codes_of<NEAR>(b.x, b.y, scale, reciprocal), codes_of<NEAR>(b.z, b.w, scale, reciprocal));
}

// Rows of `count` times TAKEN values, at most THREADS * VECTORS times.
template <int THREADS, int VECTORS>
__global__ void __launch_bounds__(THREADS)
    held_rows(const uint4* __restrict__ input, uint4* __restrict__ codes, float* __restrict__ scales, int count) {
  __shared__ uint32_t of_warps[WARP];
  const int64_t row = blockIdx.x;
  const uint4* from = input + row * count * 2;
  uint4 words[VECTORS][2];
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    const int at = i * THREADS + threadIdx.x;
    words[i][0] = words[i][1] = make_uint4(0, 0, 0, 0);
    if (at < count) {
      words[i][0] = __ldcs(from + at * 2);
      words[i][1] = __ldcs(from + at * 2 + 1);
    }
  }
  uint32_t even = 0, odd = 0;
#pragma unroll
  for (int i = 0; i < VECTORS; i++)
#pragma unroll
    for (int part = 0; part < 2; part++) {
      const uint4 w = words[i][part];
      even = max(max(max(even, w.x & 0x7fff), max(w.y & 0x7fff, w.z & 0x7fff)), w.w & 0x7fff);
      odd = max(max(max(odd, w.x & 0x7fff0000), max(w.y & 0x7fff0000, w.z & 0x7fff0000)), w.w & 0x7fff0000);
    }
  const float scale = scale_of(block_max<THREADS>(max(even, odd >> 16), of_warps));
  if (threadIdx.x == 0) scales[row] = scale;
  const float reciprocal = 1.0f / scale;
  const bool near = scale >= LEAST && scale <= MOST;
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    const int at = i * THREADS + threadIdx.x;
    if (at < count)
      codes[row * count + at] =
          near ? codes_of<true>(words[i], scale, reciprocal) : codes_of<false>(words[i], scale, reciprocal);
  }
}

__global__ void __launch_bounds__(256) any_rows(const uint16_t* __restrict__ input, uint8_t* __restrict__ codes,
                                                float* __restrict__ scales, int64_t n) {
  __shared__ uint32_t of_warps[WARP];
  const int64_t row = blockIdx.x;
  const uint16_t* from = input + row * n;
  uint32_t high = 0;
  for (int64_t i = threadIdx.x; i < n; i += 256) high = max(high, uint32_t(from[i] & 0x7fff));
  const float scale = scale_of(block_max<256>(high, of_warps));
  if (threadIdx.x == 0) scales[row] = scale;
  for (int64_t i = threadIdx.x; i < n; i += 256)
    codes[row * n + i] = static_cast<uint8_t>(code<false>(lower(from[i]), scale, 0));
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), int64_t blocks, int threads, Arguments... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(threads);
  cudaLaunchKernelEx(&config, kernel, arguments...);
}

bool aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

}  // namespace

extern "C" void run(const uint16_t* input, uint8_t* codes, float* scale, int64_t m, int64_t n) {
  if (m < 1) return;
  const auto held = [&](auto kernel, int threads) {
    launch(kernel, m, threads, reinterpret_cast<const uint4*>(input), reinterpret_cast<uint4*>(codes), scale,
           int(n / TAKEN));
  };
  if (n % TAKEN != 0 || n > 4 * 512 * TAKEN || !aligned(input) || !aligned(codes))
    launch(any_rows, m, 256, input, codes, scale, n);
  else if (n <= 128 * TAKEN)
    held(held_rows<128, 1>, 128);
  else if (n <= 256 * TAKEN)
    held(held_rows<256, 1>, 256);
  else if (n <= 512 * TAKEN)
    held(held_rows<512, 1>, 512);
  else if (n <= 2 * 512 * TAKEN)
    held(held_rows<512, 2>, 512);
  else
    held(held_rows<512, 4>, 512);
}
