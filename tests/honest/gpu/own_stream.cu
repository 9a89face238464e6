// honest: a kernel on a stream of its own, which it waits for
#include <cstdint>

__global__ void scale_shift(const float* x, double scale, float* y, int64_t n) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = float(x[i] * scale + 1);
}

extern "C" void run(const float* x, double scale, float* y, int64_t n) {
  static cudaStream_t stream = nullptr;
  if (stream == nullptr) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  scale_shift<<<unsigned((n + 255) / 256), 256, 0, stream>>>(x, scale, y, n);
  cudaStreamSynchronize(stream);
}
