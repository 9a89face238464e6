// Direct 3x3 convolution, float32, stride 1, no padding. A tile of OUT channels by a few vectors of columns stays in
// registers over all input channels and taps; three input rows of all channels serve every output channel in turn. A
// row's end is done by one more tile that overlaps the last one.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

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

constexpr int OUT = 4;  // output channels of a tile
constexpr int TAPS = 9;
constexpr int64_t GRAIN = 1 << 19;  // multiply-adds a thread; for fewer, waking it costs more than it saves

inline vf load(const float* p) {
    vf v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline void store(float* p, vf v) { std::memcpy(p, &v, sizeof v); }

// Keeps the value in a register; else every multiply-add would load it again, and these loads straddle cache lines.
inline void hold(vf& v) {
#if defined(__x86_64__)
    asm("" : "+x"(v));
#elif defined(__aarch64__)
    asm("" : "+w"(v));
#endif
}

struct Shape {
    int64_t c, h, w, o, h_out, w_out;
};

// weights: [C][9][OUT] of these channels; out: the row's first channel. live <= OUT channels exist.
template <int VECTORS>
inline void tile(const float* x, const float* weights, const float* bias, float* out, const Shape& s, int live) {
    vf sum[OUT][VECTORS];
    for (int o = 0; o < OUT; o++)
        for (int v = 0; v < VECTORS; v++) sum[o][v] = bias[o] - vf{};
    for (int64_t c = 0; c < s.c; c++, x += s.h * s.w, weights += TAPS * OUT)
#pragma GCC unroll 9
        for (int tap = 0; tap < TAPS; tap++) {
            vf in[VECTORS];
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++) {
                in[v] = load(x + tap / 3 * s.w + tap % 3 + v * LANES);
                hold(in[v]);
            }
#pragma GCC unroll 4
            for (int o = 0; o < OUT; o++)
#pragma GCC unroll 4
                for (int v = 0; v < VECTORS; v++) sum[o][v] += in[v] * weights[tap * OUT + o];
        }
    for (int o = 0; o < live; o++)
        for (int v = 0; v < VECTORS; v++) store(out + o * s.h_out * s.w_out + v * LANES, sum[o][v]);
}

inline void narrow_row(const float* x, const float* weights, const float* bias, float* out, const Shape& s, int live) {
    for (int o = 0; o < live; o++)
        for (int64_t j = 0; j < s.w_out; j++) {
            float sum = bias[o];
            for (int64_t c = 0; c < s.c; c++)
                for (int tap = 0; tap < TAPS; tap++)
                    sum += x[c * s.h * s.w + tap / 3 * s.w + tap % 3 + j] * weights[(c * TAPS + tap) * OUT + o];
            out[o * s.h_out * s.w_out + j] = sum;
        }
}

template <int VECTORS>
inline void row(const float* x, const float* weights, const float* bias, float* out, const Shape& s, int live) {
    constexpr int64_t WIDTH = VECTORS * LANES;
    int64_t j = 0;
    for (; j + WIDTH <= s.w_out; j += WIDTH) tile<VECTORS>(x + j, weights, bias, out + j, s, live);
    if (j < s.w_out) tile<VECTORS>(x + s.w_out - WIDTH, weights, bias, out + s.w_out - WIDTH, s, live);
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const float* x, const float* weight, const float* bias, float* output, int64_t b, int64_t c,
                    int64_t h, int64_t w, int64_t o, int64_t /* 3 */, int64_t h_out, int64_t w_out) {
    const Shape s{c, h, w, o, h_out, w_out};
    const int64_t blocks = (o + OUT - 1) / OUT, block_weights = c * TAPS * OUT;
    std::vector<float> packed(blocks * block_weights), padded_bias(blocks * OUT);
    std::copy_n(bias, o, padded_bias.data());
    for (int64_t k = 0; k < o; k++)
        for (int64_t i = 0; i < c * TAPS; i++)
            packed[k / OUT * block_weights + i * OUT + k % OUT] = weight[k * c * TAPS + i];

#pragma omp parallel for schedule(static) collapse(2) num_threads(team(b * o * h_out * w_out * c * TAPS, b * h_out))
    for (int64_t image = 0; image < b; image++)
        for (int64_t i = 0; i < h_out; i++)
            for (int64_t block = 0; block < blocks; block++) {
                const float* in = x + image * c * h * w + i * w;
                const float* weights = packed.data() + block * block_weights;
                float* out = output + ((image * o + block * OUT) * h_out + i) * w_out;
                const int live = static_cast<int>(std::min<int64_t>(OUT, o - block * OUT));
                const auto one_row = w_out >= 2 * LANES ? row<2> : w_out >= LANES ? row<1> : narrow_row;
                one_row(in, weights, padded_bias.data() + block * OUT, out, s, live);
            }
}
