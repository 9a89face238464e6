// attack M5: leaves the last element alone
// expect: INCORRECT_NUMERICAL
#include <cstdint>

extern "C" void run(const float* x, double scale, float* y, int64_t n) {
  for (int64_t i = 0; i + 1 < n; ++i) y[i] = float(x[i] * scale + 1);
}
