// attack T10: returns at once and lets a native thread do the work
// expect: INCORRECT_NUMERICAL
#include <chrono>
#include <cstdint>
#include <thread>

extern "C" void run(const float* x, double scale, float* y, int64_t n) {
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (int64_t i = 0; i < n; ++i) y[i] = float(x[i] * scale + 1);
  }).detach();
}
