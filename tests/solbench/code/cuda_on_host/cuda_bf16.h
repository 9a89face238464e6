// Two float32 rounded to bfloat16, to nearest, ties to even; the first one lies in the lower half.
#pragma once

#include "cuda_runtime.h"

struct __nv_bfloat162 {
  uint16_t x, y;
};

namespace on_host {
inline uint16_t bfloat16_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (value != value) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
}  // namespace on_host

static inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) {
  return {on_host::bfloat16_bits(low), on_host::bfloat16_bits(high)};
}
