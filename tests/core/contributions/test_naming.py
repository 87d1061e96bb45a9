"""Who names the distribution that serves: devices, doctor and explain."""

from __future__ import annotations

from typing import Any

import candelabra as cd

from tests.core.contributions.contributed import FAST
from tests.site import Site

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
