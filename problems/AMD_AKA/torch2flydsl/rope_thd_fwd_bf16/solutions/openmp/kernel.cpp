// Rotary embedding of packed sequences, bfloat16: a token's sines and cosines are computed once and serve all its
// heads.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

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

constexpr int64_t GRAIN = 1 << 14;        // elements a thread; for fewer, waking it costs more than it saves
constexpr int64_t STREAM_FROM = 1 << 19;  // elements; above, stores go past the cache

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

struct Turn {
    vf sine, cosine;
};

// The angle less n * pi/2, |rest| <= pi/4, pi/2 in three parts of which the first two have 11 bits: their products with
// |n| < 2^13 are exact. Then minimax polynomials, within 2e-9 (sine) and 1e-10 (cosine) before rounding.
inline Turn turn(vf angle) {
    constexpr float ROUND = 12582912.0f;  // 1.5 * 2^23: the sum's low bits are the nearest integer
    const vf shifted = angle * 0.636619772f + ROUND;
    const vf n = shifted - ROUND;
    vf r = angle - n * 1.5703125f;
    r = r - n * 0.00048375129699707031f;
    r = r - n * 7.5497901264e-8f;
    const vf r2 = r * r;
    const vf s = ((r2 * -0.0001949563617f + 0.008331978663f) * r2 - 0.1666665067f) * r2 * r + r;
    const vf c = ((r2 * 2.443845152e-05f - 0.001388736751f) * r2 + 0.04166664687f) * r2 * r2 + (1.0f - 0.5f * r2);
    // Quarter turns: an odd one swaps sine and cosine; sine is negative in the last two, cosine in the middle two.
    const vu quarter = reinterpret_cast<vu>(shifted);
    const vi swapped = -reinterpret_cast<vi>(quarter & 1u);
    const vi sine = swapped ? reinterpret_cast<vi>(c) : reinterpret_cast<vi>(s);
    const vi cosine = swapped ? reinterpret_cast<vi>(s) : reinterpret_cast<vi>(c);
    return {reinterpret_cast<vf>(reinterpret_cast<vu>(sine) ^ ((quarter & 2u) << 30)),
            reinterpret_cast<vf>(reinterpret_cast<vu>(cosine) ^ (((quarter + 1u) & 2u) << 30))};
}

// Pairs (j, j + half) of one token's heads; turns: for each STEP of j its even and its odd angles.
template <bool STREAMED>
inline void rotate(const uint16_t* x, uint16_t* out, const Turn* turns, int64_t heads, int64_t half) {
    for (int64_t h = 0; h < heads; h++, x += 2 * half, out += 2 * half)
        for (int64_t j = 0; j < half; j += STEP) {
            const Turn e = turns[j / LANES], o = turns[j / LANES + 1];
            const auto at = [&](int64_t count) __attribute__((always_inline)) {
                const vu a = load(x + j, count), b = load(x + half + j, count);
                const vu first = pack(even(a) * e.cosine - even(b) * e.sine, odd(a) * o.cosine - odd(b) * o.sine);
                const vu second = pack(even(b) * e.cosine + even(a) * e.sine, odd(b) * o.cosine + odd(a) * o.sine);
                if (STREAMED) {
                    stream(out + j, first);
                    stream(out + half + j, second);
                } else {
                    store(out + j, first, count);
                    store(out + half + j, second, count);
                }
            };
            if (STREAMED || j + STEP <= half)
                at(STEP);
            else
                at(half - j);
        }
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const uint16_t* input, const int32_t* cu_seqlens, const uint16_t* freqs, uint16_t* output,
                    int64_t t, int64_t h, int64_t d, int64_t s1, int64_t half, int64_t /* 1 */) {
    const bool streamed =
        t * h * d >= STREAM_FROM && half % STEP == 0 && reinterpret_cast<uintptr_t>(output) % BYTES == 0;
#pragma omp parallel num_threads(team(t * h * d, t))
    {
        std::vector<Turn> turns((half + STEP - 1) / STEP * 2);
#pragma omp for schedule(static)
        for (int64_t token = 0; token < t; token++) {
            // The last offset not beyond the token; of several equal ones, empty sequences, the last as well.
            const int64_t position = token - *(std::upper_bound(cu_seqlens, cu_seqlens + s1, token) - 1);
            for (int64_t j = 0; j < half; j += STEP) {
                const vu angles = load(freqs + position * half + j, std::min(STEP, half - j));
                turns[j / LANES] = turn(even(angles));
                turns[j / LANES + 1] = turn(odd(angles));
            }
            const auto all_heads = streamed ? rotate<true> : rotate<false>;
            all_heads(input + token * h * d, output + token * h * d, turns.data(), h, half);
        }
        if (streamed) stream_fence();
    }
}
