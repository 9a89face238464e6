// attack H11: lets the compiler read what the candidate cannot
// expect: COMPILE_ERROR
// reason: No such file
// needs: mount namespace
#include "/etc/passwd"
extern "C" void run() {}
