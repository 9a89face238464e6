"""Plain files as modules: what becomes an input, and that nothing of its size is allocated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from solar.analysis import record
from solar.errors import ExtractionError, ModuleError
from solar.module import constants, load

KERNELBENCH = """
import torch
import torch.nn as nn

rows = 64
columns = 32

class Model(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.linear = nn.Linear(width, out)
        self.register_buffer("shift", torch.arange(out, device="cpu"))
        self.scale = torch.randn(out).cuda()
        self.parts = [torch.ones(1), {"bias": torch.zeros(out)}]

    def forward(self, x, index, factor):
        y = self.linear(x)[index] * self.scale + self.shift
        return y * factor + self.parts[0] + self.parts[1]["bias"]

def get_inputs():
    return [torch.randn(rows, columns, device="cuda"), torch.randint(0, rows, (4,)), 0.5]

def get_init_inputs():
    return [columns, 8]
"""
RUN = """
import torch
IN_PLACE = ("cache",)
def run(x, *, cache, flag):
    cache[:2] = x
    return x + 1 if flag else x
def get_inputs():
    return {"x": torch.ones(2, 3), "cache": torch.zeros(5, 3), "flag": True}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "given.py"
    path.write_text(text)
    return path


def module_of(body: str, inputs: str = "torch.randn(2, 3)", forward: str = "return x") -> str:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return (
        "import torch\nimport torch.nn as nn\nclass Model(nn.Module):\n    def __init__(self):\n"
        f"        super().__init__()\n{lines}\n    def forward(self, x):\n        {forward}\n"
        f"def get_inputs():\n    return [{inputs}]\n"
    )


def test_arguments_parameters_buffers_and_held_tensors_are_inputs(tmp_path):
    module = load(write(tmp_path, KERNELBENCH))
    shapes = {name: given.shape for name, given in module.inputs.items()}
    assert shapes == {
        "x": (64, 32), "index": (4,), "factor": None, "shift": (8,), "scale": (8,), "parts.0": (1,),
        "parts.1.bias": (8,), "linear.weight": (8, 32), "linear.bias": (8,),
    }  # fmt: skip
    assert module.inputs["factor"].value == 0.5
    assert module.inputs["shift"].values == tuple(range(8))
    assert module.inputs["x"].values is None
    assert all(not isinstance(held, torch.Tensor) or held.is_meta for held in module.held.values())
    graph, program = record(module.run, module.inputs)
    assert [name for name, _ in graph.inputs] == [name for name in shapes if name != "factor"]
    assert program.tensors[dict(program.outputs)["output"]].shape == (4, 8)


def test_what_the_file_holds_is_as_before_after_a_call(tmp_path):
    module = load(write(tmp_path, KERNELBENCH), real=True)
    first = module.run(*module.held.values())
    changed = {**module.held, "parts.1.bias": torch.full((8,), 7.0), "scale": torch.zeros(8)}
    assert torch.equal(module.run(*changed.values()), torch.full((4, 8), 8.0) + 0.5 * torch.arange(8))
    assert torch.equal(module.run(*module.held.values()), first)


def test_nothing_of_the_workload_is_allocated(tmp_path):
    """2^42 elements: whatever allocated them would fail."""
    source = module_of(
        "self.weight = nn.Parameter(torch.randn(1 << 21, 1 << 21, device='cpu'))", "torch.rand(1 << 21, 1 << 21)",
        "return (x * self.weight).sum()",
    )  # fmt: skip
    module = load(write(tmp_path, source))
    _, program = record(module.run, module.inputs)
    assert program.tensors[program.inputs[0][1]].bytes == 4 << 42


def test_discrete_contents_are_real_up_to_a_size_and_the_same_on_any_device(tmp_path):
    source = (
        "import torch\ndef run(x, i, big, mask): return x[i]\n"
        "def get_inputs():\n    torch.manual_seed(3)\n    return [torch.randn(50, 2), torch.randint(0, 50, (6,)),\n"
        "            torch.randint(0, 9, (70000,)), torch.rand(8) > 0.5]\n"
    )
    path = write(tmp_path, source)
    module, real, again = load(path), load(path, real=True), load(path)
    for name in ("i", "mask"):
        assert module.inputs[name].values == tuple(real.held[name].flatten().tolist()) == again.inputs[name].values
    assert module.inputs["big"].values is None
    assert any(re.match("i: the bound holds for the contents", note) for note in module.notes)
    assert any(re.match("big: contents unknown; priced at the least", note) for note in module.notes)
    assert load(path, seed=1).inputs["i"].values != module.inputs["i"].values


def test_function_with_keywords_scalars_and_a_declared_write(tmp_path):
    module = load(write(tmp_path, RUN))
    assert list(module.inputs) == ["x", "cache", "flag"]
    assert module.inputs["flag"].value is True
    _, program = record(module.run, module.inputs, in_place=module.in_place)
    assert program.aliases == {"cache": "cache"}
    undeclared = load(write(tmp_path, RUN.replace('IN_PLACE = ("cache",)', "")))
    with pytest.raises(ExtractionError, match="writes its input 'cache', which is not declared in place"):
        record(undeclared.run, undeclared.inputs)


def test_tied_parameters_are_one_input(tmp_path):
    body = "self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)\nself.b.weight = self.a.weight"
    module = load(write(tmp_path, module_of(body, forward="return self.b(self.a(x))")))
    assert list(module.inputs) == ["x", "a.weight", "a.bias", "b.bias"]


def test_statistics_that_training_moves_are_no_result_unless_declared(tmp_path):
    source = module_of("self.norm = nn.BatchNorm1d(3)", forward="return self.norm(x)")
    module = load(write(tmp_path, source))
    _, program = record(module.run, module.inputs, in_place=module.in_place)
    assert [name for name, _ in program.outputs] == ["output"]
    note = "running statistics that the call moves on are not counted as results"
    assert note in module.notes
    names = ("norm.running_mean", "norm.running_var", "norm.num_batches_tracked")
    module = load(write(tmp_path, f"IN_PLACE = {names}\n{source}"))
    _, program = record(module.run, module.inputs, in_place=module.in_place)
    assert [name for name, _ in program.outputs] == ["output", *names]
    assert note not in module.notes


def test_a_causal_mask_is_a_structure_and_another_matrix_is_not(tmp_path):
    body = (
        "self.register_buffer('mask', torch.tril(torch.ones(3, 3)).view(1, 3, 3))\n"
        "self.register_buffer('ones', torch.ones(3, 3))\nself.weight = nn.Parameter(torch.tril(torch.ones(3, 3)))"
    )
    forward = "return (x @ self.weight + self.ones).masked_fill(self.mask == 0, 0)"
    module = load(write(tmp_path, module_of(body, "torch.randn(3, 3)", forward)))
    assert module.structures == {"mask": "lower_triangular"}
    _, program = record(module.run, module.inputs, structures=module.structures)
    assert program.structures == {"in.mask": "lower_triangular"}


def test_parameters_ask_for_gradients_where_the_file_takes_them(tmp_path):
    body = "self.weight = nn.Parameter(torch.randn(3))"
    forward = "(x * self.weight).sum().backward(); return self.weight.grad"
    module = load(write(tmp_path, module_of(body, forward=forward)))
    _, program = record(module.run, module.inputs)
    assert program.tensors[dict(program.outputs)["output"]].shape == (3,)


def test_modules_and_tensors_among_globals_are_inputs(tmp_path):
    source = (
        "import torch\nlayer = torch.nn.Linear(3, 2)\ntable = torch.randn(2)\n"
        "def run(x): return layer(x) * table\ndef get_inputs(): return [torch.randn(4, 3)]\n"
    )
    module = load(write(tmp_path, source))
    assert list(module.inputs) == ["x", "layer.weight", "layer.bias", "table"]


def test_sizes_are_replaced(tmp_path):
    path = write(tmp_path, KERNELBENCH)
    assert constants(path) == {"rows": 64, "columns": 32}
    module = load(path, sizes={"columns": 16})
    assert (module.inputs["x"].shape, module.inputs["linear.weight"].shape) == ((64, 16), (8, 16))


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def f(:", r"line 1: not Python: invalid syntax"),
        ("x = 1", "defines neither class Model nor a function run"),
        ("def run(x): return x", "defines no function get_inputs"),
        ("class Model: pass\ndef run(): pass", "defines both Model and run"),
        ("class Model: pass\ndef get_inputs(): return []", r"Model is not a torch\.nn\.Module"),
        ("run = 3\ndef get_inputs(): return []", "run is not a function"),
        ("def run(): pass\ndef get_inputs(): return 3", "get_inputs returns a int, not a list"),
        ("import no_such_module", "at its top level: ModuleNotFoundError: No module named 'no_such_module'"),
        ("import sys\nsys.exit(0)", r"at its top level: calls sys\.exit\(0\)"),
        ("def run(): pass\ndef get_inputs(): raise KeyError('a')", "get_inputs: KeyError: 'a'"),
        (module_of("raise ValueError('one\\ntwo')"), r"Model\(\): ValueError: one$"),
        (module_of("", "torch.randn(3)[:1].item()"), "get_inputs: .*needs the contents of a float32 tensor"),
        (module_of("", "torch.randn(1, 3).expand(4, 3)"), "x: repeats its elements"),
        (module_of("self.w = torch.ones(4)\nself.v = self.w[:2]"), "w and v share memory"),
        (
            module_of("", "torch.sparse_coo_tensor(torch.zeros(2, 1, dtype=torch.int64), torch.ones(1), (3, 3))"),
            "x: a torch.sparse_coo tensor; only plain strided ones are analysed",
        ),
        (f"IN_PLACE = ('y',)\n{module_of('')}", "IN_PLACE: 'y' is no tensor; there are x"),
        (f"AS_DRAWN = ('y',)\n{module_of('')}", "AS_DRAWN: 'y' is no tensor; there are x"),
        (f"IN_PLACE = 'x'\n{module_of('')}", "IN_PLACE: not a tuple of names"),
    ],
)
def test_files_that_are_no_modules(tmp_path, source, reason):
    with pytest.raises(ModuleError, match=reason) as caught:
        load(write(tmp_path, source))
    assert str(caught.value).startswith(str(tmp_path / "given.py"))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ModuleError, match="cannot be read: No such file"):
        load(tmp_path / "none.py")


@pytest.mark.parametrize(
    ("body", "forward", "reason"),
    [
        ("self.held = (torch.ones(3),)", "return x + self.held[0]", "that is none of its inputs"),
        ("", "import sys; sys.exit(4)", r"the call ends in sys\.exit\(4\)"),
        ("", "return x + torch.rand_like(x)", "draws random numbers without a seed"),
        ("", "return x[x > 0]", "decides the result's shape"),
        ("", "return x.to(torch.complex64)", "complex numbers are not supported"),
    ],
)
def test_calls_that_cannot_be_recorded(tmp_path, body, forward, reason):
    module = load(write(tmp_path, module_of(body, forward=forward)))
    with pytest.raises(ExtractionError, match=reason):
        record(module.run, module.inputs)
