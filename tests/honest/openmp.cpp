// honest: many threads, joined by OpenMP at the end of the loop
#include <cstdint>

extern "C" void run(const float* x, double scale, float* y, int64_t n) {
#pragma omp parallel for simd
  for (int64_t i = 0; i < n; ++i) y[i] = float(x[i] * scale + 1);
}
