// Matrix product, float32. B is packed into panels two vectors wide; a tile of ROWS rows by one panel stays in
// registers while K runs in blocks whose panel fits the first-level cache. A is read in place: its rows are broadcast.

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

#if defined(__AVX512BW__) || defined(__aarch64__)
constexpr int ROWS = 12;  // of 32 vector registers: 24 sums, 2 of B, 1 of A
#else
constexpr int ROWS = 6;  // of 16: 12 sums, 2 of B, 1 of A
#endif
constexpr int64_t PANEL = 2 * LANES;                    // columns
constexpr int64_t DEPTH = 256;                          // K of a block: 16 KiB a panel with 32-byte vectors
constexpr int64_t TASK_ROWS = 4 * 12, TASK_PANELS = 8;  // what a thread takes at a time
constexpr int64_t GRAIN = 1 << 19;  // multiply-adds a thread; for fewer, waking it costs more than it saves

inline vf load(const float* p) {
    vf v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline void store(float* p, vf v) { std::memcpy(p, &v, sizeof v); }

// C[R][PANEL] (+)= A[R][depth] * panel[depth][PANEL]; only the first columns of the panel exist in C.
template <int R>
inline void tile(const float* a, int64_t a_stride, const float* panel, int64_t depth, float* c, int64_t c_stride,
                 int64_t columns, bool add) {
    vf sum[R][2] = {};
    for (int64_t k = 0; k < depth; k++) {
        const vf left = load(panel + k * PANEL), right = load(panel + k * PANEL + LANES);
#pragma GCC unroll 12
        for (int r = 0; r < R; r++) {
            const vf x = a[r * a_stride + k] - vf{};
            sum[r][0] += x * left;
            sum[r][1] += x * right;
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; r++) {
        float* out = c + r * c_stride;
        if (columns == PANEL) {
            store(out, add ? load(out) + sum[r][0] : sum[r][0]);
            store(out + LANES, add ? load(out + LANES) + sum[r][1] : sum[r][1]);
        } else {
            float lane[PANEL];
            store(lane, sum[r][0]);
            store(lane + LANES, sum[r][1]);
            for (int64_t j = 0; j < columns; j++) out[j] = add ? out[j] + lane[j] : lane[j];
        }
    }
}

template <int R>
void rows(int64_t count, const float* a, int64_t a_stride, const float* panel, int64_t depth, float* c,
          int64_t c_stride, int64_t columns, bool add) {
    if (count == R) return tile<R>(a, a_stride, panel, depth, c, c_stride, columns, add);
    if constexpr (R > 1) rows<R - 1>(count, a, a_stride, panel, depth, c, c_stride, columns, add);
}

// One panel of B, all of K, filled up with zeros beyond the last column.
inline void pack(const float* b, int64_t k, int64_t n, int64_t first, float* panel) {
    const int64_t columns = std::min(PANEL, n - first);
    for (int64_t p = 0; p < k; p++, panel += PANEL) {
        const float* from = b + p * n + first;
        if (columns == PANEL) {
            store(panel, load(from));
            store(panel + LANES, load(from + LANES));
        } else {
            std::fill_n(std::copy_n(from, columns, panel), PANEL - columns, 0.0f);
        }
    }
}

// How many threads to wake.
inline int team(int64_t work, int64_t items) {
    return static_cast<int>(std::clamp<int64_t>(std::min(work / GRAIN, items), 1, omp_get_max_threads()));
}

}  // namespace

extern "C" void run(const float* a, const float* b, float* output, int64_t m, int64_t k, int64_t n) {
    const int64_t panels = (n + PANEL - 1) / PANEL;
    const int64_t row_tasks = (m + TASK_ROWS - 1) / TASK_ROWS, column_tasks = (panels + TASK_PANELS - 1) / TASK_PANELS;
    thread_local std::vector<float> scratch;  // kept: fresh pages for every call would cost a tenth of its time
    if (static_cast<int64_t>(scratch.size()) < panels * PANEL * k) scratch.resize(panels * PANEL * k);
    float* const packed = scratch.data();

#pragma omp parallel num_threads(team(m * n * k, row_tasks * column_tasks))
    {
#pragma omp for schedule(static)
        for (int64_t panel = 0; panel < panels; panel++) pack(b, k, n, panel * PANEL, packed + panel * PANEL * k);
#pragma omp for schedule(dynamic) collapse(2)
        for (int64_t row_task = 0; row_task < row_tasks; row_task++)
            for (int64_t column_task = 0; column_task < column_tasks; column_task++) {
                const int64_t last_row = std::min(m, (row_task + 1) * TASK_ROWS);
                const int64_t last_panel = std::min(panels, (column_task + 1) * TASK_PANELS);
                for (int64_t p = 0; p < k; p += DEPTH)
                    for (int64_t panel = column_task * TASK_PANELS; panel < last_panel; panel++)
                        for (int64_t i = row_task * TASK_ROWS; i < last_row; i += ROWS)
                            rows<ROWS>(std::min<int64_t>(ROWS, last_row - i), a + i * k + p, k,
                                       packed + (panel * k + p) * PANEL, std::min(DEPTH, k - p),
                                       output + i * n + panel * PANEL, n, std::min(PANEL, n - panel * PANEL), p > 0);
            }
    }
}
