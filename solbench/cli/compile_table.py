"""What ``solbench compile`` prints: launches by workload, then each kernel once, with what its author can act on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_LINES = 8  # of the assembly that one finding names, at most
_LOG = 12  # lines of what a compiler or the host's code said last
# Instructions that say nothing of what a kernel spends.
_QUIET = ("branch", "cache", "end", "hint", "message")


def lines(problem: str, result: Mapping[str, Any]) -> Iterator[str]:
    """``result``: see :func:`solbench.code.artifacts.compiled`."""
    codes = result["code"]
    first = codes[0]
    tools = first["toolchain"]
    version = str(tools["version"]).partition("\n")[0]
    yield f"{problem}: {first['solution']} for {first['target']}, compiled by {tools['compiler']}, {version}"
    yield "Code was read, not run: nothing here is a time, and no card was used."
    numbers = {digest: number for number, digest in enumerate(result["kernels"], 1)}
    shown: dict[str, str] = {}
    for code in codes:
        yield ""
        yield f"{code['workload']}  {code['status']}{': ' + code['reason'] if code['reason'] else ''}"
        for line in result["logs"].get(code["workload"], "").splitlines()[-_LOG:]:
            yield f"    {line}"
        text = "\n".join(f"  {line}" for line in _launches(code["launches"], numbers))
        like = shown.setdefault(text, code["workload"])
        if text:
            yield text if like == code["workload"] else f"  launches as {like}"
        calls = ", ".join(f"{name} x{count}" for name, count in (code["library_calls"] or {}).items())
        if calls:
            yield f"  PyTorch computes as well: {calls}"
    for digest, kernel in result["kernels"].items():
        yield ""
        yield from _kernel(numbers[digest], kernel)
    done = sum(code["status"] == "COMPILED" for code in codes)
    yield ""
    yield f"{done} of {len(codes)} workloads compiled and would launch; {len(numbers)} kernels"


def _launches(launches: Iterable[Mapping[str, Any]], numbers: Mapping[str, int]) -> Iterator[str]:
    for launch in launches:
        evidence = launch["evidence"]
        number = f"[{numbers[evidence['digest']]}]" if evidence else "[-]"
        grid = f", grid {'x'.join(map(str, launch['grid']))}" if launch["grid"] else ""
        constants = ", ".join(f"{name}={value}" for name, value in launch["constexprs"].items())
        times = f", {launch['count']} times" if launch["count"] > 1 else ""
        config = f"; tuned: {_config(launch)}" if launch["config"] else ""
        fault = f"; not compiled: {launch['fault']}" if launch["fault"] else ""
        yield f"{number} {launch['kernel']}({constants}){grid}{times}{config}{fault}"


def _kernel(number: int, kernel: Mapping[str, Any]) -> Iterator[str]:
    evidence, launch = kernel["evidence"], kernel["launch"]
    resources, waves = evidence["resources"], evidence["occupancy"]
    spills = [resources[f"{kind}_spills"] for kind in ("vgpr", "sgpr")]
    parts = [
        f"{launch['threads']} threads", f"{resources['vgprs']} VGPRs", f"{resources['sgprs']} SGPRs",
        f"{resources['lds_bytes']} B LDS", f"{resources['scratch_bytes']} B scratch",
        f"spills {' and '.join('untold' if spill is None else str(spill) for spill in spills)}",
    ]  # fmt: skip
    yield f"[{number}] {kernel['kernel']}: {', '.join(parts)}"
    if waves is not None:
        # Nothing limits what cannot be launched at all.
        why = f"limited by {' and '.join(waves['limited_by'])}" if waves["limited_by"] else "it cannot be launched"
        yield f"    waves a SIMD: {waves['waves_per_simd']} of 16, {why}"
    if evidence["mix"] is not None:
        written = {name: count["written"] for name, count in evidence["mix"]["engines"].items()}
        yield f"    in all: {_counts(written)}"
        for loop in evidence["loops"]:
            trips = "an unknown number of times" if loop["trips"] is None else f"{loop['trips']} times"
            inside = f", in that of line {evidence['loops'][loop['parent']]['line']}" if loop["depth"] > 1 else ""
            yield f"    loop of line {loop['line']}{inside}, run {trips}: {_counts(loop['engines'])}"
        if evidence["mix"]["wmma"]:
            products = ", ".join(f"{name} {count['written']}" for name, count in evidence["mix"]["wmma"].items())
            yield f"    matrix products: {products}"
        for kind, by_bits in evidence["mix"]["widths"].items():
            if kind.startswith("global"):
                widths = ", ".join(f"{count['written']} of {bits} bits" for bits, count in by_bits.items())
                yield f"    {kind.replace('_', ' ')}s: {widths}"
    for finding in evidence["findings"]:
        places = finding["evidence"]
        where = ", ".join(map(str, places[:_LINES])) + (f" and {len(places) - _LINES} more" if places[_LINES:] else "")
        source = f"; {', '.join(finding['source'][:3])}" if finding["source"] else ""
        lines_text = f" (assembly {where}{source})" if places else ""
        yield f"    {finding['severity']}: {finding['text']}{lines_text}"
    if not evidence["findings"]:
        yield "    no findings"
    unread = evidence["code"]["unread"] if evidence["code"] is not None else []
    if unread:
        yield f"    {len(unread)} words of the code object are not read"


def _config(launch: Mapping[str, Any]) -> str:
    """A configuration without what stands among the constants already, and what is at its default."""
    parts = [part.partition(": ") for part in str(launch["config"]).split(", ")]
    told = [f"{name} {value}" for name, _, value in parts if name not in launch["constexprs"] and value != "None"]
    return ", ".join(part for part in told if part != "num_ctas 1") or "no options"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if name not in _QUIET) or "nothing that counts"
