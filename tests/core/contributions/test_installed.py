"""Contributions of installed distributions."""

from __future__ import annotations

import pytest

from tests.core.contributions.contributed import EXP, FAST
from tests.site import GOOD, Site


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
