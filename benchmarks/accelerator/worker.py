"""One side of a comparison on a device, in a process of its own: ``python -m benchmarks.accelerator.worker``.

Reads a line of JSON per request (library, device, size, and a mark's name or a model whose waits are wanted) and
answers with seconds, or with where the host waited. The garbage collector stays on.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

from benchmarks.accelerator.marks import MARKS
from benchmarks.accelerator.sizes import SIZES
from benchmarks.accelerator.timing import clock
from benchmarks.accelerator.waiting import waits


def answered(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request; what fails is an answer too."""
    try:
        xp = importlib.import_module(request["library"])
        importlib.import_module(f"{request['library']}.nn.functional")
        if request["library"] == "torch":
            xp.backends.cudnn.allow_tf32 = False  # like with like: its convolutions would round float32 to TF32
        device, sizes = place(request["library"], request["device"]), SIZES[request["size"]]
        time = clock(request["library"], request["device"])
        if request.get("waits"):
            return {"waits": waits(request["waits"], xp, device, sizes, time)}
        if "version" in request:
            return {"version": str(xp.__version__)}
        return {"seconds": MARKS[request["mark"]].measure(xp, device, sizes, time)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def place(library: str, device: str) -> str:
    """A device as a library calls it: PyTorch calls AMD's GPUs ``cuda`` too, and has no OpenCL."""
    kind, _, index = device.partition(":")
    if library != "torch":
        return device
    return f"cuda:{index or 0}" if kind in ("cuda", "rocm") else "cpu"


def main() -> None:
    """Answer requests until the input ends."""
    for line in sys.stdin:
        print(json.dumps(answered(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
