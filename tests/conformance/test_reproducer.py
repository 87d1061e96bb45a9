"""Reproducers: complete programs that pass on correct devices and fail on faulty ones."""

import math
from typing import Any

import candelabra as cd
import ml_dtypes
import numpy as np
import pytest
from candelabra.library import plugins
from candelabra_conformance.layouts import MEMORY, to_layout
from candelabra_conformance.literals import imports, plain
from candelabra_conformance.mutants.mirror import Image
from candelabra_conformance.program import placed
from candelabra_conformance.reproducer import reproducer
from candelabra_conformance.samples import HERE
from candelabra_conformance.shrinking import shrunk
from candelabra_conformance.transport import to_host

from tests.conformance.broken_device import Break, run

NUMBERS = np.arange(12, dtype=np.float32).reshape(3, 4) / 8 - 0.5


def off_by(kernel: Any, factor: float) -> Any:
    """Return a kernel with an error in the last column."""

    def wrong(*args: Any) -> Any:
        result = kernel(*args)
        result.inner[..., -1:] *= np.float32(factor)
        return result

    return wrong


@pytest.mark.parametrize("layout", MEMORY)
def test_program_passes_on_a_correct_device_in_every_layout(broken: Break, layout: str) -> None:
    """The program computes the expected value and creates the layout by views; it prints and raises nothing."""
    array = np.broadcast_to(NUMBERS[:1], NUMBERS.shape) if layout == "broadcast" else NUMBERS
    text = reproducer("exp", (array,), device="broken", layout=layout)
    run(text)
    assert len(text.splitlines()) < 20
    assert "candelabra_conformance" not in text


def test_program_fails_on_a_broken_device_and_says_by_how_much(
    broken: Break, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends with AssertionError, and prints the element, both values, the difference and the bound."""
    text = reproducer("exp", (NUMBERS,), device="broken:0")
    broken(exp=lambda kernel: off_by(kernel, 1.001))
    with pytest.raises(AssertionError, match="wrong value"):
        run(text)
    assert "element 3: got 0.88" in capsys.readouterr().out


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "offset", "step"])
@pytest.mark.parametrize("name", ["bool", "uint8", "int64", "uint64", "float16", "bfloat16", "float64", "complex64"])
def test_tensors_are_written_bit_for_bit(name: str, layout: str) -> None:
    """NaN of both signs, infinities, signed zeros, subnormals and the largest integers are exact, short and packed."""
    kind = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    if kind.kind in "iu":
        values = np.array([np.iinfo(kind).max, np.iinfo(kind).min, 1, 2], kind)
    elif kind.kind == "b":
        values = np.array([True, False, True, True])
    else:
        tiny = ml_dtypes.finfo(np.float32 if kind.kind == "c" else kind).smallest_subnormal
        values = np.array([math.nan, -math.nan, -math.inf, -0.0, float(tiny)], np.float64).astype(kind)
    for array in (np.resize(values, (2, 3)), np.resize(values, (10, 40)), values[:1], values[0]):
        held = np.asarray(array)
        text = placed(held, layout)
        names: dict[str, Any] = {"cd": cd, "device": plugins.reference_device()}
        exec("\n".join(imports(text)), names)  # noqa: S102 - so is this
        made = eval(text, names)
        assert to_host(made).tobytes() == held.tobytes()
        assert made.stride() == to_layout(held, layout, names["device"]).stride()


def test_arrays_without_elements_keep_their_shape(broken: Break) -> None:
    """A list cannot represent the shape (0, 3), so the program reshapes."""
    run(reproducer("exp", (np.zeros((0, 3), np.float32),), device="broken"))


def test_tensor_laid_out_by_strides_is_a_view_of_a_larger_one(broken: Break) -> None:
    """A case may specify strides and offset exactly."""
    text = reproducer("exp", (NUMBERS,), device="broken", layout={id(NUMBERS): ((1, 3), 5)})
    assert ".as_strided((3, 4), (1, 3), 5)" in text
    run(text)


def test_one_array_twice_is_one_tensor_twice() -> None:
    """Arguments that alias each other alias each other in the program too."""
    text = reproducer("add", (NUMBERS, NUMBERS), device=plugins.reference_device())
    assert "(x, x)" in text
    run(text)


@pytest.mark.parametrize(
    ("operator", "args", "kwargs", "call"),
    [
        ("cat", ([NUMBERS, NUMBERS + 1], 0), {}, "([tensors0, tensors1], 0)"),
        ("sum", (NUMBERS,), {"dim": (0, 1), "keepdim": True}, "(x, dim=(0, 1), keepdim=True)"),
        (
            "full",
            ((2, 3), 1.5),
            {"dtype": cd.float16, "device": HERE},
            "((2, 3), 1.5, dtype=cd.float16, device=device)",
        ),
        ("cast", (NUMBERS,), {"dtype": cd.int32}, "(x, dtype=cd.int32)"),
        ("clamp_min", (NUMBERS, -math.inf), {}, "(x, -inf)"),
        ("index", (NUMBERS, (np.array([1, 0]),)), {}, "(x, (indices0,))"),
        ("Tensor.__setitem__", (NUMBERS, (slice(1), np.array([0])), 5.0), {}, "5.0), x)[1]"),
    ],
)
def test_arguments_of_all_kinds_are_written(operator: str, args: Any, kwargs: Any, call: str) -> None:
    """Lists and tuples of tensors, dims, shapes, dtypes, the device, infinities and subscript assignments are
    supported."""
    text = reproducer(operator, args, kwargs, device=plugins.reference_device())
    assert call in text
    run(text)


def test_several_outputs_are_compared_each(broken: Break) -> None:
    """Values and indices of a sort are compared; a wrong index fails."""
    text = reproducer("sort", (NUMBERS[::-1].copy(), 0, False, True), device="broken")
    run(text)

    def fault(kernel: Any) -> Any:
        def wrong(*args: Any) -> Any:
            values, indices = kernel(*args)
            indices.inner[0] += 1
            return values, indices

        return wrong

    broken(sort=fault)
    with pytest.raises(AssertionError, match="wrong value"):
        run(text)


def breaks_input(kernel: Any) -> Any:
    """Return a kernel that writes to its input."""

    def wrong(x: Image, *rest: Any) -> Any:
        result = kernel(x, *rest)
        x.inner += 1
        return result

    return wrong


def random_bit(kernel: Any) -> Any:
    """Return a kernel whose result differs in every call."""
    calls = [0.0]

    def wrong(*args: Any) -> Any:
        result = kernel(*args)
        calls[0] += 1
        result.inner += calls[0]
        return result

    return wrong


def silent(kernel: Any) -> Any:
    """Return a kernel that always succeeds."""
    return lambda x, *_: kernel(x, x)


CASES = {
    "inputs": ("exp", (NUMBERS,), {}, None, breaks_input, "an input was changed"),
    "determinism": ("exp", (NUMBERS,), {}, None, random_bit, "20 different results"),
    "random": ("random_uniform", ((5,), 7, 0), {"dtype": cd.float32, "device": HERE}, None, random_bit, "wrong value"),
    "inplace": ("exp", (NUMBERS,), {}, None, lambda k: off_by(k, 1.1), "wrong value"),
    "out": ("exp", (NUMBERS,), {}, None, lambda k: off_by(k, 1.1), "wrong value"),
    "gradient": ("exp", (NUMBERS,), {}, np.exp(NUMBERS), lambda k: off_by(k, 1.1), "wrong value"),
    "errors": ("add", (NUMBERS, NUMBERS[:, :3]), {}, RuntimeError, silent, "expected RuntimeError, got None"),
}


@pytest.mark.parametrize("property", CASES)
def test_property_has_a_check_of_its_own(broken: Break, property: str) -> None:
    """The program of each property passes on the correct device and fails on one with the matching fault."""
    operator, args, kwargs, expected, fault, words = CASES[property]
    text = reproducer(operator, args, kwargs, device="broken", property=property, expected=expected)
    run(text)
    broken(**{"exp_" if property == "inplace" else operator: fault})
    with pytest.raises(AssertionError, match=words):
        run(text)


def test_text_of_an_error_is_compared_too() -> None:
    """If the case has an exception instead of a class, its message is compared too."""
    due = RuntimeError("other words")
    text = reproducer(
        "add", (NUMBERS, NUMBERS[:, :3]), device=plugins.reference_device(), property="errors", expected=due
    )
    with pytest.raises(AssertionError, match="must match the size"):
        run(text)


def test_refusal_after_a_write_to_an_argument_fails(broken: Break) -> None:
    """The program fails if the device raises the correct error after it wrote to an argument."""

    def fault(kernel: Any) -> Any:
        def wrong(x: Image, y: Image) -> Any:
            if x.shape != y.shape:
                x.inner[...] = 7
            return kernel(x, y)

        return wrong

    text = reproducer("add", (NUMBERS, NUMBERS[:, :3]), device="broken", property="errors", expected=RuntimeError)
    run(text)
    broken(add=fault)
    with pytest.raises(AssertionError, match="refused, but an argument was written to"):
        run(text)


def test_result_is_held_against_dtype_and_shape() -> None:
    """The program compares dtype and shape; another dtype fails."""
    device = plugins.reference_device()
    run(reproducer("exp", (NUMBERS,), device=device, property="result", expected=[(cd.float32, (3, 4))]))
    text = reproducer("exp", (NUMBERS,), device=device, property="result", expected=[(cd.float64, (3, 4))])
    with pytest.raises(AssertionError, match="float32"):
        run(text)


@pytest.mark.usefixtures("owner_alone")
def test_check_seed_and_note_are_put_in_their_places() -> None:
    """Comments are at the top, the seed is before the call, and the checks are after it."""
    text = reproducer(
        "exp", (NUMBERS[:1, :1],), device="x:1", property="threads", seed=3, check=["assert got is not inputs[0]"],
        note="two\nlines",
    )  # fmt: skip
    assert text == (
        "# exp: threads, on x:1\n# two\n# lines\nimport candelabra as cd\n\ndevice = 'x:1'\n"
        "x = cd.tensor([[-0.5]], dtype=cd.float32, device=device)\ncd.manual_seed(3)\ninputs = [x]\ngot = cd.exp(x)\n"
        "assert got is not inputs[0]\n"
    )


def test_what_cannot_be_written_is_refused() -> None:
    """An unknown property, and an argument that has no literal, are errors."""
    with pytest.raises(ValueError, match=r"property must be one of value, special, .*, got 'colour'"):
        reproducer("exp", (NUMBERS,), device="x", property="colour")
    with pytest.raises(TypeError, match="a object cannot be written as Python source"):
        plain(object())


# -- shrinking --------------------------------------------------------------------------------------------------------
def test_shrinking_finds_the_element_that_fails() -> None:
    """If one value of a hundred thousand is wrong, the result has one element, which is that one."""
    array = np.zeros((100, 1000), np.float32)
    array[37, 611] = 5
    (found,) = shrunk((array,), lambda args: bool((args[0] == 5).any()))
    assert found.tolist() == [[5]]


def test_shrinking_keeps_shapes_that_go_together() -> None:
    """The contracted dimension of two matrices shrinks in both at once; the others shrink separately."""
    x, y = np.ones((8, 16)), np.ones((16, 4))
    x[3, 5] = np.nan
    a, b = shrunk((x, y), lambda args: bool(np.isnan(args[0] @ args[1]).any()))
    assert a.shape == b.shape == (1, 1)


def test_shrinking_does_not_take_another_failure_for_the_same() -> None:
    """A predicate that raises for smaller arrays leaves the arrays unchanged."""

    def needs_four(args: Any) -> bool:
        if args[0].size < 4:
            raise ValueError("too small")
        return True

    (found,) = shrunk((np.zeros(16),), needs_four)
    assert found.size == 4


def test_shrinking_stops_after_so_many_tries() -> None:
    """The predicate may be slow, so the number of its calls is limited."""
    calls: list[int] = []
    shrunk((np.zeros(1 << 20),), lambda args: bool(calls.append(1)) or False, tries=5)
    assert len(calls) <= 5


def test_shrinking_keeps_aliases() -> None:
    """An array that occurs twice still occurs twice."""
    array = np.ones(64)
    a, b = shrunk((array, array), lambda args: args[0].size > 0)
    assert a is b
    assert a.size == 1
