// attack: compiled for a card that is not here
// expect: COMPILE_ERROR
// reason: but the card is
// flags: -arch=sm_80
#include <cstdint>

__global__ void scale_shift(const float* x, double scale, float* y, int64_t n) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = float(x[i] * scale + 1);
}

extern "C" void run(const float* x, double scale, float* y, int64_t n) {
  scale_shift<<<unsigned((n + 255) / 256), 256>>>(x, scale, y, n);
}
