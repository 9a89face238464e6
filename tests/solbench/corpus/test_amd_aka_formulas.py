"""References of AMD_AKA against their formulas, computed apart in NumPy's float64 at tiny sizes.

Each entry: sizes, then the formula over float64 arrays. The result must pass the problem's own checks, in the base
round and in every stress round; and plausible mistakes must not.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from solbench.checks import check_outputs
from solbench.corpus.load import Problem, load_problem
from solbench.corpus.reference import load_reference, named_outputs
from solbench.inputs import draw, torch_dtype
from solbench.model.definition import Definition
from solbench.model.trace import Status
from solbench.model.workload import Workload

ROOT = Path(__file__).parents[3] / "problems" / "AMD_AKA"
Array = np.ndarray


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors gain nothing from threads, and lose much where other work shares the cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


erf = np.vectorize(math.erf, otypes=[float])


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def silu(x: Array) -> Array:
    return x * sigmoid(x)


def normed(x: Array, axis: Any, eps: float, correction: int = 0) -> Array:
    return (x - x.mean(axis=axis, keepdims=True)) / np.sqrt(x.var(axis=axis, keepdims=True, ddof=correction) + eps)


def linear(x: Array, weight: Array, bias: Array) -> Array:
    return np.einsum("...i,oi->...o", x, weight) + bias


def conv3x3(x: Array, weight: Array, bias: Array) -> Array:
    """NCHW, OIHW, no padding, stride 1, kernel not flipped."""
    height, width = x.shape[2] - 2, x.shape[3] - 2
    out = np.zeros((x.shape[0], weight.shape[0], height, width)) + bias[None, :, None, None]
    for r in range(3):
        for s in range(3):
            patch = x[:, :, r : r + height, s : s + width]
            out += np.einsum("bchw,oc->bohw", patch, weight[:, :, r, s])
    return out


def depthwise3x3(x: Array, weight: Array, bias: Array) -> Array:
    full = np.zeros((weight.shape[0], x.shape[1], 3, 3))
    for channel in range(x.shape[1]):
        full[channel, channel] = weight[channel, 0]
    return conv3x3(x, full, bias)


def max_pool(x: Array) -> Array:
    b, c, h, w = x.shape
    out = np.empty((b, c, h // 2, w // 2))
    for i in range(h // 2):
        for j in range(w // 2):
            out[:, :, i, j] = x[:, :, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max(axis=(2, 3))
    return out


def elu_over_pixels(s: Array) -> Array:
    return np.where(s > 0, s, np.expm1(s)) / s.shape[2]


def non_local(
    x: Array, qw: Array, qb: Array, kw: Array, kb: Array, vw: Array, vb: Array, gw: Array, gb: Array,
    activation: Callable[[Array], Array] = elu_over_pixels,
) -> Array:  # fmt: skip
    def project(t: Array, weight: Array, bias: Array) -> Array:
        return np.einsum("oc,bcp->bop", weight[:, :, 0, 0], t) + bias[None, :, None]

    pixels = x.reshape(*x.shape[:2], -1)
    q, k, v = project(pixels, qw, qb), project(pixels, kw, kb), project(pixels, vw, vb)
    energy = activation(np.einsum("bri,brj->bij", q, k))
    return project(np.einsum("bci,bij->bcj", v, energy), gw, gb).reshape(x.shape)


def rmsnorm_backward(x: Array, g: Array, grad_output: Array) -> tuple[Array, Array]:
    r = np.sqrt((x**2).mean(axis=1, keepdims=True))
    u = g * grad_output
    grad_x = u / r - x * (u * x).mean(axis=1, keepdims=True) / r**3
    return grad_x, (grad_output * x / r).sum(axis=0, keepdims=True)


def cross_entropy(predictions: Array, targets: Array) -> Array:
    losses = []
    for row, target in zip(predictions, targets):
        top = max(row)
        losses.append(top + math.log(math.fsum(math.exp(v - top) for v in row)) - row[int(target)])
    return np.array(math.fsum(losses) / len(losses))


def distillation(prediction: Array, target: Array, temperature: float) -> Array:
    log_p = np.log(softmax(prediction / temperature, 1))
    terms = np.where(target > 0, target * (np.log(np.where(target > 0, target, 1)) - log_p), 0)
    return np.array(temperature**2 / prediction.shape[0] * math.fsum(terms.ravel()))


def to_bf16(x: Array) -> Array:
    return torch.tensor(x).bfloat16().double().numpy()


def add_rmsnorm(x: Array, weight: Array, residual: Array, eps: float) -> tuple[Array, Array]:
    s = to_bf16(x + residual)
    return s / np.sqrt((s**2).mean(axis=1, keepdims=True) + eps) * weight, s


def int8_rows(x: Array) -> tuple[Array, Array]:
    scale = np.abs(x).max(axis=1, keepdims=True).astype(np.float32) / np.float32(127)
    scale[scale == 0] = 1
    return np.trunc(np.clip(x.astype(np.float32) / scale, -128, 127)), scale


def rotary(x: Array, offsets: Array, angles: Array) -> Array:
    out, half = np.empty_like(x), x.shape[2] // 2
    for start, stop in zip(offsets[:-1].astype(int), offsets[1:].astype(int)):
        for t in range(start, stop):
            c, s = np.cos(angles[t - start, 0, 0]), np.sin(angles[t - start, 0, 0])
            out[t, :, :half] = x[t, :, :half] * c - x[t, :, half:] * s
            out[t, :, half:] = x[t, :, half:] * c + x[t, :, :half] * s
    return out


def e4m3_byte(value: float) -> int:
    """OCP e4m3fn by its rules: 3 bits of mantissa, subnormals below 2^-6, ties to even."""
    sign = 0x80 if math.copysign(1, value) < 0 else 0
    exponent = max(math.frexp(abs(value))[1] - 1, -6) if value else -6
    steps = round(abs(value) / 2.0 ** (exponent - 3))  # Python rounds ties to even
    if steps == 16:
        exponent, steps = exponent + 1, 8
    return sign | (steps if steps < 8 else ((exponent + 7) << 3) | (steps - 8))


def e4m3(x: Array) -> Array:
    return np.vectorize(e4m3_byte, otypes=[np.uint8])(x)


def mxfp8(x: Array, threshold: float = 1.75) -> tuple[Array, Array]:
    codes, scales = np.zeros(x.shape, np.uint8), np.zeros((x.shape[0], x.shape[1] // 32), np.uint8)
    for m in range(x.shape[0]):
        for g in range(x.shape[1] // 32):
            block = x[m, 32 * g : 32 * g + 32]
            largest = np.abs(block).max()
            e = -127
            if largest > 0:
                mantissa, exponent = math.frexp(largest)
                e = min(max(exponent - 1 + (2 * mantissa >= threshold) - 8, -127), 127)
            scales[m, g] = e + 127
            codes[m, 32 * g : 32 * g + 32] = e4m3(block * 2.0**-e)
    return codes, scales


def route(gating: Array, bias: Array, topk: int, scale: float) -> tuple[Array, Array]:
    p = softmax(gating, 1)
    ids = np.argsort(-(p + bias), axis=1, kind="stable")[:, :topk]
    return scale * np.take_along_axis(p, ids, 1), ids


def mlp(x: Array, *parameters: Array) -> Array:
    for layer in range(6):
        x = np.maximum(linear(x, *parameters[2 * layer : 2 * layer + 2]), 0)
    return linear(x, *parameters[12:])


def feedforward(x: Array, y: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    return sigmoid(linear(np.maximum(linear(np.concatenate((x, y)), w1, b1), 0), w2, b2))


def positionwise(
    x: Array, w1: Array, b1: Array, w2: Array, b2: Array, gain: Array, shift: Array, p: float, training: bool
) -> Array:
    return normed(linear(np.maximum(linear(x, w1, b1), 0), w2, b2) + x, -1, 1e-5) * gain + shift


def groupnorm(x: Array, weight: Array, bias: Array, extra: Array, gain: Array, shift: Array, groups: int) -> Array:
    y = silu(linear(x, weight, bias)) + extra
    return normed(y.reshape(len(y), groups, -1), 2, 1e-5).reshape(y.shape) * gain + shift


def block(
    x: Array, ln1_w: Array, ln1_b: Array, attn_w: Array, attn_b: Array, proj_w: Array, proj_b: Array, mask: Array,
    heads: int, ln2_w: Array, ln2_b: Array, fc_w: Array, fc_b: Array, out_w: Array, out_b: Array, width: int,
    causal: bool = True, gelu_form: Callable[[Array], Array] = gelu_tanh, eps: float = 1e-5,
) -> Array:  # fmt: skip
    head, length = width // heads, x.shape[1]
    qkv = linear(normed(x, -1, eps) * ln1_w + ln1_b, attn_w, attn_b)
    mixed = np.zeros_like(x)
    for b in range(x.shape[0]):
        for h in range(heads):
            q, k, v = (qkv[b, :, part * width + h * head : part * width + (h + 1) * head] for part in range(3))
            for i in range(length):
                last = i + 1 if causal else length
                p = softmax(k[:last] @ q[i] / math.sqrt(head), 0)
                mixed[b, i, h * head : (h + 1) * head] = p @ v[:last]
    x1 = x + linear(mixed, proj_w, proj_b)
    hidden = gelu_form(linear(normed(x1, -1, eps) * ln2_w + ln2_b, fc_w, fc_b))
    return x1 + linear(hidden, out_w, out_b)


def mish_batchnorm(
    x: Array, weight: Array, bias: Array, gain: Array, shift: Array, mean: Array, var: Array, eps: float
) -> Array:
    z = conv3x3(x, weight, bias)
    y = z * np.tanh(np.logaddexp(0, z))
    mean, var, gain, shift = (v[None, :, None, None] for v in (mean, var, gain, shift))
    return (y - mean) / np.sqrt(var + eps) * gain + shift


def windows(z: Array, size: int) -> Array:
    return z[:, : z.shape[1] // size * size].reshape(len(z), -1, size)


@dataclass(frozen=True)
class Case:
    sizes: dict[str, int]
    formula: Callable[..., Any]


MKN = {"M": 5, "K": 24, "N": 7}
OFFSETS = [0, 3, 3, 9, 16]
CASES = {
    "3267_doubled_matmul": Case(MKN, lambda a, b: 2 * (a @ b)),
    "l1n1_square_matmul": Case(MKN, lambda a, b: a @ b),
    "l1n2_standard_matmul": Case(MKN, lambda a, b: a @ b),
    "l1n3_batched_matmul": Case({**MKN, "Batch": 3}, lambda a, b: np.einsum("imk,ikn->imn", a, b)),
    "l1n4_matrix_vector": Case({"M": 9, "K": 40}, lambda a, b: (a * b[:, 0]).sum(1, keepdims=True)),
    "l1n8_matmul_irregular": Case(MKN, lambda a, b: a @ b),
    "l1n9_tall_skinny_matmul": Case(MKN, lambda a, b: a @ b),
    "l1n23_softmax": Case({"M": 4, "N": 33}, lambda x: softmax(x, 1)),
    "l1n26_gelu": Case({"M": 16, "N": 64}, gelu),
    "l1n36_rmsnorm": Case({"B": 6, "F": 48}, lambda x, eps: x / np.sqrt((x**2).mean(1, keepdims=True) + eps)),
    "l1n40_layernorm": Case({"B": 6, "N": 24}, lambda x, w, b, eps: normed(x, 1, eps) * w + b),
    "l1n47_sum_reduction": Case({"M": 8, "N": 40}, lambda x: x.sum(1, keepdims=True)),
    "l1n42_maxpool2d": Case({"B": 2, "C": 3, "H": 6, "W": 7}, max_pool),
    "l1n63_conv2d": Case({"B": 2, "C": 3, "H": 6, "W": 7, "O": 4}, conv3x3),
    "l1n82_conv_depthwise": Case({"B": 2, "C": 3, "H": 6, "W": 7}, depthwise3x3),
    "gpumode_silu": Case({"M": 8, "N": 32}, silu),
    "gpumode_sigmoid": Case({"M": 8, "N": 32}, lambda v, a, top: top * sigmoid(a * v)),
    "gpumode_tanh": Case({"M": 8, "N": 32}, lambda v, a, top: top * np.tanh(a * v)),
    "gpumode_gelu_4d": Case({"B": 2, "C": 3, "H": 8, "W": 9}, gelu),
    "gpumode_fused_leaky_relu": Case(
        {"B": 2, "C": 3, "H": 4, "W": 5},
        lambda x, b, slope, scale: (lambda t: scale * np.where(t > 0, t, slope * t))(x + b[None, :, None, None]),
    ),
    "gpumode_transpose": Case({"A": 2, "B": 3, "C": 4, "D": 5}, lambda x, i, j: np.moveaxis(x, 1, 2)),
    "gpumode_softmax_3d": Case({"N": 9}, lambda v, axis: softmax(v, axis)),
    "gpumode_feedforward": Case({"B": 3}, feedforward),
    "gpumode_positionwise_ffn": Case({"B": 3, "S": 5}, positionwise),
    "gpumode_mlp": Case({"B": 3, "H1": 96, "H2": 64, "H3": 48, "H4": 32}, mlp),
    "l2n17_instancenorm_fused": Case(
        {"B": 2, "H": 8, "W": 9}, lambda x, w, b, d: normed(conv3x3(x, w, b), (2, 3), 1e-5) / d
    ),
    "l2n37_groupnorm_fused": Case({"B": 3, "IN": 40, "OUT": 4096}, groupnorm),
    "l2n40_matmul_scaling_residual": Case(
        {"B": 3, "IN": 64, "OUT": 48}, lambda x, w, b, factor: (1 + factor) * linear(x, w, b)
    ),
    "l2n52_conv_activation_batchnorm": Case({"B": 2, "H": 6, "W": 7}, mish_batchnorm),
    "l2n55_matmul_maxpool_sum_scale": Case(
        {"B": 3, "IN": 64, "OUT": 51}, lambda x, w, b, size, scale: scale * windows(linear(x, w, b), size).max(2).sum(1)
    ),
    "l2n86_matmul_divide_gelu": Case({"B": 3, "IN": 64, "OUT": 48}, lambda x, w, b, d: gelu(linear(x, w, b) / d)),
    "l2n98_matmul_avgpool_gelu_scale_max": Case(
        {"B": 3, "IN": 64, "OUT": 100},
        lambda x, w, b, size, scale: (scale * gelu(windows(linear(x, w, b), size).mean(2))).max(1),
    ),
    "l2n99_matmul_gelu_softmax": Case({"B": 3, "IN": 64, "OUT": 48}, lambda x, w, b: softmax(gelu(linear(x, w, b)), 1)),
    "l3n44_mingpt_block": Case({"B": 1, "S": 7}, block),
    "dot_product_attention": Case({"B": 2, "H": 3, "W": 5}, non_local),
    "l1n95_cross_entropy": Case({"B": 9, "C": 20}, cross_entropy),
    "14007_kd_loss": Case({"N": 2, "C": 10, "H": 3, "W": 4}, distillation),
    "fp8_cast_sentinel": Case({"M": 16, "N": 64}, e4m3),
    "rmsnorm_bwd": Case({"M": 5, "N": 48}, rmsnorm_backward),
    "silu_and_mul_bf16": Case({"M": 5, "D": 34}, lambda x: silu(x[:, :17]) * x[:, 17:]),
    "fused_add_rmsnorm_bf16": Case({"M": 5, "N": 48}, add_rmsnorm),
    "per_token_i8_quant": Case({"M": 6, "N": 1200}, int8_rows),
    "rope_thd_fwd_bf16": Case({"T": 16, "H": 2, "D": 8, "S1": 5}, rotary),
    "dynamic_mxfp8_quant": Case({"M": 6, "K": 96}, mxfp8),
    "moe_topk_softmax": Case({"T": 12, "E": 32, "K": 4}, route),
}

# Mistakes that an author of a kernel may well make: each must fail in the base round or in a stress round.
MISTAKES: dict[str, tuple[str, Callable[..., Any]]] = {
    "doubling forgotten": ("3267_doubled_matmul", lambda a, b: a @ b),
    "tanh form of GELU, fp16": ("l1n26_gelu", gelu_tanh),
    "tanh form of GELU": ("gpumode_gelu_4d", gelu_tanh),
    "tanh form behind the division": ("l2n86_matmul_divide_gelu", lambda x, w, b, d: gelu_tanh(linear(x, w, b) / d)),
    "tanh form before the softmax": (
        "l2n99_matmul_gelu_softmax", lambda x, w, b: softmax(gelu_tanh(linear(x, w, b)), 1),
    ),
    "bias not divided": ("l2n86_matmul_divide_gelu", lambda x, w, b, d: gelu(linear(x, w, 0 * b) / d + b)),
    "erf form in the block": ("l3n44_mingpt_block", lambda *a: block(*a, gelu_form=gelu)),
    "no causal mask": ("l3n44_mingpt_block", lambda *a: block(*a, causal=False)),
    "no eps in the block": ("l3n44_mingpt_block", lambda *a: block(*a, eps=0.0)),
    "no eps in rmsnorm": ("l1n36_rmsnorm", lambda x, eps: x / np.sqrt((x**2).mean(1, keepdims=True))),
    "no eps in layernorm": ("l1n40_layernorm", lambda x, w, b, eps: normed(x, 1, 0.0) * w + b),
    "unbiased variance": ("l1n40_layernorm", lambda x, w, b, eps: normed(x, 1, eps, correction=1) * w + b),
    "no eps in add_rmsnorm": ("fused_add_rmsnorm_bf16", lambda x, w, r, eps: add_rmsnorm(x, w, r, 0.0)),
    "no eps in instance norm": (
        "l2n17_instancenorm_fused", lambda x, w, b, d: normed(conv3x3(x, w, b), (2, 3), 0.0) / d,
    ),
    "no eps in batch norm": ("l2n52_conv_activation_batchnorm", lambda *a: mish_batchnorm(*a[:-1], 0.0)),
    "flipped kernel": ("l1n63_conv2d", lambda x, w, b: conv3x3(x, w[:, :, ::-1, ::-1], b)),
    "bias left out": ("l1n63_conv2d", lambda x, w, b: conv3x3(x, w, 0 * b)),
    "hard-wired a": ("gpumode_sigmoid", lambda v, a, top: top * sigmoid(2 * v)),
    "halves swapped": ("silu_and_mul_bf16", lambda x: silu(x[:, 17:]) * x[:, :17]),
    "softmax in the energy": (
        "dot_product_attention", lambda *a: non_local(*a, activation=lambda s: softmax(s, 2)),
    ),
    "sum over the key pixel": (
        "dot_product_attention", lambda x, qw, qb, kw, kb, *rest: non_local(x, kw, kb, qw, qb, *rest),
    ),
    "mean over pixels, not images": (
        "14007_kd_loss", lambda p, t, temperature: distillation(p, t, temperature) / (p.shape[2] * p.shape[3]),
    ),
    "no temperature factor": ("14007_kd_loss", lambda p, t, temperature: distillation(p, t, temperature) / temperature),
    "rounding, not truncation": (
        "per_token_i8_quant", lambda x: (np.round(np.clip(x / int8_rows(x)[1], -128, 127)), int8_rows(x)[1]),
    ),
    "plain exponent": ("dynamic_mxfp8_quant", lambda x: mxfp8(x, threshold=2.5)),
    "next exponent too early": ("dynamic_mxfp8_quant", lambda x: mxfp8(x, threshold=1.7)),
    "exponent at 1.75 exclusive": ("dynamic_mxfp8_quant", lambda x: mxfp8(x, threshold=math.nextafter(1.75, 2))),
    "biased weights": ("moe_topk_softmax", lambda g, b, k, s: (lambda w, i: (w + s * b[i], i))(*route(g, b, k, s))),
    "bias ignored": ("moe_topk_softmax", lambda g, b, k, s: route(g, 0 * b, k, s)),
    "scale ignored": ("moe_topk_softmax", lambda g, b, k, s: route(g, b, k, 1.0)),
    "positions do not restart": ("rope_thd_fwd_bf16", lambda x, o, f: rotary(x, np.array([0, len(x)]), f)),
    "neighbouring pairs": (
        "rope_thd_fwd_bf16",
        lambda x, o, f: (lambda order: rotary(x[:, :, order], o, f)[:, :, np.argsort(order)])(
            np.r_[0 : x.shape[2] : 2, 1 : x.shape[2] : 2]
        ),
    ),
    "groups forgotten": (
        "l2n37_groupnorm_fused", lambda x, w, b, e, g, s, n: groupnorm(x, w, b, e, g, s, 1),
    ),
}  # fmt: skip


def tiny(name: str) -> tuple[Problem, Definition, Workload, dict[str, int]]:
    """The problem with the case's sizes, its constant axes included, and the first workload's generators."""
    (path,) = ROOT.glob(f"*/{name}")
    problem = load_problem(path)
    sizes = CASES[name].sizes
    fields = problem.definition.as_dict()
    for axis, spec in fields["axes"].items():
        if spec["type"] == "const" and axis in sizes:
            spec["value"] = sizes[axis]
    definition = Definition.load(fields, name)
    bound = {axis: sizes[axis] for axis, spec in fields["axes"].items() if spec["type"] == "var"}
    workload = {**problem.workloads[0].as_dict(), "axes": bound}
    if name == "rope_thd_fwd_bf16":
        workload["inputs"]["cu_seqlens"] = {"type": "values", "values": OFFSETS}
        workload["stress_rounds"] = []
    if name == "moe_topk_softmax":
        workload["inputs"]["topk"] = {"type": "constant", "value": sizes["K"]}
    small = Workload.load(workload, name)
    return problem, definition, small, small.validate_against(definition, name)


def verdicts(name: str, formula: Callable[..., Any], actual_is_formula: bool = False) -> list[Status]:
    """The formula against the reference in the base round and every stress round."""
    _, definition, workload, axes = tiny(name)
    found = []
    for stress in (None, *workload.stress_rounds):
        inputs = draw(definition, workload, axes, seed=3, stress=stress)
        arrays = [v.double().numpy() if isinstance(v, torch.Tensor) else v for v in inputs.values()]
        result = formula(*arrays)
        by_formula = {
            key: as_declared(value, definition.outputs[key].dtype)
            for key, value in zip(definition.outputs, result if isinstance(result, tuple) else (result,))
        }
        by_reference = named_outputs(definition, load_reference(definition)(**inputs))
        pair = (by_reference, by_formula) if actual_is_formula else (by_formula, by_reference)
        status, reason, _ = check_outputs(definition, workload, axes, inputs, *pair)
        assert status in (Status.PASSED, Status.INCORRECT_NUMERICAL), reason
        found.append(status)
    return found


def as_declared(value: Array, dtype: str) -> torch.Tensor:
    tensor = torch.from_numpy(np.ascontiguousarray(value)).reshape(np.shape(value))
    if dtype == "float8_e4m3fn":
        return tensor.view(torch.float8_e4m3fn)  # the formulas give its bytes
    return tensor.to(torch_dtype(dtype))


def test_every_problem_has_a_formula() -> None:
    assert set(CASES) == {path.parent.name for path in ROOT.glob("*/*/problem.yaml")}


@pytest.mark.parametrize("name", CASES)
def test_reference_is_its_formula(name: str) -> None:
    assert set(verdicts(name, CASES[name].formula)) == {Status.PASSED}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_caught(mistake: str) -> None:
    name, formula = MISTAKES[mistake]
    assert Status.INCORRECT_NUMERICAL in verdicts(name, formula, actual_is_formula=True)
