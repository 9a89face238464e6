"""The small instance of an attestation: what every axis stands for is kept, or the size is."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from solar.convert import convert
from solar.einsum import Program
from solar.errors import ReplayError
from solbench.bounds import _extracted, attestation, attested, convert_and_reduce, examined
from solbench.corpus.reduce import Instance, witness
from solbench.model.definition import Definition
from solbench.model.workload import Workload

# Attention to the last W keys in blocks of BK of which TB are read, a loop over the query heads of each key head.
AXES: dict[str, Any] = {name: {"type": "var"} for name in ("HQ", "HK", "S", "T", "D", "W", "BK", "TB")}
AXES["NB"] = {"type": "expr", "expression": "(T + BK - 1) // BK"}
REFERENCE = """
import torch

def run(q, k, window):
    k = k.float()
    heads = [head.float() @ k.transpose(1, 2) for head in q.unflatten(0, (k.shape[0], -1)).unbind(1)]
    key = torch.arange(k.shape[1], device=k.device)
    query = torch.arange(q.shape[1], device=k.device).unsqueeze(1) + (k.shape[1] - q.shape[1])
    hidden = (key > query) | (key <= query - window)
    return torch.stack(heads, dim=1).flatten(0, 1).masked_fill(hidden, 0)
"""
SIZES = {"HQ": 64, "HK": 8, "S": 1344, "T": 8081, "D": 128, "W": 1024, "BK": 128, "TB": 16}


def definition(reference: str = REFERENCE, **axes: Any) -> Definition:
    fields = {
        "schema": "solbench.definition.v1",
        "name": "windowed",
        "axes": {**AXES, **axes},
        "inputs": {
            "q": {"shape": ["HQ", "S", "D"], "dtype": "bfloat16"},
            "k": {"shape": ["HK", "T", "D"], "dtype": "bfloat16"},
            "window": {"shape": None, "dtype": "int32"},
        },
        "outputs": {"output": {"shape": ["HQ", "S", "T"], "dtype": "float32"}},
        "reference": reference,
    }
    return Definition.load(fields, "windowed")


def workload(uuid: str = "w", **sizes: int) -> Workload:
    axes = {**SIZES, **sizes}
    normal = {"type": "normal"}
    return Workload.load(
        {
            "schema": "solbench.workload.v1",
            "uuid": uuid,
            "axes": axes,
            "inputs": {"q": normal, "k": normal, "window": {"type": "constant", "value": axes["W"]}},
            "checks": [{"type": "numeric", "output": "output", "atol": 1e-3, "rtol": 1e-3}],
        },
        uuid,
    )


def small(made: Workload, *kept: int) -> Instance:
    found = witness(definition(), made, kept)
    assert found is not None
    return found


def test_order_and_remainders_stay_and_scalars_follow() -> None:
    axes = small(workload()).axes
    full = {**SIZES, "NB": 64}
    for first in SIZES:
        for second in SIZES:
            assert (axes[first] < axes[second]) == (full[first] < full[second]), (first, second)
    assert axes["HK"] == 8 and axes["HQ"] % 8 == 0
    assert axes["T"] % 2 == 1 and axes["T"] % axes["BK"] != 0
    assert axes["NB"] == -(-axes["T"] // axes["BK"])
    assert axes["T"] < 100
    made = small(workload())
    assert made.workload.inputs["window"].as_dict()["value"] == axes["W"] < 100
    assert made.note is not None and "T 8081 -> " in made.note


def test_whole_blocks_stay_whole() -> None:
    axes = small(workload(T=8192)).axes
    assert axes["T"] % axes["BK"] == 0


def test_an_axis_of_an_expression_stays_above_a_scalar() -> None:
    """NB = 64 blocks are more than the window of 32 keys, 10 are fewer."""
    for keys, above in ((8081, True), (1280, False)):
        axes = small(workload(T=keys, W=32, S=1)).axes
        assert (axes["NB"] > axes["W"]) is above


def test_kept_sizes_stay_and_bound_no_others() -> None:
    axes = small(workload(), 64).axes
    assert axes["HQ"] == 64 and axes["D"] < 64 and axes["S"] < 64
    assert small(workload(), 1024).axes["T"] > 1024


def test_parts_of_an_option_stay_whole_and_larger_than_one() -> None:
    fields = workload().as_dict()
    fields["inputs"]["window"]["value"] = 48
    axes = small(Workload.load({**fields, "axes": {**SIZES, "D": 4800}}, "w")).axes
    assert axes["D"] % 48 == 0 and axes["D"] >= 4 * 48


def test_an_axis_with_listed_values_stays() -> None:
    fields = workload().as_dict()
    fields["axes"] |= {"S": 20, "HQ": 1, "HK": 1, "D": 16}
    fields["inputs"]["q"] = {"type": "values", "values": [0.5] * 320}
    axes = small(Workload.load(fields, "w")).axes
    assert (axes["S"], axes["D"]) == (20, 16) and axes["T"] < 8081


def test_listed_offsets_shrink_with_their_size() -> None:
    described = {**definition().as_dict(), "order": None}
    described["reference"] = REFERENCE.replace("window)", "window, offsets)", 1)
    described["inputs"]["offsets"] = {"shape": ["HK"], "dtype": "int32"}
    fields = workload().as_dict()
    offsets = [0, 3000, 3000, 3001, 3003, 7000, 8080, 8081]
    fields["inputs"]["offsets"] = {"type": "values", "values": offsets}
    made = witness(Definition.load(described, "windowed"), Workload.load(fields, "w"))
    assert made is not None and made.axes["T"] < 100
    found = made.workload.inputs["offsets"].as_dict()["values"]
    assert found[0] == 0 and found[-1] == made.axes["T"]
    before = [min(high - low, 2) for low, high in pairwise(offsets)]
    assert [min(high - low, 2) for low, high in pairwise(found)] == before


def program_of(made: Workload, reference: str = REFERENCE) -> tuple[Program, Definition]:
    described = definition(reference)
    return convert(_extracted(described, made, made.validate_against(described, "w"), "aten")), described


def test_what_the_reference_loops_over_is_kept() -> None:
    program, described = program_of(workload())
    predicate = attested(program, described, workload())["predicate"]
    assert "HQ" not in predicate["reduced"] and predicate["shapes"]["inputs"]["q"][0] == 64
    assert predicate["reduced"]["T"][0] == 8081 and predicate["reduced"]["T"][1] < 100
    assert predicate["sizes"] == "small" and predicate["verdict"] == "passed"


def test_a_loop_over_the_long_axis_is_refused() -> None:
    """Its program has an operation for every 101 keys, and none of that length is small enough."""
    loop = """
import torch

def run(q, k, window):
    return torch.cat([q.repeat_interleave(1, 0).float() @ part.float().mean(0).T for part in k.split(101, 1)], -1)
"""
    made = workload(S=4096, T=8080, HQ=64, D=1024)
    program, described = program_of(made, loop)
    with pytest.raises(ReplayError, match=r"too large to replay \(reduced: |small program: "):
        attested(program, described, made)


def artifacts(made: Workload) -> tuple[dict[str, Any], dict[str, Any]]:
    from solar.graph import to_dict

    described = definition()
    axes = made.validate_against(described, "w")
    graph = to_dict(_extracted(described, made, axes, "aten"))
    instance = {"problem": "windowed", "workload": made.as_dict(), "axes": axes}
    return instance, {**described.as_dict(), "graph": graph}


def test_workloads_that_differ_in_scale_share_one_replay() -> None:
    first, second, other = (
        convert_and_reduce(*artifacts(made))
        for made in (workload("a"), workload("b", T=12345, S=2688), workload("c", T=8192))
    )
    assert first["witness"] == second["witness"] != other["witness"]
    assert first["program"] != second["program"]
    replayed = examined(json.loads(json.dumps(first["witness"])))
    statements = [attestation(converted, replayed)["attestation"] for converted in (first, second)]
    predicates = [statement["predicate"] for statement in statements]
    assert predicates[0].pop("reduced")["T"][0] == 8081 and predicates[1].pop("reduced")["T"][0] == 12345
    assert predicates[0] == predicates[1]
    graphs = [{entry["name"]: entry["digest"] for entry in statement["subject"]} for statement in statements]
    assert graphs[0]["einsum-graph"] != graphs[1]["einsum-graph"]
    assert graphs[0]["einsum-graph at small sizes"] == graphs[1]["einsum-graph at small sizes"]


def test_a_failed_replay_gives_its_reason() -> None:
    converted = convert_and_reduce(*artifacts(workload()))
    witnessed = {**converted["witness"], "path": "nothing"}
    replayed = examined(witnessed)
    assert replayed["found"] is None and replayed["reason"]
    assert attestation(converted, replayed) == {"program": None, "attestation": None, "reason": replayed["reason"]}
