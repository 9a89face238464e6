// Depthwise 3x3 convolution, float32, stride 1, no padding: two output rows at a time share the loads of the two input
// rows between them. A row's end is done by one more vector that overlaps the last one.

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

constexpr int64_t GRAIN = 1 << 13;  // elements written a thread; for fewer, waking it costs more than it saves

inline vf load(const float* p) {
    vf v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline void store(float* p, vf v) { std::memcpy(p, &v, sizeof v); }

// ROWS output rows of LANES columns from ROWS + 2 input rows of stride w.
template <int ROWS>
inline void tile(const float* x, int64_t w, const float* weight, float bias, float* out, int64_t w_out) {
    vf sum[ROWS];
    for (vf& s : sum) s = bias - vf{};
#pragma GCC unroll 8
    for (int r = 0; r < ROWS + 2; r++)
#pragma GCC unroll 3
        for (int s = 0; s < 3; s++) {
            const vf v = load(x + r * w + s);
#pragma GCC unroll 4
            for (int o = 0; o < ROWS; o++)
                if (r - o >= 0 && r - o < 3) sum[o] += v * weight[(r - o) * 3 + s];
        }
    for (int o = 0; o < ROWS; o++) store(out + o * w_out, sum[o]);
}

template <int ROWS>
inline void rows(const float* x, int64_t w, const float* weight, float bias, float* out, int64_t w_out) {
    if (w_out < LANES) {
        for (int o = 0; o < ROWS; o++)
            for (int64_t j = 0; j < w_out; j++) {
                float sum = bias;
                for (int r = 0; r < 3; r++)
                    for (int s = 0; s < 3; s++) sum += x[(o + r) * w + j + s] * weight[r * 3 + s];
                out[o * w_out + j] = sum;
            }
        return;
    }
    int64_t j = 0;
    for (; j + LANES <= w_out; j += LANES) tile<ROWS>(x + j, w, weight, bias, out + j, w_out);
    if (j < w_out) tile<ROWS>(x + w_out - LANES, w, weight, bias, out + w_out - LANES, w_out);
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const float* x, const float* weight, const float* bias, float* output, int64_t b, int64_t c,
                    int64_t h, int64_t w, int64_t /* 3 */, int64_t h_out, int64_t w_out) {
#pragma omp parallel for schedule(static) num_threads(team(b * c * h_out * w_out, b * c))
    for (int64_t plane = 0; plane < b * c; plane++) {
        const int64_t channel = plane % c;
        float taps[9];
        std::copy_n(weight + channel * 9, 9, taps);  // a copy cannot alias the output
        const float* in = x + plane * h * w;
        float* out = output + plane * h_out * w_out;
        int64_t i = 0;
        for (; i + 2 <= h_out; i += 2) rows<2>(in + i * w, w, taps, bias[channel], out + i * w_out, w_out);
        if (i < h_out) rows<1>(in + i * w, w, taps, bias[channel], out + i * w_out, w_out);
    }
}
