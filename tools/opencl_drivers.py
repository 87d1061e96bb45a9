"""Run the tests of the C-like kernels and of OpenCL on every OpenCL driver that is present, each in its own process.

``--only WORDS`` selects the drivers whose line in ``candelabra devices`` contains the words; none is a failure. The
rest goes to pytest.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from candelabra_opencl.discovery import VARIABLE, find

TESTS = ["tests/clike", "tests/opencl"]


def drivers(words: str) -> list[str]:
    """Return a pattern for each driver that has a device and whose line contains ``words``."""
    return list(dict.fromkeys(one.pattern for one in find() if words.lower() in one.line.lower()))


def main() -> int:
    """Return the worst of the exit codes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    arguments, rest = parser.parse_known_args()
    patterns = drivers(arguments.only)
    worst = 0 if patterns else 1
    if not patterns:
        print(f"no OpenCL driver has {arguments.only!r} in its description")
    for driver in patterns:
        print(f"== {driver} ==", flush=True)
        environment = {**os.environ, VARIABLE: driver}
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", *(rest or TESTS)]
        worst = max(worst, subprocess.run(command, env=environment, check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
