"""A table of a model's layers: output shapes, parameters and memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import candelabra as cd
from candelabra.nn.modules.module import Module

if TYPE_CHECKING:
    from candelabra import Tensor

__all__ = ["LayerSummary", "ModelSummary", "summary"]

Shape = tuple[int, ...]


class LayerSummary(NamedTuple):
    """One row: a module at one place of the model.

    ``depth`` is 0 for the model. ``name`` is the attribute of the parent. ``shapes`` are those of the tensors that a
    call returned; None if the module was not called. Parameters that another row has already counted are not counted
    again; ``shared`` is true if the whole module is in another row. A row whose children have rows counts its own
    parameters only. ``is_last`` is whether it is the last child.
    """

    depth: int
    name: str
    kind: str
    shapes: tuple[Shape, ...] | None
    parameters: int
    trainable: int
    output_bytes: int
    shared: bool
    is_last: bool


class ModelSummary:
    """The result of :func:`summary`: rows and totals. ``repr`` is the table. Sizes are in bytes; 1 MB are 10⁶ bytes."""

    def __init__(
        self, rows: list[LayerSummary], model: Module, inputs: Iterable[Tensor], activation_bytes: int
    ) -> None:
        parameters, buffers = list(model.parameters()), list(model.buffers())
        self.rows = rows
        self.total_parameters = sum(p.numel() for p in parameters)
        self.trainable_parameters = sum(p.numel() for p in parameters if p.requires_grad)
        self.parameter_bytes = _bytes_of([*parameters, *buffers])
        """Parameters and buffers."""
        self.input_bytes = _bytes_of(inputs)
        self.activation_bytes = activation_bytes
        """Outputs of all calls of modules without children."""

    @property
    def total_bytes(self) -> int:
        """Return the bytes of input, activations, parameters and buffers."""
        return self.input_bytes + self.activation_bytes + self.parameter_bytes

    def __repr__(self) -> str:
        header = ("Layer", "Output shape", "Parameters", "Trainable", "Output (MB)")
        labels = list(_labels(self.rows))
        lines = [header, *[(label, *_cells(row)) for label, row in zip(labels, self.rows, strict=True)]]
        widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
        shown = [
            "  ".join([
                *[cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)],
                *[cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)],
            ]).rstrip()
            for line in lines
        ]  # fmt: skip
        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        frozen = self.total_parameters - self.trainable_parameters
        sizes = [
            ("input", self.input_bytes), ("activations", self.activation_bytes),
            ("parameters and buffers", self.parameter_bytes), ("together", self.total_bytes),
        ]  # fmt: skip
        return "\n".join([
            shown[0], rule, *shown[1:], rule,
            f"Parameters: {self.total_parameters:,} (trainable {self.trainable_parameters:,}, frozen {frozen:,})",
            "Memory in MB: " + ", ".join([f"{name} {size / 1e6:,.2f}" for name, size in sizes]),
        ])  # fmt: skip


def _labels(rows: list[LayerSummary]) -> Iterator[str]:
    """Yield the name of each row behind the branches of the tree."""
    branches: list[str] = []
    for row in rows:
        del branches[max(row.depth - 1, 0) :]
        label = f"{row.name}: {row.kind}" if row.name else row.kind
        if not row.depth:
            yield label
            continue
        yield f"{''.join(branches)}{'└─' if row.is_last else '├─'} {label}{' (shared)' if row.shared else ''}"
        branches.append("   " if row.is_last else "│  ")


def _cells(row: LayerSummary) -> tuple[str, str, str, str]:
    shapes = [str(list(shape)) for shape in row.shapes or ()]
    if len(shapes) > 3:
        shapes[2:] = ["…"]
    return (
        ", ".join(shapes) or "–",
        f"{row.parameters:,}" if row.parameters else "–",
        f"{row.trainable:,}" if row.parameters else "–",
        f"{row.output_bytes / 1e6:,.2f}" if row.output_bytes else "–",
    )


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested containers."""
    if isinstance(value, cd.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


def _bytes_of(tensors: Iterable[Tensor]) -> int:
    return sum(t.numel() * t.dtype.itemsize for t in tensors)


# -- the call ---------------------------------------------------------------------------------------------------------
class _Calls:
    """Forward hooks that record the shapes and sizes of the outputs of every module."""

    def __init__(self, model: Module) -> None:
        self.outputs: dict[int, list[tuple[tuple[Shape, ...], int]]] = {}
        self.activation_bytes = 0
        self.model = model
        self.handles: list[Any] = []
        self.modes: list[tuple[Module, bool]] = []

    def __enter__(self) -> _Calls:
        for module in self.model.modules():
            self.modes.append((module, module.training))
            self.handles.append(module.register_forward_hook(self.record))
        self.model.eval()  # BatchNorm must not update its statistics.
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()
        for module, training in self.modes:
            module.training = training

    def record(self, module: Module, args: Any, output: Any) -> None:
        """Append the shapes and the size of an output."""
        tensors = list(_tensors(output))
        size = _bytes_of(tensors)
        self.outputs.setdefault(id(module), []).append((tuple([tuple(t.shape) for t in tensors]), size))
        if next(module.children(), None) is None:
            self.activation_bytes += size


def _is_shape(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and bool(value) and all(isinstance(v, int) for v in value)


def _inputs(
    model: Module, input: Any, input_size: Any, dtype: Any, device: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and keyword arguments of the call."""
    if (input is None) == (input_size is None):
        raise ValueError("summary() requires either an input or an input_size")
    if input_size is None and not _is_shape(input) and not _are_shapes(input):
        if isinstance(input, Mapping):
            return (), dict(input)
        return (tuple(input) if isinstance(input, (tuple, list)) else (input,)), {}
    shapes = input if input_size is None else input_size
    if not _is_shape(shapes) and not _are_shapes(shapes):
        raise TypeError(f"summary(): input_size must be a shape or a sequence of shapes, not {shapes!r}")
    first = next(iter(model.parameters()), None)
    if dtype is None:
        dtype = first.dtype if first is not None and first.is_floating_point() else cd.get_default_dtype()
    if device is None and first is not None:
        device = first.device
    sizes = [shapes] if _is_shape(shapes) else list(shapes)
    dtypes = list(dtype) if isinstance(dtype, (tuple, list)) else [dtype] * len(sizes)
    if len(dtypes) != len(sizes):
        raise ValueError(f"summary(): {len(sizes)} shapes, but {len(dtypes)} dtypes")
    return tuple([cd.zeros(size, dtype=d, device=device) for size, d in zip(sizes, dtypes, strict=True)]), {}


def _are_shapes(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and bool(value) and all(_is_shape(v) for v in value)


def _rows(model: Module, calls: _Calls, depth: int) -> list[LayerSummary]:
    """Return the rows of a model after its call, parents before children."""
    rows: list[LayerSummary] = []
    counted: set[int] = set()
    places: dict[int, int] = {}

    def visit(module: Module, name: str, level: int, is_last: bool) -> None:
        place = places.get(id(module), 0)
        places[id(module)] = place + 1
        outputs = calls.outputs.get(id(module))
        # A module at several places has a call for each, or one list of outputs for all of them.
        shapes, size = outputs[min(place, len(outputs) - 1)] if outputs else (None, 0)
        children = list(_children(module)) if level < depth and not place else []
        found = [p for p in module.parameters(recurse=not children) if id(p) not in counted]
        counted.update(map(id, found))
        rows.append(
            LayerSummary(
                level, name, type(module).__name__, shapes, sum(p.numel() for p in found),
                sum(p.numel() for p in found if p.requires_grad), size, bool(place), is_last,
            )
        )  # fmt: skip
        for i, (child_name, child) in enumerate(children, 1):
            visit(child, child_name, level + 1, i == len(children))

    visit(model, "", 0, True)
    return rows


def _children(module: Module) -> Iterator[tuple[str, Module]]:
    """Yield the children with their names. Unlike ``named_children``, repeat a module that has several names."""
    for name, child in module._modules.items():
        if child is not None:
            yield name, child


def summary(
    model: Module, input: Any = None, *, input_size: Any = None, depth: int = 3, dtype: Any = None, device: Any = None
) -> ModelSummary:
    """Call a model once and return a table of its layers: output shapes, parameters and memory.

    ``input`` is a tensor, a sequence of positional arguments, a dict of keyword arguments, or a shape or a sequence of
    shapes, as ``input_size`` is: the arguments are then zeros of ``dtype`` (one, or one per shape) on ``device``, by
    default those of the first parameter. Shapes include the batch. ``depth`` is the number of levels of modules with
    rows of their own. The call runs in evaluation mode and without gradients, and leaves the model as it was; for a
    model on the device ``meta`` nothing is computed.

    Raises ``ValueError`` without an input and for a negative depth, ``TypeError`` for an invalid ``input_size``.
    """
    if depth < 0:
        raise ValueError(f"summary(): depth must not be negative, but it is {depth}")
    args, kwargs = _inputs(model, input, input_size, dtype, device)
    with _Calls(model) as calls, cd.no_grad():
        model(*args, **kwargs)
    return ModelSummary(_rows(model, calls, depth), model, _tensors([args, kwargs]), calls.activation_bytes)


def __dir__() -> list[str]:
    return sorted(__all__)
