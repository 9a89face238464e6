// silu(gate) * linear on the two halves of each bfloat16 row: float32 inside, one rounding, one pass.

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
typedef uint32_t vu __attribute__((vector_size(BYTES)));
typedef int32_t vi __attribute__((vector_size(BYTES)));
constexpr int64_t STEP = 2 * LANES;  // bfloat16 values in a vector

// A vector of bfloat16 pairs is worked on as two float vectors, the even and the odd values: nothing is shuffled.
// Little-endian; count < STEP fills up with zeros.
inline vu load(const uint16_t* p, int64_t count) {
    vu v = {};
    std::memcpy(&v, p, count * sizeof *p);
    return v;
}

inline void store(uint16_t* p, vu v, int64_t count) { std::memcpy(p, &v, count * sizeof *p); }
inline vf even(vu pairs) { return reinterpret_cast<vf>(pairs << 16); }
inline vf odd(vu pairs) { return reinterpret_cast<vf>(pairs & 0xffff0000u); }

// Round to nearest even in the upper 16 bits; NaN is not expected.
inline vu rounded(vf v) {
    const vu bits = reinterpret_cast<vu>(v);
    return bits + 0x7fffu + ((bits >> 16) & 1u);
}

inline vu pack(vf even, vf odd) { return (rounded(even) >> 16) | (rounded(odd) & 0xffff0000u); }

constexpr int64_t GRAIN = 1 << 14;        // elements written a thread; for fewer, waking it costs more than it saves
constexpr int64_t STREAM_FROM = 1 << 19;  // elements written; above, stores go past the cache

// Write-combining store: the line is not read before it is overwritten. p must be aligned to BYTES.
inline void stream(uint16_t* p, vu v) {
#if defined(__AVX512BW__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(p), reinterpret_cast<__m512i&>(v));
#elif defined(__AVX__)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(p), reinterpret_cast<__m256i&>(v));
#elif defined(__SSE2__)
    _mm_stream_si128(reinterpret_cast<__m128i*>(p), reinterpret_cast<__m128i&>(v));
#else
    store(p, v, STEP);
#endif
}

inline void stream_fence() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

inline vf splat(float x) { return x - vf{}; }

// e^x as 2^n * 2^f, |f| <= 1/2, within 2.6e-6 relative plus the argument's rounding (2e-8 |x|); x is held to [-87, 87].
inline vf exponential(vf x) {
    constexpr float ROUND = 12582912.0f;  // 1.5 * 2^23: the sum's low bits are the nearest integer
    constexpr float LOG2_E = 1.44269504f;
    // Signed integers order like floats above 0 and stay below them under it; unsigned ones order backwards under 0.
    // So two integer minima hold x to [-87, 87].
    const vi top = reinterpret_cast<vi>(splat(87.0f)), given = reinterpret_cast<vi>(x);
    const vu bottom = reinterpret_cast<vu>(splat(-87.0f)), capped = reinterpret_cast<vu>(given < top ? given : top);
    x = reinterpret_cast<vf>(capped < bottom ? capped : bottom);
    const vf shifted = x * LOG2_E + ROUND;
    const vf f = x * LOG2_E - (shifted - ROUND);
    vf p = f * 0.009570101527f + 0.05591786029f;
    p = p * f + 0.2402474484f;
    p = p * f + 0.6931218147f;
    p = p * f + 0.9999992614f;
    return reinterpret_cast<vf>(reinterpret_cast<vi>(p) + (reinterpret_cast<vi>(shifted) << 23));
}

inline vf gated(vf s, vf t) { return s * t / (1.0f + exponential(-s)); }

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const uint16_t* input, uint16_t* output, int64_t m, int64_t full, int64_t half) {
    const bool streamed =
        m * half >= STREAM_FROM && half % STEP == 0 && reinterpret_cast<uintptr_t>(output) % BYTES == 0;
#pragma omp parallel num_threads(team(m* half, m))
    {
#pragma omp for schedule(static)
        for (int64_t row = 0; row < m; row++) {
            const uint16_t *gate = input + row * full, *linear = gate + half;
            uint16_t* out = output + row * half;
            const auto at = [&](int64_t i, int64_t count) __attribute__((always_inline)) {
                const vu s = load(gate + i, count), t = load(linear + i, count);
                return pack(gated(even(s), even(t)), gated(odd(s), odd(t)));
            };
            int64_t i = 0;
            if (streamed)
                for (; i + STEP <= half; i += STEP) stream(out + i, at(i, STEP));
            for (; i + STEP <= half; i += STEP) store(out + i, at(i, STEP), STEP);
            if (i < half) store(out + i, at(i, half - i), half - i);
        }
        if (streamed) stream_fence();
    }
}
