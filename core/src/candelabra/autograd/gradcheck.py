"""``gradcheck`` and ``gradgradcheck``: compare derivatives with finite differences.

Complex numbers are treated as pairs of reals: a gradient is ``dL/dRe + i dL/dIm`` (PyTorch's convention), so the
analytical rows of an output's real part result from ``g = 1`` and those of its imaginary part from ``g = i``. The
differences are central. The check along random directions (``fast_mode``) is that of HIPS/autograd's ``check_grads``.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.filling import zeros_like
from candelabra._keys import NO_GRAD, mode
from candelabra._records.registry import OPERATORS
from candelabra.autograd._gradients import grad

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

Matrix = list[list[float]]
"""One row per real direction of the output, one column per real direction of the input."""


class GradcheckError(RuntimeError):
    """Analytical and numerical derivatives differ."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare ``func``'s gradients at ``inputs`` with central differences of width ``eps``.

    Every tensor of ``inputs`` that requires grad is checked; it should be float64 or complex128. ``fast_mode`` compares
    along one random direction instead of entry by entry. ``check_forward_ad`` compares the derivatives of
    :func:`candelabra.func.jvp` too, and ``check_batched_grad`` gradients under ``vmap`` with those one by one. Raises
    :class:`GradcheckError` with both matrices (or returns False without ``raise_exception``). Arguments as
    ``torch.autograd.gradcheck``; ``masked`` concerns sparse tensors only.
    """
    arguments = _as_tuple(inputs)
    checked = _checked_inputs(arguments)
    check = _Check(func, arguments, checked, eps, atol, rtol, nondet_tol)
    try:
        if check_forward_ad:
            check.forward(fast_mode)
        check.run(fast_mode, check_undefined_grad, check_grad_dtypes, check_backward_ad)
        if check_batched_grad:
            check.batched()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare the second derivatives of ``func`` with central differences of its first ones.

    ``grad_outputs``: the gradients of the outputs at which to check, by default random. The other arguments are those
    of :func:`gradcheck`.
    """
    arguments = _as_tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable(_as_tuple(func(*arguments)))
        generator = random.Random(0)
        given = tuple([_random_like(o, generator).requires_grad_() for o in outputs])
        if gen_non_contig_grad_outputs:
            given = tuple([_non_contiguous(g).requires_grad_() for g in given])
    else:
        given = _as_tuple(grad_outputs)
    count = len(given)

    def first_derivative(*both: Any) -> tuple[Any, ...]:
        values, gradients = both[:-count], both[-count:]
        targets = tuple([a for a in values if _requires_grad(a)])
        outputs = _differentiable(_as_tuple(func(*values)))
        found = grad(outputs, targets, gradients, create_graph=True, allow_unused=True)
        return tuple([g for g in found if g is not None])

    return gradcheck(
        first_derivative, (*arguments, *given), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked,
    )  # fmt: skip


class _Check:
    """One comparison: the function, its arguments, and the tolerances."""

    def __init__(
        self, func: Callable[..., Any], arguments: tuple[Any, ...], checked: list[int], eps: float, atol: float,
        rtol: float, nondet_tol: float,
    ) -> None:  # fmt: skip
        self.func, self.arguments, self.checked = func, arguments, checked
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol

    def run(self, fast: bool, undefined: bool, dtypes: bool, backward: bool) -> None:
        outputs = _as_tuple(self.func(*self.arguments))
        carrying = [i for i, o in enumerate(outputs) if _requires_grad(o)]
        if not carrying:
            self._expect_zero(outputs)
            return
        if not backward:
            return
        if undefined:
            self._absent_gradients(tuple([outputs[i] for i in carrying]))
        for number in carrying:
            if fast:
                self._along_a_direction(number, _as_tuple(self.func(*self.arguments))[number])
            else:
                self._entry_by_entry(number, _as_tuple(self.func(*self.arguments))[number], dtypes)
        # The numerical check has modified the inputs in place, so the graph of `outputs` is no longer valid.
        again = _as_tuple(self.func(*self.arguments))
        self._linear_in_gradient(tuple([again[i] for i in carrying]))

    def forward(self, fast: bool) -> None:
        """Compare the tangents of every output with differences, one input at a time."""
        for number, out in enumerate(_as_tuple(self.func(*self.arguments))):
            if not _requires_grad(out):
                continue
            for place in self.checked:
                x = self.arguments[place]
                directions = [_random_like(x, random.Random(number))] if fast else _basis(x)
                analytical = [self._tangent(number, place, d) for d in directions]
                self._compare(number, place, [self._difference(number, x, d) for d in directions], analytical)

    def batched(self) -> None:
        """Compare a backward pass for two gradients at once with one for each."""
        targets = [self.arguments[i] for i in self.checked]
        generator = random.Random(0)
        for number, out in enumerate(_as_tuple(self.func(*self.arguments))):
            if not _requires_grad(out):
                continue
            pair = [_random_like(out, generator) for _ in range(2)]
            stacked: Any = OPERATORS["stack"].function(pair)
            several = grad(out, targets, stacked, retain_graph=True, allow_unused=True, is_grads_batched=True)
            for position, g in enumerate(pair):
                alone = grad(out, targets, g, retain_graph=True, allow_unused=True)
                for place, a, b in zip(self.checked, several, alone, strict=True):
                    batched = [] if a is None else _reals(a[position])
                    if not _close([batched], [[] if b is None else _reals(b)], self.atol, self.rtol):
                        raise GradcheckError(
                            f"The gradients under vmap of output {number} with respect to input {place} differ from "
                            "those that are computed one by one"
                        )

    # -- the two comparisons ----------------------------------------------------------------------------------------
    def _entry_by_entry(self, number: int, out: Tensor, dtypes: bool) -> None:
        rows = [self._gradients(out, g, dtypes) for g in _basis(out)]
        again = [self._gradients(out, g, False) for g in _basis(out)]
        for position, place in enumerate(self.checked):
            x = self.arguments[place]
            analytical: Matrix = [row[position] for row in rows]
            numerical = _transposed([self._difference(number, x, d) for d in _basis(x)], len(analytical))
            self._compare(number, place, numerical, analytical)
            if not _close(analytical, [row[position] for row in again], self.nondet_tol, 0.0):
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    "gives different values, although analytical gradient matches numerical gradient.The tolerance "
                    f"for nondeterminism was {self.nondet_tol}."
                )

    def _along_a_direction(self, number: int, out: Tensor) -> None:
        generator = random.Random(number)
        g = _random_like(out, generator)
        rows = self._gradients(out, g, False)
        weights = _reals(g)
        for position, place in enumerate(self.checked):
            direction = _random_like(self.arguments[place], generator)
            moved = self._difference(number, self.arguments[place], direction)
            numerical = sum(w * m for w, m in zip(weights, moved, strict=True))
            analytical = sum(u * r for u, r in zip(_reals(direction), rows[position], strict=True))
            self._compare(number, place, [[numerical]], [[analytical]])

    def _compare(self, number: int, position: int, numerical: Matrix, analytical: Matrix) -> None:
        if not _close(analytical, numerical, self.atol, self.rtol):
            raise GradcheckError(
                f"Jacobian mismatch for output {number} with respect to input {position},\n"
                f"numerical:{_text(numerical)}\nanalytical:{_text(analytical)}\n"
            )

    def _tangent(self, number: int, position: int, direction: Tensor) -> list[float]:
        from candelabra._transforms.forward import jvp

        def called(*values: Tensor) -> Any:
            arguments = list(self.arguments)
            for i, value in zip(self.checked, values, strict=True):
                arguments[i] = value.requires_grad_()  # the function may itself take gradients
            return _as_tuple(self.func(*arguments))[number]

        primals = tuple([self.arguments[i].detach() for i in self.checked])
        along = [direction if i == position else zeros_like(p) for i, p in zip(self.checked, primals, strict=True)]
        return _reals(jvp(called, primals, tuple(along))[1])

    # -- derivatives --------------------------------------------------------------------------------------------------
    def _gradients(self, out: Tensor, g: Tensor, dtypes: bool) -> list[list[float]]:
        """Return the analytical gradients of one output direction, per checked input, as reals."""
        targets = [self.arguments[i] for i in self.checked]
        found = grad(out, targets, g, retain_graph=True, allow_unused=True)
        for x, gx in zip(targets, found, strict=True):
            if gx is not None and dtypes and gx.dtype is not x.dtype:
                raise GradcheckError(f"Analytical gradient has incorrect type: {gx.dtype}, the input has {x.dtype}")
        return [_reals(gx) if gx is not None else [0.0] * len(_basis(x)) for x, gx in zip(targets, found, strict=True)]

    def _difference(self, number: int, x: Tensor, direction: Tensor) -> list[float]:
        """Return the central difference of one output along ``direction``; ``x`` is modified in place and restored."""
        kept = x.detach().clone()
        ends = []
        for sign in (1, -1):
            self._put(x, kept + direction * (sign * self.eps))
            ends.append(_reals(_as_tuple(self.func(*self.arguments))[number]))  # recorded: it may itself take gradients
        self._put(x, kept)
        return [(up - down) / (2 * self.eps) for up, down in zip(*ends, strict=True)]

    @staticmethod
    def _put(x: Tensor, value: Tensor) -> None:
        with mode(include=NO_GRAD):
            x.copy_(value)

    # -- properties ---------------------------------------------------------------------------------------------------
    def _expect_zero(self, outputs: tuple[Any, ...]) -> None:
        if not any(hasattr(o, "_payload") for o in outputs):
            raise ValueError("gradcheck expects the function to return tensors")
        for number, out in enumerate(outputs):
            if not (out.dtype.is_floating_point or out.dtype.is_complex):
                continue
            for place in self.checked:
                x = self.arguments[place]
                if any(abs(d) > self.atol for e in _basis(x) for d in self._difference(number, x, e)):
                    raise GradcheckError("Numerical gradient for function expected to be zero")

    def _linear_in_gradient(self, outputs: tuple[Tensor, ...]) -> None:
        targets = [self.arguments[i] for i in self.checked]
        zeros = tuple([o.detach() * 0 for o in outputs])
        for g in grad(outputs, targets, zeros, retain_graph=True, allow_unused=True):
            if g is not None and any(v != 0 for v in _reals(g)):
                raise GradcheckError("backward not multiplied by grad_output")

    def _absent_gradients(self, outputs: tuple[Tensor, ...]) -> None:
        """Check that each of several outputs can be differentiated alone, with the others' gradients absent."""
        if len(outputs) < 2:
            return
        targets = [self.arguments[i] for i in self.checked]
        for out in outputs:
            try:
                grad(out, targets, out.detach() * 0, retain_graph=True, allow_unused=True)
            except RuntimeError as error:
                raise GradcheckError(
                    "Expected backward function to handle undefined output grads. Please look at 'Notes about "
                    f"undefined output gradients': {error}"
                ) from error


# -- tensors as lists of reals -------------------------------------------------------------------------------------
def _as_tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if hasattr(value, "_payload") else tuple(value)


def _requires_grad(value: Any) -> bool:
    return hasattr(value, "_payload") and bool(value.requires_grad)


def _differentiable(outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([o for o in outputs if _requires_grad(o)])


def _checked_inputs(arguments: tuple[Any, ...]) -> list[int]:
    checked = [i for i, a in enumerate(arguments) if _requires_grad(a)]
    if not checked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for i in checked:
        x = arguments[i]
        if x.dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                UserWarning,
                stacklevel=3,
            )
        if any(step == 0 and size > 1 for size, step in zip(x.shape, x.stride(), strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
            )
    return checked


def _reals(tensor: Tensor) -> list[float]:
    values = tensor.detach().reshape(-1).tolist()
    if not tensor.is_complex():
        return [float(v) for v in values]
    return [part for v in values for part in (v.real, v.imag)]


def _from_values(values: list[Any], like: Tensor) -> Tensor:
    from candelabra._operators.creation.from_data import tensor

    made: Tensor = tensor(values, dtype=like.dtype, device=like.device).reshape(like.shape)
    return made


def _basis(tensor: Tensor) -> list[Tensor]:
    """Return the real directions of a tensor, one-hot, in the order of :func:`_reals`."""
    count = tensor.numel()
    units = (1, 1j) if tensor.is_complex() else (1,)
    return [_from_values([u * (i == j) for j in range(count)], tensor) for i in range(count) for u in units]


def _random_like(tensor: Tensor, generator: random.Random) -> Tensor:
    def one() -> Any:
        value = generator.uniform(-1, 1)
        return complex(value, generator.uniform(-1, 1)) if tensor.is_complex() else value

    return _from_values([one() for _ in range(tensor.numel())], tensor)


def _non_contiguous(tensor: Tensor) -> Tensor:
    """Return a tensor with the same values that occupies every second element of its memory."""
    from candelabra._operators.shapes.joining import cat

    last = tensor.detach().unsqueeze(-1)
    both: Tensor = cat((last, last), last.ndim - 1)
    return both.select(-1, 0)


def _transposed(columns: Matrix, rows: int) -> Matrix:
    return [[column[r] for column in columns] for r in range(rows)]


def _close(a: Matrix, b: Matrix, atol: float, rtol: float) -> bool:
    return all(
        x == y or abs(x - y) <= atol + rtol * abs(y)
        for row, other in zip(a, b, strict=True)
        for x, y in zip(row, other, strict=True)
    )


def _text(matrix: Matrix) -> str:
    return "\n" + "\n".join("  [" + ", ".join(f"{v: .6g}" for v in row) + "]" for row in matrix)


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def __dir__() -> list[str]:
    return sorted(__all__)
