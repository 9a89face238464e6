// Swap of the two middle axes, float32: runs of the last axis are copied. The input is read in its order; as many rows
// of B go together as it takes for their runs, neighbours in the output, to fill whole cache lines.

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

constexpr int64_t GRAIN = 1 << 13;        // elements a thread; for fewer, waking it costs more than it saves
constexpr int64_t STREAM_FROM = 1 << 18;  // elements; above, stores go past the cache
constexpr int64_t LINE = 16;              // floats of a cache line

inline vf load(const float* p) {
    vf v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline void store(float* p, vf v) { std::memcpy(p, &v, sizeof v); }

// Write-combining store: the line is not read before it is overwritten. p must be aligned to BYTES.
inline void stream(float* p, vf v) {
#if defined(__AVX512BW__)
    _mm512_stream_ps(p, reinterpret_cast<__m512&>(v));
#elif defined(__AVX__)
    _mm256_stream_ps(p, reinterpret_cast<__m256&>(v));
#elif defined(__SSE2__)
    _mm_stream_ps(p, reinterpret_cast<__m128&>(v));
#else
    store(p, v);
#endif
}

inline void stream_fence() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

template <bool STREAMED>
inline void copy(const float* from, float* to, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        if (STREAMED)
            stream(to + i, load(from + i));
        else
            store(to + i, load(from + i));
    for (; i < n; i++) to[i] = from[i];
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const float* input, int32_t /* dim1 = 1 */, int32_t /* dim2 = 2 */, float* output, int64_t a,
                    int64_t b, int64_t c, int64_t d) {
    const int64_t count = a * b * c * d;
    const bool streamed = count >= STREAM_FROM && d % LANES == 0 && reinterpret_cast<uintptr_t>(output) % BYTES == 0;
    int64_t together = 1;
    while (together < LINE && together * d % LINE) together *= 2;
#pragma omp parallel num_threads(team(count, a* b))
    {
#pragma omp for schedule(static) collapse(2)
        for (int64_t i = 0; i < a; i++)
            for (int64_t first = 0; first < b; first += together)
                for (int64_t k = 0; k < c; k++)
                    for (int64_t j = first; j < std::min(b, first + together); j++) {
                        const float* from = input + ((i * b + j) * c + k) * d;
                        float* to = output + ((i * c + k) * b + j) * d;
                        if (streamed)
                            copy<true>(from, to, d);
                        else
                            copy<false>(from, to, d);
                    }
        if (streamed) stream_fence();
    }
}
