// Row softmax, float32. A row is read from memory once: its maximum, its exponentials and their sum are taken while it
// sits in the cache. Few long rows are cut into one piece a thread; many rows are shared out whole.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
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
typedef int32_t vi __attribute__((vector_size(BYTES)));

constexpr int64_t GRAIN = 1 << 14;        // elements a thread; for fewer, waking it costs more than it saves
constexpr int64_t STREAM_FROM = 1 << 18;  // elements; above, stores go past the cache
constexpr int64_t CHUNK = 1 << 14;        // elements a thread takes at a time
constexpr int64_t SUM_BLOCK = 4096;       // float partial sums are widened to double this often

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

inline vf splat(float x) { return x - vf{}; }

inline vf larger(vf a, vf b) {
#if defined(__AVX512BW__)
    return reinterpret_cast<vf>(_mm512_max_ps(reinterpret_cast<__m512&>(a), reinterpret_cast<__m512&>(b)));
#elif defined(__AVX__)
    return reinterpret_cast<vf>(_mm256_max_ps(reinterpret_cast<__m256&>(a), reinterpret_cast<__m256&>(b)));
#elif defined(__SSE2__)
    return reinterpret_cast<vf>(_mm_max_ps(reinterpret_cast<__m128&>(a), reinterpret_cast<__m128&>(b)));
#else
    return a > b ? a : b;
#endif
}

inline float total(vf v) {
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += v[i];
    return sum;
}

inline float largest(vf v) {
    float high = v[0];
    for (int i = 1; i < LANES; i++) high = std::max(high, v[i]);
    return high;
}

// e^d for d <= 0 as 2^n * 2^f, |f| <= 1/2; the degree-5 minimax polynomial is within 7.5e-8 of 2^f (relative), the
// argument's rounding adds |d| * 1.9e-8. Below -87 it stays at 1.6e-38.
inline vf exp_nonpositive(vf d) {
    constexpr float ROUND = 12582912.0f;  // 1.5 * 2^23: the sum's low bits are the nearest integer
    constexpr float LOG2_E = 1.44269504f;
    d = larger(d, splat(-87.0f));
    const vf shifted = d * LOG2_E + ROUND;
    const vf f = d * LOG2_E - (shifted - ROUND);
    vf p = f * 0.001327647178f + 0.009675541333f;
    p = p * f + 0.05550713274f;
    p = p * f + 0.2402211972f;
    p = p * f + 0.6931469671f;
    p = p * f + 1.000000072f;
    return reinterpret_cast<vf>(reinterpret_cast<vi>(p) + (reinterpret_cast<vi>(shifted) << 23));
}

inline float maximum(const float* x, int64_t n) {
    vf high[4];
    for (vf& h : high) h = splat(-std::numeric_limits<float>::infinity());
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int u = 0; u < 4; u++) high[u] = larger(load(x + i + u * LANES), high[u]);
    float result = largest(larger(larger(high[0], high[1]), larger(high[2], high[3])));
    for (; i < n; i++) result = std::max(result, x[i]);
    return result;
}

// e[i] = exp(x[i] - high); returns their sum. Meanwhile the n floats behind x, the next row, come nearer.
inline double exponentials(const float* x, float* e, int64_t n, float high) {
    const vf offset = splat(high);
    double sum = 0;
    int64_t i = 0;
    for (; i + 2 * LANES <= n;) {
        vf s0 = {}, s1 = {};
        const int64_t end = std::min(n, i + SUM_BLOCK);
        for (; i + 2 * LANES <= end; i += 2 * LANES) {
            __builtin_prefetch(x + n + i);
            const vf e0 = exp_nonpositive(load(x + i) - offset), e1 = exp_nonpositive(load(x + i + LANES) - offset);
            store(e + i, e0);
            store(e + i + LANES, e1);
            s0 += e0;
            s1 += e1;
        }
        sum += total(s0 + s1);
    }
    while (i < n) {
        const int count = static_cast<int>(std::min<int64_t>(LANES, n - i));
        vf part = offset;
        for (int k = 0; k < count; k++) part[k] = x[i + k];
        part = exp_nonpositive(part - offset);
        for (int k = 0; k < count; k++) {
            e[i + k] = part[k];
            sum += part[k];
        }
        i += count;
    }
    return sum;
}

inline void scale(const float* e, float* y, int64_t n, float factor) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, load(e + i) * factor);
    for (; i < n; i++) y[i] = e[i] * factor;
}

inline void copy_past_cache(const float* e, float* y, int64_t n) {
    int64_t i = 0;
    for (; i < n && reinterpret_cast<uintptr_t>(y + i) % BYTES; i++) y[i] = e[i];
    for (; i + LANES <= n; i += LANES) stream(y + i, load(e + i));
    for (; i < n; i++) y[i] = e[i];
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

void whole_rows(const float* x, float* y, int64_t m, int64_t n) {
    const bool streamed = m * n >= STREAM_FROM;
    const int64_t chunk = std::max<int64_t>(1, CHUNK / std::max<int64_t>(1, n));
#pragma omp parallel num_threads(team(m* n, (m + chunk - 1) / chunk))
    {
        std::vector<float> rows(streamed ? chunk * n : 0);
#pragma omp for schedule(dynamic)
        for (int64_t first = 0; first < m; first += chunk) {
            const int64_t count = std::min(chunk, m - first);
            float* const e = streamed ? rows.data() : y + first * n;
            for (int64_t i = 0; i < count; i++) {
                const float* in = x + (first + i) * n;
                const double sum = exponentials(in, e + i * n, n, maximum(in, n));
                scale(e + i * n, e + i * n, n, static_cast<float>(1.0 / sum));
            }
            if (streamed) copy_past_cache(e, y + first * n, count * n);
        }
        stream_fence();
    }
}

// Each thread takes the softmax of its own piece; one barrier later the pieces are brought to the common denominator.
void split_row(const float* x, float* y, int64_t n) {
    constexpr int PAD = 8;  // doubles: one cache line a thread
    const int wanted = team(n, n);
    std::vector<double> high(wanted * PAD), sum(wanted * PAD);
#pragma omp parallel num_threads(wanted)
    {
        const int64_t threads = omp_get_num_threads(), id = omp_get_thread_num();
        const int64_t piece = ((n + threads - 1) / threads + LANES - 1) / LANES * LANES;
        const int64_t begin = std::min(n, id * piece), count = std::min(n, begin + piece) - begin;
        const float own = maximum(x + begin, count);
        high[id * PAD] = own;
        sum[id * PAD] = count ? exponentials(x + begin, y + begin, count, own) : 0;
#pragma omp barrier
        double top = high[0], denominator = 0;
        for (int64_t t = 1; t < threads; t++) top = std::max(top, high[t * PAD]);
        for (int64_t t = 0; t < threads; t++) denominator += sum[t * PAD] * std::exp(high[t * PAD] - top);
        scale(y + begin, y + begin, count, static_cast<float>(std::exp(own - top) / denominator));
    }
}

}  // namespace

extern "C" void run(const float* x, float* output, int64_t m, int64_t n) {
    if (m < team(m * n, m * n))
        for (int64_t i = 0; i < m; i++) split_row(x + i * n, output + i * n, n);
    else
        whole_rows(x, output, m, n);
}
