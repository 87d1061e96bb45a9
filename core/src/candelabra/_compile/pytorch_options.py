"""PyTorch's settings of TorchInductor and TorchDynamo that have no counterpart: accepted, with a warning."""

from __future__ import annotations

from candelabra._absent import say_once
from candelabra._annotations import Final

WITHOUT_EFFECT: Final[dict[str, str]] = {
    "aot_inductor.package_constants_in_so": "graphs are compiled in the process that runs them",
    "coordinate_descent_check_all_directions": "kernels have one form per shape",
    "coordinate_descent_tuning": "kernels have one form per shape",
    "cpp.enable_kernel_profile": "candelabra.profiler shows operators; candelabra explain --graph shows kernels",
    "cpp.simdlen": "kernels are compiled for the processor's level",
    "cpp_wrapper": "consecutive launches of a compiled function are one call in C on processors",
    "cuda.compile_opt_level": "the device's compiler has one level",
    "debug": "candelabra.compiler.set_logs shows graphs and code",
    "epilogue_fusion": "the option fuse of candelabra.compile decides for all kernels",
    "force_fuse_int_mm_with_mul": "the option fuse of candelabra.compile decides for all kernels",
    "freezing": "weights are packed once for each version under no_grad()",
    "fx_graph_cache": "kernels are kept by the hash of their source; CANDELABRA_CACHE=0 disables that",
    "fx_graph_remote_cache": "kernels are kept on this machine; candelabra.compiler.save_cache_artifacts moves them",
    "max_autotune": "kernels have one form per shape",
    "max_autotune_gemm_backends": "kernels have one form per shape",
    "pattern_matcher": "patterns run when they are registered with a pass",
    "shape_padding": "kernels take every shape",
    "size_asserts": "guards check shapes and strides before a graph runs",
    "trace.enabled": "candelabra.compiler.set_logs shows graphs and code",
    "trace.graph_diagram": "candelabra.graph.Graph.draw draws a graph",
    "trace.log_autotuning_results": "kernels have one form per shape",
    "triton.cudagraphs": "CUDA graphs are replayed on their own, see docs/cuda.md",
    "triton.unique_kernel_names": "no kernel is written in Triton",
}
"""The setting, and what serves instead."""


def without_effect(name: str) -> bool:
    """Return whether a setting of PyTorch's has no effect here, and say so once."""
    if name not in WITHOUT_EFFECT:
        return False
    say_once(f"inductor {name}", f"the setting {name} of PyTorch's compiler has no effect: {WITHOUT_EFFECT[name]}")
    return True


__all__ = ["WITHOUT_EFFECT", "without_effect"]
