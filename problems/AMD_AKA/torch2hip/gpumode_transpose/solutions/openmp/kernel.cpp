// Swap of the two middle axes, float32: runs of the last axis are copied. The input is read in its order, a few runs of
// C at a time, so that each output row is written from front to back within a block.

#include <algorithm>
#include <cstdint>
#include <cstring>

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

constexpr int64_t PARALLEL_FROM = 1 << 17;  // elements; below, waking a thread costs more than it saves
constexpr int64_t STREAM_FROM = 1 << 18;    // elements; above, stores go past the cache
constexpr int64_t RUN = 64;                 // floats read in one go, at least

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

}  // namespace

extern "C" void run(const float* input, int32_t /* dim1 = 1 */, int32_t /* dim2 = 2 */, float* output, int64_t a,
                    int64_t b, int64_t c, int64_t d) {
    const int64_t count = a * b * c * d;
    const bool streamed = count >= STREAM_FROM && d % LANES == 0 && reinterpret_cast<uintptr_t>(output) % BYTES == 0;
    const int64_t group = std::max<int64_t>(1, RUN / std::max<int64_t>(1, d)), groups = (c + group - 1) / group;
#pragma omp parallel if (count >= PARALLEL_FROM)
    {
#pragma omp for schedule(static) collapse(2)
        for (int64_t i = 0; i < a; i++)
            for (int64_t g = 0; g < groups; g++)
                for (int64_t j = 0; j < b; j++)
                    for (int64_t k = g * group; k < std::min(c, (g + 1) * group); k++) {
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
