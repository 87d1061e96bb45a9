"""The device ``meta``: tensors without data. Its kernels are the records' shape rules.

``cd.empty(1 << 40, device="meta")`` takes no memory, and operators on it compute shapes, dtypes and, for views,
strides. This shows how much a program would allocate, and checks the shapes of a model before its weights exist. The
device is part of the core, because it needs only the records. Attribution: PyTorch's meta device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from candelabra._annotations import Any, Final, NoReturn
from candelabra._layout import contiguous_strides
from candelabra._records.promotion import by_arguments
from candelabra._records.record import Operator
from candelabra._records.registry import OPERATORS
from candelabra._records.schema import DTYPE
from candelabra.backend import Backend, Capabilities, DeviceInfo
from candelabra.dtypes import ALL, dtype

NAME: Final = "meta"
NO_DATA: Final = "Cannot copy out of meta tensor; no data!"
Shape = tuple[int, ...]


class MetaArray:
    """A payload without elements: a shape, strides and a dtype. Shape rules read it like a tensor."""

    __slots__ = ("shape", "strides", "offset", "dtype")

    def __init__(self, shape: Shape, dtype: dtype, strides: Shape | None = None, offset: int = 0) -> None:
        self.shape = shape
        self.dtype = dtype
        self.strides = contiguous_strides(shape) if strides is None else strides
        self.offset = offset

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        """The number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point


class ShapeKernel:
    """The kernel of one operator, which gets the shapes of the results from the record."""

    def __init__(self, op: Operator[..., Any], inplace: bool) -> None:
        self.op = op
        self.inplace = inplace
        names = [p.name for p in op.schema.parameters]
        self.dtype_at = next((names.index(p.name) for p in op.schema.parameters if p.kind == DTYPE), None)

    def for_dtype(self, compute: dtype) -> Callable[..., Any]:
        """Return the kernel for calls that compute in one dtype."""
        results = tuple([rule(compute) for rule in self.op.results])

        def kernel(*args: Any) -> Any:
            shapes = self.op.rule(self.op, args)
            if shapes is None:
                raise NotImplementedError(
                    f"{self.op.name}(): the shape of the result depends on the values, and tensors on the device "
                    f"{NAME!r} have none"
                )
            if self.inplace:
                if tuple(shapes) != args[0].shape:
                    raise RuntimeError("the result does not have the shape of the tensor that is written to")
                return args[0]
            asked = None if self.dtype_at is None else args[self.dtype_at]
            if self.op.schema.result is None:
                return MetaArray(tuple(shapes), asked or results[0])
            return tuple([MetaArray(tuple(s), d) for s, d in zip(shapes, results, strict=True)])

        return kernel


class ShapeKernels(dict[str, Any]):
    """``{operator: kernel}``, created on demand.

    Two groups of operators have no kernel here: views, which their geometry serves, and composites whose arguments
    determine the dtype of the result, whose body runs.
    """

    def get(self, name: str, default: Any = None) -> Any:
        found = dict.get(self, name)
        if found is None:
            inplace = name not in OPERATORS and name.endswith("_")
            op: Any = OPERATORS.get(name[:-1] if inplace else name)
            viewing = op is not None and op.view and (op.geometry is not None or op.body is not None)
            if op is None or viewing or by_arguments in op.results:
                return default
            found = self[name] = ShapeKernel(op, inplace)
        return found

    def __contains__(self, name: object) -> bool:
        return self.get(str(name)) is not None


class MetaBackend(Backend):
    """The backend of the device ``meta``."""

    name = NAME
    api = ((1, 1), (1, 1))
    capabilities = Capabilities(frozenset(ALL), frozenset(ALL), data=False)

    def devices(self) -> Sequence[DeviceInfo]:
        return [DeviceInfo("no memory: shapes and dtypes only")]

    def kernels(self) -> Mapping[str, Any]:
        return ShapeKernels()

    def empty(self, index: int, shape: Shape, dtype: dtype) -> MetaArray:
        return MetaArray(shape, dtype)

    def from_host(self, index: int, data: memoryview, shape: Shape, dtype: dtype) -> MetaArray:
        return MetaArray(shape, dtype)

    def to_host(self, payload: MetaArray) -> NoReturn:
        """Raise NotImplementedError: the device has no data."""
        raise NotImplementedError(NO_DATA)

    def dtype_of(self, payload: MetaArray) -> dtype:
        return payload.dtype

    def copy_(self, destination: MetaArray, source: MetaArray) -> MetaArray:
        return destination

    def transfer(self, payload: MetaArray, source: int, destination: int) -> MetaArray:
        return MetaArray(payload.shape, payload.dtype)

    def layout(self, payload: MetaArray) -> tuple[Shape, int]:
        return payload.strides, payload.offset

    def restride(self, payload: MetaArray, shape: Shape, strides: Shape, offset: int) -> MetaArray:
        return MetaArray(shape, payload.dtype, strides, offset)
