// 2x2 maximum pooling with stride 2, float32: the two rows of a window are compared as they lie in memory, then even
// and odd columns are told apart by shuffles. Finite values are assumed: a NaN does not propagate.

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

constexpr int64_t GRAIN = 1 << 15;        // elements read a thread; for fewer, waking it costs more than it saves
constexpr int64_t STREAM_FROM = 1 << 18;  // elements written; above, stores go past the cache

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

inline vf larger(vf a, vf b) { return a > b ? a : b; }

// max(low[2k], low[2k+1]), then the same of high: LANES results in order.
inline vf pairwise(vf low, vf high) {
    vi even;
    for (int i = 0; i < LANES; i++) even[i] = 2 * i;
    return larger(__builtin_shuffle(low, high, even), __builtin_shuffle(low, high, even + 1));
}

template <bool STREAMED>
inline void row_of_windows(const float* top, const float* bottom, float* out, int64_t count) {
    int64_t j = 0;
    for (; j + LANES <= count; j += LANES) {
        const vf low = larger(load(top + 2 * j), load(bottom + 2 * j));
        const vf high = larger(load(top + 2 * j + LANES), load(bottom + 2 * j + LANES));
        if (STREAMED)
            stream(out + j, pairwise(low, high));
        else
            store(out + j, pairwise(low, high));
    }
    for (; j < count; j++)
        out[j] = std::max(std::max(top[2 * j], top[2 * j + 1]), std::max(bottom[2 * j], bottom[2 * j + 1]));
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const float* x, float* output, int64_t b, int64_t c, int64_t h, int64_t w, int64_t h_out,
                    int64_t w_out) {
    const bool streamed =
        b * c * h_out * w_out >= STREAM_FROM && w_out % LANES == 0 && reinterpret_cast<uintptr_t>(output) % BYTES == 0;
#pragma omp parallel num_threads(team(b * c * h * w, b * c))
    {
#pragma omp for schedule(static)
        for (int64_t plane = 0; plane < b * c; plane++)
            for (int64_t i = 0; i < h_out; i++) {
                const float* top = x + plane * h * w + 2 * i * w;
                float* out = output + (plane * h_out + i) * w_out;
                if (streamed)
                    row_of_windows<true>(top, top + w, out, w_out);
                else
                    row_of_windows<false>(top, top + w, out, w_out);
            }
        if (streamed) stream_fence();
    }
}
