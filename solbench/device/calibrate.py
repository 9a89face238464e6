"""What this cpu can do, measured by a small C++ probe: the machine model of the ``cpu`` target.

Probed: fused multiply-adds in fp32 from registers, reading and copying a buffer far larger than the last-level
cache. Each is the best of many short blocks, alone and on all cores, times a margin, so that a busy machine does not
make the bound beatable. Rates of formats that the probe does not run follow from the processor's flags.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solar import hardware
from solar.errors import HardwareError
from solbench.device import cpu
from solbench.errors import SolbenchError, UnsupportedError

MARGIN = 1.25
PROBE_LIMIT_S = 120.0
# A buffer this many times the last-level cache is read from memory, not from the cache.
BUFFER_FACTOR = 8
# Seconds of blocks for each of six rates.
BLOCKS_S = 0.75

# flag, factor over fp32, what it is; the first that applies.
_FLOAT16 = (
    ("avx512_fp16", 2, "avx512_fp16"), ("asimdhp", 2, "asimdhp"), ("", 1, ""),
)  # fmt: skip
_BFLOAT16 = (
    ("avx512_bf16", 2, "avx512_bf16"), ("bf16", 4, "bfmmla"), ("", 1, ""),
)  # fmt: skip
_INT8 = (
    ("i8mm", 8, "i8mm"), ("", 4, "four 8-bit products in a 32-bit lane"),
)  # fmt: skip
# Tile products: operations a cycle over those of two 512-bit fp32 pipes.
_MATRIX = {"amx_bf16": ("bfloat16", 32), "amx_fp16": ("float16", 32), "amx_int8": ("int8", 64)}

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

// Work a second of the best of many short blocks, for about `seconds`. A block is over before a busy machine's other
// processes get their turn, in some of them at least; a long run always shares.
template <class Block> static double best_rate(double seconds, size_t blocks, Block block) {
  double best = 0;
  const double end = now() + seconds;
  do {
    for (size_t at = 0; at < blocks; ++at) {
      const double start = now();
      const double work = block(at);
      best = std::max(best, work / (now() - start));
    }
  } while (now() < end);
  return best;
}

static double fma_rate(int threads, int64_t rounds, double seconds) {
  return best_rate(seconds, 8, [&](size_t) {
    double work = 0;
#pragma omp parallel num_threads(threads) reduction(+ : work)
    { volatile float sink; work += fma_work(rounds, &sink); }
    return work;
  });
}

// Blocks follow each other through the whole buffer: each was last seen a buffer's length ago, and is in no cache.
static double read_rate(const char* data, size_t bytes, size_t block, int threads, double seconds) {
  typedef int64_t V __attribute__((vector_size(kBytes)));
  const size_t count = block / (8 * kBytes);
  return best_rate(seconds, bytes / block, [&](size_t at) {
    int64_t guard = 0;
    const V* base = reinterpret_cast<const V*>(data + at * block);
#pragma omp parallel for num_threads(threads) schedule(static) reduction(^ : guard)
    for (size_t part = 0; part < count; ++part) {
      const V* from = base + 8 * part;
      const V mixed = ((from[0] ^ from[1]) ^ (from[2] ^ from[3])) ^ ((from[4] ^ from[5]) ^ (from[6] ^ from[7]));
      guard ^= mixed[0];
    }
    if (guard == 42) std::fputs("", stderr);
    return double(count * 8 * kBytes);
  });
}

static void copy_part(char* to, const char* from, size_t bytes) {
#if defined(__AVX__)
  for (size_t at = 0; at + 32 <= bytes; at += 32) {
    const __m256i value = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + at));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at), value);
  }
  _mm_sfence();
#else
  std::memcpy(to, from, bytes);
#endif
}

// Bytes read plus bytes written, a second, with stores that pass the cache by where the processor has them.
static double copy_rate(char* data, size_t bytes, size_t block, int threads, double seconds) {
  const size_t half = bytes / 2, part = block / 2 / threads / 4096 * 4096;
  return best_rate(seconds, bytes / block, [&](size_t at) {
    char* from = data + at * (block / 2);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int thread = 0; thread < threads; ++thread) {
      copy_part(from + half + thread * part, from + thread * part, part);
    }
    return 2.0 * double(part) * threads;
  });
}

int main(int, char** argument) {
  const size_t bytes = std::strtoull(argument[1], nullptr, 10) / 8192 * 8192;
  const int threads = std::atoi(argument[2]);
  char* data = static_cast<char*>(std::aligned_alloc(4096, bytes));
  if (data == nullptr) return 1;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (size_t page = 0; page < bytes / 4096; ++page) std::memset(data + page * 4096, int(page * 31), 4096);
  const int64_t rounds = 40000;
  const double seconds = std::atof(argument[3]);
  const size_t block = std::min<size_t>(bytes / 8, 8 << 20) / (8192 * threads) * (8192 * threads);
  if (block == 0) return 1;
  const double fp32 = std::max(threads * fma_rate(1, rounds, seconds), fma_rate(threads, rounds, seconds));
  const double read = std::max(
      read_rate(data, bytes, block, 1, seconds), read_rate(data, bytes, block, threads, seconds));
  const double copy = std::max(
      copy_rate(data, bytes, block, 1, seconds), copy_rate(data, bytes, block, threads, seconds));
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


def calibrate_cpu() -> dict[str, Any]:
    """Probe this cpu and return its machine model (``solar.hardware``, origin ``calibrated``)."""
    return machine_model(probe(), cpu.identity())


def remembered_cpu(cache: Path) -> dict[str, Any]:
    """The machine model of this processor: from ``cache`` (a folder) if it was probed before, else probed now."""
    path = cache / f"cpu-{cpu.processor_key()[:16]}.json"
    try:
        return hardware.Machine.from_dict(json.loads(path.read_bytes())).to_dict()
    except (OSError, ValueError, HardwareError):
        model = calibrate_cpu()
    cache.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(model, indent=2) + "\n")
    return model


def machine_model(measured: Probe, identity: Mapping[str, Any]) -> dict[str, Any]:
    """The model from what was measured and what the processor is (``cpu.identity``).

    Rates of other formats are multiples of the fp32 rate, from the widest instruction that the flags promise.
    """
    flags = set(identity["flags"])
    fp32 = "fp32 multiply-adds from registers, best of many short blocks, alone and on all cores"

    def rate(factor: float, why: str) -> dict[str, Any]:
        source, confidence = (fp32, "measured") if factor == 1 else (f"{factor:g} times the fp32 probe: {why}", "low")
        return {
            "measured_ops_per_s": measured.fp32_ops_per_s * factor, "margin": MARGIN, "dense": True, "source": source,
            "confidence": confidence,
        }  # fmt: skip

    half = {"float16": _factor(flags, _FLOAT16), "bfloat16": _factor(flags, _BFLOAT16)}
    engines: dict[str, dict[str, Any]] = {
        "valu": {
            "float64": rate(0.5, "half the lanes"),
            "float32": rate(1, ""),
            "tfloat32": rate(1, ""),
            **{name: rate(*factor) for name, factor in half.items()},
            "int8": rate(*_factor(flags, _INT8)),
        }
    }
    matrix = {name: rate(factor, flag) for flag, (name, factor) in _MATRIX.items() if flag in flags}
    if matrix:
        engines["matrix"] = matrix
    last_level = {"value": cpu.level_bytes(identity["caches"], None), "source": identity["cache_source"]}
    second = cpu.level_bytes(identity["caches"], 2)
    caches = {"last_level_bytes": {**last_level, "confidence": "high"}}
    if second:
        caches["l2_bytes"] = {"value": second, "source": identity["cache_source"], "confidence": "high"}
    value = {
        "schema": hardware.SCHEMA,
        "name": "cpu",
        "device": identity["model"],
        "origin": "calibrated",
        "clock": None,
        "engines": engines,
        "memory": {
            "measured_bytes_per_s": measured.memory_bytes_per_s,
            "margin": MARGIN,
            "dense": True,
            "source": f"reading and copying {BUFFER_FACTOR} times the last-level cache, best of many short blocks each",
            "confidence": "measured",
        },
        "caches": caches,
        "absorbed_store_bytes": {
            "value": last_level["value"],
            "source": "a write-back cache: stores that fit into its last level need not reach memory in time",
            "confidence": "high",
        },
    }
    return hardware.Machine.from_dict(value).to_dict()


def _factor(flags: set[str], table: Sequence[tuple[str, float, str]]) -> tuple[float, str]:
    """Largest factor whose flag is there; the last row needs none."""
    return next((factor, why) for flag, factor, why in table if not flag or flag in flags)


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
        output = _run([str(program), str(size), str(cpu.thread_count()), str(BLOCKS_S)], "the probe failed")
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
