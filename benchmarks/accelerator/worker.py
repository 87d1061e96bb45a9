"""One side of a comparison on a device, in its own process: ``python -m benchmarks.accelerator.worker``.

It reads a line of JSON per request (library, device, size, and the name of a mark or of a model whose waits are
requested) and answers with seconds, or with the waits of the host. The garbage collector stays on.
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
    """Return the answer to one request; an error is an answer, too."""
    try:
        xp = importlib.import_module(request["library"])
        importlib.import_module(f"{request['library']}.nn.functional")
        if request["library"] == "torch":
            xp.backends.cudnn.allow_tf32 = False  # otherwise its convolutions would round float32 to TF32
        device, sizes = library_device(request["library"], request["device"]), SIZES[request["size"]]
        time = clock(request["library"], request["device"])
        if request.get("waits"):
            return {"waits": waits(request["waits"], xp, device, sizes, time)}
        if "version" in request:
            return {"version": str(xp.__version__)}
        return {"seconds": MARKS[request["mark"]].measure(xp, device, sizes, time)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def library_device(library: str, device: str) -> str:
    """Return a library's name of a device: in PyTorch, AMD's GPUs are ``cuda``, too, and OpenCL is missing."""
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
