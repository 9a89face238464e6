// attack: is not C++
// expect: COMPILE_ERROR
// reason: error
// log: does_not_compile.cpp
extern "C" void run(const float* x, double scale, float* y { }
