// Layer normalisation of rows, float32: mean, then the variance around it (never E[x^2] - mean^2), then the affine map,
// all three passes over a row that sits in the cache.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <omp.h>

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

constexpr int64_t GRAIN = 1 << 14;  // elements a thread; for fewer, waking it costs more than it saves
constexpr int UNROLL = 4;           // independent sums, to hide the latency of an addition

inline vf load(const float* p) {
    vf v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline void store(float* p, vf v) { std::memcpy(p, &v, sizeof v); }
inline vf splat(float x) { return x - vf{}; }

inline float total(const vf (&v)[UNROLL]) {
    const vf sum = (v[0] + v[1]) + (v[2] + v[3]);
    float lane[LANES];
    store(lane, sum);
    for (int width = LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++) lane[i] += lane[i + width];
    return lane[0];
}

inline float mean_of(const float* x, int64_t n) {
    vf sum[UNROLL] = {};
    int64_t i = 0;
    for (; i + UNROLL * LANES <= n; i += UNROLL * LANES)
        for (int u = 0; u < UNROLL; u++) sum[u] += load(x + i + u * LANES);
    for (; i + LANES <= n; i += LANES) sum[0] += load(x + i);
    float rest = 0;
    for (; i < n; i++) rest += x[i];
    return (total(sum) + rest) / n;
}

inline float variance_of(const float* x, int64_t n, float mean) {
    const vf center = splat(mean);
    vf sum[UNROLL] = {};
    int64_t i = 0;
    for (; i + UNROLL * LANES <= n; i += UNROLL * LANES)
        for (int u = 0; u < UNROLL; u++) {
            const vf d = load(x + i + u * LANES) - center;
            sum[u] += d * d;
        }
    for (; i + LANES <= n; i += LANES) {
        const vf d = load(x + i) - center;
        sum[0] += d * d;
    }
    float rest = 0;
    for (; i < n; i++) rest += (x[i] - mean) * (x[i] - mean);
    return (total(sum) + rest) / n;
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const float* x, const float* weight, const float* bias, float eps, float* output, int64_t b,
                    int64_t n) {
#pragma omp parallel for schedule(static) num_threads(team(b* n, b))
    for (int64_t row = 0; row < b; row++) {
        const float* in = x + row * n;
        float* out = output + row * n;
        const float mean = mean_of(in, n);
        const float factor = 1.0f / std::sqrt(variance_of(in, n, mean) + eps);
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES)
            store(out + i, (load(in + i) - mean) * factor * load(weight + i) + load(bias + i));
        for (; i < n; i++) out[i] = (in[i] - mean) * factor * weight[i] + bias[i];
    }
}
