"""A bound as a kernel author reads it: what each operation costs, what binds, what would have to change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from solbench.cli import printable

Analysis = Mapping[str, Any]
_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_TOP = 3


def print_tables(analysis: Analysis, program: Mapping[str, Any], file: IO[str], width: int) -> None:
    """Print the tables of an analysis artifact and the einsum graph that it was made for."""
    console = Console(file=file, width=width, highlight=False, markup=False, emoji=False)
    for line in heading(analysis):
        console.print(Text(printable(line)))
    console.print(_operations(analysis, program))
    console.print(_terms(analysis))
    for line in changes(analysis):
        console.print(Text(printable(f"- {line}")))
    for name in ("assumptions", "looseness", "notes"):
        for line in analysis[name]:
            console.print(Text(printable(f"{name}: {line}"), style="dim"))


def heading(analysis: Analysis) -> Iterator[str]:
    """What was analysed, and the result."""
    subject = analysis["subject"]
    named = " ".join(str(subject[key]) for key in ("problem", "workload", "module", "program") if key in subject)
    yield f"{named} on {analysis['target']}, path {analysis['path']}"
    yield f"T_SOL {seconds(analysis['t_sol_s'])}, bound by {analysis['binds']}"
    if analysis["coverage"] == "complete":
        yield "coverage complete"
    else:
        yield f"coverage partial: not counted: {', '.join(analysis['uncounted'])}"
    yield "attested: passed" if analysis["attestation"] else f"not attested: {analysis['not_attested']}"


def terms(analysis: Analysis) -> dict[str, float]:
    """Seconds by what may bind: memory, and each engine."""
    found = {"memory": float(analysis["memory"]["seconds"])}
    for entry in analysis["compute"]:
        found[entry["engine"]] = found.get(entry["engine"], 0.0) + entry["seconds"]
    return found


def changes(analysis: Analysis) -> Iterator[str]:
    """What would make the bound fall, and to where."""
    found = terms(analysis)
    binds = analysis["binds"]
    others = {name: value for name, value in found.items() if name != binds}
    floor_name = max(others, key=lambda name: others[name], default=None)
    floor_s = 0.0 if floor_name is None else others[floor_name]
    total = found[binds]
    if total <= 0:
        yield "nothing moves and nothing is computed"
        return
    if binds == "memory":
        moved = [tensor for tensor in analysis["tensors"] if tensor["live_bytes"]]
        all_bytes = sum(tensor["live_bytes"] for tensor in moved)
        largest = sorted(moved, key=lambda tensor: -tensor["live_bytes"])[:_TOP]
        for tensor in largest:
            saved = tensor["live_bytes"] / all_bytes * total
            verb = "read" if tensor["role"] == "input" else "written"
            yield (
                f"fewer bytes: {tensor['name']} is {_share(saved, total)} of them ({size(tensor['live_bytes'])} "
                f"{verb}); in a dtype of half the width T_SOL is {seconds(max(total - saved / 2, floor_s))}"
            )
    else:
        yield from _compute_changes(analysis, binds, total, floor_s)
    if floor_name is not None and floor_s > 0:
        yield f"below {seconds(floor_s)} ({_share(floor_s, total)} of T_SOL) {floor_name} binds"
    else:
        yield "nothing else sets a limit"


def _compute_changes(analysis: Analysis, binds: str, total: float, floor_s: float) -> Iterator[str]:
    entries = [entry for entry in analysis["compute"] if entry["engine"] == binds]
    rates = {(entry["engine"], entry["mode"]): entry["rate_per_s"] for entry in entries}
    charged = [(term, term["work"] / rates[key]) for term in analysis["terms"]
               if (key := (term["engine"], term["mode"])) in rates and term["work"]]  # fmt: skip
    # Loops repeat an operation: those of one function and cost are one line.
    alike: dict[tuple[str, float], list[str]] = {}
    for term, cost in charged:
        alike.setdefault((term["function"], cost), []).append(term["op"])
    for (function, cost), ops in sorted(alike.items(), key=lambda item: -item[0][1] * len(item[1]))[:_TOP]:
        named = ops[0] if len(ops) == 1 else f"{ops[0]} and {len(ops) - 1} like it"
        yield f"fewer operations: {named} ({function}): {_share(cost * len(ops), total)} of {binds}'s time"
    formats = analysis["hardware"]["engines"][binds]
    for entry in entries:
        if entry["mode"] == "elementwise":
            continue
        own, _, split = entry["mode"].partition("*")
        kind = "float" if "float" in own else "int"
        products = int(split or 1)
        gains = {name: _rate(rate) * products / entry["rate_per_s"] for name, rate in formats.items() if kind in name}
        # The least that helps: a check that refuses it refuses what is coarser still.
        gain, name = min(((gain, name) for name, gain in gains.items() if gain > 1.01), default=(1.0, ""))
        if name:
            after = max(total - entry["seconds"] * (1 - 1 / gain), floor_s)
            yield (
                f"a faster format: {entry['mode']} is what dtypes and checks admit; in one product of {name} "
                f"({gain:.3g} times as fast) T_SOL is {seconds(after)}"
            )


def _rate(rate: Mapping[str, Any]) -> float:
    """Peak of a rate as the machine model's file has it (:mod:`solar.hardware`), at its published clock."""
    measured = rate.get("measured_ops_per_s")
    return float(measured * rate["margin"] if measured is not None else rate["published_ops_per_s"])


def _operations(analysis: Analysis, program: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("operation", "what", "engine"):
        table.add_column(name, overflow="fold")
    for name in ("work", "compute", "bytes", "memory", "binds"):
        table.add_column(name, justify="right", no_wrap=True)
    rates = {(entry["engine"], entry["mode"]): entry["rate_per_s"] for entry in analysis["compute"]}
    moved = bytes_by_operation(analysis, program)
    bandwidth = analysis["memory"]["bandwidth_bytes_per_s"]
    idle = 0
    for term in analysis["terms"]:
        carried = moved.pop(term["op"], 0)
        if not term["work"] and not carried:
            idle += 1
            continue
        rate = rates.get((term["engine"], term["mode"]))
        binds = (analysis["binds"] == "memory" and carried) or (analysis["binds"] == term["engine"] and term["work"])
        engine = " ".join(part for part in (term["engine"], term["mode"]) if part)
        table.add_row(
            _cell(term["op"]), _cell(f"{term['kind']} {term['function']}"), _cell(engine),
            count(term["work"]) if term["work"] else "", seconds(term["work"] / rate) if rate and term["work"] else "",
            size(carried) if carried else "", seconds(carried / bandwidth) if carried else "", "*" if binds else "",
        )  # fmt: skip
    rest = sum(moved.values())
    if rest:
        cost = seconds(rest / bandwidth)
        table.add_row("(no operation)", "inputs that are outputs", "", "", "", size(rest), cost, "")
    if idle:
        table.add_row(f"({idle} more)", "free: fused, views, or part of another's price", "", "", "", "", "", "")
    return table


def _terms(analysis: Analysis) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("term")
    table.add_column("amount", justify="right")
    table.add_column("at", justify="right")
    table.add_column("time", justify="right")
    table.add_column("of T_SOL", justify="right")
    memory, total = analysis["memory"], analysis["t_sol_s"]
    absorbed = memory["absorbed_write_bytes"]
    amount = size(memory["live_bytes"]) + (f" less {size(absorbed)} that a cache may keep" if absorbed else "")
    rows = [("memory", amount, f"{memory['bandwidth_bytes_per_s'] / 1e9:.4g} GB/s", memory["seconds"])]
    for entry in analysis["compute"]:
        name = f"{entry['engine']} {entry['mode']}"
        rows.append((name, f"{count(entry['ops'])}op", f"{entry['rate_per_s'] / 1e12:.4g} Top/s", entry["seconds"]))
    for name, amount, rate, cost in rows:
        table.add_row(_cell(name), amount, rate, seconds(cost), _share(cost, total))
    return table


def bytes_by_operation(analysis: Analysis, program: Mapping[str, Any]) -> dict[str, int]:
    """Bytes of declared tensors by the operation that needs them: an input's by the first live operation that reads it,
    views of it passed over, an output's by the one that writes it. ``""``: those that no operation touches."""
    live = {term["op"] for term in analysis["terms"]}
    readers: dict[str, list[Mapping[str, Any]]] = {}
    producers: dict[str, Mapping[str, Any]] = {}
    for op in program["ops"]:
        for name in op["operands"]:
            readers.setdefault(name, []).append(op)
        for name in op["outputs"]:
            producers[name] = op

    def first_reader(name: str) -> str:
        pending = [name]
        for reached in pending:
            for op in readers.get(reached, ()):
                if op["name"] in live and op["kind"] != "view":
                    return str(op["name"])
                pending += [output for output in op["outputs"] if output not in pending]
        return ""

    def writer(name: str) -> str:
        op = producers.get(name)
        while op is not None and (op["kind"] == "view" or op["name"] not in live) and op["operands"]:
            op = producers.get(op["operands"][0])
        return "" if op is None or op["name"] not in live else str(op["name"])

    places = {"input": dict(program["inputs"]), "output": dict(program["outputs"])}
    found: dict[str, int] = {}
    for tensor in analysis["tensors"]:
        if tensor["live_bytes"]:
            name = places[tensor["role"]][tensor["name"]]
            op_name = first_reader(name) if tensor["role"] == "input" else writer(name)
            found[op_name] = found.get(op_name, 0) + tensor["live_bytes"]
    return found


def seconds(value: float) -> str:
    """A time with three digits and a fitting unit."""
    scale, unit = next((item for item in _SCALES if value >= item[0]), _SCALES[-1])
    return f"{value / scale:.3g} {unit}" if value < 1000 else f"{value:.0f} s"


def size(value: float) -> str:
    """A number of bytes, in powers of 1000."""
    return f"{_scaled(value)}B"


def count(value: float) -> str:
    """A number of operations, in powers of 1000."""
    return _scaled(value)


def _scaled(value: float) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}"
    return f"{value:.3g} "


def _share(part: float, whole: float) -> str:
    return "-" if whole <= 0 else f"{part / whole:.1%}" if part < whole else "100 %"


def _cell(text: str) -> Text:
    return Text(printable(text).replace("\n", " "))


def summary(analysis: Analysis) -> Sequence[str]:
    """The result in a few lines."""
    lines = list(heading(analysis))
    for name, value in sorted(terms(analysis).items(), key=lambda item: -item[1]):
        lines.append(f"  {name:<8} {seconds(value)}")
    lines.append(f"  {count(analysis['macs'])}MAC, {size(analysis['memory']['live_bytes'])} must move")
    return lines
