"""What this cpu can do, measured by a small C++ probe: the machine model of the ``cpu`` target.

Probed: fused multiply-adds in fp32 from registers, reading and copying a buffer far larger than the last-level
cache. Each is the best of many short runs, alone and on all cores, times a margin, so that a busy machine does not make
the bound beatable. Rates of formats that the probe does not run follow from the processor's flags.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solbench.device import cpu
from solbench.errors import SolbenchError, UnsupportedError

MARGIN = 1.25
PROBE_LIMIT_S = 120.0
# A buffer this many times the last-level cache is read from memory, not from the cache.
BUFFER_FACTOR = 8

PROBE = r"""
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <omp.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
constexpr int kBytes = 64, kChains = 20;
#elif defined(__AVX__)
constexpr int kBytes = 32, kChains = 12;
#else
constexpr int kBytes = 16, kChains = 20;
#endif

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Operations (two a multiply-add) of one thread: independent chains, all in registers.
static double fma_work(int64_t rounds, volatile float* sink) {
  typedef float V __attribute__((vector_size(kBytes)));
  V acc[kChains], a, b;
  for (int lane = 0; lane < kBytes / 4; ++lane) { a[lane] = 0.999f; b[lane] = 1e-3f; }
#pragma GCC unroll 32
  for (int chain = 0; chain < kChains; ++chain) acc[chain] = b * float(chain);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 32
    for (int chain = 0; chain < kChains; ++chain) acc[chain] = acc[chain] * a + b;
#pragma GCC unroll 32
    for (int chain = 0; chain < kChains; ++chain) asm volatile("" : "+x"(acc[chain]));
  }
  V total = acc[0];
#pragma GCC unroll 32
  for (int chain = 1; chain < kChains; ++chain) total += acc[chain];
  *sink = total[0];
  return 2.0 * kChains * (kBytes / 4) * double(rounds);
}

static double fma_rate(int threads, int64_t rounds) {
  double best = 0;
  for (int repeat = 0; repeat < 12; ++repeat) {
    double work = 0;
    const double start = now();
#pragma omp parallel num_threads(threads) reduction(+ : work)
    { volatile float sink; work += fma_work(rounds, &sink); }
    best = std::max(best, work / (now() - start));
  }
  return best;
}

static double read_rate(const char* data, size_t bytes, int threads) {
  typedef int64_t V __attribute__((vector_size(kBytes)));
  const size_t count = bytes / (8 * kBytes);
  double best = 0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    int64_t guard = 0;
    const double start = now();
#pragma omp parallel for num_threads(threads) schedule(static) reduction(^ : guard)
    for (size_t block = 0; block < count; ++block) {
      const V* from = reinterpret_cast<const V*>(data) + 8 * block;
      const V mixed = ((from[0] ^ from[1]) ^ (from[2] ^ from[3])) ^ ((from[4] ^ from[5]) ^ (from[6] ^ from[7]));
      guard ^= mixed[0];
    }
    const double seconds = now() - start;
    if (guard == 42) std::fputs("", stderr);
    best = std::max(best, double(count * 8 * kBytes) / seconds);
  }
  return best;
}

static void copy_part(char* to, const char* from, size_t bytes) {
#if defined(__AVX__)
  for (size_t at = 0; at + 32 <= bytes; at += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at), _mm256_load_si256(reinterpret_cast<const __m256i*>(from + at)));
  _mm_sfence();
#else
  std::memcpy(to, from, bytes);
#endif
}

// Bytes read plus bytes written, a second, with stores that pass the cache by where the processor has them.
static double copy_rate(char* data, size_t bytes, int threads) {
  const size_t half = bytes / 2, part = half / threads / 4096 * 4096;
  double best = 0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const double start = now();
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int thread = 0; thread < threads; ++thread) copy_part(data + half + thread * part, data + thread * part, part);
    best = std::max(best, 2.0 * double(part) * threads / (now() - start));
  }
  return best;
}

int main(int, char** argument) {
  const size_t bytes = std::strtoull(argument[1], nullptr, 10) / 8192 * 8192;
  const int threads = std::atoi(argument[2]);
  char* data = static_cast<char*>(std::aligned_alloc(4096, bytes));
  if (data == nullptr) return 1;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (size_t page = 0; page < bytes / 4096; ++page) std::memset(data + page * 4096, int(page * 31), 4096);
  const int64_t rounds = 400000;
  const double fp32 = std::max(threads * fma_rate(1, rounds), fma_rate(threads, rounds));
  const double read = std::max(read_rate(data, bytes, 1), read_rate(data, bytes, threads));
  const double copy = std::max(copy_rate(data, bytes, 1), copy_rate(data, bytes, threads));
  std::printf("{\"fp32_ops_per_s\": %.6e, ", fp32);
  std::printf("\"read_bytes_per_s\": %.6e, \"copy_bytes_per_s\": %.6e}\n", read, copy);
  return 0;
}
"""


@dataclass(frozen=True)
class Probe:
    """Measured peaks, before any margin: operations (a multiply-add is two) and bytes a second, all cores."""

    fp32_ops_per_s: float
    read_bytes_per_s: float
    copy_bytes_per_s: float

    @property
    def memory_bytes_per_s(self) -> float:
        return max(self.read_bytes_per_s, self.copy_bytes_per_s)


def probe() -> Probe:
    """Build and run the probe: a few seconds. :class:`UnsupportedError` without a compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise UnsupportedError("no C++ compiler: g++ is not installed (apt-get install g++)")
    folder = Path(tempfile.mkdtemp(prefix="solbench-probe-"))
    try:
        source, program = folder / "probe.cpp", folder / "probe"
        source.write_text(PROBE)
        build = [compiler, "-O3", "-march=native", "-fopenmp", "-std=c++20", "-o", str(program), str(source)]
        _run(build, "the probe does not compile")
        size = BUFFER_FACTOR * cpu.last_level_bytes()
        output = _run([str(program), str(size), str(cpu.thread_count())], "the probe failed")
        return Probe(**{name: float(value) for name, value in json.loads(output).items()})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str], what: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PROBE_LIMIT_S, check=True).stdout
    except subprocess.CalledProcessError as error:
        raise SolbenchError(f"{what}: {error.stderr.strip()[-400:]}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SolbenchError(f"{what}: {error}") from None
