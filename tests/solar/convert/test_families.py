"""Every family of operators: what public functions compute, the converted program computes."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from solar.errors import ConversionError, ExtractionError

N = torch.nn.functional


def t(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


BF16, F16, I64, I32 = torch.bfloat16, torch.float16, torch.int64, torch.int32
X = {"x": t(5, 12)}
XY = {"x": t(5, 12), "y": t(5, 12)}
IMAGE = {"x": t(2, 4, 9, 7)}
INDEX = torch.tensor([[0, 3, 1], [4, 4, 2]])

ELEMENTWISE = {
    "arithmetic": (lambda x, y: (x + 2 * y - 3) * x / (y.abs() + 1.5) - (2 - x), XY),
    "alpha": (lambda x, y: torch.add(x, y, alpha=3) - torch.sub(x, y, alpha=0.5), XY),
    "promotion": (lambda x, y: x * y + x.bfloat16() * 3, {"x": t(4, 6, dtype=BF16), "y": t(4, 6)}),
    "int by float": (lambda x, i: x * i + i / 2, {"x": t(3), "i": torch.tensor([1, 2, 7])}),
    "integers": (
        lambda i, j: ((i << 2) ^ j) & 0xFF | (i >> 1) + i // 3 - i % 5 + ~j,
        {"i": torch.tensor([1, 2, 77], dtype=I32), "j": torch.tensor([5, 6, 7], dtype=I32)},
    ),
    "floor divide": (lambda x, y: (x // 0.7) + torch.div(y, 0.3, rounding_mode="trunc") + torch.remainder(x, 0.6), XY),
    "powers": (lambda x: x**2 + x**3 + (x.abs() + 1) ** 0.5 + (x.abs() + 1) ** -1 + 2.0**x, X),
    "unary": (lambda x: x.exp() + x.abs().log1p() + x.sin() * x.cos() + x.erf() + x.tanh() + x.sigmoid() + x.sign(), X),
    "rounding": (lambda x: x.floor() + x.ceil() * 2 + x.round() * 4 + x.trunc() * 8 + (10 * x).round(decimals=1), X),
    "comparisons": (lambda x, y: ((x > y) & (x <= 1)) | (y == 0) | ~(x < -1) | x.isnan(), XY),
    "int against float": (lambda i: i > 1.5, {"i": torch.tensor([1, 2, 3])}),
    "selection": (lambda x, y: torch.where(x > y, x, 0.5) + x.masked_fill(y > 0, -math.inf).clamp(min=-9), XY),
    "clamps": (lambda x, y: x.clamp(-1, 1) + x.clamp_min(0.1) + x.clamp_max(y) + torch.minimum(x, y), XY),
    "fused": (
        lambda x, y: torch.addcmul(x, y, y, value=0.5) + torch.addcdiv(x, y, y.abs() + 1) + torch.lerp(x, y, 0.3),
        XY,
    ),
    "triangles": (lambda x, y: torch.tril(x, -1) + torch.triu(y, 2), XY),
    "gelu": (lambda x: F.gelu(x), {"x": t(5, 12, dtype=F16)}),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), {"x": t(5, 12, dtype=BF16)}),
    "activations": (
        lambda x: F.silu(x) + F.mish(x) + F.elu(x, 0.7) + F.selu(x) + F.celu(x, 1.5) + F.softplus(x, 2, 5) + F.relu6(x),
        X,
    ),
    "more activations": (
        lambda x: (
            F.leaky_relu(x, 0.2) + F.hardswish(x) + F.hardsigmoid(x) + F.softsign(x) + F.logsigmoid(x) + F.tanhshrink(x)
        ),
        X,
    ),
    "thresholds": (
        lambda x: F.hardtanh(x, -0.5, 0.5) + F.threshold(x, 0.1, 2.0) + F.hardshrink(x) + F.softshrink(x),
        X,
    ),
    "glu and prelu": (lambda x, w: F.glu(x, 1) + F.prelu(x, w)[:, :6], {"x": t(5, 12), "w": t(12)}),
    "dropout off": (lambda x: F.dropout(x, 0.5, training=False), X),
    "fp8 casts": (lambda x: (x.to(torch.float8_e4m3fn), x.to(torch.float8_e5m2).float()), X),
    "casts": (lambda x: ((10 * x).to(torch.int8), x > 0, (x > 0).to(I32), x.half().double()), X),
    "bits": (lambda x: ((x.view(I32) + 0x200000) >> 23, (x.view(I32) & 0x7F800000).view(torch.float32)), X),
    "scales": (
        # PyTorch's own derivative of ldexp is 0 for a negative exponent.
        lambda x, i: torch.ldexp(x.detach(), i) + torch.sgn(x) + torch.deg2rad(x),
        {"x": t(3), "i": torch.tensor([1, -2, 0])},
    ),
    "lookup of nan": (lambda x: torch.nan_to_num(x / x), X),
}
REDUCTIONS = {
    "sums": (lambda x: (x.sum(), x.sum(0), x.sum((0, 1), keepdim=True), x.mean(1), x.bfloat16().sum(1)), X),
    "bool sum": (lambda x: (x > 0).sum(1), X),
    "extrema": (lambda x: (x.amax(1), x.amin((0, 1)), x.max(), x.min(1).values, x.argmax(0), x.argmin()), X),
    "logic": (lambda x: ((x > 2).any(), (x > -9).all(1), torch.count_nonzero(x, 1)), X),
    "products": (lambda x: (x[:, :3].prod(1), x[0, :2].prod()), X),
    "spread": (lambda x: (x.var(1), x.std(0, correction=0), torch.var_mean(x, 1)), X),
    "logsumexp": (lambda x: torch.logsumexp(x, 1), X),
    "norms": (
        lambda x: (x.norm(), torch.linalg.vector_norm(x, 1, dim=1), x.norm(p=math.inf, dim=1), x.norm(p=3, dim=0)),
        X,
    ),
    "scans": (lambda x: (x.cumsum(1), x[:, :4].cumprod(1), x.cummax(1).values, torch.logcumsumexp(x, 1)), X),
    "softmax": (lambda x: (x.softmax(1), F.log_softmax(x, 0), F.softmin(x, 1), x.bfloat16().softmax(-1)), X),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (12,), w, b), {"x": t(5, 12), "w": t(12), "b": t(12)}),
    "layer norm of two": (lambda x: F.layer_norm(x.half(), (9, 7)), IMAGE),
    "rms norm": (
        lambda x, w: (F.rms_norm(x, (12,), w, 1e-6), F.rms_norm(x.half(), (12,))),
        {"x": t(5, 12), "w": t(12)},
    ),
    "group norm": (lambda x, w, b: F.group_norm(x, 2, w, b), {"x": t(2, 4, 9, 7), "w": t(4), "b": t(4)}),
    "instance norm": (lambda x: F.instance_norm(x), IMAGE),
    "normalize": (lambda x: F.normalize(x, dim=1), X),
    "cosine": (lambda x, y: F.cosine_similarity(x, y), XY),
}
CONTRACTIONS = {
    "matmul": (lambda a, b: a @ b, {"a": t(5, 7), "b": t(7, 3)}),
    "matmul bf16": (lambda a, b: a @ b, {"a": t(5, 70, dtype=BF16), "b": t(70, 3, dtype=BF16)}),
    "broadcast matmul": (lambda a, b: a @ b, {"a": t(2, 1, 5, 7), "b": t(3, 7, 4)}),
    "vectors": (lambda a, b, v: (a @ v, v @ v, v @ b), {"a": t(5, 7), "b": t(7, 3), "v": t(7)}),
    "linear": (lambda x, w, b: F.linear(x, w, b), {"x": t(2, 5, 7), "w": t(3, 7), "b": t(3)}),
    "linear fp16": (
        lambda x, w, b: F.linear(x, w, b),
        {"x": t(2, 5, 7, dtype=F16), "w": t(3, 7, dtype=F16), "b": t(3, dtype=F16)},
    ),
    "bilinear": (lambda x, y, w: F.bilinear(x, y, w), {"x": t(4, 3), "y": t(4, 5), "w": t(6, 3, 5)}),
    "addmm": (lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), {"c": t(5, 3), "a": t(5, 7), "b": t(7, 3)}),
    "baddbmm": (lambda c, a, b: torch.baddbmm(c, a, b), {"c": t(2, 5, 3), "a": t(2, 5, 7), "b": t(2, 7, 3)}),
    "einsum": (
        lambda a, b: (
            torch.einsum("bij,bkj->bik", a, b),
            torch.einsum("bij,bij->i", a, b[:, :5]),
            torch.einsum("bii->b", a[:, :4, :4]),
        ),
        {"a": t(2, 5, 7), "b": t(2, 6, 7)},
    ),
    "outer": (lambda v, w: torch.outer(v, w) + torch.einsum("i,j->ij", v, w), {"v": t(5), "w": t(6)}),
    "integers": (
        lambda a, b: torch._int_mm(a, b),
        {
            "a": torch.arange(24 * 16).reshape(24, 16).to(torch.int8),
            "b": torch.arange(16 * 8).reshape(16, 8).to(torch.int8),
        },
    ),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), {n: t(2, 3, 6, 8) for n in "qkv"}),
    "causal attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        {n: t(2, 3, 6, 8, dtype=BF16) for n in "qkv"},
    ),
    "masked attention": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m > 0, scale=0.3),
        {**{n: t(2, 3, 6, 8) for n in "qkv"}, "m": t(6, 6)},
    ),
    "grouped attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
        {"q": t(1, 4, 5, 8), "k": t(1, 2, 5, 8), "v": t(1, 2, 5, 8)},
    ),
}
CONVOLUTIONS = {
    "conv1d": (
        lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=2, dilation=2),
        {"x": t(2, 4, 15), "w": t(6, 4, 3), "b": t(6)},
    ),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, padding=1), {"x": t(2, 3, 9, 8), "w": t(5, 3, 3, 3), "b": t(5)}),
    "grouped": (lambda x, w: F.conv2d(x, w, groups=2, stride=(1, 2)), {"x": t(2, 4, 9, 8), "w": t(6, 2, 3, 2)}),
    "depthwise": (lambda x, w: F.conv2d(x, w, groups=4, padding="same"), {"x": t(2, 4, 9, 8), "w": t(8, 1, 3, 3)}),
    "conv3d": (lambda x, w: F.conv3d(x, w, padding=(0, 1, 0)), {"x": t(1, 2, 5, 4, 6), "w": t(3, 2, 2, 3, 1)}),
    "unbatched": (lambda x, w: F.conv2d(x, w), {"x": t(3, 6, 6), "w": t(2, 3, 3, 3)}),
    "transposed": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        {"x": t(2, 4, 5, 6), "w": t(4, 3, 3, 3), "b": t(3)},
    ),
    "transposed groups": (
        lambda x, w: F.conv_transpose2d(x, w, stride=(1, 3), dilation=2, groups=2),
        {"x": t(2, 4, 5, 6), "w": t(4, 3, 3, 2)},
    ),
    "transposed 1d": (lambda x, w: F.conv_transpose1d(x, w, stride=3), {"x": t(2, 4, 7), "w": t(4, 2, 2)}),
    "half": (
        lambda x, w, b: F.conv2d(x, w, b),
        {"x": t(1, 8, 6, 6, dtype=BF16), "w": t(4, 8, 3, 3, dtype=BF16), "b": t(4, dtype=BF16)},
    ),
    "max pool": (lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2, ceil_mode=True)), IMAGE),
    "max pool positions": (lambda x: F.max_pool2d(x, 3, 2, 1, dilation=2, return_indices=True), IMAGE),
    "max pool 1d 3d": (lambda x: (F.max_pool1d(x[0, 0], 3), F.max_pool3d(x[None], 2)), {"x": t(2, 4, 9, 7)}),
    "average pool": (
        lambda x: (
            F.avg_pool2d(x, 3, 2, 1),
            F.avg_pool2d(x, 2, count_include_pad=False, padding=1),
            F.avg_pool1d(x[0], 3),
        ),
        IMAGE,
    ),
    "average pool ceil": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), IMAGE),
    "adaptive": (
        lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (3, 7)), F.adaptive_avg_pool2d(x, (4, 3))),
        IMAGE,
    ),
    "resample": (
        lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(5, 11), mode="bilinear")),
        IMAGE,
    ),
    "unfold": (lambda x: (F.unfold(x, (3, 2), padding=1), F.pixel_shuffle(x, 2)), IMAGE),
    "paddings": (
        lambda x: (F.pad(x, (1, 2, 3, 0), value=7.0), F.pad(x, (1, 1, 2, 2), mode="reflect"), F.pad(x, (-1, 2))),
        IMAGE,
    ),
}
MOVEMENT = {
    "views": (
        lambda x: (
            x.t(),
            x.view(3, 4, 5),
            x[:, None, 2],
            x[1:4, ::3],
            x.unflatten(1, (3, 4)).permute(2, 0, 1),
            x.diagonal(1),
        ),
        X,
    ),
    "splits": (lambda x: (*x.split(5, 1), *x.chunk(2, 1), *x.unbind(0), x.narrow(1, 2, 3)), X),
    "strided": (lambda x: (x.as_strided((3, 4), (12, 2), 1), x.unfold(1, 4, 3)), X),
    "copies": (
        lambda x, y: (
            torch.cat((x, y), 1),
            torch.stack((x, y), 2),
            x.flip(1),
            x.roll(3, 1),
            x.roll(5),
            x.repeat(2, 1, 3),
            x.t().contiguous(),
        ),
        XY,
    ),
    "repeats": (lambda x: (x.repeat_interleave(2, 1), torch.tile(x, (2, 2)), x.expand(2, 5, 12)), X),
    "diagonals": (
        lambda x: (torch.diag(x[0]), torch.diag_embed(x), torch.block_diag(x, x), x[torch.tril_indices(5, 5)[0]]),
        X,
    ),
    "creation": (
        lambda x: (
            x + torch.arange(12, device=x.device),
            torch.eye(5) @ x,
            torch.linspace(0, 1, 5)[:, None] * x,
            torch.full_like(x, 3),
        ),
        X,
    ),
    "literals": (lambda x: x * torch.tensor([1.0, 2.0, 4.0], device=x.device)[:, None, None] + torch.tensor(3), X),
    "in place": (
        lambda x: (
            x.clone().add_(1).mul_(x),
            x.clone().t().fill_(2),
            torch.zeros(3).index_fill_(0, torch.tensor([1]), 5),
        ),
        X,
    ),
    "written parts": (None, X),
    "indexing": (
        lambda x, i: (
            x[i],
            x[:, i[0]],
            x[i, 2],
            x[i[0], i[1]],
            x.gather(1, i),
            x.index_select(0, i[0]),
            F.embedding(i, x),
        ),
        {"x": t(5, 12), "i": INDEX},
    ),
    "apart": (lambda x, i: x.view(5, 3, 4)[i[0], :, i[1].clamp(max=3)], {"x": t(5, 12), "i": INDEX}),
    "scatters": (
        lambda x, y, i: (
            x.scatter(1, i, y),
            x.scatter(1, i, 2.0),
            x.scatter_add(1, i[:, :2], y),
            x.index_add(0, i[0], y[:3]),
            x.index_copy(0, i[0], y[:3]),
            x.index_put((i[0], i[1]), y[0, :3], accumulate=True),
            x.scatter_reduce(1, i[:, :2], y, "amax"),
        ),
        {"x": t(5, 12), "y": t(5, 12), "i": torch.tensor([[0, 3, 1], [4, 2, 1]])},
    ),
    "masked write": (None, X),
    "one hot": (lambda i: F.one_hot(i, 6), {"i": INDEX}),
    "search": (
        lambda e, x: (torch.searchsorted(e, x), torch.bucketize(x, e, right=True)),
        {"e": torch.arange(6), "x": INDEX},
    ),
    "order": (
        lambda x: (
            x.sort(1),
            x.topk(3, 1),
            x.argsort(0, descending=True),
            x.kthvalue(2, 1),
            x.median(),
            x.median(1).values,
        ),
        X,
    ),
    "cross entropy": (lambda x, i: F.cross_entropy(x, i), {"x": t(5, 12), "i": torch.tensor([0, 3, 1, 4, 4])}),
    "cross entropy options": (
        lambda x, w, i: (
            F.cross_entropy(x, i, w, ignore_index=3, label_smoothing=0.1),
            F.nll_loss(x, i, reduction="none"),
        ),
        {"x": t(5, 12), "w": t(12), "i": torch.tensor([0, 3, 1, 4, 4])},
    ),
    "losses": (
        lambda x, y: (
            F.mse_loss(x, y),
            F.l1_loss(x, y),
            F.smooth_l1_loss(x, y),
            F.huber_loss(x, y, delta=0.5),
            F.kl_div(x, y.softmax(1), reduction="batchmean"),
            F.binary_cross_entropy_with_logits(x, y.sigmoid()),
        ),
        XY,
    ),
    "hinge and triplet": (
        lambda x, y: (
            F.hinge_embedding_loss(x, torch.sign(y + 0.1)),
            F.triplet_margin_loss(x, y, x + y),
            F.soft_margin_loss(x, y),
        ),
        XY,
    ),
}


def _written_parts(x):
    y = x.clone()
    y[1] = 3.0
    y[:, 2:9:3] *= 2
    view = y.view(5, 3, 4)
    view[:, 1].add_(x[:, :4])
    y.diagonal().zero_()
    return view.transpose(0, 1), y


def _written_again(x):
    y = x.clone().t()
    y.add_(1)
    z = y[2:5]
    z[0].mul_(2)
    z.unsqueeze(0).sub_(x[0, 0])
    y.exp_()
    return y, z.clone(), z.view(3, 5)


def _masked_write(x):
    y = x.clone()
    y[x > 0.5] = -1.0
    y[(x < 0).any(1)] = 9.0
    return y


MOVEMENT["written parts"] = (_written_parts, X)
MOVEMENT["written again"] = (_written_again, X)
MOVEMENT["masked write"] = (_masked_write, X)
POSITIVE = ("products", "hinge and triplet")


@pytest.mark.parametrize(
    ("name", "run", "inputs"),
    [
        (name, *case)
        for group in (ELEMENTWISE, REDUCTIONS, CONTRACTIONS, CONVOLUTIONS, MOVEMENT)
        for name, case in group.items()
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_converts_and_attests(witness, name, run, inputs) -> None:
    program = witness(run, inputs, positive=name in POSITIVE)
    assert program.outputs


def _running_statistics(x, mean, var):
    return F.batch_norm(x, mean, var, training=True, momentum=0.1)


def test_batch_norm_moves_its_statistics(witness) -> None:
    inputs = {"x": t(4, 3, 5, 5), "mean": t(3), "var": t(3)}
    program = witness(_running_statistics, inputs, in_place=("mean", "var"), outputs=["output"], positive=True)
    assert [name for name, _ in program.outputs] == ["output", "mean", "var"]
    assert program.aliases == {"mean": "mean", "var": "var"}


def test_batch_norm_with_stored_statistics_folds_into_two_maps(witness) -> None:
    inputs = {"x": t(4, 3, 5, 5), "mean": t(3), "var": t(3), "w": t(3), "b": t(3)}
    program = witness(lambda x, mean, var, w, b: F.batch_norm(x, mean, var, w, b), inputs, positive=True)
    whole = [op for op in program.ops if op.kind == "map" and program.tensors[op.outputs[0]].shape == (4, 3, 5, 5)]
    assert [op.function for op in whole] == ["mul", "add"]


def _packed_attention(q, k, v, offsets):
    parts = []
    limits = offsets.tolist()
    for start, stop in itertools.pairwise(limits):
        scores = q[start:stop] @ k[start:stop].T
        parts.append(scores.softmax(1) @ v[start:stop])
    return torch.cat(parts)


def test_known_offsets_shape_the_work(witness) -> None:
    inputs = {name: t(9, 4) for name in "qkv"} | {"offsets": torch.tensor([0, 2, 6, 9], dtype=I32)}
    program = witness(_packed_attention, inputs, known=("offsets",))
    products = [op.attributes["indices"] for op in program.ops if op.kind == "einsum"]
    assert sorted(p["m"] * p["n"] * p["k"] for p in products) == sorted(2 * [4 * 2 * 2, 4 * 4 * 4, 4 * 3 * 3])


def _experts(x, w, ids):
    result = torch.zeros_like(x)
    for expert in range(w.shape[0]):
        rows, _ = torch.where(ids == expert)
        if rows.numel():
            result.index_add_(0, rows, x[rows] @ w[expert])
    return result


def test_known_routing_resolves_data_dependent_shapes(witness) -> None:
    inputs = {"x": t(4, 6), "w": t(3, 6, 6), "ids": torch.tensor([[0, 2], [2, 0], [0, 2], [2, 0]])}
    program = witness(_experts, inputs, known=("ids",))
    products = [op.attributes["indices"]["m"] for op in program.ops if op.kind == "einsum"]
    assert products == [4, 4]  # expert 1 has no row, and no product


def _norm_gradient(x, g, upstream):
    x, g = x.float().detach().requires_grad_(), g.float().detach().requires_grad_()
    y = x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-6) * g
    return tuple(item.half() for item in torch.autograd.grad(y, (x, g), upstream.float()))


def _network_gradient(x, w, c, target):
    w, c = w.detach().requires_grad_(), c.detach().requires_grad_()
    y = F.max_pool2d(F.silu(F.conv2d(x, c, padding=1, stride=2)), 2)
    F.cross_entropy(F.layer_norm(y.flatten(1) @ w, (5,)), target).backward()
    return w.grad, c.grad


def _transposed_gradient(x, w):
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    y = (
        F.avg_pool2d(F.gelu(F.conv_transpose2d(x, w, stride=2, groups=2)), 2)
        if False
        else F.gelu(F.conv_transpose2d(x, w, stride=2, groups=2))
    )
    return torch.autograd.grad(y.square().sum(), (x, w))


def test_known_masks_select(witness) -> None:
    inputs = {"x": t(2, 3), "m": torch.tensor([True, False, True])}
    program = witness(lambda x, m: (torch.masked_select(x, m), x[:, m]), inputs, known=("m",))
    assert [program.tensors[name].shape for _, name in program.outputs] == [(4,), (2, 2)]


GRADIENTS = {
    "average pool": (
        lambda x: torch.autograd.grad(
            (
                F.avg_pool2d(x.requires_grad_(), 3, 2, 1)
                + F.avg_pool2d(x, 2, count_include_pad=False, padding=1)[:, :, :5, :4]
            )
            .square()
            .sum(),
            x,
        ),
        IMAGE,
    ),
    "activations": (
        lambda x: torch.autograd.grad(
            (
                F.gelu(x.requires_grad_())
                + F.silu(x)
                + F.elu(x)
                + F.softplus(x)
                + F.softmax(x, 0)
                + x.pow(3)
                + x.clamp(-1, 1)
            ).sum(),
            x,
        ),
        X,
    ),
    "attention": (
        lambda q: torch.autograd.grad(
            F.scaled_dot_product_attention(q.requires_grad_(), q, q, is_causal=True).square().sum(), q
        ),
        {"q": t(1, 2, 5, 8)},
    ),
    "order and places": (
        lambda x, i: torch.autograd.grad(
            (
                x.requires_grad_()[i[0]].square().sum()
                + x.cumsum(0).square().sum()
                + x.max(1).values.sum()
                + x.topk(2).values.sum()
            ),
            x,
        ),
        {"x": t(5, 12), "i": INDEX},
    ),
    "norms": (
        lambda x: torch.autograd.grad(
            (F.batch_norm(x.requires_grad_(), None, None, training=True) + F.group_norm(x, 2)).pow(3).sum(), x
        ),
        IMAGE,
    ),
    "rms norm": (_norm_gradient, {"x": t(5, 12, dtype=F16), "g": t(12, dtype=F16), "upstream": t(5, 12, dtype=F16)}),
    "network": (
        _network_gradient,
        {"x": t(2, 3, 8, 8), "w": t(16, 5), "c": t(4, 3, 3, 3), "target": torch.tensor([1, 4])},
    ),
    "transposed": (_transposed_gradient, {"x": t(2, 4, 5, 5), "w": t(4, 3, 3, 3)}),
    "embedding": (
        lambda table, i: torch.autograd.grad(F.embedding(i, table.requires_grad_()).softmax(-1).square().sum(), table),
        {"table": t(6, 4), "i": INDEX},
    ),
}


@pytest.mark.parametrize(("run", "inputs"), GRADIENTS.values(), ids=[name.replace(" ", "-") for name in GRADIENTS])
def test_gradients_inside_the_reference(witness, run, inputs) -> None:
    witness(run, inputs)


def test_unknown_operator_names_itself(witness) -> None:
    with pytest.raises(ConversionError, match=r"aten\.linalg_pinv\.atol_rtol_tensor.*no rule"):
        witness(lambda x: torch.linalg.pinv(x), X)


def test_argument_outside_of_a_rule(witness) -> None:
    with pytest.raises(ConversionError, match=r"as_strided reaches outside|row-major"):
        witness(lambda x: x.t()[1:].as_strided((2, 2), (1, 1)), X)


def test_complex_numbers_are_refused(witness) -> None:
    with pytest.raises(ExtractionError, match="complex"):
        witness(lambda x: torch.fft.rfft(x).abs(), X)
