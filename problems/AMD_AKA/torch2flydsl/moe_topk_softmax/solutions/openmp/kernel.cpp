// Expert routing: softmax of a token's bfloat16 gating row, plus a bias for the choice only, then K times the largest
// score. Which of two equal scores is chosen is free.

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
typedef uint32_t vu __attribute__((vector_size(BYTES)));
typedef uint16_t half_vh __attribute__((vector_size(BYTES / 2)));

constexpr int64_t GRAIN = 1 << 12;  // gating values a thread; for fewer, waking it costs more than it saves
constexpr int HEIGHT = 8;
constexpr int64_t STACK = HEIGHT * LANES;
constexpr float LOWEST = -std::numeric_limits<float>::infinity();

inline vf load(const float* p) {
    vf v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline void store(float* p, vf v) { std::memcpy(p, &v, sizeof v); }

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

inline float largest(vf v) {
    float lane[LANES];
    store(lane, v);
    for (int width = LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++) lane[i] = std::max(lane[i], lane[i + width]);
    return lane[0];
}

inline float total(vf v) {
    float lane[LANES];
    store(lane, v);
    for (int width = LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++) lane[i] += lane[i + width];
    return lane[0];
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

// Buffers of one thread, padded to whole stacks of HEIGHT vectors. A stack's columns are LANES groups of HEIGHT scores;
// best holds the largest of each group, so that a choice looks at one group and the bests, not at every score.
struct Row {
    explicit Row(int64_t experts)
        : stacks((experts + STACK - 1) / STACK),
          padded(stacks * STACK),
          probability(padded),
          score(padded),
          best(stacks * LANES) {}
    int64_t stacks, padded;
    std::vector<float> probability, score, best;
};

inline void probabilities(const uint16_t* gating, int64_t experts, Row& row) {
    float* p = row.probability.data();
    vf high = splat(LOWEST);
    int64_t e = 0;
    for (; e + LANES <= experts; e += LANES) {
        half_vh bits;
        std::memcpy(&bits, gating + e, sizeof bits);
        const vf value = reinterpret_cast<vf>(__builtin_convertvector(bits, vu) << 16);
        store(p + e, value);
        high = larger(value, high);
    }
    float top = largest(high);
    for (; e < row.padded; e++) {
        const uint32_t word = e < experts ? static_cast<uint32_t>(gating[e]) << 16 : 0xff800000u;  // -infinity
        std::memcpy(p + e, &word, sizeof word);
        top = std::max(top, p[e]);
    }
    vf sum = {};
    for (e = 0; e < row.padded; e += LANES) {
        const vf value = exp_nonpositive(load(p + e) - top);
        store(p + e, value);
        sum += value;
    }
    const float factor = 1.0f / total(sum);
    for (e = 0; e < row.padded; e += LANES) store(p + e, load(p + e) * factor);
}

inline void choose(const float* bias, int64_t experts, int64_t k, float route_scale, Row& row, float* weights,
                   int32_t* ids) {
    const float* p = row.probability.data();
    float *score = row.score.data(), *best = row.best.data();
    const int64_t groups = row.stacks * LANES;
    int64_t e = 0;
    for (; e + LANES <= experts; e += LANES) store(score + e, load(p + e) + load(bias + e));
    for (; e < row.padded; e++) score[e] = e < experts ? p[e] + bias[e] : LOWEST;
    for (int64_t s = 0; s < row.stacks; s++) {
        vf high = load(score + s * STACK);
        for (int q = 1; q < HEIGHT; q++) high = larger(load(score + s * STACK + q * LANES), high);
        store(best + s * LANES, high);
    }
    for (int64_t i = 0; i < k; i++) {
        vf high = load(best);
        for (int64_t g = LANES; g < groups; g += LANES) high = larger(load(best + g), high);
        const float top = largest(high);
        int32_t group = 0;
#pragma omp simd reduction(max : group)
        for (int32_t g = 0; g < groups; g++) group = std::max(group, best[g] == top ? g : 0);
        float* const column = score + group / LANES * STACK + group % LANES;
        int place = 0;
        float next = LOWEST;
        for (int q = 0; q < HEIGHT; q++) place = column[q * LANES] == top ? q : place;
        column[place * LANES] = LOWEST;
        for (int q = 0; q < HEIGHT; q++) next = std::max(next, column[q * LANES]);
        best[group] = next;
        const int64_t id = column + place * LANES - score;
        ids[i] = static_cast<int32_t>(id);
        weights[i] = route_scale * p[id];
    }
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const uint16_t* gating, const float* bias, int32_t /* topk = K */, float route_scale,
                    float* weights, int32_t* ids, int64_t t, int64_t e, int64_t k) {
#pragma omp parallel num_threads(team(t* e, t))
    {
        Row row(e);
#pragma omp for schedule(static)
        for (int64_t token = 0; token < t; token++) {
            probabilities(gating + token * e, e, row);
            choose(bias, e, k, route_scale, row, weights + token * k, ids + token * k);
        }
    }
}
