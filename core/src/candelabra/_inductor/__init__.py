"""PyTorch's names of its compiler of kernels that mean something here. Generated C++ and Triton do not."""

from __future__ import annotations

from candelabra._absent import missing
from candelabra._annotations import Any
from candelabra._inductor import config, utils
from candelabra._inductor.compile_fx import compile_fx
from candelabra.compiler import list_mode_options, list_options

_PACKAGES = (
    "graphs are compiled in the process that runs them; candelabra.compile compiles, "
    "candelabra.compiler.save_cache_artifacts keeps the kernels, and candelabra.save the state_dict"
)
aoti_compile_and_package = missing("_inductor", "aoti_compile_and_package", _PACKAGES)
aoti_load_package = missing("_inductor", "aoti_load_package", _PACKAGES)
aot_compile = missing("_inductor", "aot_compile", _PACKAGES)


def compile(gm: Any, example_inputs: list[Any], options: dict[str, Any] | None = None) -> Any:
    """Compile a GraphModule for its example inputs, for use in a backend of the program."""
    return compile_fx(gm, example_inputs, options)


__all__ = [
    "aot_compile", "aoti_compile_and_package", "aoti_load_package", "compile", "config", "list_mode_options",
    "list_options", "utils",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
