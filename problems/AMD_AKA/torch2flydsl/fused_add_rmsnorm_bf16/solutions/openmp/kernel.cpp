// Residual addition and RMS normalisation, bfloat16: the rounded sum is stored and kept in a row buffer, from which the
// second pass normalises it, so input and residual are read once. Statistics are those of the rounded sum, in float32.

#include <algorithm>
#include <cmath>
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

inline float total(vf v) {
    float lane[LANES];
    std::memcpy(lane, &v, sizeof v);
    for (int width = LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++) lane[i] += lane[i + width];
    return lane[0];
}

// One row; streamed is a constant of the call.
template <bool STREAMED>
inline void normalise(const uint16_t* input, const uint16_t* weight, const uint16_t* residual, float eps,
                      uint16_t* output, uint16_t* residual_out, uint16_t* row, int64_t n) {
    vf square_even = {}, square_odd = {};
    const auto put = [](uint16_t* p, vu v, int64_t count) __attribute__((always_inline)) {
        if (STREAMED)
            stream(p, v);
        else
            store(p, v, count);
    };
    const auto add = [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        const vu a = load(input + i, count), b = load(residual + i, count);
        const vu sum = pack(even(a) + even(b), odd(a) + odd(b));
        square_even += even(sum) * even(sum);
        square_odd += odd(sum) * odd(sum);
        put(residual_out + i, sum, count);
        store(row + i, sum, count);
    };
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) add(i, STEP);
    if (i < n) add(i, n - i);

    const float factor = 1.0f / std::sqrt(total(square_even + square_odd) / n + eps);
    const auto scale = [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        const vu sum = load(row + i, count), w = load(weight + i, count);
        put(output + i, pack(even(sum) * factor * even(w), odd(sum) * factor * odd(w)), count);
    };
    for (i = 0; i + STEP <= n; i += STEP) scale(i, STEP);
    if (i < n) scale(i, n - i);
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const uint16_t* input, const uint16_t* weight, const uint16_t* residual, float eps,
                    uint16_t* output, uint16_t* residual_out, int64_t m, int64_t n) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(output) | reinterpret_cast<uintptr_t>(residual_out);
    const bool streamed = m * n >= STREAM_FROM && n % STEP == 0 && address % BYTES == 0;
#pragma omp parallel num_threads(team(m* n, m))
    {
        std::vector<uint16_t> row(n);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < m; i++) {
            const int64_t at = i * n;
            const auto one = streamed ? normalise<true> : normalise<false>;
            one(input + at, weight, residual + at, eps, output + at, residual_out + at, row.data(), n);
        }
        if (streamed) stream_fence();
    }
}
