"""``shadow``: a program's operators are compared with the reference while it runs."""

import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._dispatch.layers import _layers
from candelabra.library import plugins
from candelabra_conformance.fake import installed
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.shadowing import Divergence, DivergenceError, DivergenceWarning, shadow

Break = Callable[..., None]
F = cd.nn.functional


@pytest.fixture
def broken() -> Iterator[Break]:
    """Install a correct device ``broken``; ``broken(operator=fault)`` replaces a kernel by ``fault(kernel)``."""
    removals: list[Callable[[], None]] = []

    def install(mutable: bool = True, **faults: Callable[[Any], Any]) -> None:
        while removals:
            removals.pop()()
        made = Mirror("broken", mutable=mutable)
        made.table.update({name: fault(made.table[name]) for name, fault in faults.items()})
        removals.append(plugins.add_backend(made))

    install()
    yield install
    removals.pop()()


def changed(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a fault that changes the result's own array in place by ``change(array)``."""

    def fault(kernel: Any) -> Any:
        def wrong(*args: Any) -> Any:
            result = kernel(*args)
            change((result[0] if isinstance(result, tuple) else result).inner)
            return result

        return wrong

    return fault


def add_one(array: Any) -> None:
    """Add one to every element."""
    array += 1


def slightly(array: Any) -> None:
    """Change the last element of each row by a thousandth."""
    array[..., -1:] *= np.asarray(1.001, array.dtype)


def run(text: str) -> None:
    """Run a program as ``python program.py`` does."""
    exec(compile(text, "reproducer", "exec", dont_inherit=True), {"__name__": "__main__"})  # noqa: S102 - it is to run


def program(device: str) -> None:
    """Use views, in-place forms, composites, randomness, indices and two backward passes."""
    cd.manual_seed(0)
    x = cd.randn(6, 4, device=device, requires_grad=True)
    w = cd.rand(4, 3, device=device, requires_grad=True)
    h = F.layer_norm(F.gelu(x @ w).T, (6,))
    h = F.softmax(h[:, 1::2].contiguous().view(-1, 3), dim=0)
    y = cd.zeros(5, device=device)
    y.add_(1.5)
    y[1:4].mul_(cd.tensor([1.0, -2.0, 0.5], device=device))
    mask = y > 0
    total = (h * h.detach().sort(0).values).sum() + y[mask].sum() + y.nonzero().sum()
    (gradient,) = cd.autograd.grad(total, x, create_graph=True)
    (gradient * gradient).sum().backward()
    assert w.grad is not None
    cd.randint(0, 9, (7,), device=device)
    cd.randperm(8, device=device)
    cd.bernoulli(cd.full((5,), 0.5, device=device))
    F.dropout(x.detach(), 0.5)
    cd.empty(3, device=device).mul_(0)
    x.detach().to(plugins.reference_device()).half().to(device)


@pytest.mark.parametrize("mutable", [True, False], ids=["strided", "immutable"])
def test_correct_program_passes(broken: Break, mutable: bool) -> None:
    """No operator diverges, on strided and on immutable arrays, and each kind of operator is compared."""
    broken(mutable=mutable)
    with shadow() as log:
        program("broken")
    assert log.divergences == []
    assert {"matmul", "normalize", "softmax", "add_", "mul_", "sort", "nonzero", "random_normal"} <= set(log.checked)
    assert log.unchecked == {}
    assert log.calls > 60


def test_correct_program_passes_on_the_reference_itself() -> None:
    """The reference agrees with itself in a wider dtype, within the bounds."""
    with shadow() as log:
        program(str(plugins.reference_device()))
    assert log.divergences == []
    assert log.unchecked == {}


def test_correct_program_passes_on_an_asynchronous_device() -> None:
    """The fake accelerator's queued work and poisoned memory are not divergences."""
    with installed(), shadow(repeats=2) as log:
        program("fake")
    assert log.divergences == []


def test_wrong_value_stops_the_program_with_all_there_is_to_know(broken: Break) -> None:
    """The report has operator, device, line, number and ULP of the differences, inputs and a failing program."""
    broken(exp=changed(slightly))
    x = cd.arange(12, device="broken", dtype=cd.float32).reshape(3, 4)
    with shadow() as log, pytest.raises(DivergenceError) as caught:
        (x.t() / 4).exp()
    found = caught.value.divergence
    assert (found.operator, found.property, found.device, found.number) == ("exp", "value", "broken:0", 3)
    assert found.message.startswith("4 of 12 elements wrong; worst at [")
    assert found.ulp is not None
    assert 5_000 < found.ulp < 20_000
    assert found.inputs == "input: float32[4, 3], strides (1, 4), offset 0, from 0 to 2.75"
    assert found.where.startswith(__file__ + ":")
    assert all(line in str(caught.value) for line in found.reproducer.splitlines())
    assert log.divergences == [found]
    with pytest.raises(AssertionError, match="wrong value"):
        run(found.reproducer)
    broken()
    run(found.reproducer)


def test_fault_of_one_layout_is_reproduced_in_that_layout(broken: Break) -> None:
    """The program of a kernel that is wrong only for transposed arrays uses a transposed array."""

    def fault(kernel: Any) -> Any:
        def wrong(x: Any) -> Any:
            result = kernel(x)
            if not x.inner.flags.c_contiguous:
                result.inner += 1
            return result

        return wrong

    broken(tanh=fault)
    x = cd.rand(50, 60, device="broken")
    with shadow(), pytest.raises(DivergenceError) as caught:
        x.T.tanh()
    text = caught.value.divergence.reproducer
    assert ".transpose(0, -1)" in text
    assert len(text) < 2000
    with pytest.raises(AssertionError, match="wrong value"):
        run(text)


def test_inner_operator_is_blamed_and_not_the_composite(broken: Break) -> None:
    """``count_nonzero`` is wrong because it calls a wrong sum: the report names only the sum."""
    broken(sum=changed(add_one))
    with shadow(on_divergence=lambda _: None) as log:
        assert cd.ones(8, device="broken").count_nonzero().item() == 9
    assert [d.operator for d in log.divergences] == ["sum"]
    assert set(log.checked) >= {"sum", "ne"}


def test_composite_is_blamed_when_its_own_override_is_wrong(broken: Break) -> None:
    """A wrong kernel of the composite itself is named."""
    broken(softmax=changed(slightly))
    with shadow(), pytest.raises(DivergenceError, match=r"^softmax on broken:0 diverges from "):
        F.softmax(cd.rand(3, 4, device="broken"), dim=1)


def test_backward_pass_is_watched(broken: Break) -> None:
    """A wrong operator that only the derivative calls is reported during ``backward``."""
    broken(cos=changed(slightly))
    x = cd.rand(4, device="broken", requires_grad=True)
    with shadow():
        y = x.sin().sum()
        with pytest.raises(DivergenceError, match="cos on broken:0"):
            y.backward()


def test_in_place_forms_are_watched(broken: Break) -> None:
    """The in-place form has its own kernel, also through views, and the report names it with its underscore."""
    broken(mul_=changed(slightly))
    x = cd.rand(2, 4, device="broken")
    with shadow(), pytest.raises(DivergenceError) as caught:
        x[1].mul_(3)
    assert (caught.value.divergence.operator, caught.value.divergence.property) == ("mul_", "inplace")
    with pytest.raises(AssertionError, match="wrong value"):
        run(caught.value.divergence.reproducer)


def test_writing_to_an_input_is_a_divergence(broken: Break) -> None:
    """A write to an input is reported even if the result is correct."""

    def fault(kernel: Any) -> Any:
        def wrong(x: Any) -> Any:
            result = kernel(x)
            x.inner[-1] += 1
            return result

        return wrong

    broken(exp=fault)
    with (
        shadow(),
        pytest.raises(DivergenceError, match=r"tensor 0 of the arguments was written to: at \[2\] from") as e,
    ):
        cd.ones(3, device="broken").exp()
    assert e.value.divergence.property == "inputs"
    with pytest.raises(AssertionError, match="an input was changed"):
        run(e.value.divergence.reproducer)


def test_result_that_shares_its_inputs_memory_is_a_divergence(broken: Break) -> None:
    """A kernel that returns its argument is reported if the operator is not a view."""
    broken(trunc=lambda kernel: lambda x: x)
    with (
        shadow(),
        pytest.raises(DivergenceError, match="the result shares the memory of tensor 0 of the arg") as caught,
    ):
        cd.ones(3, device="broken").trunc()
    assert caught.value.divergence.property == "aliasing"
    with pytest.raises(AssertionError):
        run(caught.value.divergence.reproducer)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda a: a.astype(np.float64), "the payload's dtype is float64, the tensor's float32"),
        (lambda a: a[:-1], r"the result has shape \[2\], expected \[3\]"),
    ],
)
def test_form_of_a_result_is_checked(broken: Break, fault: Any, words: str) -> None:
    """Dtype and shape are compared."""

    def make(kernel: Any) -> Any:
        def wrong(x: Any) -> Any:
            result = kernel(x)
            return type(result)(fault(result.inner), result.index, result.memory)

        return wrong

    broken(exp=make)
    with shadow(), pytest.raises(DivergenceError, match=words) as caught:
        cd.ones(3, device="broken").exp()
    assert caught.value.divergence.property == "result"


def test_tensor_with_a_broken_payload_does_not_end_the_program(broken: Break) -> None:
    """It is reported once, where it is created; later calls with it are not compared, and the log says why."""

    def make(kernel: Any) -> Any:
        def wrong(x: Any) -> Any:
            result = kernel(x)
            return type(result)(result.inner.astype(np.float64), result.index, result.memory)

        return wrong

    broken(exp=make)
    with shadow(on_divergence=lambda _: None) as log:
        cd.ones(3, device="broken").exp().neg()
    assert [d.property for d in log.divergences] == ["result"]
    assert "to_host() returned 24 bytes, expected 12" in log.unchecked["neg"]


def test_random_numbers_are_compared_to_the_bit(broken: Break) -> None:
    """A difference of one unit in the last place is reported."""

    def one_unit(array: Any) -> None:
        array[0] = np.nextafter(array[0], np.float32(2))

    broken(random_uniform=changed(one_unit))
    with shadow(), pytest.raises(DivergenceError, match=r"1 of 5 random numbers differ; first at \[0\]") as caught:
        cd.rand(5, device="broken")
    with pytest.raises(AssertionError, match="wrong value"):
        run(caught.value.divergence.reproducer)


def test_results_whose_shape_depends_on_the_data_are_compared(broken: Break) -> None:
    """A result with one index too few has a wrong shape."""

    def fault(kernel: Any) -> Any:
        def wrong(x: Any) -> Any:
            result = kernel(x)
            return type(result)(result.inner[:-1], result.index, result.memory)

        return wrong

    broken(nonzero=fault)
    with shadow(), pytest.raises(DivergenceError, match=r"the result has shape \[2, 1\], expected \[3, 1\]"):
        cd.ones(3, device="broken").nonzero()


def test_non_determinism_is_found_when_asked_for(broken: Break) -> None:
    """With ``repeats`` the same call runs again; different bits are reported even within the bound."""
    calls = [0]

    def wobble(array: Any) -> None:
        calls[0] += 1
        array *= np.float32(1 + 2.0**-22 * (calls[0] % 2))

    broken(sum=changed(wobble))
    x = cd.rand(100, device="broken")
    with shadow() as log:
        x.sum()
    assert log.divergences == []
    with shadow(repeats=3), pytest.raises(DivergenceError, match="run 2 of the same call returns different bits"):
        x.sum()


def test_error_that_the_reference_does_not_raise_is_reported_and_raised(broken: Break) -> None:
    """A device that refuses a valid call is reported, and so is one that accepts an invalid call."""

    def refuses(kernel: Any) -> Any:
        def wrong(*args: Any) -> Any:
            raise ValueError("not today")

        return wrong

    broken(exp=refuses, add=lambda kernel: lambda x, y: kernel(x, x))
    with shadow(on_divergence="log") as log:
        words = "the device refuses what the reference computes: ValueError"
        with pytest.warns(DivergenceWarning, match=words), pytest.raises(ValueError, match="not today"):
            cd.ones(3, device="broken").exp()
        with pytest.warns(DivergenceWarning, match="the reference refuses this call: RuntimeError: "):
            cd.ones(3, device="broken") + cd.ones(2, device="broken")
    assert [d.property for d in log.divergences] == ["errors", "errors"]


def test_mistakes_of_the_program_stay_its_own(broken: Break) -> None:
    """If both devices refuse a call, the program gets its error and nothing diverges."""
    with shadow() as log:
        with pytest.raises(RuntimeError, match="must match the size"):
            cd.ones(3, device="broken") + cd.ones(2, device="broken")
        with pytest.raises(RuntimeError, match="with two bool tensors is not supported"):
            cd.ones(3, device="broken", dtype=cd.bool) - True
    assert log.divergences == []


def test_special_values_and_half_types_pass(broken: Break) -> None:
    """NaN, infinities, intermediate overflow and nextafter are no divergence on a correct device."""
    with shadow() as log:
        for d in (cd.float16, cd.bfloat16, cd.float32, cd.complex64):
            x = cd.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 300.0, 1e-7], device="broken").to(d)
            (x * x).exp().sqrt()
            x.cumsum(0)
            if not d.is_complex:
                cd.nextafter(x, x + 1)
                F.softmax(x[3:], 0)
                x.nan_to_num()
    assert log.divergences == []


def test_logging_goes_on_and_keeps_all(broken: Break) -> None:
    """``"log"`` warns at each divergence, and the program continues with the device's values."""
    broken(exp=changed(add_one))
    with shadow(on_divergence="log", reproducers=False) as log:
        with pytest.warns(DivergenceWarning, match="exp on broken:0 diverges"):
            y = cd.zeros(2, device="broken").exp()
        with pytest.warns(DivergenceWarning, match="call 3"):
            z = y.exp()
    assert y.tolist() == [2, 2]
    assert z[0].item() == pytest.approx(math.exp(2) + 1)
    assert [d.reproducer for d in log.divergences] == ["", ""]
    assert str(log).startswith("3 calls of 2 operators compared, 2 diverge\nexp on broken:0 diverges")


def test_function_receives_each_divergence(broken: Break) -> None:
    """A callable handles each divergence itself."""
    broken(exp=changed(add_one))
    told: list[Divergence] = []
    with shadow(on_divergence=told.append):
        cd.zeros(2, device="broken").exp()
    assert [d.operator for d in told] == ["exp"]


def test_operators_can_be_chosen(broken: Break) -> None:
    """``only`` and ``skip`` name operators; the others run without a comparison."""
    broken(exp=changed(add_one))
    x = cd.zeros(2, device="broken")
    with shadow(skip=["exp"]) as log:
        (x + 1).exp()
    assert set(log.checked) == {"add"}
    with shadow(only=["exp"]) as log, pytest.raises(DivergenceError):
        (x + 1).exp()
    assert set(log.checked) == {"exp"}


def test_another_device_can_be_the_reference(broken: Break) -> None:
    """Two accelerators can be compared with each other."""
    broken(exp=changed(add_one))
    with shadow("broken"), pytest.raises(DivergenceError, match="diverges from broken:0"):
        cd.zeros(2, device=plugins.reference_device()).exp()


def test_what_the_reference_lacks_is_counted_as_not_compared(broken: Break) -> None:
    """A call that the reference cannot run is not compared, and the log says why."""
    with installed(missing_dtypes=("float64", "bfloat16")):
        x = cd.ones(2, dtype=cd.bfloat16)
        with shadow("fake") as log:
            x.exp()
    assert list(log.unchecked) == ["exp"]
    assert "cannot hold" in log.unchecked["exp"]


def test_shadow_ends_with_its_block(broken: Break) -> None:
    """The layer is removed also if the block raises, and other threads never have it."""
    before = len(_layers)
    broken(exp=changed(add_one))
    x = cd.zeros(2, device="broken")
    with shadow():
        other = threading.Thread(target=x.exp)
        other.start()
        other.join()
        with pytest.raises(DivergenceError):
            x.exp()
    with pytest.raises(KeyError, match="mine"), shadow():
        raise KeyError("mine")
    x.exp()
    assert len(_layers) == before


def test_terms_are_checked() -> None:
    """An unknown policy and a number of runs below one are errors."""
    words = r'on_divergence must be "raise", "log" or a function, got \'shout\''
    with pytest.raises(ValueError, match=words), shadow(on_divergence="shout"):
        pass
    with pytest.raises(ValueError, match="repeats must be at least 1, got 0"), shadow(repeats=0):
        pass
