// attack: exports nothing of the name
// expect: RUNTIME_ERROR
// reason: undefined symbol: run
void run(const float*, double, float*, long) {}
