"""The command `candelabra`."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import candelabra as cd
import pytest
from candelabra._cli.main import main
from candelabra._plugins import contributions, registry
from candelabra.backend import Backend, DeviceInfo, hookimpl

from tests.lantern import LanternBackend

Output = pytest.CaptureFixture[str]


def test_devices_lists_every_device(host_alone: None, lantern: LanternBackend, capsys: Output) -> None:
    """There is one line per device, with the facts that its backend reports."""
    assert main(["devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["cpu", "ember:0", "lantern:0", "lantern:1"]
    assert lines[-1] == "lantern:1  lantern number 1, wick short"


def test_doctor_is_content_with_healthy_plugins(lantern: LanternBackend, capsys: Output) -> None:
    """Each plugin's steps, version window and devices are printed; the exit status is 0."""
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "cpu (candelabra_cpu:plugin, distribution candelabra-cpu)" in out
    assert "found, imported, version window ok" in out
    assert "built for core API 1.0 to 1.0" in out
    assert "reference device: cpu" in out


class FailingBackend(LanternBackend):
    """A backend that cannot list its devices."""

    name = "unlit"

    def devices(self) -> list[object]:  # type: ignore[override]
        raise SystemExit("the driver left")


def test_doctor_survives_a_backend_that_cannot_list(capsys: Output) -> None:
    """Even SystemExit in a backend is reported with its traceback; the exit status is 1."""
    remove = registry.add_backend(FailingBackend())
    try:
        assert main(["doctor"]) == 1
        out = capsys.readouterr().out
        assert "backend 'unlit': devices() failed: SystemExit: the driver left" in out
        assert "Traceback (most recent call last)" in out
    finally:
        remove()


def test_ops_shows_routes_and_derivatives(host_alone: None, lantern: LanternBackend, capsys: Output) -> None:
    """The table has a row per operator and a column per device, followed by a count of routes, and those of vmap."""
    assert main(["ops"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines if line}
    assert re.fullmatch(r"vmap: \d+ rule, \d+ body, \d+ draws, 1 refused, 0 loop", lines[-1])
    assert rows["mul"] == ["yes", "native", "native", "native"]
    assert rows["cumsum"] == ["yes", "native", "fallback", "fallback"]
    assert rows["permute"][2:] == ["native", "strided"]


def test_ops_counts_tangent_rules(host_alone: None, capsys: Output) -> None:
    """One line counts how forward mode serves the operators: no operator transposes its reverse rule."""
    assert main(["ops"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("jvp: ")]
    assert re.fullmatch(
        r"jvp: \d+ declared, \d+ view, \d+ pointwise, \d+ linear, \d+ reduction, \d+ body, \d+ constant, 0 transposed",
        line,
    )


def test_ops_of_one_device_that_are_missing(lantern: LanternBackend, capsys: Output) -> None:
    """`--missing` keeps operators that fall back or are unsupported; an unknown device is an error."""
    assert main(["ops", "--device", "lantern:1", "--missing"]) == 0
    out = capsys.readouterr().out
    assert "cumsum" in out
    assert "\nmul " not in out
    assert main(["ops", "--device", "nonsense"]) == 1
    assert "no backend is installed for device type 'nonsense'" in capsys.readouterr().err


def test_explain_prints_the_numbered_steps(lantern: LanternBackend, capsys: Output) -> None:
    """There are seven steps, of which the one that serves the call is marked, for inference and with a gradient."""
    assert main(["explain", "cumsum", "--device", "lantern"]) == 0
    out = capsys.readouterr().out
    assert "cumsum on lantern:0, float32" in out
    assert " => 6. fallback: lantern:0 has no kernel 'cumsum'; the reference device has" in out
    assert "without a gradient:" in out
    assert "with a gradient:" in out
    assert main(["explain", "cumsum", "--device", "lantern", "--dtype", "float64"]) == 1
    assert "cannot hold" in capsys.readouterr().err


def test_explain_of_an_unknown_operator(capsys: Output) -> None:
    """A misspelt operator gets a suggestion."""
    assert main(["explain", "adx"]) == 2
    assert "there is no operator and no public name 'adx'; did you mean" in capsys.readouterr().err
    assert main(["explain", "zzzzzzzz"]) == 2
    assert "no public name 'zzzzzzzz'; `candelabra ops` lists them" in capsys.readouterr().err


def test_without_a_command_the_help_is_printed(capsys: Output) -> None:
    """`candelabra` without arguments prints the help, and its exit status is an error."""
    assert main([]) == 2
    assert "doctor" in capsys.readouterr().out


def with_commands(name: str, commands: object) -> tuple[Backend, object]:
    """Install a backend and a plugin object that adds subcommands."""

    class Plugin:
        @hookimpl
        def candelabra_commands(self) -> object:
            if isinstance(commands, Exception):
                raise commands
            return commands

    made = LanternBackend()
    made.name = name
    return made, Plugin()


def test_plugins_add_subcommands(capsys: Output) -> None:
    """A plugin's command gets the remaining arguments, and its exit status is the program's."""
    seen = SimpleNamespace(arguments=None)

    def shine(arguments: list[str]) -> int:
        seen.arguments = arguments
        return 3

    remove = registry.add_backend(*with_commands("glow", {"shine": shine, "fail": lambda a: 1 // 0}))
    try:
        assert main(["shine", "--bright", "2"]) == 3
        assert seen.arguments == ["--bright", "2"]
        assert main(["fail"]) == 1
        assert "ZeroDivisionError" in capsys.readouterr().err
    finally:
        remove()


def test_the_help_imports_no_plugin_of_a_device(capsys: Output) -> None:
    """Commands of tools are listed. A device's plugin may take long to import; `candelabra doctor` lists its own."""
    code = """if True:
        import sys
        from candelabra._cli.main import main
        main([])
        print(sorted({name.partition('.')[0] for name in sys.modules} & {'numpy', 'candelabra_cpu', 'pyopencl'}))
    """
    text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "conformance" in text
    assert "run the conformance suite against a device" in text
    assert "Plugins of devices may have further commands, which `candelabra doctor` lists." in " ".join(text.split())
    assert text.endswith("\n[]\n")
    remove = registry.add_backend(*with_commands("glow", {"shine": print}))
    try:
        main([])
    finally:
        remove()
    assert "shine" in capsys.readouterr().out  # what is loaded already is listed


def test_broken_commands_are_reported(capsys: Output) -> None:
    """A plugin whose command hook raises, or that uses an existing name, is reported; the others work."""
    removals = [
        registry.add_backend(*with_commands("dim", RuntimeError("no wick"))),
        registry.add_backend(*with_commands("glow", {"shine": lambda a: 0})),
        registry.add_backend(*with_commands("taker", {"doctor": lambda a: 0})),
    ]
    try:
        assert main(["shine"]) == 0
        assert main(["nonsense"]) == 2
        err = capsys.readouterr().err
        assert "plugin 'dim' has no commands: RuntimeError: no wick" in err
        assert "plugin 'taker' has a command 'doctor', but a command of that name exists already" in err
        assert main(["doctor"]) == 1
        assert "commands of plugin 'dim' failed: RuntimeError: no wick" in capsys.readouterr().out
    finally:
        for remove in reversed(removals):
            remove()


def interrupted(*arguments: object) -> list[object]:
    """Raise KeyboardInterrupt, as Ctrl-C does inside a plugin's code."""
    raise KeyboardInterrupt


def test_ctrl_c_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt while a plugin lists its devices or adds its commands is not reported as a failure of the plugin."""
    made, plugin = with_commands("glow", {})
    remove = registry.add_backend(made, plugin)
    try:
        monkeypatch.setattr(made, "devices", interrupted)
        with pytest.raises(KeyboardInterrupt):
            main(["doctor"])
    finally:
        remove()

    class Slow:
        @hookimpl
        def candelabra_samples(self) -> object:
            return interrupted()

    made, _ = with_commands("glow", {})
    remove = registry.add_backend(made, Slow())
    try:
        with pytest.raises(KeyboardInterrupt):
            contributions.samples()
    finally:
        remove()


def test_explain_knows_public_names(capsys: Output) -> None:
    """An alias and a dotted name are resolved to the operator."""
    assert main(["explain", "arccos"]) == 0
    assert capsys.readouterr().out.startswith("acos on ")
    assert main(["explain", "special.expit", "--device", "cpu"]) == 0
    assert capsys.readouterr().out.startswith("sigmoid on cpu, float32\n")


def test_help_lists_the_commands_of_plugins(capsys: Output) -> None:
    """``candelabra --help`` lists the plugins' commands with the first line of their help."""
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert re.search(r"conformance\s+run the conformance suite against a device", out)
    assert re.search(r"new-backend\s+write the package of a new backend", out)
    assert re.search(r"doctor\s+check every plugin", out)


CONFORMANCE = ["conformance", "--device", "fake", "--case", "device/copy/float32", "--jobs", "1"]
"""A command of a plugin."""


@pytest.mark.parametrize("command", [["doctor"], ["ops"], ["explain", "add"], CONFORMANCE], ids=lambda c: c[0])
def test_a_reader_that_goes_away_is_no_error(command: list[str]) -> None:
    """``candelabra ops | head -1`` prints no traceback and has the exit status of a broken pipe."""
    program = [sys.executable, "-m", "candelabra", *command]
    host = {**os.environ, "CANDELABRA_BACKENDS": "cpu"}  # drivers of other devices take seconds to load
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(program, **pipes, text=True, env=host) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.close()
        said = started.stderr.read()
    assert said == ""
    assert started.returncode == 141


def test_facts_of_devices_are_typed(lantern: LanternBackend, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    """Memory sizes are ints in bytes, printed in GiB; versions are tuples; flags are printed if they are true."""
    facts = {"total_memory": 3 << 30, "driver_version": (580, 159), "unified": True, "units": 4, "clock": 1.5}
    monkeypatch.setattr(LanternBackend, "devices", lambda self: [DeviceInfo("typed", facts)])
    assert main(["devices"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("lantern:0")]
    assert line == "lantern:0  typed, total memory 3.0 GiB, driver version 580.159, unified yes, units 4, clock 1.5"
    properties = cd.lantern.get_device_properties(0)
    assert properties.total_memory == 3 << 30
    assert properties.driver_version == (580, 159)
