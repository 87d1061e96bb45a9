"""``parallelize_module``: styles for the layers of a model, by their names."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

from candelabra import get_default_device
from candelabra.distributed._process_group import default_group
from candelabra.distributed.device_mesh import DeviceMesh, init_device_mesh
from candelabra.distributed.tensor.parallel._styles import ParallelStyle


def parallelize_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """Divide layers of a model among the ranks of a mesh, and return the model, which is changed in place.

    Args:
        module: the model; its parameters are those of the mesh's first rank.
        device_mesh: of one dim, by default all ranks.
        parallelize_plan: a style for the module, or ``{name: style}`` for modules inside; names may contain ``*``.
        src_data_rank: must be 0.

    Raises:
        ValueError: the mesh has several dims, or a name of the plan has no module.
        NotImplementedError: a style does not know the layer.
    """
    if src_data_rank != 0:
        raise NotImplementedError("parallelize_module: src_data_rank must be 0")
    mesh = _all_ranks() if device_mesh is None else device_mesh
    if mesh.ndim != 1:
        raise ValueError(f"parallelize_module expects a mesh of one dim, got {mesh}: pass mesh['name']")
    if isinstance(parallelize_plan, ParallelStyle):
        return parallelize_plan.apply(module, mesh)
    for pattern, style in (parallelize_plan or {}).items():
        matches = [inner for name, inner in module.named_modules() if _matches(name, pattern)]
        if not matches:
            raise ValueError(f"parallelize_module: the plan has {pattern!r}, but the module has no such module inside")
        for inner in matches:
            style.apply(inner, mesh)
    return module


def _all_ranks() -> DeviceMesh:
    return init_device_mesh(get_default_device().type, (default_group().size(),))


def _matches(name: str, pattern: str) -> bool:
    names, patterns = name.split("."), pattern.split(".")
    return len(names) == len(patterns) and all(map(fnmatch, names, patterns))
