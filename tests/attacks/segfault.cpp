// attack: dies of a bad address
// expect: RUNTIME_ERROR
// reason: SIGSEGV
#include <cstdint>

extern "C" void run(const float* x, double scale, float* y, int64_t n) { *reinterpret_cast<volatile float*>(8) = x[0]; }
