// Mean cross entropy of float32 logits. Each row's log-sum-exp is taken online, block by block: a block's maximum and
// its exponentials are computed while it sits in the first-level cache and the next block is on its way.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

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

constexpr int64_t GRAIN = 1 << 14;  // elements a thread; for fewer, waking it costs more than it saves
constexpr int64_t BLOCK = 2048;     // elements: 8 KiB, and as much on its way
constexpr int64_t CHUNK = 1 << 17;  // elements a thread takes at a time
constexpr int UNROLL = 4;
constexpr float LOWEST = -std::numeric_limits<float>::infinity();

inline vf load(const float* p) {
    vf v;
    std::memcpy(&v, p, sizeof v);
    return v;
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
    vf high[UNROLL];
    for (vf& h : high) h = splat(LOWEST);
    int64_t i = 0;
    for (; i + UNROLL * LANES <= n; i += UNROLL * LANES)
        for (int u = 0; u < UNROLL; u++) high[u] = larger(load(x + i + u * LANES), high[u]);
    const vf all = larger(larger(high[0], high[1]), larger(high[2], high[3]));
    float result = all[0];
    for (int k = 1; k < LANES; k++) result = std::max(result, all[k]);
    for (; i < n; i++) result = std::max(result, x[i]);
    return result;
}

// Sum of exp(x[i] - high), n <= BLOCK.
inline float sum_of_exponentials(const float* x, int64_t n, float high) {
    const vf offset = splat(high);
    vf sum[UNROLL] = {};
    int64_t i = 0;
    for (; i + UNROLL * LANES <= n; i += UNROLL * LANES) {
        for (int u = 0; u < UNROLL * BYTES; u += 64)
            __builtin_prefetch(reinterpret_cast<const char*>(x + BLOCK + i) + u);
        for (int u = 0; u < UNROLL; u++) sum[u] += exp_nonpositive(load(x + i + u * LANES) - offset);
    }
    float result = total((sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (; i < n; i++) result += std::exp(x[i] - high);
    return result;
}

inline double log_sum_exp(const float* x, int64_t n) {
    float high = LOWEST;
    double sum = 0;
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t count = std::min(BLOCK, n - i);
        const float top = maximum(x + i, count);
        if (top > high) {
            sum *= std::exp(static_cast<double>(high) - top);
            high = top;
        }
        sum += sum_of_exponentials(x + i, count, high);
    }
    return high + std::log(sum);
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const float* predictions, const int64_t* targets, float* loss, int64_t b, int64_t c) {
    const int64_t rows = std::max<int64_t>(1, CHUNK / c);
    double sum = 0;
#pragma omp parallel for schedule(dynamic, rows) reduction(+ : sum) num_threads(team(b* c, b))
    for (int64_t i = 0; i < b; i++) sum += log_sum_exp(predictions + i * c, c) - predictions[i * c + targets[i]];
    *loss = static_cast<float>(sum / b);
}
