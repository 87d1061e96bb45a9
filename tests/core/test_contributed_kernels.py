"""Kernels that distributions contribute to a device which another one owns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.backend import hookimpl, of_dtype
from candelabra.dtypes import float32, float64
from candelabra.errors import BackendError, DeviceUnavailable, FallbackWarning
from candelabra.library import (
    add_contribution,
    kernel_for,
    open_device,
    own_kernels,
    plugins,
    record,
    register_kernel,
    serve_every_size,
    state,
)

from tests.lantern import LanternBackend
from tests.site import GOOD, Site

Make = Callable[[str, Mapping[str, Any]], Any]


pytestmark = pytest.mark.usefixtures("owner_alone")


class Contributed:
    """A contribution whose table is made by a function of (device type, what serves so far)."""

    def __init__(self, make: Make, precedence: Any = 0) -> None:
        self.make = make
        self.precedence = precedence

    @hookimpl
    def candelabra_kernels(self, device_type: str, kernels: Mapping[str, Any]) -> Any:
        return self.make(device_type, kernels)


class OfDtype:
    """A kernel that serves one dtype."""

    def __init__(self, dtype: cd.dtype, kernel: Callable[..., Any]) -> None:
        self.dtype = dtype
        self.kernel = kernel

    def for_dtype(self, dtype: cd.dtype) -> Callable[..., Any] | None:
        return self.kernel if dtype is self.dtype else None

    def __call__(self, *args: Any) -> Any:
        return self.kernel(*args)


@pytest.fixture
def contribute() -> Iterator[Callable[..., Callable[[], None]]]:
    """Return a function that adds a contribution to ``cpu`` (or to ``device``), which the test's end removes."""
    undone: list[Callable[[], None]] = []

    def add(make: Make, name: str = "Acme_Fast", precedence: Any = 0, device: str = "cpu") -> Callable[[], None]:
        undone.append(add_contribution(device, Contributed(make, precedence), name))
        return undone[-1]

    yield add
    for undo in reversed(undone):
        undo()


def test_a_contributed_kernel_serves_and_hands_small_calls_to_the_owner(contribute: Any) -> None:
    """The hook gets the device type and what serves so far, which its kernels may call; removal restores the owner."""
    seen: list[str] = []

    def make(device_type: str, kernels: Mapping[str, Any]) -> dict[str, Any]:
        seen.append(device_type)
        small = kernels["exp"]
        return {"exp": lambda x: small(x) if x.size < 4 else np.full_like(x, 7)}

    remove = contribute(make)
    assert seen == ["cpu"]
    assert cd.zeros(3).exp().tolist() == [1.0] * 3
    assert cd.zeros(5).exp().tolist() == [7.0] * 5
    reason = cd.explain("exp", cd.zeros(3)).reason
    assert reason == "kernel 'exp' of backend 'cpu', contributed by acme-fast"
    remove()
    remove()
    assert cd.zeros(5).exp().tolist() == [1.0] * 5
    assert cd.explain("exp", cd.zeros(3)).reason == "kernel 'exp' of backend 'cpu'"


def test_a_contribution_gets_the_owners_function_of_a_dtype_once(contribute: Any) -> None:
    """of_dtype() returns what serves a dtype: the function that for_dtype chooses, or the kernel itself."""
    asked: list[cd.dtype] = []

    def make(_: str, kernels: Mapping[str, Any]) -> dict[str, Any]:
        class Exp:
            def for_dtype(self, dtype: cd.dtype) -> Callable[..., Any]:
                asked.append(dtype)
                small = of_dtype(kernels["exp"], dtype)
                assert small is not None
                return lambda x: small(x) if x.size < 4 else x + 7

            def __call__(self, x: Any) -> Any:
                raise AssertionError("for_dtype chooses the function")

        return {"exp": Exp()}

    contribute(make)
    assert cd.zeros(1).exp().tolist() == cd.zeros(1).exp().tolist() == [1.0]
    assert cd.zeros(4).exp().tolist() == [7.0] * 4
    assert asked == [float32]
    assert of_dtype(OfDtype(float32, len), float64) is None
    assert of_dtype(len, float64) is len


def test_the_table_that_a_contribution_gets_is_read_only(contribute: Any) -> None:
    """A hook cannot write to the owner's kernels; its error is the contribution's."""

    def make(_: str, kernels: Any) -> dict[str, Any]:
        kernels["exp"] = None
        return {}

    with pytest.raises(BackendError, match="'acme-fast' contributes no kernels to device type 'cpu': TypeError"):
        contribute(make)
    assert cd.zeros(2).exp().tolist() == [1.0, 1.0]


def test_a_declined_call_goes_to_what_served_before(contribute: Any) -> None:
    """By NotImplemented or by dtype, a contributed kernel declines to the next contribution, then to the owner."""
    asked: list[str] = []

    def higher(x: Any) -> Any:
        asked.append("higher")
        return NotImplemented if x.size > 1 else x + 10

    def lower(x: Any) -> Any:
        asked.append("lower")
        return NotImplemented if x.size > 2 else x + 20

    contribute(lambda *_: {"exp": lower}, "low", -1)
    contribute(lambda *_: {"exp": OfDtype(float32, higher)}, "high", 1)
    assert cd.zeros(1).exp().tolist() == [10.0]
    assert cd.zeros(2).exp().tolist() == [20.0] * 2
    assert cd.zeros(3).exp().tolist() == [1.0] * 3
    assert asked == ["higher", "higher", "lower", "higher", "lower"]
    assert cd.zeros(2, dtype=float64).exp().tolist() == [20.0] * 2
    assert asked[5:] == ["lower"]
    assert "contributed by high" in cd.explain("exp", cd.zeros(1)).reason
    assert "contributed by low" in cd.explain("exp", cd.zeros(1, dtype=float64)).reason
    x = cd.zeros(3, requires_grad=True)
    x.exp().sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0] * 3


def test_a_declined_call_reaches_the_body_where_the_owner_has_no_kernel(
    contribute: Any, lantern: LanternBackend
) -> None:
    """If no other kernel exists, the composite body or the fallback serves what a contribution declines."""
    contribute(lambda *_: {"softmax": lambda *_: NotImplemented, "sinh": lambda _: NotImplemented}, device="lantern")
    x = cd.tensor([[1.0, 1.0]], device="lantern")
    assert cd.softmax(x, 1).tolist() == [[0.5, 0.5]]
    with pytest.warns(FallbackWarning, match="'sinh' has no kernel"):
        assert (x - 1).sinh().tolist() == [[0.0, 0.0]]


def test_a_declined_write_goes_to_the_in_place_kernel_below(contribute: Any) -> None:
    """A contributed in-place kernel that declines leaves the write to the owner's, which bumps the version once."""

    def make(_: str, kernels: Mapping[str, Any]) -> dict[str, Any]:
        assert "mul_" in kernels
        return {"mul_": lambda x, other: NotImplemented if x.size > 1 else x.fill(9)}

    contribute(make)
    one, two = cd.ones(1), cd.ones(2)
    before = two._version
    assert one.mul_(3).tolist() == [9.0]
    assert two.mul_(3).tolist() == [3.0, 3.0]
    assert two._version == before + 1


def test_a_row_kernel_that_declines_leaves_the_step_to_the_one_below(contribute: Any) -> None:
    """The form over rows asks the contributions in order too."""
    asked: list[int] = []

    def decline(params: Any, *_: Any) -> Any:
        asked.append(len(params))
        return NotImplemented

    contribute(lambda *_: {"sgd_step_": decline})
    param, gradient = cd.ones(2), cd.ones(2)
    record("sgd_step").over_rows([(param, gradient)], 0.5, 0.0, False)
    assert asked == [1]
    assert param.tolist() == [0.5, 0.5]


def test_the_fallback_runs_the_contributed_kernel_of_the_reference_device(
    contribute: Any, lantern: LanternBackend
) -> None:
    """A device without a kernel is served by what serves on the reference device, or in the mode by its owner's."""
    contribute(lambda *_: {"sinh": OfDtype(float32, lambda x: x + 5)})
    x = cd.zeros(2, device="lantern")
    with pytest.warns(FallbackWarning, match="'sinh' has no kernel"):
        assert x.sinh().tolist() == [5.0, 5.0]
    with own_kernels():
        assert x.sinh().tolist() == [0.0, 0.0]


def test_precedence_orders_contributions_and_ties_go_by_name(contribute: Any) -> None:
    """The highest precedence serves first; with equal ones, the first name in the alphabet does."""

    def adding(n: int) -> Make:
        return lambda _, kernels: {"exp": lambda x: x + n, "sinh": lambda x: kernels["sinh"](x) + n}

    contribute(adding(1), "beta")
    contribute(adding(2), "alpha")
    assert cd.zeros(1).exp().tolist() == [2.0]
    undo = contribute(adding(4), "zeta", 3)
    assert cd.zeros(1).exp().tolist() == [4.0]
    assert cd.zeros(1).sinh().tolist() == [7.0]  # each got what served below it, in whatever order they came
    assert [each.distribution for each in plugins.plugins()["cpu"].contributions] == ["zeta", "alpha", "beta"]
    undo()
    assert cd.zeros(1).sinh().tolist() == [3.0]


def test_a_registered_kernel_serves_before_contributed_ones_in_any_order_of_undoing(contribute: Any) -> None:
    """register_kernel wins over contributions that came before or after, and undoing leads back to them."""
    first = register_kernel("cpu", "exp", lambda x: x + 1)
    remove = contribute(lambda *_: {"exp": lambda x: x + 2})
    second = register_kernel("cpu", "exp", lambda x: x + 3)
    assert cd.zeros(1).exp().tolist() == [3.0]
    with own_kernels():
        assert cd.zeros(1).exp().tolist() == [3.0]
    first()
    assert cd.zeros(1).exp().tolist() == [3.0]
    second()
    assert cd.zeros(1).exp().tolist() == [2.0]
    third = register_kernel("cpu", "exp", lambda x: x + 4)
    remove()
    assert cd.zeros(1).exp().tolist() == [4.0]
    third()
    assert cd.zeros(1).exp().tolist() == [1.0]


def test_own_kernels_is_a_mode_of_one_thread(contribute: Any) -> None:
    """Inside the block the owner serves this thread, also composites and in-place forms; other threads go on."""

    def make(_: str, kernels: Mapping[str, Any]) -> dict[str, Any]:
        return {"exp": lambda x: x + 2, "mul_": lambda x, other: x.fill(9), "mul": lambda x, other: x * 0 + 9}

    contribute(make)
    x = cd.ones(2)
    other: list[Any] = []
    with own_kernels():
        thread = threading.Thread(target=lambda: other.append(cd.zeros(1).exp().tolist()))
        thread.start()
        thread.join()
        assert cd.zeros(1).exp().tolist() == [1.0]
        with cd.no_grad(), own_kernels():
            assert (x * 3).tolist() == [3.0, 3.0]
        assert x.mul_(3).tolist() == [3.0, 3.0]
        assert cd.explain("exp", x).reason == "kernel 'exp' of backend 'cpu'"
        assert "own kernels" in cd.explain("exp", x).key
        assert (cd.zeros(1) * 2).exp().tolist() == [1.0]
    assert other == [[2.0]]
    assert cd.zeros(1).exp().tolist() == [2.0]
    assert own_kernels()(lambda: cd.zeros(1).exp().tolist())() == [1.0]
    assert x.mul_(3).tolist() == [9.0, 9.0]


def test_contributed_kernels_can_serve_calls_of_every_size(contribute: Any) -> None:
    """In the mode, what the hook returns for every size serves, if it makes a difference; own_kernels() goes first."""
    asked: list[bool] = []

    class Limited:
        @hookimpl
        def candelabra_kernels(self, kernels: Mapping[str, Any], every_size: bool) -> dict[str, Any]:
            asked.append(every_size)
            small, least = kernels["exp"], 0 if every_size else 4
            made = {"exp": lambda x: small(x) if x.size < least else x + 2}
            return made if every_size else {**made, "sinh": lambda x: x + 3}

    remove = add_contribution("cpu", Limited())
    try:
        assert cd.zeros(1).exp().tolist() == [1.0]
        assert asked == [False]
        with serve_every_size():
            assert cd.zeros(1).exp().tolist() == [2.0]
            assert cd.zeros(1).sinh().tolist() == [3.0]
            assert "every size" in cd.explain("exp", cd.zeros(1)).key
            with own_kernels():
                assert cd.zeros(4).exp().tolist() == [1.0] * 4
            assert cd.zeros(1, requires_grad=True).exp().tolist() == [2.0]
        assert cd.zeros(1).exp().tolist() == [1.0]
        assert asked == [False, True]
    finally:
        remove()


def test_an_error_of_the_hook_for_every_size_is_raised_by_the_call() -> None:
    """What the hook returns for every size is checked when the mode first needs it."""

    class Careless:
        @hookimpl
        def candelabra_kernels(self, every_size: bool) -> dict[str, Any]:
            return {"exp": 3 if every_size else lambda x: x + 2}

    remove = add_contribution("cpu", Careless(), "acme-fast")
    try:
        with (
            serve_every_size(),
            pytest.raises(BackendError, match="'acme-fast': the kernel of 'exp' is not callable: 3"),
        ):
            cd.zeros(1).exp()
        assert cd.zeros(1).exp().tolist() == [2.0]
    finally:
        remove()


def test_one_object_may_be_added_to_two_device_types(lantern: LanternBackend) -> None:
    """Removing it from one of them leaves it in force on the other."""
    shared = Contributed(lambda _, kernels: {"exp": kernels["neg"]})
    first = add_contribution("cpu", shared)
    second = add_contribution("lantern", shared)
    first()
    third = add_contribution("lantern", Contributed(lambda *_: {}), "other")
    assert cd.ones(1, device="lantern").exp().tolist() == [-1.0]
    assert cd.zeros(1).exp().tolist() == [1.0]
    third()
    second()
    assert cd.zeros(1, device="lantern").exp().tolist() == [1.0]


def test_the_mode_of_the_backward_pass_is_that_of_the_call_to_backward(contribute: Any) -> None:
    """Neither kernels nor the mode of the forward pass are remembered by the graph."""

    def make(_: str, kernels: Mapping[str, Any]) -> dict[str, Any]:
        small = kernels["mul"]
        return {"mul": lambda x, other: small(x, other) + 100}

    contribute(make)
    x = cd.tensor([2.0], requires_grad=True)
    with own_kernels():
        y = x * x.detach()
    assert y.tolist() == [4.0]
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [102.0]
    x.grad = None
    y = x * x.detach()
    assert y.tolist() == [104.0]
    with own_kernels():
        y.backward()
    assert x.grad.tolist() == [2.0]


def test_kernel_for_tries_the_kernels_in_turn(contribute: Any) -> None:
    """The function that other distributions get from the table tries contributed kernels, then the owner's."""
    contribute(lambda *_: {"exp": OfDtype(float32, lambda x: NotImplemented if x.size > 1 else x + 2)})
    kernel = kernel_for(open_device("cpu"), "exp", float32)
    assert kernel is not None
    assert kernel(np.zeros(1, np.float32)).tolist() == [2.0]
    assert kernel(np.zeros(2, np.float32)).tolist() == [1.0, 1.0]
    with own_kernels():
        own = kernel_for(open_device("cpu"), "exp", float32, state.bits)
    assert own is not None
    assert own(np.zeros(1, np.float32)).tolist() == [1.0]
    chain: Any = cd.get_kernel("cpu", "exp")
    assert repr(chain) == "<kernels of acme-fast, then the owner>"
    assert chain(np.zeros(2, np.float32)).tolist() == [1.0, 1.0]
    assert kernel_for(open_device("cpu"), "no_such", float32) is None


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda *_: {"expp": len}, "distribution 'acme-fast' has a kernel for 'expp', but no operator has that name"),
        (lambda *_: {"exp": 3}, "distribution 'acme-fast': the kernel of 'exp' is not callable: 3"),
        (lambda *_: {3: len}, "has a kernel for 3, which is not the name of an operator"),
        (lambda *_: {"exp": lambda: 0}, "the kernel of 'exp' does not accept 1 positional argument: input"),
        (lambda *_: None, r"candelabra_kernels\(\) returned None, not a mapping"),
        (lambda *_: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_a_wrong_contribution_is_refused_as_a_whole(contribute: Any, make: Make, text: str) -> None:
    """One wrong kernel refuses all of a contribution, and the other ones stay in force."""
    contribute(lambda *_: {"exp": lambda x: x + 2}, "beta")

    def with_another(*arguments: Any) -> Any:
        made: Any = make(*arguments)
        return {"exp": lambda x: x + 3, **made} if isinstance(made, dict) else made

    with pytest.raises(BackendError, match=text):
        contribute(with_another)
    assert cd.zeros(1).exp().tolist() == [2.0]
    assert [each.distribution for each in plugins.plugins()["cpu"].contributions] == ["beta"]


def test_objects_without_the_hook_and_odd_precedences_are_refused(contribute: Any) -> None:
    """A contribution needs the hook, an int for its precedence, and a device type that a distribution owns."""
    with pytest.raises(BackendError, match="'object' implements no hook candelabra_kernels: define it with"):
        add_contribution("cpu", object())
    with pytest.raises(BackendError, match="the precedence of its kernels must be an int, got 'high'"):
        contribute(lambda *_: {}, precedence="high")
    with pytest.raises(
        BackendError, match="device type 'meta' belongs to the core, which takes no contributed kernels"
    ):
        contribute(lambda *_: {}, device="meta")
    with pytest.raises(BackendError, match="no backend is installed for device type 'nowhere'"):
        contribute(lambda *_: {}, device="nowhere")


def test_the_reason_of_a_contribution_that_does_not_fit_the_machine_is_raised(contribute: Any) -> None:
    """DeviceUnavailable is the reason of a contribution that does not fit the machine."""

    def make(*_: Any) -> Any:
        raise DeviceUnavailable("no vector unit")

    with pytest.raises(BackendError, match="contributes no kernels to device type 'cpu': no vector unit"):
        contribute(make)


# -- as installed distributions ---------------------------------------------------------------------------------------
FAST = """
from candelabra.backend import hookimpl
class Plugin:
    precedence = 0
    @hookimpl
    def candelabra_kernels(self, device_type, kernels):
        small = kernels["exp"]
        return {"exp": lambda x: small(x) + 2}
plugin = Plugin()
"""
EXP = "print(cd.zeros(2).exp().tolist())\n"


def test_an_installed_contribution_loads_with_the_backend(site: Site) -> None:
    """Listing devices by name imports no contribution; the first tensor on the device does, once."""
    site.install("cpu", "print('imported')\n" + FAST, "acme-fast", "kernels")
    program = "registry.plugins(); print('before')\n" + EXP + EXP
    assert site.output_of(program) == "before\nimported\n[3.0, 3.0]\n[3.0, 3.0]\n"


def test_the_environment_limits_contributions(site: Site) -> None:
    """CANDELABRA_CONTRIBUTIONS is 0 for none, 1 for all, or a list of distributions; the others are not imported."""
    site.install("cpu", "print('fast')\n" + FAST, "Acme_Fast", "kernels")
    site.install("cpu", "print('best')\n" + FAST.replace("+ 2", "+ 5").replace("= 0", "= 1"), "acme-best", "kernels")
    outputs = {
        "": "[1.0, 1.0]\n",
        "0": "[1.0, 1.0]\n",
        "1": "best\nfast\n[8.0, 8.0]\n",
        "acme-fast": "fast\n[3.0, 3.0]\n",
        " ACME_best ,acme-else": "best\n[6.0, 6.0]\n",
    }
    assert {value: site.output_of(EXP, CANDELABRA_CONTRIBUTIONS=value) for value in outputs} == outputs


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("raise ValueError('no driver')", "ValueError: no driver"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("plugin = None", "BackendError: distribution 'acme-fast' implements no hook candelabra_kernels"),
        (FAST.replace("device_type, kernels", "device, kernels"), "PluginValidationError"),
        (FAST.replace('{"exp"', '{"exppp"'), "has a kernel for 'exppp', but no operator has that name"),
        (FAST.replace('kernels["exp"]', 'kernels["exppp"]'), "KeyError: 'exppp'"),
        ("import candelabra\ncandelabra.ones(2, device='cpu')\n" + FAST, "'cpu' is used while it is being loaded"),
        (
            "from candelabra.library import operator, pointwise\n"
            "@operator(pointwise)\ndef flicker(input: 'Tensor') -> 'Tensor':\n    'Flicker.'\n    ...\n"
            "raise ValueError('late')",
            "ValueError: late",
        ),
    ],
)
def test_a_broken_contribution_is_a_warning_and_the_owner_serves(site: Site, source: str, text: str) -> None:
    """Whatever a contribution raises at import or in its hook, the device works, and one warning says why it is
    alone.
    """
    site.install("cpu", source, "acme-fast", "kernels")
    done = site.run("import candelabra as cd\nx = cd.zeros(2)\n" + EXP + "print(hasattr(cd, 'flicker'))")
    assert done.stdout == "[1.0, 1.0]\nFalse\n", done.stderr
    start = "RuntimeWarning: the kernels that distribution 'acme-fast' contributes to device type 'cpu' failed to load"
    assert done.stderr.count(start) == 1
    assert text in done.stderr
    assert "The device works without them; `candelabra doctor` shows the traceback" in done.stderr


def test_the_warning_as_an_error_leaves_a_device_that_works(site: Site) -> None:
    """If warnings are errors, the first use raises, and the next one finds the device with its owner's kernels."""
    site.install("cpu", "raise ValueError('no driver')", "acme-fast", "kernels")
    program = """
        import warnings
        warnings.simplefilter("error")
        try:
            cd.zeros(1)
        except RuntimeWarning as warning:
            print("no driver" in str(warning))
        print(cd.zeros(1).exp().tolist())
    """
    assert site.output_of(program) == "True\n[1.0]\n"


def test_ctrl_c_in_a_contribution_ends_the_loading_and_not_the_device(site: Site) -> None:
    """KeyboardInterrupt passes; the next use loads the device again."""
    source = "import os\nif not os.environ.setdefault('SECOND', ''):\n    os.environ['SECOND'] = '1'\n"
    site.install("cpu", source + "    raise KeyboardInterrupt\n" + FAST, "acme-fast", "kernels")
    program = """
        try:
            cd.zeros(1)
        except KeyboardInterrupt:
            print("interrupted")
        print(cd.zeros(1).exp().tolist())
    """
    assert site.output_of(program) == "interrupted\n[3.0]\n"


def test_a_machine_without_what_the_kernels_need_is_no_failure(site: Site) -> None:
    """DeviceUnavailable at import or in the hook leaves the device to its owner without a warning."""
    source = "from candelabra.errors import DeviceUnavailable\nraise DeviceUnavailable('needs AVX2')"
    site.install("cpu", source, "acme-fast", "kernels")
    done = site.run("import candelabra as cd\n" + EXP)
    assert (done.stdout, done.stderr) == ("[1.0, 1.0]\n", "")


def test_contributions_serve_a_backend_that_is_added_by_hand(site: Site) -> None:
    """A backend without an entry point gets the kernels that distributions contribute to its device type."""
    site.install("acme", FAST.replace("small(x) + 2", "small(small(x))"), "acme-fast", "kernels")
    program = "from tests.lantern import LanternBackend\nclass Acme(LanternBackend): name = 'acme'\n"
    program += "remove = registry.add_backend(Acme())\nx = cd.zeros(1, device='acme')\n"
    program += "print(cd.explain('exp', x).reason)\nprint(x.exp().tolist()[0] > 2)"
    assert site.output_of(program) == "kernel 'exp' of backend 'acme', contributed by acme-fast\nTrue\n"


def test_one_object_may_serve_several_groups_and_device_types(site: Site) -> None:
    """An object with hooks of several entry point groups is registered once, and each hook is called."""
    source = FAST.replace(
        "plugin = Plugin()",
        "    @hookimpl\n    def candelabra_commands(self):\n        return {'glow': lambda a: print('glowing')}\n"
        "plugin = Plugin()",
    )
    site.install("cpu", source, "acme-fast", "kernels")
    (info,) = site.folder.glob("*.dist-info")
    with (info / "entry_points.txt").open("a") as entries:
        entries.write("acme = acme_fast_module:plugin\n[candelabra.plugins]\nglow = acme_fast_module:plugin\n")
    site.install("acme", GOOD)
    program = EXP + "print(cd.zeros(1, device='acme').exp)\n" + "cd.library.command(['glow'])\n"
    program += "print([e.distribution for e in registry.plugins()['acme'].contributions])"
    output = site.output_of("import candelabra.library\n" + program)
    assert output.startswith("[3.0, 3.0]\n")
    assert output.endswith("glowing\n['acme-fast']\n")


# -- what names who serves --------------------------------------------------------------------------------------------
COMMAND = "import sys; from candelabra._cli.main import main; sys.exit(main({!r}))"
ALONE = {"CANDELABRA_BACKENDS": "cpu"}


def test_devices_and_doctor_name_the_distributions_that_contribute(site: Site) -> None:
    """One line per device says how many kernels each distribution contributes, in the order in which they serve."""
    site.install("cpu", FAST, "acme-fast", "kernels")
    site.install("cpu", FAST.replace("= 0", "= 3"), "acme-best", "kernels")
    site.install("nowhere", FAST, "acme-lost", "kernels")
    names = {"CANDELABRA_CONTRIBUTIONS": "acme-best,acme-fast,acme-lost", **ALONE}
    done = site.run(COMMAND.format(["devices"]), **names)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("cpu  ")]
    words = "1 kernel contributed by acme-best, precedence 3, 1 kernel contributed by acme-fast"
    assert done.returncode == 0
    assert line.endswith(words)
    done = site.run(COMMAND.format(["doctor"]), **names)
    assert done.returncode == 0, done.stdout
    assert "  1 kernel contributed by acme-best, precedence 3 (acme_best_module:plugin)\n  1 kernel" in done.stdout
    assert "acme-lost contributes kernels to device type 'nowhere', which has no backend" in done.stdout
    done = site.run(COMMAND.format(["explain", "exp", "--device", "cpu"]))
    assert "=> 4. native: kernel 'exp' of backend 'cpu', contributed by acme-best" in done.stdout


def test_devices_and_doctor_report_failed_and_absent_contributions(site: Site) -> None:
    """A failed contribution is an exit status of 1 with its traceback; one that does not fit or is switched off is a
    line.
    """
    site.install("cpu", "raise ValueError('no driver')", "acme-bad", "kernels")
    source = "from candelabra.errors import DeviceUnavailable\nraise DeviceUnavailable('needs AVX2')"
    site.install("cpu", source, "acme-new", "kernels")
    site.install("cpu", FAST, "acme-off", "kernels")
    names = {"CANDELABRA_CONTRIBUTIONS": "acme-bad,acme-new", **ALONE}
    done = site.run(COMMAND.format(["devices"]), **names)
    assert done.returncode == 1
    assert "cpu: the kernels of acme-bad failed to load: ValueError: no driver\n" in done.stdout
    assert "cpu: no kernels of acme-new: needs AVX2\n" in done.stdout
    assert "cpu: no kernels of acme-off: switched off by CANDELABRA_CONTRIBUTIONS\n" in done.stdout
    done = site.run(COMMAND.format(["doctor"]), **names)
    assert done.returncode == 1
    assert "CANDELABRA_CONTRIBUTIONS=acme-bad,acme-new: only these distributions contribute kernels" in done.stdout
    assert "  the kernels of acme-bad failed to load: ValueError: no driver (acme_bad_module:plugin)\n" in done.stdout
    assert "    Traceback (most recent call last):" in done.stdout
    assert site.run(COMMAND.format(["devices"]), CANDELABRA_CONTRIBUTIONS="0", **ALONE).returncode == 0


def test_a_contribution_that_ends_the_process_does_not_take_the_device_with_it(site: Site) -> None:
    """Doctor finds that the device works without contributions, and uses it so; it shows what the process printed."""
    site.install("cpu", "import os\nprint('wrong instruction', flush=True)\nos._exit(7)", "acme-fast", "kernels")
    names = {"CANDELABRA_CONTRIBUTIONS": "acme-fast", **ALONE}
    done = site.run(COMMAND.format(["doctor"]), **names)
    assert done.returncode == 1
    words = "with contributed kernels, the process that loaded it ended with status 7; without them, it works"
    assert f"the kernels of acme-fast failed to load: BackendError: {words}" in done.stdout
    assert "    wrong instruction" in done.stdout
    assert "reference device: cpu" in done.stdout
    program = """
        from candelabra._plugins.examining import examine_isolated
        examine_isolated([registry.plugins()["cpu"]])
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(cd.zeros(1).exp().tolist())
        print(len(caught), "it works" in str(caught[0].message))
    """
    assert site.output_of(program, **names) == "[1.0]\n1 True\n"


def test_a_contribution_that_is_added_by_hand_is_examined_here(host_alone: None, contribute: Any, capsys: Any) -> None:
    """Doctor reports contributions without an entry point too."""
    from candelabra.library import command

    contribute(lambda *_: {"exp": lambda x: x + 2})
    assert command(["doctor"]) == 0
    assert "  1 kernel contributed by acme-fast (added by hand)\n" in capsys.readouterr().out


def test_explain_names_who_serves_an_in_place_form(contribute: Any) -> None:
    """The reason of an in-place form says whether a kernel writes, and whose, or whether the result is copied."""
    x = cd.ones(2)
    assert cd.explain("mul_", x, 2).reason == "in-place kernel 'mul_' of backend 'cpu'"
    contribute(lambda *_: {"mul_": lambda x, other: NotImplemented})
    assert cd.explain("mul_", x, 2).reason == "in-place kernel 'mul_' of backend 'cpu', contributed by acme-fast"
    y = cd.ones(2, requires_grad=True) * 1
    assert cd.explain("mul_", y, 2).reason == "in-place form: the result is copied into the tensor"
    assert cd.explain("squeeze_", x).reason == "in-place form of a view"
