"""AMD's GPUs through CuPy for ROCm, as the device type ``rocm``. Not tested: nobody has run it yet.

All is as for CUDA but three things: kernels are compiled by CuPy (HIPRTC), launched by it, and products of matrices
are kernels of our own, for hipBLAS takes other numbers for types than cuBLAS.
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
"""The words are those of CUDA C++, the compiler's options Clang's."""
NUMBERS: Final[dict[str, type[np.generic]]] = {
    "": np.uint64, "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f32": np.float32,
    "f64": np.float64,
}  # fmt: skip
"""The type of an argument as CuPy passes it on; a buffer is its address."""


class RawKernel:
    """A kernel of CuPy's as one of ours."""

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
        given = (*arguments, count) if self._group is None else arguments
        engine = self._engine
        engine.enter()
        self._function(grid, (group, 1, 1), tuple(type(value) for type, value in zip(self._types, given, strict=True)))
        if engine.blocking:
            engine.wait_for(self.name)


class RocmEngine(CudaEngine):
    """A device of ROCm. Compiled programs are kept on disk by CuPy."""

    dialect = HIP
    type = "rocm"

    def _loaded(self, source: Source) -> Launch:
        self.runtime.setDevice(self.index)
        exact = () if source.contract else HIP.exact_options
        module = self.cupy.RawModule(code=source.program(HIP), options=(*HIP.options, *exact))
        return RawKernel(self, source, module.get_function(source.name))


class RocmBackend(CudaBackend):
    """As CUDA's. 10 is kDLROCM of the DLPack specification."""

    name = "rocm"
    hip = True
    engine_type = RocmEngine
    capabilities = Capabilities(storage=frozenset(ALL), arithmetic=frozenset(ALL), asynchronous=True, dlpack=10)
