"""Functions that stage 1 writes out itself, since PyTorch's own form asks for contents that no meta tensor has."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional
from torch.utils._python_dispatch import _disable_current_modes

from solar.errors import ExtractionError

Contents = Callable[[torch.Tensor], torch.Tensor | None]

# Logarithm of what cannot happen: finite, so that differences stay numbers.
_NEVER = -1e30


def ctc_loss(
    contents: Contents,
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Negative log likelihood [N] of ``targets`` ([N, S] or all in a row) under ``log_probs`` [T, N, C]; twice, for
    PyTorch gives the rows of its recursion beside it.

    Forward recursion (A. Graves et al., "Connectionist temporal classification", ICML 2006, eq. 6 to 8) over blanks b
    and labels l: b'[j] = b[j] + l[j-1], l'[j] = l[j] + (b'[j] if the label differs from the one before else b[j]), each
    times the frame's probability, in logarithms. Only what a start can have reached is computed, and of a sample only
    the frames that it has.
    """
    frames, counts = (_numbers("_ctc_loss", "lengths", v, contents) for v in (input_lengths, target_lengths))
    if log_probs.dim() == 2:
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
    return loss, loss


def _numbers(operator: str, what: str, value: Any, contents: Contents) -> list[int]:
    if not isinstance(value, torch.Tensor):
        return list(value)
    known = contents(value)
    if known is None:
        raise ExtractionError(f"aten.{operator}: its {what} decide the work, and their values are not declared")
    with _disable_current_modes():
        return known.flatten().tolist()


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


def multilabel_margin_loss(
    contents: Contents, scores: torch.Tensor, target: torch.Tensor, reduction: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum of max(0, 1 - x[y] + x[i]) / C over the labels y of a sample (those before its first -1) and the classes i
    that are none of them; and which classes are labels."""
    classes = scores.shape[-1]
    labels = _numbers("multilabel_margin_loss_forward", "labels", target, contents)
    samples = [labels[start : start + classes] for start in range(0, len(labels), classes)]
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
    is_label = torch.tensor([[float(i in row) for i in range(classes)] for row in chosen], dtype=scores.dtype)
    is_label = is_label.reshape(scores.shape)
    if reduction:
        return terms.sum() / (len(chosen) if reduction == 1 else 1), is_label
    totals = terms.new_zeros(len(chosen)).index_add(0, _whole([n for n, _, _ in pairs]), terms)
    return totals.reshape(scores.shape[:-1]), is_label


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
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def _ctc_loss_of_tensors(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> torch.Tensor:
    """PyTorch cannot make a tensor of lengths that are numbers on the meta device."""
    lengths = [v if isinstance(v, torch.Tensor) else torch.tensor(v) for v in (input_lengths, target_lengths)]
    code = ("none", "mean", "sum").index(reduction)
    return torch.ctc_loss(log_probs, targets, *lengths, blank, code, zero_infinity)


OPERATORS: dict[str, Callable[..., Any]] = {
    "_ctc_loss": ctc_loss,
    "multilabel_margin_loss_forward": multilabel_margin_loss,
}
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    functional.gaussian_nll_loss: gaussian_nll_loss,
    functional.ctc_loss: _ctc_loss_of_tensors,
}
