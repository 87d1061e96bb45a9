"""AMD's GPUs through CuPy for ROCm, as the device type ``rocm``. Untested.

It differs from CUDA in three points: CuPy compiles the kernels (HIPRTC) and launches them, and matrix products are
kernels of candelabra-clike, because hipBLAS uses other type numbers than cuBLAS.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from candelabra.backend import Capabilities
from candelabra.dtypes import ALL
from candelabra_clike import CUDA, Launch, Source

from candelabra_cuda.backend import CudaBackend
from candelabra_cuda.engine import CudaEngine
from candelabra_cuda.launching import arguments_of, blocks

HIP: Final = replace(CUDA, name="HIP C++", exact_options=("-ffp-contract=off",))
"""The vocabulary of CUDA C++ with Clang's compiler options."""
NUMBERS: Final[dict[str, type[np.generic]]] = {
    "": np.uint64, "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f32": np.float32,
    "f64": np.float64,
}  # fmt: skip
"""The types of arguments that CuPy passes; a buffer is passed as its address."""


class RocmKernel:
    """A kernel compiled by CuPy."""

    def __init__(self, engine: CudaEngine, source: Source, function: Any) -> None:
        self.name: Final = source.name
        self._engine: Final = engine
        self._function: Final = function
        self._group: Final = source.group
        self._types: Final = [NUMBERS[type] for type in arguments_of(source)]

    def __call__(self, count: int | tuple[int, ...], /, *arguments: Any) -> None:
        grid, group = blocks(count, self._group)
        if 0 in grid:
            return
        values = (*arguments, count) if self._group is None else arguments
        engine = self._engine
        engine.enter()
        self._function(grid, (group, 1, 1), tuple(type(value) for type, value in zip(self._types, values, strict=True)))
        if engine.blocking:
            engine.wait_for(self.name)


class RocmEngine(CudaEngine):
    """A ROCm device. CuPy caches compiled programs on disk."""

    dialect = HIP
    type = "rocm"
    has_cublas = False
    captures = False

    def _loaded(self, source: Source) -> Launch:
        self.runtime.setDevice(self.index)
        exact = () if source.contract else HIP.exact_options
        module = self.cupy.RawModule(code=source.program(HIP), options=(*HIP.options, *exact))
        return RocmKernel(self, source, module.get_function(source.name))


class RocmBackend(CudaBackend):
    """The counterpart of :class:`CudaBackend` for ROCm. 10 is kDLROCM in DLPack."""

    name = "rocm"
    hip = True
    engine_type = RocmEngine
    capabilities = Capabilities(storage=frozenset(ALL), arithmetic=frozenset(ALL), asynchronous=True, dlpack=10)
