"""Guards: the calls that a compiled program serves, and the changes after which a function is compiled again."""

from __future__ import annotations

import threading
import types
from typing import Any

import candelabra as cd
import pytest
from candelabra._compile.first_call import TracedCall

FACTOR = 2.0
SETTINGS = {"shift": 1.0, "names": ["a", "b"]}


def programs(compiled: Any) -> int:
    """The number of programs of a compiled function."""
    return len(compiled.programs)


def test_one_program_for_one_kind() -> None:
    """Calls of the same shapes and dtypes share a program, whatever the values."""
    compiled = cd.compile(lambda x: x * 2, fullgraph=True)
    for i in range(4):
        assert compiled(cd.full((2,), float(i))).tolist() == [2.0 * i] * 2
    assert programs(compiled) == 1


@pytest.mark.parametrize(
    "other",
    [
        lambda: cd.ones(3),
        lambda: cd.ones(2, 3, dtype=cd.float64),
        lambda: cd.ones(3, 2).t(),
        lambda: cd.ones(3, 3)[1:],
        lambda: cd.ones(2, 3, device="meta"),
        lambda: cd.ones(2, 3, requires_grad=True),
    ],
)
def test_kinds_of_tensors(other: Any) -> None:
    """Shape, dtype, strides, offset, device and requires_grad distinguish kinds of calls."""
    compiled = cd.compile(lambda x: (x + 1).reshape(-1), fullgraph=True)
    for _ in range(2):
        assert compiled(cd.ones(2, 3)).tolist() == [2] * 6
        found, expected = compiled(other()), compiled.function(other())
        assert (found.shape, found.dtype, found.device) == (expected.shape, expected.dtype, expected.device)
        assert found.requires_grad == expected.requires_grad
    assert programs(compiled) == 2


def test_numbers_and_structure() -> None:
    """Numbers are guarded by type and value, containers by structure."""
    compiled = cd.compile(lambda x, n: x * n if not isinstance(n, list) else x * n[0], fullgraph=True)
    x = cd.ones(2, dtype=cd.int64)
    assert [compiled(x, n).dtype for n in (2, 2.0, True, [2], 2)] == [
        cd.int64,
        cd.float32,
        cd.int64,
        cd.int64,
        cd.int64,
    ]
    assert programs(compiled) == 4


def test_signed_zeros_and_nans() -> None:
    """NaN equals NaN as an argument."""
    compiled = cd.compile(lambda x, n: x * n, fullgraph=True)
    for _ in range(3):
        assert compiled(cd.ones(1), float("nan")).isnan().all()
    assert programs(compiled) == 1


def test_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Globals that the function's code names are guarded, in containers too."""

    def f(x: cd.Tensor) -> cd.Tensor:
        return x * FACTOR + SETTINGS["shift"]

    compiled = cd.compile(f, fullgraph=True)
    assert compiled(cd.ones(1)).item() == 3
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert compiled(cd.ones(1)).item() == 6
    monkeypatch.setitem(SETTINGS, "shift", 2.0)
    assert compiled(cd.ones(1)).item() == 7
    assert programs(compiled) == 3


def test_globals_of_called_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Globals of functions that the function calls are guarded."""
    compiled = cd.compile(lambda x: scaled(x), fullgraph=True)
    assert compiled(cd.ones(1)).item() == 2
    monkeypatch.setitem(globals(), "FACTOR", 4.0)
    assert compiled(cd.ones(1)).item() == 4


def scaled(x: cd.Tensor) -> cd.Tensor:
    """Multiply by the global factor."""
    return x * FACTOR


def test_closure_cells() -> None:
    """Closure cells are guarded; a captured tensor is read at each call."""
    weight, factor = cd.ones(2), 1.0
    compiled = cd.compile(lambda x: x * weight * factor, fullgraph=True)
    assert compiled(cd.ones(2)).tolist() == [1, 1]
    weight.add_(1)
    assert compiled(cd.ones(2)).tolist() == [2, 2]
    assert programs(compiled) == 1
    weight = cd.full((2,), 7.0)
    factor = 2.0
    assert compiled(cd.ones(2)).tolist() == [14, 14]
    assert programs(compiled) == 2


def test_attributes_of_objects() -> None:
    """Attributes of the user's objects are guarded."""
    config = types.SimpleNamespace()

    class Config:
        scale = 1.0

    config = Config()
    config.scale = 2.0
    compiled = cd.compile(lambda x: x * config.scale, fullgraph=True)
    assert compiled(cd.ones(1)).item() == 2
    config.scale = 3.0
    assert compiled(cd.ones(1)).item() == 3


def test_replaced_data() -> None:
    """A captured tensor that gets other memory of the same kind is read from there."""
    weight = cd.ones(2)
    compiled = cd.compile(lambda x: x * weight, fullgraph=True)
    compiled(cd.ones(2))
    weight.data = cd.full((2,), 3.0)
    assert compiled(cd.ones(2)).tolist() == [3, 3]
    weight.data = cd.full((1,), 4.0)
    assert compiled(cd.ones(2)).tolist() == [4, 4]
    assert programs(compiled) == 2


def test_grad_mode() -> None:
    """The grad mode is a part of the kind of a call."""
    w = cd.ones(2, requires_grad=True)
    compiled = cd.compile(lambda x: x * w, fullgraph=True)
    for _ in range(2):
        assert compiled(cd.ones(2)).requires_grad
        with cd.no_grad():
            assert not compiled(cd.ones(2)).requires_grad
        with cd.inference_mode():
            assert compiled(cd.ones(2)).is_inference()
    assert programs(compiled) == 3


def test_recompile_limit() -> None:
    """After eight programs further kinds of calls run eagerly, with one warning that says what changes."""
    compiled = cd.compile(lambda x, n: x + n)
    for n in range(8):
        compiled(cd.ones(1), n)
    with pytest.warns(
        UserWarning, match=r"runs eagerly: it was compiled 8 times; what changes is argument 1: 7, which is now 8"
    ):
        assert compiled(cd.ones(1), 8).item() == 9
    assert compiled(cd.ones(1), 9).item() == 10
    assert compiled(cd.ones(1), 3).item() == 4
    assert programs(compiled) == 8


def test_recompile_limit_is_an_error_of_a_full_graph() -> None:
    """With fullgraph=True the limit is an error."""
    compiled = cd.compile(lambda x, n: x + n, fullgraph=True)
    for n in range(8):
        compiled(cd.ones(1), n)
    with pytest.raises(RuntimeError, match=r"fullgraph=True\): it was compiled 8 times"):
        compiled(cd.ones(1), 8)


def test_state_that_each_call_changes() -> None:
    """A function that changes what it depends on runs as Python, and after eight calls says so."""

    class Counter:
        def __init__(self) -> None:
            self.calls = 0

    counter = Counter()

    def f(x: cd.Tensor) -> cd.Tensor:
        counter.calls += 1
        return x * counter.calls

    compiled = cd.compile(f)
    found = [compiled(cd.ones(1)).item() for _ in range(7)]
    with pytest.warns(UserWarning, match=r"f\(\) runs in segments: each call changes .*calls"):
        found.append(compiled(cd.ones(1)).item())
    found.append(compiled(cd.ones(1)).item())
    assert found == [float(n) for n in range(1, 10)]
    assert programs(compiled) == 0


def test_reset() -> None:
    """``compiler.reset()`` forgets all programs."""
    compiled = cd.compile(lambda x: x + 1)
    compiled(cd.ones(1))
    cd.compiler.reset()
    assert programs(compiled) == 0
    assert compiled(cd.ones(1)).item() == 2
    assert programs(compiled) == 1


def test_stance() -> None:
    """Under ``set_stance("force_eager")`` a compiled function runs as Python."""
    calls = []

    def f(x: cd.Tensor) -> cd.Tensor:
        calls.append(cd.compiler.is_compiling())
        return x + 1

    compiled = cd.compile(f)
    compiled(cd.ones(1))
    assert calls == [True]
    with cd.compiler.set_stance("force_eager"):
        compiled(cd.ones(1))
    assert calls == [True, False]
    with pytest.raises(RuntimeError, match=r"invalid stance 'never': expected one of default, force_eager, "):
        cd.compiler.set_stance("never")


def test_stance_of_a_function() -> None:
    """As a decorator, a stance is in force during the calls of a function, also of one that raises."""
    compiled = cd.compile(lambda x: x + 1 if cd.compiler.is_compiling() else x - 1)

    @cd.compiler.set_stance("force_eager")
    def eagerly(x: cd.Tensor) -> cd.Tensor:
        return compiled(x).reshape(1)

    assert compiled(cd.ones(1)).item() == 2
    assert eagerly(cd.ones(1)).item() == 0
    with pytest.raises(RuntimeError, match="is invalid for input of size 2"):
        eagerly(cd.ones(2))
    assert compiled(cd.ones(1)).item() == 2
    cd.compiler.set_stance("force_eager")
    assert compiled(cd.ones(1)).item() == 0
    cd.compiler.set_stance("default")
    assert compiled(cd.ones(1)).item() == 2
    assert eagerly.__name__ == "eagerly"


def test_stances_that_forbid_to_compile_again() -> None:
    """A call that a program serves runs it; another one runs eagerly, or is an error that says what changed."""

    def f(x: cd.Tensor, n: int = 1) -> cd.Tensor:
        return x + n if cd.compiler.is_compiling() else x - n

    compiled = cd.compile(f)
    with cd.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="it has no program yet"):
        compiled(cd.ones(1))
    assert compiled(cd.ones(1)).item() == 2
    with cd.compiler.set_stance("eager_on_recompile"):
        assert compiled(cd.ones(1)).item() == 2
        assert compiled(cd.ones(1), 2).item() == -1
        with cd.compiler.set_stance("fail_on_recompile"):
            reason = r"compile\(f\): the stance 'fail_on_recompile' forbids .* before in argument 0: .*, which is now"
            with pytest.raises(RuntimeError, match=reason):
                compiled(cd.ones(2))
        assert compiled(cd.ones(2)).tolist() == [0, 0]
    assert programs(compiled) == 1


def test_stance_inside() -> None:
    """A stance that a compiled function sets would be part of no graph, so it is an error."""

    @cd.compile
    def f(x: cd.Tensor) -> cd.Tensor:
        with cd.compiler.set_stance("force_eager"):
            return x + 1

    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"set_stance\('force_eager'\) inside a compiled function"):
            f(cd.ones(1))


def test_arguments_of_compile() -> None:
    """PyTorch's options are accepted; ``disable`` returns the function; other objects are refused."""

    @cd.compile(mode="max-autotune", dynamic=True, backend="inductor", options={})
    def f(x: cd.Tensor) -> cd.Tensor:
        return x + 1

    assert f(cd.ones(1)).item() == 2
    assert f.__name__ == "f"
    assert cd.compile(scaled, disable=True) is scaled
    with pytest.raises(TypeError, match=r"compile\(\) expects a function or a module, not int"):
        cd.compile(3)


def test_threads(rng: Any) -> None:
    """Threads may share a compiled function, from its first call on."""
    compiled = cd.compile(lambda x: (x * 2 + 1).sum(), fullgraph=True)
    inputs = [cd.tensor(rng.random(5)) for _ in range(16)]
    found: dict[int, float] = {}
    ready = threading.Barrier(4)

    def work(first: int) -> None:
        ready.wait()
        for i in range(first, 16, 4):
            found[i] = compiled(inputs[i]).item()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: compiled.function(x).item() for i, x in enumerate(inputs)}


def test_threads_that_trace_one_kind_of_call_leave_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each traces its first call, with its backward pass; the limit of programs counts kinds of calls."""
    weight = cd.linspace(-1, 1, 6).reshape(3, 2).requires_grad_()

    class Layer:
        """An object of the user's."""

        scale = 2

        def __call__(self, x: cd.Tensor) -> cd.Tensor:
            return (x @ weight * self.scale).sin().exp()

    layer = Layer()
    ready, run = threading.Barrier(8), TracedCall.run

    def run_together(self: TracedCall, *args: Any) -> Any:
        ready.wait()  # all threads trace now
        return run(self, *args)

    compiled = cd.compile(lambda x: layer(x), fullgraph=True)
    found: list[list[float]] = []

    def work() -> None:
        (g,) = cd.autograd.grad(compiled(cd.ones(4, 3)).square().sum(), weight)
        found.append(g.flatten().tolist())

    threads = [threading.Thread(target=work) for _ in range(8)]
    with monkeypatch.context() as patch:
        patch.setattr(TracedCall, "run", run_together)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    (expected,) = cd.autograd.grad(compiled.function(cd.ones(4, 3)).square().sum(), weight)
    assert found == [expected.flatten().tolist()] * 8
    assert len(compiled.programs) == 1
    compiled(cd.ones(5, 3))
    assert len(compiled.programs) == 2


def test_no_growth() -> None:
    """A function that is compiled again and again leaves nothing behind."""
    import gc
    import linecache
    import weakref

    from candelabra._codegen.source import _code

    seen, sizes = [], []
    for n in range(5):
        weight = cd.ones(2, requires_grad=True)
        compiled = cd.compile(lambda x, weight=weight, n=n: (x * weight + n).sum())
        for _ in range(2):
            compiled(cd.ones(2)).backward()
        seen.append(weakref.ref(weight))
        del weight, compiled
        gc.collect()
        sizes.append((len(_code), len(linecache.cache)))
    assert [ref() for ref in seen] == [None] * 5
    assert sizes[1:] == [sizes[1]] * 4


def test_controls_of_the_compiler() -> None:
    """PyTorch's other controls exist, with the answers of a process that compiles nothing now."""
    disabled = cd.compiler.disable(recursive=False)(scaled)
    assert disabled(cd.ones(1)).item() == 2
    assert cd.compiler.disable(cd.compile(scaled)) is scaled
    assert cd.compiler.allow_in_graph(scaled) is scaled
    assert cd.compiler.nested_compile_region(scaled) is cd.compiler.nested_compile_region()(scaled) is scaled
    assert not cd.compiler.is_dynamo_compiling()
    assert not cd.compiler.is_exporting()
    assert cd.compiler.list_backends() == ["candelabra", "inductor"]
    cd.compiler.cudagraph_mark_step_begin()


def test_results_that_are_assumed_to_be_constant() -> None:
    """A function whose result is assumed to be constant may read values; it runs while recording only."""
    calls = []

    @cd.compiler.assume_constant_result
    def largest(x: cd.Tensor) -> tuple[float, cd.Tensor]:
        calls.append(1)
        return x.max().item(), x * 2

    def scale(x: cd.Tensor) -> cd.Tensor:
        number, tensor = largest(x)
        return x * number + tensor

    compiled = cd.compile(scale, fullgraph=True)
    assert [compiled(cd.full((2,), i)).tolist() for i in (2.0, 3.0, 5.0)] == [[8, 8], [10, 10], [14, 14]]
    assert len(calls) == 1
    assert largest(cd.ones(1))[0] == 1.0


def test_default_device_and_dtype() -> None:
    """The default device and dtype decide where factories create tensors, so they are guarded."""
    compiled = cd.compile(lambda: cd.zeros(2), fullgraph=True)
    for _ in range(2):
        assert compiled().device.type == "cpu"
        with cd.device("meta"):
            assert compiled().device.type == "meta"
    assert programs(compiled) == 2
    cd.set_default_dtype(cd.float64)
    try:
        assert compiled().dtype is cd.float64
    finally:
        cd.set_default_dtype(cd.float32)
    assert compiled().dtype is cd.float32


def test_profiler_sees_operators() -> None:
    """A functionality layer around a compiled function sees its operators."""
    from candelabra.library import Layer

    seen: list[str] = []
    layer = Layer("seen", lambda op, next, *args: (seen.append(op.name), next(*args))[1])
    try:
        compiled = cd.compile(lambda x: x + 1)
        for _ in range(2):
            compiled(cd.ones(1))
        x = cd.ones(1)
        with layer:
            compiled(x)
        assert seen == ["add"]
    finally:
        layer.remove()
