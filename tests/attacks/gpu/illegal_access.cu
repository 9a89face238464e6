// attack: a kernel that writes where there is nothing
// expect: RUNTIME_ERROR
// reason: illegal memory access
// next
#include <cstdint>

__global__ void write(float* address) { *address = 1; }

extern "C" void run(const float* x, double scale, float* y, int64_t n) {
  write<<<1, 1>>>(reinterpret_cast<float*>(8));
}
