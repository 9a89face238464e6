// RMS normalisation of bfloat16 rows: everything in float32, one rounding at the store.

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
typedef uint32_t vu __attribute__((vector_size(BYTES)));
constexpr int64_t STEP = 2 * LANES;  // bfloat16 values in a vector

// A vector of bfloat16 pairs is worked on as two float vectors, the even and the odd values: nothing is shuffled.
// Little-endian; count < STEP fills up with zeros.
inline vu load(const uint16_t* p, int64_t count) {
    vu v = {};
    std::memcpy(&v, p, count * sizeof *p);
    return v;
}

inline void store(uint16_t* p, vu v, int64_t count) { std::memcpy(p, &v, count * sizeof *p); }
inline vf even(vu pairs) { return reinterpret_cast<vf>(pairs << 16); }
inline vf odd(vu pairs) { return reinterpret_cast<vf>(pairs & 0xffff0000u); }

// Round to nearest even in the upper 16 bits; NaN is not expected.
inline vu rounded(vf v) {
    const vu bits = reinterpret_cast<vu>(v);
    return bits + 0x7fffu + ((bits >> 16) & 1u);
}

inline vu pack(vf even, vf odd) { return (rounded(even) >> 16) | (rounded(odd) & 0xffff0000u); }

constexpr int64_t GRAIN = 1 << 14;  // elements a thread; for fewer, waking it costs more than it saves

inline float total(vf v) {
    float lane[LANES];
    std::memcpy(lane, &v, sizeof v);
    for (int width = LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++) lane[i] += lane[i + width];
    return lane[0];
}

inline float sum_of_squares(const uint16_t* x, int64_t n) {
    vf sum[4] = {};
    const auto add = [&](vf& s, vf& t, vu pairs) {
        s += even(pairs) * even(pairs);
        t += odd(pairs) * odd(pairs);
    };
    int64_t i = 0;
    for (; i + 2 * STEP <= n; i += 2 * STEP) {
        add(sum[0], sum[1], load(x + i, STEP));
        add(sum[2], sum[3], load(x + i + STEP, STEP));
    }
    for (; i < n; i += STEP) add(sum[0], sum[1], load(x + i, std::min(STEP, n - i)));
    return total((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const uint16_t* x, float eps, uint16_t* output, int64_t b, int64_t f) {
#pragma omp parallel for schedule(static) num_threads(team(b* f, b))
    for (int64_t row = 0; row < b; row++) {
        const uint16_t* in = x + row * f;
        uint16_t* out = output + row * f;
        const float factor = 1.0f / std::sqrt(sum_of_squares(in, f) / f + eps);
        const auto scaled = [&](vu pairs) { return pack(even(pairs) * factor, odd(pairs) * factor); };
        int64_t i = 0;
        for (; i + STEP <= f; i += STEP) store(out + i, scaled(load(in + i, STEP)), STEP);
        if (i < f) store(out + i, scaled(load(in + i, f - i)), f - i);
    }
}
