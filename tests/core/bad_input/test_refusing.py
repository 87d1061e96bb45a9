"""Errors from inside a call: the schema describes the arguments that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
import pytest
from candelabra import Tensor
from candelabra._codegen.fitting import COMPUTED, KINDS, alternatives, misfit
from candelabra._dispatch.refusing import brief
from candelabra._records.callables import PublicCallable
from candelabra.errors import OutOfMemoryError
from candelabra.library import OPERATORS, Operator, build, like_input

from tests.lantern import LanternBackend

X: Any = cd.ones(2, 3)
IMAGE: Any = cd.ones(1, 1, 4, 4)
WEIGHT: Any = cd.ones(1, 1, 2, 2)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.conv1d(None, X), r"conv1d\(\): argument 'input' \(position 1\) must be Tensor, not NoneType"),
        (lambda: F.conv2d(IMAGE, WEIGHT, groups=True), r"'groups' \(position 7\) must be int, not bool"),
        (lambda: X.sum(1, keepdim="False"), r"sum\(\): argument 'keepdim' \(position 3\) must be bool, not str"),
        (lambda: X.amax(1, 2), r"amax\(\): argument 'keepdim' \(position 3\) must be bool, not int"),
        (lambda: cd.full((2,), None), r"full\(\): argument 'fill_value' \(position 2\) must be Number, not NoneType"),
        (lambda: cd.addmm(X, X, X.T, beta=[1.0]), r"addmm\(\): argument 'beta' must be Number, not list"),
        (lambda: F.leaky_relu(X, [0.1]), r"leaky_relu\(\): argument 'negative_slope' \(position 2\) must be float, not"),
        (lambda: cd.isin(X, "abc"), r"isin\(\): argument 'test_elements' \(position 2\) must be Tensor or Number, not s"),
        (lambda: cd.tensor(1.0).softmax("a"), "argument 'dim' must be int, not str"),
        (lambda: cd.bincount(cd.tensor([1]), minlength=float("nan")), "argument 'minlength'.* must be int, not float"),
        (lambda: X.split(True), r"'split_size_or_sections' \(position 2\) must be int or tuple of ints, not bool"),
        (lambda: cd.reshape(None, 2), r"reshape\(\): argument 'input' \(position 1\) must be Tensor, not NoneType"),
        (lambda: cd.normal(None, cd.ones(2)), r"normal\(\): argument 'mean'.* must be Tensor or Number, not NoneType"),
        (lambda: X.copy_(X, non_blocking="a"), r"copy_\(\): argument 'non_blocking' must be bool, not str"),
        (lambda: cd.autograd.grad(X.sum(), [X, None]), "inputs must be a Tensor or a sequence of Tensors, got NoneType"),
    ],
)  # fmt: skip
def test_an_argument_of_the_wrong_type_is_named(call: Callable[[], Any], text: str) -> None:
    """The error names the function, the argument, the expected and the given type."""
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: F.conv2d(IMAGE, WEIGHT, stride=[1.9]), RuntimeError, r"but got stride=\[1.9\]"),
        (lambda: F.avg_pool2d(IMAGE, [True]), RuntimeError, "kernel_size must either be a single int"),
        (lambda: cd.linalg.cholesky(cd.full((2, 2), float("nan"))), RuntimeError, "leading minor of order 1 is not"),
        (lambda: X.renorm(float("nan"), 0, 1.0), RuntimeError, "non-positive-norm not supported"),
        (lambda: X.renorm(2, 0, float("nan")), RuntimeError, "expected maxnorm to be >= 0 but got nan"),
        (lambda: cd.cdist(X, X, float("nan")), RuntimeError, "cdist only supports non-negative p values"),
        (lambda: F.softshrink(X, float("nan")), RuntimeError, "lambda must be greater or equal to 0"),
        (lambda: F.huber_loss(X, X, delta=float("nan")), RuntimeError, "does not support non-positive values for delta"),
        (lambda: F.smooth_l1_loss(X, X, beta=float("nan")), RuntimeError, "does not support negative values for beta"),
        (lambda: cd.add(X, X, alpha=True), RuntimeError, "Boolean alpha only supported for Boolean results"),
        (lambda: cd.sub(X, X, alpha=1j), RuntimeError, "alpha must not be a complex number"),
        (lambda: cd.fft.fftfreq(-3), RuntimeError, r"fftfreq\(\): n must be non-negative, got -3"),
        (lambda: F.adaptive_max_pool1d(IMAGE[0], 2**40), cd.OutOfMemoryError, r"output_size \[1099511627776\] is too large"),
        (lambda: X.pow_(X[None]), RuntimeError, r"output with shape \[2, 3\] doesn't match the broadcast shape"),
        (lambda: cd.tensor([1j], dtype=cd.float32), TypeError, "must be real number, not complex"),
    ],
)  # fmt: skip
def test_a_value_that_has_no_meaning_is_refused(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    """PyTorch refuses the same values."""
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y[1:].add_(y[:-1]),
        lambda y: y[:-1].mul_(y[1:]),
        lambda y: y[:4].view(2, 2).sub_(y[:4].view(2, 2).T),
    ],
)
def test_a_write_over_a_part_of_an_operand_is_refused(write: Callable[[Tensor], Any]) -> None:
    """The result would depend on the order in which a kernel reads and writes."""
    for leaf in (cd.arange(6.0), cd.arange(6.0).requires_grad_()):
        y = leaf * 1
        before = y.tolist()
        with pytest.raises(
            RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a"
        ):
            write(y)
        assert y.tolist() == before


def test_operands_that_share_nothing_or_everything_are_written() -> None:
    """Parts side by side, the same elements, and tensors with gaps are no overlap."""
    y = cd.arange(6.0)
    y[:3] += y[3:]
    assert y.tolist() == [3, 5, 7, 3, 4, 5]
    y += y.view(6)
    assert y.tolist() == [6, 10, 14, 6, 8, 10]
    m = cd.ones(2, 3)
    m[:, 1:] += m[:, :-1].clone()
    assert m.tolist() == [[1, 2, 2], [1, 2, 2]]


@pytest.mark.parametrize(
    "call",
    [
        lambda mean, var: F.batch_norm(cd.ones(4, 3), mean, var, training=True),
        lambda mean, var: F.instance_norm(cd.ones(2, 3, 5), mean, var),
        lambda mean, var: cd.native_batch_norm(cd.ones(4, 3), None, None, mean, var, True, 0.1, 1e-5),
    ],
)
def test_running_statistics_are_written_both_or_not_at_all(call: Callable[[Tensor, Tensor], Any]) -> None:
    """A variance that cannot be written leaves the mean as it was."""
    mean = cd.zeros(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        call(mean, cd.ones(1).expand(3))
    assert mean.tolist() == [0, 0, 0]


def test_a_running_variance_of_another_size_leaves_the_mean() -> None:
    """The sizes are checked before the first write."""
    mean = cd.zeros(3)
    with pytest.raises(RuntimeError, match="running_var should contain 3 elements not 4"):
        cd.native_batch_norm(cd.ones(4, 3), None, None, mean, cd.ones(4), True, 0.1, 1e-5)
    assert mean.tolist() == [0, 0, 0]


@pytest.mark.parametrize("bounds", [(0.0, "a"), (cd.zeros(2), cd.ones(3)), (0.0, 1j), (cd.zeros(2), [1.0])])
def test_clamping_by_one_good_and_one_bad_bound_writes_nothing(bounds: tuple[Any, Any]) -> None:
    """Both bounds are checked before the first is applied."""
    y = cd.tensor([-5.0, 5.0])
    with pytest.raises((TypeError, RuntimeError)):
        y.clamp_(*bounds)
    assert y.tolist() == [-5, 5]


@pytest.mark.parametrize(
    "call",
    [
        lambda: cd.rand(2**62),
        lambda: cd.randperm(2**62),
        lambda: cd.randint(0, 5, (2**62,)),
        lambda: cd.bernoulli(cd.full((3,), 2.0)),
        lambda: cd.multinomial(cd.full((3,), float("nan")), 1),
        lambda: cd.poisson(cd.full((3,), -1.0)),
        lambda: cd.svd_lowrank(cd.full((3, 3), float("nan")), 2),
        lambda: F.gumbel_softmax(X, dim=9),
    ],
)
def test_a_draw_that_fails_takes_no_numbers(call: Callable[[], Any]) -> None:
    """The generator is where it was."""
    before = cd.get_rng_state().tolist()
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        call()
    assert cd.get_rng_state().tolist() == before


def test_a_failed_draw_is_not_undone_after_another_one() -> None:
    """give_back() returns numbers only if there was no draw since."""
    generator = cd.Generator()
    _, first = generator.take(4)
    generator.take(2)
    generator.give_back(first)
    assert generator.get_offset() == 6


# -- the mechanism ----------------------------------------------------------------------------------------------------
def called(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of a public callable that is not published."""
    return PublicCallable(function, public=False).form("function")


@pytest.mark.parametrize(
    ("expression", "raised", "kind", "text"),
    [
        ("10.0 ** 400", OverflowError, RuntimeError, r"a number is too large: input=float32\[2, 3\]"),
        ("bytes(1 << 62)", MemoryError, OutOfMemoryError, r"the memory does not suffice for input=float32\[2, 3\]"),
        ("{}[0]", KeyError, RuntimeError, r"cannot compute with these arguments: input=float32\[2, 3\]"),
        ("input.missing", AttributeError, TypeError, "cannot compute with these arguments"),
        ("()[1]", IndexError, IndexError, "cannot compute with these arguments"),
        ("int('a')", ValueError, ValueError, "cannot compute with these arguments"),
        ("1 / 0", ZeroDivisionError, RuntimeError, "cannot compute with these arguments"),
    ],
)
def test_an_error_that_the_schema_does_not_explain_keeps_its_cause(
    expression: str, raised: type[Exception], kind: type[Exception], text: str
) -> None:
    """Its class is the one that PyTorch programs catch, and the original is its cause."""
    failing: Any = build("failing", "input", [f"return {expression}"], {}, "failing")
    failing.__doc__, failing.__annotations__ = "Fail.", {"input": "Tensor", "return": "Tensor"}
    with pytest.raises(kind, match=rf"^failing\(\): {text}") as caught:
        called(failing)(X)
    assert type(caught.value) is kind
    assert type(caught.value.__cause__) is raised


def test_the_error_of_a_kernel_is_a_note(lantern: LanternBackend) -> None:
    """The message has the user's arguments, the note the kernel's text, also below a function around the operator."""
    undo = cd.register_kernel("lantern", "expm1", lambda x: len(3))  # type: ignore[arg-type]
    try:
        x = cd.ones(2, device="lantern")
        for call in (x.expm1, lambda: cd.special.expm1(x)):
            with pytest.raises(TypeError, match=r"^expm1\(\): cannot compute with .*input=float32") as caught:
                call()
            assert caught.value.__notes__ == ["the kernel's error: TypeError: object of type 'int' has no len()"]
            assert "raised by the kernel of 'expm1' on" in caught.value.__cause__.__notes__[0]  # type: ignore[union-attr]
    finally:
        undo()


def test_the_outermost_function_is_named() -> None:
    """An error that an inner operator could not explain is described by the arguments of the function that was called."""

    def outer(input: Tensor, size: Any) -> Tensor:
        """Call an operator that fails."""
        return F.pad(input, (1, 1), value=size)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match=r"pad\w*\(\): argument 'value'|outer\(\)"):
        called(outer)(X, object())


def test_errors_of_the_users_code_pass() -> None:
    """An error in a callback is the user's own, whatever its class."""

    def callback(value: float) -> float:
        return value.missing  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(AttributeError, match="'float' object has no attribute 'missing'"):
        X.clone().apply_(callback)


def test_calls_that_do_not_bind_keep_pythons_words() -> None:
    """A missing or unknown argument is described as for any Python function."""
    with pytest.raises(TypeError, match=r"conv1d\(\) missing 1 required positional argument: 'weight'"):
        F.conv1d(X)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nope'"):
        F.conv1d(X, X, nope=1)


def test_arguments_are_shown_briefly() -> None:
    """Tensors by dtype and shape, long lists and huge numbers shortened, other objects by their class."""
    assert brief(X) == "float32[2, 3]"
    assert brief([X, 1]) == "[float32[2, 3], 1]"
    assert brief((1.5, "a", None)) == "(1.5, 'a', None)"
    assert brief(list(range(20))) == "[0, 1, 2, 3, 4, 5, 6, 7, ...]"
    assert brief(1 << 300) == "an integer of 301 bits"
    assert brief(object()) == "object"


def test_annotations_are_split_outside_of_brackets() -> None:
    """A union inside brackets belongs to the item."""
    assert alternatives("int | Sequence[Index | None] | None") == ["int", "Sequence[Index | None]", "None"]


def test_items_are_checked_after_a_failure() -> None:
    """The first item that does not fit is named with its position."""

    def sized(input: Tensor, size: Sequence[int], *, other: Tensor | None = None) -> Tensor:  # type: ignore[name-defined]  # noqa: F821
        """Do nothing."""
        return input

    record: Operator[..., Any] = Operator(sized, like_input, public=False)
    parameters = record.schema.parameters
    assert misfit(parameters, (X, (2, 3), None)) == ""
    text = "argument 'size' (position 2) must be tuple of ints, but element 1 is float"
    assert misfit(parameters, (X, (2, 1.5), None)) == text
    assert misfit(parameters, (X, (2,), 1)) == "argument 'other' must be Tensor, not int"


def test_every_word_of_an_annotation_is_known() -> None:
    """A word is a kind of argument or the name of a public class: an alias would be taken for a class, which no value
    has, and every failed call of the operator would be explained by that argument."""
    unknown = {
        (record.name, p.name, word)
        for record in map(OPERATORS.__getitem__, list(OPERATORS))
        for p in record.schema.parameters
        if p.annotation not in COMPUTED
        for word in alternatives(p.annotation)
        if word.isidentifier() and word not in (*KINDS, "object") and not isinstance(getattr(cd, word, None), type)
    }
    assert unknown == set()
