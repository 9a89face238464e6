// Row sums, float32, in many short partial sums: one a lane and register, widened to double at the end.

#include <algorithm>
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
constexpr int UNROLL = 8;           // independent sums, to hide the latency of an addition
constexpr int64_t BLOCK = 1 << 14;  // float sums are widened to double this often

inline vf load(const float* p) {
    vf v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline float total(vf v) {
    float lane[LANES];
    std::memcpy(lane, &v, sizeof v);
    for (int width = LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++) lane[i] += lane[i + width];
    return lane[0];
}

inline double row_sum(const float* x, int64_t n) {
    double result = 0;
    for (int64_t i = 0; i < n;) {
        const int64_t end = std::min(n, i + BLOCK);
        vf sum[UNROLL] = {};
        for (; i + UNROLL * LANES <= end; i += UNROLL * LANES)
            for (int u = 0; u < UNROLL; u++) sum[u] += load(x + i + u * LANES);
        for (; i + LANES <= end; i += LANES) sum[0] += load(x + i);
        result += total(((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])));
        for (; i < end; i++) result += x[i];
    }
    return result;
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const float* x, float* output, int64_t m, int64_t n) {
#pragma omp parallel for schedule(static) num_threads(team(m* n, m))
    for (int64_t row = 0; row < m; row++) output[row] = static_cast<float>(row_sum(x + row * n, n));
}
