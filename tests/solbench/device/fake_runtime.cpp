// The functions that solbench binds, under HIP's and CUDA's names: memory is a file beside this library, an event a clock
// reading.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <thread>

struct Handle { char reserved[64]; };
static int last = 0;
static int fail(int code) { return last = code; }
static std::map<void*, std::pair<std::string, size_t>> memory;
static std::map<void*, size_t> opened;
using Clock = std::chrono::steady_clock;

static std::string path(const std::string& name) {
  Dl_info info;
  dladdr(reinterpret_cast<void*>(&fail), &info);
  std::string library = info.dli_fname;
  return library.substr(0, library.rfind('/')) + "/" + name;
}

static void* map(const std::string& name, int flags, size_t size) {
  int file = open(path(name).c_str(), flags, 0600);
  if (file < 0 || (size && ftruncate(file, size))) return nullptr;
  if (!size) size = lseek(file, 0, SEEK_END);
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return at;
}

#define API(P)                                                                                                       \
  extern "C" {                                                                                                       \
  const char* P##GetErrorString(int code) { return code == 2 ? "out of memory" : "invalid argument"; }               \
  int P##GetLastError() { int code = last; last = 0; return code; }                                                   \
  int P##SetDevice(int device) { return device < 2 ? 0 : fail(101); }                                                \
  int P##DeviceGetByPCIBusId(int* device, const char* text) {                                                        \
    if (strlen(text) != 12) return 1;                                                                                \
    *device = text[6] - '3';                                                                                         \
    return 0;                                                                                                        \
  }                                                                                                                  \
  int P##DeviceGetAttribute(int* value, int attribute, int) { *value = attribute == 38 ? 62914560 : -1; return 0; }  \
  int P##DeviceSynchronize() { return 0; }                                                                           \
  int P##RuntimeGetVersion(int* version) { *version = 12345; return 0; }                                             \
  int P##MemGetInfo(size_t* free, size_t* total) { *free = 3ull << 30; *total = 4ull << 30; return 0; }              \
  int P##Malloc(void** at, size_t size) {                                                                            \
    if (size > 1ull << 34) return 2;                                                                                 \
    std::string name = "memory-" + std::to_string(getpid()) + "-" + std::to_string(memory.size());           \
    *at = map(name, O_RDWR | O_CREAT | O_EXCL, size);                                                                \
    memory[*at] = {name, size};                                                                                      \
    return *at ? 0 : 2;                                                                                              \
  }                                                                                                                  \
  int P##Free(void* at) {                                                                                            \
    if (!memory.count(at)) return 1;                                                                                 \
    unlink(path(memory[at].first).c_str());                                                                           \
    munmap(at, memory[at].second);                                                                                   \
    memory.erase(at);                                                                                                \
    return 0;                                                                                                        \
  }                                                                                                                  \
  int P##Memcpy(void* to, const void* from, size_t size, int kind) { memcpy(to, from, size); return kind == 4 ? 0 : 1; } \
  int P##MemsetAsync(void* at, int byte, size_t size, void* stream) { memset(at, byte, size); return stream != nullptr; } \
  int P##EventCreate(void** event) { *event = new Clock::time_point; return 0; }                                     \
  int P##EventDestroy(void* event) { delete static_cast<Clock::time_point*>(event); return 0; }                      \
  int P##EventRecord(void* event, void*) { *static_cast<Clock::time_point*>(event) = Clock::now(); return 0; }       \
  int P##EventSynchronize(void*) { return 0; }                                                                       \
  int P##EventElapsedTime(float* ms, void* from, void* to) {                                                         \
    auto span = *static_cast<Clock::time_point*>(to) - *static_cast<Clock::time_point*>(from);                       \
    *ms = std::chrono::duration<float, std::milli>(span).count();                                                    \
    return 0;                                                                                                        \
  }                                                                                                                  \
  int P##IpcGetMemHandle(Handle* handle, void* at) {                                                                 \
    if (!memory.count(at)) return 1;                                                                                 \
    memset(handle, 0xFF, sizeof *handle);                                                                            \
    strcpy(handle->reserved, memory[at].first.c_str());                                                              \
    return 0;                                                                                                        \
  }                                                                                                                  \
  int P##IpcOpenMemHandle(void** at, Handle handle, unsigned flags) {                                                \
    if (flags != 1 || handle.reserved[63] != '\xFF') return 1;                                                       \
    if (access(path("refuse").c_str(), F_OK) == 0) return 201;                                                       \
    *at = map(handle.reserved, O_RDWR, 0);                                                                           \
    opened[*at] = 1;                                                                                                 \
    return *at ? 0 : 1;                                                                                              \
  }                                                                                                                  \
  int P##IpcCloseMemHandle(void* at) { return opened.erase(at) ? 0 : 1; }                                            \
  }

API(hip)
API(cuda)
