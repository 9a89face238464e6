// Knowledge distillation loss, float32: softmax over the channel axis, whose values lie a whole image apart. A block of
// neighbouring pixels is read channel by channel, scaled into a small buffer, and finished there.

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
typedef int32_t vi __attribute__((vector_size(BYTES)));

constexpr int64_t GRAIN = 1 << 13;    // elements a thread; for fewer, waking it costs more than it saves
constexpr int VECTORS = 128 / LANES;  // a block: 128 pixels
constexpr int64_t BLOCK = VECTORS * LANES;

// count < LANES fills up with zeros.
inline vf load(const float* p, int64_t count) {
    vf v = {};
    std::memcpy(&v, p, count * sizeof *p);
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

// Natural logarithm of a normal positive number within 4e-8 absolute plus rounding; finite for 0.
inline vf logarithm(vf x) {
    constexpr int32_t ROOT_HALF = 0x3f3504f3;  // bits of 2^-1/2
    const vi bits = reinterpret_cast<vi>(x), exponent = (bits - ROOT_HALF) >> 23;
    const vf z = reinterpret_cast<vf>(bits - (exponent << 23)) - 1.0f;  // mantissa in [2^-1/2, 2^1/2), less 1
    vf q = z * -0.1003461331f + 0.1633564115f;
    q = q * z - 0.1732599477f;
    q = q * z + 0.1988827754f;
    q = q * z - 0.2496146519f;
    q = q * z + 0.3333526138f;
    q = q * z - 0.5000058438f;
    return __builtin_convertvector(exponent, vf) * 0.693147181f + (z * z * q + z);
}

// Sum over a block's pixels and all channels of target * (log target - log_softmax(input / temperature)).
// stride: elements from one channel to the next. scaled: room for BLOCK * channels floats. WHOLE: pixels == BLOCK.
template <bool WHOLE>
inline double block_loss(const float* input, const float* target, float factor, int64_t channels, int64_t stride,
                         int64_t pixels, vf* scaled) {
    const int vectors = WHOLE ? VECTORS : static_cast<int>((pixels + LANES - 1) / LANES);
    const auto at = [&](const float* p, int64_t c, int v) __attribute__((always_inline)) {
        return load(p + c * stride + v * LANES, WHOLE ? LANES : std::min<int64_t>(LANES, pixels - v * LANES));
    };
    vf high[VECTORS];
    for (vf& h : high) h = splat(-3e38f);
    for (int64_t c = 0; c < channels; c++) {
        if (WHOLE)
            for (int k = 0; k < BLOCK; k += 16) __builtin_prefetch(target + c * stride + k);
        for (int v = 0; v < vectors; v++) {
            const vf z = at(input, c, v) * factor;
            scaled[c * VECTORS + v] = z;
            high[v] = larger(z, high[v]);
        }
    }
    vf loss = {};
    for (int v = 0; v < vectors; v++) {
        vf sum = {}, weight = {};
        for (int64_t c = 0; c < channels; c++) {
            const vf t = at(target, c, v), d = scaled[c * VECTORS + v] - high[v];
            sum += exp_nonpositive(d);
            loss += t * (logarithm(t) - d);
            weight += t;
        }
        loss += weight * logarithm(sum);
    }
    double result = 0;
    for (int k = 0; k < LANES; k++) result += loss[k];
    return result;
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const float* input, const float* target, float temperature, float* loss, int64_t n, int64_t c,
                    int64_t h, int64_t w) {
    const int64_t image = h * w, blocks = (image + BLOCK - 1) / BLOCK;
    double sum = 0;
#pragma omp parallel reduction(+ : sum) num_threads(team(n * c * image, n * blocks))
    {
        std::vector<vf> scaled(VECTORS * c);
#pragma omp for schedule(static)
        for (int64_t block = 0; block < n * blocks; block++) {
            const int64_t first = block % blocks * BLOCK, at = block / blocks * c * image + first;
            const int64_t pixels = std::min(BLOCK, image - first);
            const auto loss_of = pixels == BLOCK ? block_loss<true> : block_loss<false>;
            sum += loss_of(input + at, target + at, 1.0f / temperature, c, image, pixels, scaled.data());
        }
    }
    *loss = static_cast<float>(sum * temperature * temperature / n);
}
