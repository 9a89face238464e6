// Symmetric int8 quantisation of bfloat16 rows: the largest magnitude is found among the bit patterns, which order like
// the magnitudes; codes are the truncated float32 quotients, a true division as in the definition.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <omp.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#pragma GCC diagnostic ignored "-Wpsabi"  // every function with a vector argument is inlined

namespace {

#if defined(__AVX512BW__)
constexpr int BYTES = 64;
#elif defined(__AVX__)
constexpr int BYTES = 32;
#else
constexpr int BYTES = 16;
#endif
constexpr int LANES = BYTES / 4;
typedef float vf __attribute__((vector_size(BYTES)));
typedef int32_t vi __attribute__((vector_size(BYTES)));
typedef uint32_t vu __attribute__((vector_size(BYTES)));
typedef uint16_t vh __attribute__((vector_size(BYTES)));
typedef uint16_t half_vh __attribute__((vector_size(BYTES / 2)));
constexpr int64_t STEP = 2 * LANES;  // bfloat16 values in a vector
constexpr int64_t GRAIN = 1 << 14;   // elements a thread; for fewer, waking it costs more than it saves

inline float widened(uint16_t bits) {
    const uint32_t word = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}

inline float largest_magnitude(const uint16_t* x, int64_t n) {
    vh high[2] = {};
    int64_t i = 0;
    for (; i + 2 * STEP <= n; i += 2 * STEP)
        for (int u = 0; u < 2; u++) {
            vh v;
            std::memcpy(&v, x + i + u * STEP, sizeof v);
            v &= 0x7fff;
            high[u] = v > high[u] ? v : high[u];
        }
    const vh all = high[0] > high[1] ? high[0] : high[1];
    uint16_t top = 0;
    for (int k = 0; k < STEP; k++) top = std::max<uint16_t>(top, all[k]);
    for (; i < n; i++) top = std::max<uint16_t>(top, x[i] & 0x7fff);
    return widened(top);
}

// STEP codes. Even and odd values are divided apart and meet again as the two bytes of a 16-bit word.
inline void quantise(const uint16_t* x, int8_t* codes, vf scale) {
    vu pairs;
    std::memcpy(&pairs, x, sizeof pairs);
    const vi low = __builtin_convertvector(reinterpret_cast<vf>(pairs << 16) / scale, vi);
    const vi high = __builtin_convertvector(reinterpret_cast<vf>(pairs & 0xffff0000u) / scale, vi);
    const half_vh bytes = __builtin_convertvector(reinterpret_cast<vu>((low & 0xff) | (high & 0xff) << 8), half_vh);
    std::memcpy(codes, &bytes, sizeof bytes);
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const uint16_t* input, int8_t* codes, float* scale, int64_t m, int64_t n) {
#pragma omp parallel for schedule(static) num_threads(team(m* n, m))
    for (int64_t row = 0; row < m; row++) {
        const uint16_t* in = input + row * n;
        int8_t* out = codes + row * n;
        const float high = largest_magnitude(in, n);
        const float step = high == 0 ? 1.0f : high / 127.0f;  // |value / step| < 127.5: no code needs clamping
        scale[row] = step;
        const vf divisor = step - vf{};
        int64_t i = 0;
        for (; i + STEP <= n; i += STEP) quantise(in + i, out + i, divisor);
        for (; i < n; i++) out[i] = static_cast<int8_t>(widened(in[i]) / step);
    }
}
