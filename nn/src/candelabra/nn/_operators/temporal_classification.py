"""Connectionist temporal classification (Graves et al., 2006): the likelihood of labels over all their alignments.

A path emits one class at each time. Without repetitions and then without blanks, it spells the labels. The states of an
alignment are the labels with a blank before, between and after them: L = 2S + 1 of S labels. With ``e[t, s]``, the
log-probability of the class of state s at time t, and ``⊕`` for ``log(exp + exp)``,

    alpha[t, s] = e[t, s] + (alpha[t-1, s] ⊕ alpha[t-1, s-1] ⊕ alpha[t-1, s-2])

The last term exists only for a label that differs from the label before it. The loss is the negative of the sum of the
last two states at the last time. ``beta`` is the same recursion from the end, without ``e[t, s]``, so that
``exp(alpha + beta + loss)`` is the probability of state s at time t, given the labels. Its sum over the states of a
class is the negative derivative of the loss for that class's log-probability.

No rule follows the recursion: ``label_posteriors`` computes both directions again, as one recursion over twice the
batch. Its own derivatives are those of its operators.
"""

from __future__ import annotations

from math import inf, nan

from candelabra.dtypes import int64
from candelabra.library import by, operator, record, shape_of
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Index, Tensor

where, gather, cat, stack = record("where"), record("gather"), record("cat"), record("stack")
new_full, new_arange, scatter_add = record("new_full"), record("new_arange"), record("scatter_add")

Ints = tuple[int, ...]


def checked(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Ints:
    """Return (T, N, C). Raises ``RuntimeError`` for shapes that do not belong together."""
    shape, labels = shape_of(log_probs), shape_of(targets)
    if len(shape) != 3 or 0 in shape[:2]:
        raise RuntimeError(f"expected log-probabilities of shape (T, N, C) with T, N > 0, got {list(shape)}")
    for name, found, rank in (("targets", labels, 2), ("input_lengths", shape_of(input_lengths), 1),
                              ("target_lengths", shape_of(target_lengths), 1)):  # fmt: skip
        if len(found) != rank or found[0] != shape[1]:
            raise RuntimeError(f"expected {name} of {rank} dims for {shape[1]} sequences, got shape {list(found)}")
    return shape


def _states(targets: Tensor, target_lengths: Tensor, blank: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the classes (N, L) of the states, their positions (L), and whether a state may follow two before it."""
    count, longest = targets.shape
    positions = new_arange(targets, 0, 1, 2 * longest + 1, dtype=int64)
    inside = positions[:longest] < target_lengths.unsqueeze(1)
    blanks = new_full(targets, (count, longest + 1), blank)
    labels = where(inside, targets, blank)
    pairs = stack((blanks[:, :longest], labels), 2).reshape((count, 2 * longest))
    classes = cat((pairs, blanks[:, longest:]), 1)
    skips = cat((new_full(classes, (count, 2), blank), classes), 1)[:, : 2 * longest + 1] != classes
    return classes, positions, skips & (positions % 2 == 1) & (positions > 1)


def _log_sum(terms: Tensor) -> Tensor:
    """Return ``log(sum(exp(terms)))`` along dim 0; -inf, with a gradient of 0, of terms that are all -inf."""
    high = terms.detach().amax(0)
    dead = high == -inf
    total = (terms - high.masked_fill(dead, 0)).exp().sum(0)
    result: Tensor = (total.masked_fill(dead, 1).log() + high).masked_fill(dead, -inf)
    return result


def _recursion(emissions: Tensor, starts: Tensor, skips: Tensor) -> tuple[Tensor, Tensor]:
    """Return alpha (T, N, L) with the emission of its own time, and without.

    ``starts`` (N, L) are the states in which a path may begin.
    """
    times, count, states = emissions.shape
    before = new_full(emissions, (count, states), 0).masked_fill(starts.logical_not(), -inf)
    alpha = before + emissions[0]
    entering, found = [before], [alpha]
    edge = new_full(emissions, (count, 2), -inf)
    barred = skips.logical_not()
    for time in range(1, times):
        padded = cat((edge, alpha), 1)
        leap = padded[:, :states].masked_fill(barred, -inf)
        before = _log_sum(stack((alpha, padded[:, 1 : states + 1], leap)))
        alpha = before + emissions[time]
        entering.append(before)
        found.append(alpha)
    return stack(found), stack(entering)


def _losses_of(alpha: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Tensor:
    """Return the negative log-likelihoods: the sums of the last two states at the last time."""
    states = alpha.shape[2]
    last = (input_lengths - 1).clamp_min(0).reshape((1, -1, 1)).expand((1, *alpha.shape[1:]))
    final = gather(alpha, 0, last).squeeze(0)
    ends = target_lengths.unsqueeze(1) * 2
    positions = new_arange(ends, 0, 1, states, dtype=int64)
    at_end = (positions == ends) | (positions == ends - 1)
    losses = -_log_sum(final.masked_fill(at_end.logical_not(), -inf).mT)
    # Without input the only spelling is that of no labels, whose probability is 1.
    return where(input_lengths > 0, losses, new_full(losses, (), 0).masked_fill(target_lengths > 0, inf))


@by
def _losses_shape(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, *_: Any) -> Ints:
    return checked(log_probs, targets, input_lengths, target_lengths)[1:2]


@operator(_losses_shape, accepts="real floating", method=False, public=False, out=False)
def alignment_losses(
    log_probs: Tensor,
    targets: Index,
    input_lengths: Index,
    target_lengths: Index,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    """The negative log-likelihoods (N) of labels (N, S), given log-probabilities (T, N, C) of each class at each time.

    Times and labels beyond the lengths (N) of a sequence do not count. Labels that need more time than there is have an
    infinite loss; its derivative is NaN, or 0 with ``zero_infinity``.
    """
    checked(log_probs, targets, input_lengths, target_lengths)
    classes, positions, skips = _states(targets, target_lengths, blank)
    emissions = gather(log_probs, 2, classes.unsqueeze(0).expand((log_probs.shape[0], *classes.shape)))
    starts = (positions < 2) & (positions <= 2 * target_lengths.unsqueeze(1))
    return _losses_of(_recursion(emissions, starts, skips)[0], input_lengths, target_lengths)


@operator(by(lambda log_probs, *_: shape_of(log_probs)), accepts="real floating", method=False, public=False, out=False)
def label_posteriors(
    log_probs: Tensor,
    targets: Index,
    input_lengths: Index,
    target_lengths: Index,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    """The probability (T, N, C) of each class at each time, given the labels; arguments of :func:`alignment_losses`.

    They are 0 beyond a sequence's length. Labels of likelihood 0 have no posteriors: NaN, or 0 with ``zero_infinity``.
    """
    times, count, _ = checked(log_probs, targets, input_lengths, target_lengths)
    classes, positions, skips = _states(targets, target_lengths, blank)
    indices = classes.unsqueeze(0).expand((times, *classes.shape))
    emissions = gather(log_probs, 2, indices)
    # The second half of the batch is reversed: times and states are counted from the sequence's end.
    clock = new_arange(targets, 0, 1, times, dtype=int64).reshape((times, 1, 1))
    lengths, last = input_lengths.reshape((1, count, 1)), 2 * target_lengths.unsqueeze(1)
    back = (lengths - 1 - clock).clamp_min(0).expand(emissions.shape)
    turned = (last - positions).clamp_min(0)
    turned_states = turned.unsqueeze(0).expand(emissions.shape)
    reversed_emissions = gather(gather(emissions, 0, back), 2, turned_states)
    starts = (positions < 2) & (positions <= last)
    # A leap to state s from s - 2 is, from the end, a leap to s - 2 from s.
    leaps = gather(cat((skips[:, 2:], new_full(skips, (count, 2), False)), 1)[:, : skips.shape[1]], 1, turned)
    both, entering = _recursion(
        cat((emissions, reversed_emissions), 1), cat((starts, starts), 0), cat((skips, leaps), 0)
    )
    alpha = both[:, :count]
    beta = gather(gather(entering[:, count:], 0, back), 2, turned_states)
    losses = _losses_of(alpha, input_lengths, target_lengths)
    outside = (clock >= lengths) | (positions > last).unsqueeze(0)
    impossible = losses == inf
    exponents = alpha + beta + losses.masked_fill(impossible, 0).reshape((1, count, 1))
    chances = exponents.masked_fill(outside | (exponents == -inf), -inf).exp()
    posteriors = scatter_add(new_full(log_probs, tuple(log_probs.shape), 0), 2, indices, chances)
    undefined = impossible.reshape((1, count, 1)) & (clock < lengths)
    return posteriors.masked_fill(undefined, 0 if zero_infinity else nan)


alignment_losses.vjp(
    log_probs=lambda g, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity: (
        label_posteriors(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
        * -g.reshape((1, -1, 1))
    )
)
