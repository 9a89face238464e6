// attack: is not CUDA
// expect: COMPILE_ERROR
// reason: error
// log: does_not_compile.cu
extern "C" void run(const float* x, double scale, float* y { }
