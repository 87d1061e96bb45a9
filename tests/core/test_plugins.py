"""Plugins as installed distributions: each test creates some on its own path and runs a new interpreter."""

import pytest
from candelabra._plugins import contributions, registry
from candelabra._plugins.checking import accepts
from candelabra._records.registry import OPERATORS
from candelabra.backend import Backend, Capabilities, hookimpl
from candelabra.errors import BackendError

from tests.lantern import LanternBackend
from tests.site import GOOD, Site


def named(more: str) -> str:
    """Return the correct plugin with additions to its backend."""
    return GOOD.replace("name = NAME", "name = NAME" + more)


def with_capabilities(fields: str) -> str:
    """Return the correct plugin with other capabilities."""
    made = f"m = Made(); m.capabilities = dataclasses.replace(m.capabilities, {fields}); return m"
    return "import dataclasses\nfrom candelabra.dtypes import *\n" + GOOD.replace("return Made()", made)


ERROR_OF = """
try:
    cd.ones(2, device={!r})
except cd.errors.BackendError as error:
    print(error)
print(cd.ones(2).tolist())
"""


def test_plugin_is_imported_when_its_device_is_named(site: Site) -> None:
    """Neither `import candelabra` nor another device's tensors import a plugin; naming its device does, once."""
    site.install("acme", "print('imported')\n" + GOOD)
    assert site.output_of(
        "cd.ones(2, device='cpu'); print('before'); cd.ones(2, device='acme'); cd.ones(2, device='acme')"
    ) == ("before\nimported\n")


BROKEN = [
    ("raise ValueError('no driver')", "ValueError: no driver"),
    ("raise SystemExit(3)", "SystemExit: 3"),
    ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    ("plugin = object()", "implements no hook candelabra_backend"),
    (GOOD.replace("return Made()", "return 7"), "returned 7, not a candelabra.backend.Backend"),
    (GOOD.replace("name = NAME", "name = 'other'"), "its backend has the name 'other'; the two names must be"),
    (named("; api = ((2, 0), (2, 3))"), "built for core API 2.0 to 2.3, this core has 1.1: update candelabra"),
    (named("; api = ((0, 1), (0, 9))"), "update the package that brings 'acme'"),
    (named("; api = 1"), r"the first and the last, got 1"),
    (GOOD.replace("return Made()", "m = Made(); m.capabilities = None; return m"), "its capabilities are None"),
    (named("\n    def kernels(self): return {'addd': len}"), "has a kernel for 'addd', but no operator has"),
    (named("\n    def kernels(self): return {'add': 3}"), "the kernel of 'add' is not callable: 3"),
    (
        named("\n    def kernels(self): return {'add': lambda x: x}"),
        "the kernel of 'add' does not accept 2 positional arguments: input, other",
    ),
    (
        named("\n    def kernels(self): return {'exp': lambda: 0}"),
        "the kernel of 'exp' does not accept 1 positional argument: input",
    ),
    (with_capabilities("storage={'float32'}"), "capabilities.storage contains 'float32', which is no dtype: write"),
    (with_capabilities("storage={float32}, arithmetic={'q8'}"), "arithmetic contains 'q8', which is no dtype. `"),
    (
        with_capabilities("storage=frozenset({float32}), arithmetic=frozenset({float32, float64, bfloat16})"),
        "capabilities.arithmetic contains bfloat16, float64, which capabilities.storage lacks: a device computes",
    ),
    (
        "class E(Exception):\n    def __str__(self): raise ValueError('never')\nraise E",
        "failed to load: E: (no message: its __str__ raised ValueError)",
    ),
    (GOOD + "Plugin.candelabra_wick = hookimpl(lambda self: None)\n", "unknown hook 'candelabra_wick'"),
]  # fmt: skip
"""Plugins and what is said about them."""


@pytest.fixture(scope="module")
def said_of_broken(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return what a program prints about each of the broken plugins, all of which are installed."""
    site = Site(tmp_path_factory.mktemp("site"))
    for i, (source, _) in enumerate(BROKEN):
        site.install(f"acme{i}", source)
    program = ERROR_OF + "print('---')"
    return site.output_of("".join(program.format(f"acme{i}") for i in range(len(BROKEN)))).split("---\n")


@pytest.mark.parametrize(("i", "text"), list(enumerate(text for _, text in BROKEN)))
def test_broken_plugin_is_reported_and_all_else_works(said_of_broken: list[str], i: int, text: str) -> None:
    """The error for its device names the distribution; other devices work."""
    out = said_of_broken[i]
    assert f"backend 'acme{i}' (distribution 'acme-acme{i}') failed to load" in out
    assert text.replace("'acme'", f"'acme{i}'") in out
    assert out.endswith("[1.0, 1.0]\n")


def test_keyboard_interrupt_passes(site: Site) -> None:
    """Ctrl-C during a plugin's import ends the call, and the plugin can be loaded later."""
    site.install(
        "acme",
        "import os\nif not os.environ.get('LATER'):\n    os.environ['LATER'] = '1'\n    raise KeyboardInterrupt\n"
        + GOOD,
    )
    program = """
    try:
        cd.ones(2, device='acme')
    except KeyboardInterrupt:
        print('interrupted')
    print(cd.ones(2, device='acme').tolist())
    """
    assert site.output_of(program) == "interrupted\n[1.0, 1.0]\n"


def test_failed_registration_leaves_nothing_behind(site: Site) -> None:
    """Operators, methods, layers, kernels, backends and hooks of a plugin that fails late are all removed."""
    site.install(
        "acme",
        """
        import candelabra as cd
        from candelabra._records.record import operator
        from candelabra._records.rules import pointwise
        from candelabra._plugins import registry
        from candelabra.backend import hookimpl
        from tests.lantern import EmberBackend, LanternBackend

        class Plugin:
            @hookimpl
            def candelabra_backend(self):
                return type("Made", (LanternBackend,), {"name": NAME, "kernels": lambda self: {"nonsense": len}})()

            @hookimpl
            def candelabra_operators(self):
                @operator(pointwise)
                def flicker(input: "Tensor") -> "Tensor":
                    "Shine, now and then."
                    ...
                assert cd.flicker and cd.Tensor.flicker_
                cd.Layer("smoke", print)
                cd.register_kernel("cpu", "add", lambda a, b: a - b)
                registry.add_backend(EmberBackend())

        plugin = Plugin()
        """,
    )
    program = """
    from candelabra._dispatch.layers import _layers
    from candelabra._records.registry import OPERATORS
    from candelabra._plugins.loading import manager
    x = cd.ones(2)
    print((x + x).tolist())
    try: cd.ones(2, device='acme')
    except registry.BackendError as error: print("nonsense" in str(error))
    print((x + x).tolist(), hasattr(cd, 'flicker'), hasattr(cd.Tensor, 'flicker'), hasattr(cd.Tensor, 'flicker_'))
    print('flicker' in OPERATORS, _layers, manager().get_plugin('acme'), 'ember' in registry.plugins())
    """
    assert site.output_of(program) == "[2.0, 2.0]\nTrue\n[2.0, 2.0] False False False\nFalse {} None False\n"


def test_plugin_declares_an_operator(site: Site) -> None:
    """An operator of a plugin is a function, a method and an in-place method, with its kernel and derivative."""
    site.install(
        "acme",
        GOOD
        + """
from candelabra._records.record import operator
from candelabra._records.rules import pointwise

class Made(LanternBackend):
    name = NAME
    def kernels(self):
        return {**super().kernels(), "doubled": self.serving("doubled", lambda x: x * 2)}

def declare(self):
    @operator(pointwise)
    def doubled(input: "Tensor") -> "Tensor":
        "Twice the input."
        ...
    doubled.vjp(input=lambda g: g * 2)

Plugin.candelabra_operators = hookimpl(declare)
""",
    )
    program = """
    x = cd.ones(2, device='acme', requires_grad=True)
    y = x.doubled()
    y.sum().backward()
    print(cd.doubled(x).tolist(), x.grad.tolist(), cd.ones(1, device='acme').doubled_().tolist())
    """
    assert site.output_of(program).split("\n")[0].endswith("[2.0, 2.0] [2.0, 2.0] [2.0]")


def test_two_owners_of_a_device_type_are_refused(site: Site) -> None:
    """If two distributions provide one device type, neither is imported, and the error names both."""
    site.install("acme", "print('imported')\n" + GOOD, "first-acme")
    site.install("acme", "print('imported')\n" + GOOD, "second-acme")
    out = site.output_of(ERROR_OF.format("acme"))
    assert "device type 'acme' has 2 owners, first-acme" in out
    assert "and second-acme" in out
    assert "uninstall all but one" in out
    assert "imported" not in out


def test_environment_limits_the_backends(site: Site) -> None:
    """With CANDELABRA_BACKENDS only the listed device types are available, and errors about others say so."""
    site.install("acme", GOOD)
    assert site.output_of("print(*registry.plugins())", CANDELABRA_BACKENDS="cpu, acme") == "acme cpu\n"
    out = site.output_of(ERROR_OF.format("acme"), CANDELABRA_BACKENDS="cpu")
    assert "device type 'acme' is hidden: CANDELABRA_BACKENDS lets only cpu be seen" in out
    nothing = site.run("import candelabra as cd; cd.ones(2)", CANDELABRA_BACKENDS="acme2")
    assert "no backend can be seen: CANDELABRA_BACKENDS='acme2'" in nothing.stderr


def test_plugin_that_asks_for_its_own_device_while_loading(site: Site) -> None:
    """An import that creates a tensor on the plugin's own device raises with the reason; other devices work."""
    site.install("acme", "import candelabra as cd\nprint(cd.ones(1).tolist())\ncd.ones(2, device=NAME)\n" + GOOD)
    program = """
    try: cd.ones(2, device='acme')
    except registry.BackendError as error: print(type(error).__name__, error)
    """
    out = site.output_of(program)
    assert out.startswith("[1.0]\nBeingLoaded backend 'acme' is used while it is being loaded")


def test_threads_load_a_plugin_once(site: Site) -> None:
    """Concurrent threads that name a device import its plugin once, and each gets its tensor."""
    site.install("acme", "print('imported')\n" + GOOD)
    program = """
    import threading
    start, made = threading.Barrier(8), []
    def use():
        start.wait()
        made.append(cd.ones(2, device='acme').tolist())
    threads = [threading.Thread(target=use) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    print(len(made))
    """
    assert site.output_of(program) == "imported\n8\n"


def test_doctor_shows_the_traceback_of_a_broken_plugin(site: Site) -> None:
    """`candelabra doctor` continues after a failure, prints its traceback, and exits with status 1."""
    site.install("acme", "raise ValueError('no driver')")
    program = "import sys; from candelabra._cli.main import main; sys.exit(main(['doctor']))"
    completed = site.run(program, CANDELABRA_BACKENDS="acme,cpu")  # each plugin takes a process of its own
    assert completed.returncode == 1
    assert "found, then failed: ValueError: no driver" in completed.stdout
    assert "acme_acme_module.py" in completed.stdout
    assert "reference device: cpu" in completed.stdout
    assert completed.stderr == ""


def test_nothing_heavy_is_imported_before_a_device_is_named(site: Site) -> None:
    """`import candelabra` imports neither NumPy, nor pluggy, nor importlib.metadata, nor a backend."""
    completed = site.run(
        "import sys; before = set(sys.modules); import candelabra; print(*(set(sys.modules) - before))"
    )
    assert not {"numpy", "pluggy", "importlib.metadata", "candelabra_cpu"} & set(completed.stdout.split())


def test_backend_by_hand_refuses_a_second_owner(lantern: LanternBackend) -> None:
    """`add_backend` refuses a device type with an owner, and one that breaks the contract, without effect."""
    with pytest.raises(BackendError, match=r"device type 'lantern' already has an owner, 'tests\.lantern'"):
        registry.add_backend(LanternBackend())

    class IncompleteBackend(LanternBackend):
        name = "rigid"
        layout = Backend.layout

    with pytest.raises(BackendError, match=r"'rigid' claims strided=True but has no layout\(\)"):
        registry.add_backend(IncompleteBackend())
    assert "rigid" not in registry.plugins()
    rigid = IncompleteBackend()
    rigid.capabilities = Capabilities(frozenset(), frozenset(), strided=False)
    registry.add_backend(rigid)()
    assert "rigid" not in registry.plugins()


def test_operator_may_not_hide_an_attribute_of_tensor() -> None:
    """A late operator with the name of an attribute of Tensor is refused and not declared."""
    from candelabra._records.record import operator
    from candelabra._records.rules import pointwise

    def requires_grad(input: "Tensor") -> "Tensor":  # noqa: F821 - annotations of operators are read as text
        """Return nothing."""
        ...

    requires_grad.__annotations__ = {"input": "Tensor", "return": "Tensor"}
    with pytest.raises(
        ValueError, match=r"operator 'requires_grad' would hide Tensor.requires_grad: give it method=False"
    ):
        operator(pointwise)(requires_grad)
    assert "requires_grad" not in OPERATORS


def test_samples_are_collected_from_plugins() -> None:
    """The sample hook's mappings are merged by operator; any other return value is reported with the plugin's name."""

    class Plugin:
        def __init__(self, samples: object) -> None:
            self.samples = samples

        @hookimpl
        def candelabra_samples(self) -> object:
            return self.samples

    installed = contributions.samples().found
    made, other = LanternBackend(), LanternBackend()
    made.name, other.name = "glow", "dim"
    removals = [registry.add_backend(made, Plugin({"add": len})), registry.add_backend(other, Plugin(3))]
    try:
        found, problems = contributions.samples()
        assert found == {**installed, "add": [len]}
        assert "candelabra_samples() returned 3, not a mapping" in str(problems["dim"])
    finally:
        for remove in reversed(removals):
            remove()


def test_kernels_for_operators_that_are_not_installed_can_be_left_out() -> None:
    """``declared`` keeps the kernels, in-place ones too, whose operators are installed."""
    from candelabra.backend import declared

    assert list(declared({"add": abs, "add_": abs, "frobnicate": abs, "frobnicate_": abs})) == ["add", "add_"]


def test_device_type_must_be_an_identifier() -> None:
    """A name that `device("name:0")` cannot parse is refused without effect."""
    made = LanternBackend()
    made.name = "two words"
    with pytest.raises(BackendError, match="plugin 'two words': a device type must be an identifier, as in device"):
        registry.add_backend(made)
    assert "two words" not in registry.plugins()


def test_reference_device_that_is_not_there(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a backend on host memory the error says which one is broken, or what to install."""
    host = "; capabilities = replace(CpuBackend.capabilities, host=False)"
    source = "from dataclasses import replace\nfrom candelabra_cpu.backend import CpuBackend\n" + named(host)
    site.install("acme", source.replace("(LanternBackend)", "(CpuBackend)"))
    program = """
    print(cd.ones(2).device)
    try: registry.reference_device()
    except registry.BackendError as error: print(error)
    """
    out = site.output_of(program, CANDELABRA_BACKENDS="acme")
    assert out == 'acme:0\nno backend on the host\'s memory works. Install one: pip install "candelabra[cpu]"\n'
    site.install("broken", "raise ValueError('no driver')")
    out = site.output_of(program, CANDELABRA_BACKENDS="acme,broken")
    assert "works (broken failed to load: ValueError: no driver; `candelabra doctor` shows the traceback)" in out
    monkeypatch.setattr(registry, "_plugins", {})
    text = r'no backend is installed, and the core has no kernels of its own\. Install one: pip install "candelabra\['
    with pytest.raises(BackendError, match=text):
        registry.default_device()


# -- one plugin that misbehaves ----------------------------------------------------------------------------------------
LISTING = """
    def devices(self):
        ANSWER
"""


JUNK = {
    "return None": "must return a sequence of candelabra.backend.DeviceInfo, it returned None",
    "return 7": "must return a sequence of candelabra.backend.DeviceInfo, it returned 7",
    "return 'ab'": "it returned 'ab'",
    "return ['one']": "it returned ['one']",
    "return [type('J', (), {'__repr__': lambda self: 1 / 0})()] * 2": "it returned an object of class list",
    "return [[]] * 300": "[], [], ...",
    "raise RuntimeError('no context')": "devices() failed: RuntimeError: no context",
    "raise SystemExit(3)": "devices() failed: SystemExit: 3",
}
"""Bodies of ``devices()``, and the texts of their errors."""


def test_junk_for_devices_is_reported_with_the_devices_name(site: Site) -> None:
    """The error names the device type; other devices work, and no device of this type is counted."""
    program = ""
    for number, answer in enumerate(JUNK):
        site.install(f"acme{number}", named(LISTING.replace("ANSWER", answer)))
        program += ERROR_OF.format(f"acme{number}")
        program += f"print(cd.acme{number}.device_count(), cd.acme{number}.is_available())\n"
    lines = iter(site.output_of(program).splitlines())
    for number, text in enumerate(JUNK.values()):
        error = next(lines)
        assert f"backend 'acme{number}': devices() " in error
        assert text in error
        assert [next(lines), next(lines)] == ["[1.0, 1.0]", "0 False"]


def test_listings_survive_plugins_that_list_junk_or_die(site: Site) -> None:
    """`candelabra devices` and `doctor` name each plugin, list the others, and end with status 1."""
    fatal = {
        "import os; os._exit(5)": "the process that loaded it ended with status 5",
        "import os, signal; print('last words', flush=True); os.kill(os.getpid(), signal.SIGKILL)": "ended on signal 9",
    }
    answers = {**dict(list(JUNK.items())[:1]), **fatal}
    for number, answer in enumerate(answers):
        site.install(f"acme{number}", named(LISTING.replace("ANSWER", answer)))
    program = """
    from candelabra._cli.main import main
    for command in ("devices", "doctor"):
        print("status", main([command]))
    """
    seen = ",".join(["cpu", *(f"acme{number}" for number in range(len(answers)))])
    devices, doctor = site.output_of(program, CANDELABRA_BACKENDS=seen).split("status 1\n")[:2]
    assert "cpu  " in devices
    assert "reference device: cpu" in doctor
    assert "\n    last words\n" in doctor
    for number, text in enumerate(answers.values()):
        (line,) = [line for line in devices.splitlines() if line.startswith(f"acme{number}: ")]
        assert text in line
        assert text in doctor.partition(f"acme{number} (acme_acme{number}_module:plugin")[2].partition("\n\n")[0]


def test_a_plugin_that_hangs_harms_no_other_device(site: Site) -> None:
    """Printing a tensor of the host imports no other plugin; listings end when the plugin's time is over."""
    site.install("acme", "import threading\nthreading.Event().wait()\n" + GOOD)
    program = """
    from candelabra._cli.main import main
    print(cd.ones(2), cd.get_default_device())
    print(main(["devices", "--timeout", "0.5"]), main(["doctor", "--timeout", "0.5"]))
    """
    out = site.output_of(program, CANDELABRA_BACKENDS="acme,cpu")
    assert out.startswith("tensor([1., 1.]) cpu\n")
    assert "acme: BackendError: it did not load and list its devices within 0.5 s" in out
    assert "found, then failed: BackendError: it did not load and list its devices within 0.5 s" in out
    assert "reference device: cpu" in out
    assert out.endswith("1 1\n")


def test_capabilities_of_one_device_are_checked_when_it_is_opened(site: Site) -> None:
    """Capabilities that depend on the device are held to the same rules, and the error names the device."""
    site.install(
        "acme",
        named("\n    def capabilities_of(self, index): return 1 if index else self.capabilities"),
    )
    out = site.output_of(ERROR_OF.format("acme:1") + "print(cd.ones(1, device='acme:0').device)")
    assert "backend 'acme:1': its capabilities are 1, not candelabra.backend.Capabilities" in out
    assert out.endswith("acme:0\n")


class Method:
    """Kernels of all kinds that show their parameters, or hide them."""

    def two(self, x: object, y: object) -> object:
        return x

    def __call__(self, x: object) -> object:
        return x


@pytest.mark.parametrize(
    ("kernel", "counts"),
    [
        (Method().two, {2}),
        (Method(), {1}),
        (Method.two, {3}),
        (lambda x, y=1: x, {1, 2}),
        (lambda x, *rest: x, {1, 2, 3}),
        (lambda x, *, y: x, set()),
        (lambda x, *, y=1: x, {1}),
        (len, {0, 1, 2, 3}),
    ],
    ids=["method", "object", "function", "default", "variadic", "keyword", "optional keyword", "built-in"],
)
def test_arity_is_read_from_every_kind_of_function(kernel: object, counts: set[int]) -> None:
    """A kernel that shows no parameters is accepted."""
    assert {count for count in range(4) if accepts(kernel, count)} == counts
