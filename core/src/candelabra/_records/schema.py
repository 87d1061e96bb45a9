"""Read the schema of an operator from its Python signature.

The annotations are strings (``from __future__ import annotations``) and the signature is read from the code object. So
a declaration imports neither ``inspect`` nor ``typing`` and takes microseconds.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import Any, Final, NamedTuple

TENSOR, OPTIONAL, OPERAND, BOUND, LIST, INDEX, MASK, INDICES = (
    "tensor", "optional", "operand", "bound", "list", "index", "mask", "indices",
)  # fmt: skip
DIM, DIMS, INT, SHAPE, DTYPE, DEVICE, PLAIN = "dim", "dims", "int", "shape", "dtype", "device", "plain"

KINDS: Final[dict[str, str]] = {
    "Tensor": TENSOR,
    "Tensor | None": OPTIONAL,
    "Tensor | Number": OPERAND,
    "Tensor | Number | None": BOUND,
    "Sequence[Tensor]": LIST,
    "JoinedTensors": LIST,
    "Index": INDEX,
    "Index | None": INDEX,
    "Mask": MASK,
    "Mask | None": MASK,
    "BoolMask": MASK,
    "Sequence[Index | None]": INDICES,
    "Dim": DIM,
    "Dim | None": DIM,
    "Dims": DIMS,
    "Integer": INT,
    "Shape": SHAPE,
    "DType": DTYPE,
    "DType | None": DTYPE,
    "Device": DEVICE,
}
"""The kinds of annotations for the dispatcher. Any other annotation is a plain value, which is passed unchanged.

``Tensor | Number`` takes part in promotion as a tensor or a Python scalar. ``Index`` (int64), ``Mask`` and ``BoolMask``
(bool) tensors do not: their dtype is fixed; they may be absent (``| None``). ``Dim`` and ``Dims`` are canonical in
kernels and rules: non-negative, a tuple for ``Dims``, None for all. ``Tensor | Number | None`` is for composites only:
a number does not take part in the key.
"""
CONVERTERS: Final[dict[str, str]] = {
    "InsertedDim": "as_inserted_dim",
    "Permutation": "as_permutation",
    "DistinctDims": "as_distinct_dims",
    "UnitDims": "as_unit_dims",
    "ExpandedShape": "as_expanded_shape",
    "InferredShape": "as_inferred_shape",
    "StorageOffset": "as_storage_offset",
    "Origin": "as_origin",
    "Correction": "as_correction",
}
"""Annotations whose values are converted with respect to the first tensor, and their converters in
``candelabra._codegen.arguments``. ``candelabra.typing`` describes the values that each one accepts. With ``| None``,
None is passed unchanged."""
DIFFERENTIABLE: Final = (TENSOR, OPTIONAL, OPERAND, BOUND, LIST)
TENSOR_KINDS: Final = (*DIFFERENTIABLE, INDEX, MASK, INDICES)


class Required:
    """The default of a parameter without a default."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Final = Required()


class Parameter(NamedTuple):
    name: str
    kind: str
    annotation: str
    default: Any
    keyword_only: bool
    variadic: bool = False
    """Declared as ``*name``: callers may pass the values one by one, as a sequence, or by keyword."""

    @property
    def optional(self) -> bool:
        """Return whether the annotation allows None."""
        return self.annotation.endswith("| None")


class Schema(NamedTuple):
    """Parameters, and the names of the outputs: ``out``, or the fields of the returned NamedTuple."""

    parameters: tuple[Parameter, ...]
    outputs: tuple[str, ...]
    result: type | None
    """The NamedTuple class of several outputs."""

    @property
    def tensors(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.kind in TENSOR_KINDS)

    @property
    def differentiable(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.kind in DIFFERENTIABLE)

    def named(self, name: str) -> Parameter | None:
        return next((p for p in self.parameters if p.name == name), None)


def read_parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return the parameters of a declared function, in the order of a call.

    Raises ``TypeError`` for a parameter without an annotation.
    """
    code = function.__code__
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    defaults = dict(
        zip(names[count - len(function.__defaults__ or ()) : count], function.__defaults__ or (), strict=True)
    )
    defaults.update(function.__kwdefaults__ or {})
    rows = [(name, position >= count, False) for position, name in enumerate(names)]
    if code.co_flags & VARARGS:
        rows.insert(count, (code.co_varnames[len(names)], False, True))
    annotations = function.__annotations__
    parameters = []
    for name, keyword_only, variadic in rows:
        if name not in annotations:
            raise TypeError(f"operator {function.__name__}: parameter {name!r} has no annotation")
        annotation = annotations[name]
        kind = KINDS.get(annotation, PLAIN)
        parameters.append(Parameter(name, kind, annotation, defaults.get(name, REQUIRED), keyword_only, variadic))
    return tuple(parameters)


VARARGS: Final = 0x04
"""``inspect.CO_VARARGS``, without importing ``inspect``."""


def read_schema(function: Callable[..., Any]) -> Schema:
    """Return the schema of a declared operator."""
    parameters = read_parameters(function)
    returned = function.__annotations__.get("return")
    if returned == "Tensor":
        return Schema(parameters, ("out",), None)
    result = function.__globals__.get(returned) if isinstance(returned, str) else None
    fields = getattr(result, "_fields", None)
    if fields is None:
        raise TypeError(
            f"operator {function.__name__}: the return annotation must be Tensor or a NamedTuple class, got "
            f"{returned!r}"
        )
    return Schema(parameters, tuple(fields), result)


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters of a derivative rule."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def default_of(function: Callable[..., Any], name: str) -> Any:
    """Return the default of one parameter, or :data:`REQUIRED`."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    table = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    table.update(function.__kwdefaults__ or {})
    return table.get(name, REQUIRED)
