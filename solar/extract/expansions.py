"""Public functions that stage 1 writes out itself: PyTorch's own form asks for contents that no meta tensor has, or has
no gradient there. What decides the work (lengths, labels) has to be known; its ``tolist`` says so otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from solar.errors import ExtractionError
from solar.extract.grids import grid_sample

# Logarithm of what cannot happen: finite, so that differences stay numbers.
_NEVER = -1e30


def ctc_loss(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str | int = "mean",
    zero_infinity: bool = False,
) -> torch.Tensor:
    """Negative log likelihood of ``targets`` ([N, S] or all in a row) under ``log_probs`` [T, N, C].

    Forward recursion (A. Graves et al., "Connectionist temporal classification", ICML 2006, eq. 6 to 8) over blanks b
    and labels l: b'[j] = b[j] + l[j-1], l'[j] = l[j] + (b'[j] if the label differs from the one before else b[j]), each
    times the frame's probability, in logarithms. Only what a start can have reached is computed, and of a sample only
    the frames that it has.
    """
    frames, counts = (
        value.reshape(-1).tolist() if isinstance(value, torch.Tensor) else list(value)
        for value in (input_lengths, target_lengths)
    )
    single = log_probs.dim() == 2
    if single:
        log_probs, targets = log_probs.unsqueeze(1), targets.reshape(1, -1)
    longest = max(counts)
    targets = _table(targets, counts, longest, blank)
    impossible = log_probs.new_full((len(counts), 1), _NEVER)
    # The first label follows none.
    differs = torch.cat([targets[:, :1] == targets[:, :1], targets[:, 1:] != targets[:, :-1]], 1)
    blanks, labels = log_probs[0, :, blank : blank + 1], log_probs[0].gather(1, targets[:, :1])
    alive = list(range(len(counts)))
    ended: list[tuple[list[int], torch.Tensor]] = []
    for t in range(max(frames)):
        if t:
            scores, both = log_probs[t].index_select(0, _whole(alive)), blanks.shape[1] - 1
            # What is reached for the first time has one way only.
            entered = torch.cat([_log_sum(blanks[:, 1:], labels[:, :both]), labels[:, both:]], 1)
            known = torch.cat([blanks, impossible], 1)
            moved = torch.cat([blanks[:, :1], entered], 1)
            blanks = moved + scores[:, blank : blank + 1]
            width, had = min(t + 1, longest), labels.shape[1]
            entered = torch.where(differs[:, :width], moved[:, :width], known[:, :width])
            labels = torch.cat([_log_sum(labels, entered[:, :had]), entered[:, had:]], 1)
            labels = labels + scores.gather(1, targets[:, :width])
        done = [row for row, n in enumerate(alive) if frames[n] == t + 1]
        if done:
            wanted = [counts[alive[row]] for row in done]
            last = [
                torch.cat([value, impossible], 1)
                .index_select(0, _whole(done))
                .gather(1, _cells(places, value.shape[1]))
                for value, places in ((blanks, wanted), (labels, [count - 1 for count in wanted]))
            ]
            ended.append(([alive[row] for row in done], -_log_sum(*last).squeeze(1)))
            left = [row for row in range(len(alive)) if row not in done]
            alive = [alive[row] for row in left]
            kept = _whole(left)
            blanks, labels, targets, differs, impossible = (
                value.index_select(0, kept) for value in (blanks, labels, targets, differs, impossible)
            )
    order = [n for group, _ in ended for n in group]
    loss = torch.cat([value for _, value in ended]).index_select(0, _whole([order.index(n) for n in range(len(order))]))
    loss = torch.where(loss > -_NEVER / 10, 0.0 if zero_infinity else math.inf, loss)
    if reduction in ("none", 0):
        return loss.squeeze(0) if single else loss
    if reduction in ("sum", 2):
        return loss.sum()
    return (loss / torch.tensor([max(count, 1) for count in counts], dtype=loss.dtype)).mean()


def _whole(values: Sequence[int]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def _cells(places: Sequence[int], width: int) -> torch.Tensor:
    """One column of a row for each; the last one for what was never reached."""
    return _whole([place if 0 <= place < width else width for place in places]).unsqueeze(1)


def _log_sum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """log(exp(a) + exp(b))."""
    return torch.maximum(a, b) + torch.log1p(torch.exp(-(a - b).abs()))


def _table(targets: torch.Tensor, counts: Sequence[int], longest: int, blank: int) -> torch.Tensor:
    """[N, S], filled up with blanks where the targets come in a row."""
    if targets.dim() == 2:
        return targets[:, :longest]
    rows = targets.split(list(counts))
    return torch.stack(
        [functional.pad(row, (0, longest - count), value=blank) for row, count in zip(rows, counts, strict=True)]
    )


def multi_margin_loss(
    scores: torch.Tensor,
    target: torch.Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: torch.Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """Per sample the sum of max(0, margin - x[y] + x[i])^p / C over the classes i other than y, weighted by y."""
    rows, column = torch.atleast_2d(scores), target.reshape(-1, 1)
    terms = torch.relu(margin - rows.gather(1, column) + rows)
    terms = terms * terms if p == 2 else terms
    terms = torch.where(torch.arange(rows.shape[1]) == column, 0.0, terms)
    loss = terms.sum(1) / rows.shape[1]
    loss = loss if weight is None else loss * weight[column.squeeze(1)]
    return _reduced(loss.reshape(scores.shape[:-1]), size_average, reduce, reduction)


def multilabel_margin_loss(
    scores: torch.Tensor,
    target: torch.Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """Per sample the sum of max(0, 1 - x[y] + x[i]) / C over its labels y (those before the first -1) and the classes i
    that are none of them."""
    classes = scores.shape[-1]
    samples = torch.atleast_2d(target).tolist()
    chosen = [row[: row.index(-1)] if -1 in row else row for row in samples]
    pairs = [
        (n, n * classes + label, n * classes + other)
        for n, row in enumerate(chosen)
        for label in row
        for other in range(classes)
        if other not in row
    ]
    flat = scores.reshape(-1)
    own, theirs = (flat.index_select(0, _whole([pair[side] for pair in pairs])) for side in (1, 2))
    terms = torch.relu(1 - own + theirs) / classes
    totals = terms.new_zeros(len(chosen)).index_add(0, _whole([n for n, _, _ in pairs]), terms)
    return _reduced(totals.reshape(scores.shape[:-1]), size_average, reduce, reduction)


def gaussian_nll_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    var: torch.Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> torch.Tensor:
    """As ``torch.nn.functional.gaussian_nll_loss``, without its question whether any variance is negative."""
    variance = torch.full_like(input, var) if isinstance(var, float) else var.clone()
    if variance.shape != input.shape and variance.shape == input.shape[:-1]:
        variance = variance.unsqueeze(-1)
    with torch.no_grad():
        variance.clamp_(min=eps)
    loss = 0.5 * (torch.log(variance) + (input - target) ** 2 / variance)
    loss = loss + 0.5 * math.log(2 * math.pi) if full else loss
    return _reduced(loss, None, None, reduction)


def _reduced(loss: torch.Tensor, size_average: bool | None, reduce: bool | None, reduction: str) -> torch.Tensor:
    """``size_average`` and ``reduce`` are the old words for a reduction."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def embedding_bag(
    input: torch.Tensor,
    weight: torch.Tensor,
    offsets: torch.Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> torch.Tensor:
    """Rows of ``weight`` reduced bag by bag: the rows of ``input`` [B, L], or the parts of ``input`` [N] that start at
    ``offsets``. An empty bag gives zeros."""
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise ExtractionError("embedding_bag: max_norm, scale_grad_by_freq and sparse are not supported")
    rows = _wide(functional.embedding(input, weight))
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.to(rows.dtype).unsqueeze(-1)
    kept = None if padding_idx is None else input != padding_idx % weight.shape[0]
    if kept is not None:
        rows = torch.where(kept.unsqueeze(-1), rows, -math.inf if mode == "max" else 0.0)
    sizes: torch.Tensor | None = None
    if offsets is None:
        total = rows.max(1).values if mode == "max" else rows.sum(1)
        if kept is not None:
            sizes = kept.to(rows.dtype).sum(1)
        elif mode == "mean":
            total = total / input.shape[1]
    else:
        starts = offsets[:-1] if include_last_offset else offsets
        owner = torch.searchsorted(starts, torch.arange(input.shape[0], dtype=starts.dtype), right=True) - 1
        empty = rows.new_full((starts.shape[0], rows.shape[1]), -math.inf if mode == "max" else 0.0)
        if mode == "max":
            total = empty.scatter_reduce(0, owner.unsqueeze(1).expand(rows.shape), rows, "amax")
        else:
            total = empty.index_add(0, owner, rows)
        if mode != "sum":
            ones = torch.ones_like(rows[:, 0]) if kept is None else kept.to(rows.dtype)
            sizes = rows.new_zeros(starts.shape[0]).index_add(0, owner, ones)
    if sizes is not None and mode == "max":
        total = torch.where(sizes.unsqueeze(1) > 0, total, 0.0)
    elif sizes is not None and mode == "mean":
        total = total / sizes.clamp(min=1).unsqueeze(1)
    return total.to(weight.dtype)


def weight_norm(v: torch.Tensor, g: torch.Tensor, dim: int = 0) -> torch.Tensor:
    """``v`` at the length ``g`` along every dimension but ``dim``."""
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return v * (g / torch.linalg.vector_norm(v, 2, others, keepdim=True))


def _wide(value: torch.Tensor) -> torch.Tensor:
    return value.float() if value.dtype in (torch.float16, torch.bfloat16) else value


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    functional.ctc_loss: ctc_loss,
    torch.ctc_loss: ctc_loss,
    torch._weight_norm: weight_norm,
    functional.embedding_bag: embedding_bag,
    functional.gaussian_nll_loss: gaussian_nll_loss,
    functional.grid_sample: grid_sample,
    torch.grid_sampler: grid_sample,
    functional.multi_margin_loss: multi_margin_loss,
    functional.multilabel_margin_loss: multilabel_margin_loss,
}
