// MXFP8: blocks of 32 bfloat16 values share one power-of-two scale; codes are e4m3. Exponents come from bit patterns
// and the rounding is done on integers, so every byte is exact.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <omp.h>
#if defined(__SSE4_1__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
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
typedef uint32_t vu __attribute__((vector_size(BYTES)));
typedef uint16_t vh __attribute__((vector_size(BYTES)));
typedef uint16_t half_vh __attribute__((vector_size(BYTES / 2)));
constexpr int64_t GROUP = 32;  // values under one scale: 64 bytes
constexpr int VECTORS = 64 / BYTES;
constexpr int64_t STEP = 2 * LANES;  // bfloat16 values in a vector
constexpr int64_t GRAIN = 1 << 12;   // elements a thread; for fewer, waking it costs more than it saves

// Largest bit pattern without its sign among the 32 values.
inline uint32_t largest_magnitude(const vh (&values)[VECTORS]) {
    vh high = values[0] & 0x7fff;
    for (int v = 1; v < VECTORS; v++) {
        const vh other = values[v] & 0x7fff;
        high = other > high ? other : high;
    }
    typedef uint16_t eight __attribute__((vector_size(16)));
    eight part[BYTES / 16];
    std::memcpy(part, &high, sizeof high);
    eight top = part[0];
    for (int i = 1; i < BYTES / 16; i++) top = part[i] > top ? part[i] : top;
#if defined(__SSE4_1__)
    const eight flipped = ~top;  // there is a minimum across lanes, no maximum
    return 0xffff & ~_mm_cvtsi128_si32(_mm_minpos_epu16(reinterpret_cast<const __m128i&>(flipped)));
#elif defined(__aarch64__)
    return vmaxvq_u16(reinterpret_cast<const uint16x8_t&>(top));
#else
    uint16_t result = 0;
    for (int i = 0; i < 8; i++) result = std::max<uint16_t>(result, top[i]);
    return result;
#endif
}

// Nearest e4m3 code, ties to even, of |value| <= 448; the sign bit is kept, also of a zero.
inline vu encoded(vf value) {
    const vu bits = reinterpret_cast<vu>(value), magnitude = bits & 0x7fffffffu;
    const vu normal = ((magnitude + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20) - (120u << 3);
    // 2^14 has the spacing of e4m3's subnormals, 2^-9: the addition rounds to it.
    const vu subnormal = reinterpret_cast<vu>(reinterpret_cast<vf>(magnitude) + 0x1p14f) - 0x46800000u;
    return (magnitude < 0x3c800000u ? subnormal : normal) | ((bits >> 24) & 0x80u);  // 2^-6: the least normal
}

inline uint8_t quantise(const uint16_t* x, uint8_t* codes) {
    vh values[VECTORS];
    std::memcpy(values, x, sizeof values);
    // Exponent field of the largest magnitude, one more from 1.75 * 2^E on: then value * 2^-e stays below 448.
    const int32_t field = static_cast<int32_t>(((largest_magnitude(values) << 16) + (1u << 21)) >> 23);
    const int32_t e = std::max(field - 127 - 8, -127);
    const uint32_t factor_bits = static_cast<uint32_t>(127 - e) << 23;  // 2^-e, a normal number: -127 <= e <= 120
    float factor;
    std::memcpy(&factor, &factor_bits, sizeof factor);
    for (int v = 0; v < VECTORS; v++) {
        const vu pairs = reinterpret_cast<vu>(values[v]);
        const vu low = encoded(reinterpret_cast<vf>(pairs << 16) * factor);
        const vu high = encoded(reinterpret_cast<vf>(pairs & 0xffff0000u) * factor);
        const half_vh bytes = __builtin_convertvector(low | high << 8, half_vh);
        std::memcpy(codes + v * STEP, &bytes, sizeof bytes);
    }
    return static_cast<uint8_t>(e + 127);
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const uint16_t* input, uint8_t* codes, uint8_t* scale, int64_t m, int64_t k, int64_t groups) {
    // Rows are contiguous and K = 32 * groups, so blocks follow each other without a gap.
#pragma omp parallel for schedule(static) num_threads(team(m* k, m* groups))
    for (int64_t g = 0; g < m * groups; g++) scale[g] = quantise(input + g * GROUP, codes + g * GROUP);
}
