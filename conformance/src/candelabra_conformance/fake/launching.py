"""Kernels of a fake device, which run those of the reference later.

A call has to return arrays of the correct shape and dtype before anything is computed. The launch finds them by running
the kernel on placeholders, which need no memory: tensors of the same shapes that contain only zeros, then only ones (a
divisor must not be 0, an index 1 may not exist). If the kernel raises for both, either the shapes are wrong or it needs
the values (zeros and ones have no Cholesky factor). It then waits for the stream and runs on the actual values at once,
like kernels of real devices that have to read an error code; data-dependent operators always do. Shapes and dtypes are
cached by signature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from candelabra.backend import Kernel
from candelabra.dtypes import dtype
from candelabra.library import DEVICE, OPERATORS

from candelabra_conformance.fake.arrays import FakeArray
from candelabra_conformance.fake.streams import StreamWork

if TYPE_CHECKING:
    from candelabra_conformance.fake.backend import FakeAccelerator

ForDType = Callable[[dtype], Kernel | None]
"""Selects a kernel by dtype, as in the backend contract."""
Results = tuple[tuple[tuple[int, ...], dtype], ...]
PLAIN: Final = frozenset({int, float, bool, complex, type(None), str, dtype})
DECLINED: Final[Any] = object()
"""The results of a kernel that declines calls of a signature."""
REMEMBERED: Final = 4096
"""The maximum number of signatures for which a kernel's results are cached."""


class FakeLaunch:
    """One kernel of a fake device."""

    def __init__(
        self, accelerator: FakeAccelerator, name: str, kernel: Kernel, for_dtype: ForDType | None = None
    ) -> None:
        self.accelerator: Final = accelerator
        self.name: Final = name
        self.kernel: Final = kernel
        self.for_dtype: Final = for_dtype
        self.inplace: Final = name not in OPERATORS
        self.record: Final = OPERATORS[name[:-1] if self.inplace else name]
        kinds = [p.kind for p in self.record.schema.parameters]
        self.device_position: Final = kinds.index(DEVICE) if DEVICE in kinds else None
        self.results: Final[dict[Any, Results | None]] = {}

    def __call__(self, *args: Any) -> Any:
        index = args[self.device_position] if self.device_position is not None else first_array(args)._block.index
        inner, signature = self.opened(args, index)
        if self.device_position is not None:
            inner[self.device_position] = self.accelerator.reference_index
        if self.device_position is not None and not any(isinstance(part[0], tuple) for part in signature):
            return self.run_without_tensors(inner, index)
        found = self.known(inner, signature) if self.accelerator.asynchronous else None
        if found is DECLINED:
            return NotImplemented
        return self.at_once(args, inner, index) if found is None else self.later(args, inner, index, found)

    # -- arguments ----------------------------------------------------------------------------------------------------
    def opened(self, args: Sequence[Any], index: int) -> tuple[list[Any], tuple[Any, ...]]:
        """Return the kernel's arguments on the reference device, and the signature that determines the results' shapes.

        Raises ``RuntimeError`` for an array that is not in this device's memory.
        """
        inner: list[Any] = []
        signature: list[tuple[Any, Any]] = []
        for value in args:
            if type(value) is FakeArray:
                block = value._block
                if block.index != index or block.device is not self.accelerator:
                    raise RuntimeError(
                        f"{self.name}: memory of {block.device}:{block.index} cannot be read from "
                        f"{self.accelerator.device_name(index)}"
                    )
                inner.append(value._hidden)
                signature.append((value.shape, value._dtype))
            elif type(value) in PLAIN:
                inner.append(value)
                signature.append((type(value), value))
            elif isinstance(value, (list, tuple)):
                parts, of_parts = self.opened(value, index)
                inner.append(tuple(parts) if isinstance(value, tuple) else parts)
                signature.append((type(value), of_parts))
            elif hasattr(value, "shape"):
                raise RuntimeError(
                    f"{self.name}: {self.accelerator.device_name(index)} cannot read the memory of a "
                    f"{type(value).__name__}"
                )
            else:
                inner.append(value)
                signature.append((type(value), value))
        return inner, tuple(signature)

    def known(self, inner: list[Any], signature: tuple[Any, ...]) -> Any:
        """Return the shape and dtype of each result (``Results``), None if they depend on values, or DECLINED."""
        if self.record.data_dependent:
            return None
        try:
            return self.results[signature]
        except KeyError:
            if len(self.results) >= REMEMBERED:
                self.results.clear()
            results = self.results[signature] = self.results_of_placeholders(inner, signature)
            return results
        except TypeError:  # an argument is not hashable
            return self.results_of_placeholders(inner, signature)

    def results_of_placeholders(self, inner: list[Any], signature: tuple[Any, ...]) -> Any:
        """Run the kernel on zeros, then on ones. Return None if it raises for both, DECLINED if it declines."""
        for value in (0, 1):
            arguments = self.with_placeholders(inner, signature, value)
            if self.inplace:  # the first argument is written to, so its elements need memory of their own
                arguments[0] = self.accelerator.copied(arguments[0], signature[0][1])
            try:
                result = self.kernel(*arguments)
            except Exception:  # the next placeholder, or the actual values, decide
                continue
            if result is NotImplemented:
                return DECLINED
            return tuple((tuple(r.shape), self.accelerator.reference.dtype_of(r)) for r in listed(result))
        return None

    def with_placeholders(self, inner: Sequence[Any], signature: tuple[Any, ...], value: int) -> list[Any]:
        """Return the arguments with every tensor replaced by one whose elements are all ``value``."""
        made: list[Any] = []
        for argument, (kind, of_it) in zip(inner, signature, strict=True):
            if isinstance(kind, tuple):
                made.append(self.accelerator.full(kind, of_it, value))
            elif kind in (list, tuple):
                made.append(kind(self.with_placeholders(argument, of_it, value)))
            else:
                made.append(argument)
        return made

    # -- results -------------------------------------------------------------------------------------------------------
    def later(self, args: tuple[Any, ...], inner: list[Any], index: int, results: Results) -> Any:
        """Enqueue the work on the stream, and return the memory that it will write to."""
        accelerator = self.accelerator
        out = [args[0]] if self.inplace else [accelerator.empty(index, shape, d) for shape, d in results]

        def work() -> None:
            try:
                result = listed(self.kernel(*inner))
            except Exception as error:
                raise self.late(error, inner, index) from error
            if not self.inplace:
                self.place_results(out, result, index)

        accelerator.schedule.current(index).put(StreamWork(self.name, work, (args, out)))
        return tuple(out) if len(out) > 1 else out[0]

    def place_results(self, out: list[FakeArray], result: list[Any], index: int) -> None:
        """Write the results of the kernel into the memory that was returned before."""
        reference = self.accelerator.reference
        for array, made in zip(out, result, strict=True):
            if tuple(made.shape) != array.shape or reference.dtype_of(made) is not array._dtype:
                raise RuntimeError(
                    f"{self.accelerator.device_name(index)}: {self.name!r} announced {array._dtype} "
                    f"{list(array.shape)} and returned {reference.dtype_of(made)} {list(made.shape)}: "
                    "if its shape depends on values, its record must have data_dependent=True"
                )
            reference.copy_(array._hidden, made)

    def at_once(self, args: tuple[Any, ...], inner: list[Any], index: int) -> Any:
        """Wait for the stream, then run on the actual values. Errors are raised here."""
        self.accelerator.schedule.current(index).synchronize()
        with self.accelerator.schedule.lock:
            result = self.kernel(*inner)
            if result is NotImplemented:
                return NotImplemented
            return args[0] if self.inplace else self.stored(listed(result), index)

    def run_without_tensors(self, inner: list[Any], index: int) -> Any:
        """Run a kernel without tensor arguments at once, and enqueue the copy of its result to the device's memory."""
        result = listed(self.kernel(*inner))
        if not self.accelerator.asynchronous:
            return self.stored(result, index)
        reference = self.accelerator.reference
        out = [self.accelerator.empty(index, tuple(r.shape), reference.dtype_of(r)) for r in result]
        work = StreamWork(self.name, lambda: self.place_results(out, result, index), out)
        self.accelerator.schedule.current(index).put(work)
        return tuple(out) if len(out) > 1 else out[0]

    def stored(self, result: list[Any], index: int) -> Any:
        """Return results in memory of the device."""
        reference = self.accelerator.reference
        out = [self.accelerator.empty(index, tuple(r.shape), reference.dtype_of(r)) for r in result]
        self.place_results(out, result, index)
        return tuple(out) if len(out) > 1 else out[0]

    # -- errors -------------------------------------------------------------------------------------------------------
    def late(self, error: Exception, inner: list[Any], index: int) -> Exception:
        """Return the error for a synchronisation to raise: of the same class, with the operator's text, device and
        name."""
        found = self.explained(error, inner)
        text = f"{self.accelerator.device_name(index)}: {self.name!r} failed: {found}"
        try:
            return type(found)(text)
        except Exception:  # a class whose constructor does not take one text
            return RuntimeError(text)

    def explained(self, error: Exception, inner: list[Any]) -> Exception:
        """Return the error of the record's rule or check for the same arguments on the reference, or the kernel's
        own."""
        parameters = self.record.schema.parameters
        try:
            arguments = [
                self.accelerator.on_reference(value, p.kind) for p, value in zip(parameters, inner, strict=True)
            ]
            self.record.rule(self.record, tuple(arguments))
            if self.record.check is not None:
                self.record.check(*arguments)
        except Exception as found:
            return found
        return error


def listed(result: Any) -> list[Any]:
    """Return the results of a kernel as a list; most kernels have one."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def first_array(args: Sequence[Any]) -> FakeArray:
    """Return the first array in a kernel's arguments. Raises ``TypeError`` if there is no array."""
    for value in args:
        if type(value) is FakeArray:
            return value
        if isinstance(value, (list, tuple)) and any(type(part) is FakeArray for part in value):
            return first_array(value)
    raise TypeError(f"a kernel of a fake device takes arrays of that device, got {', '.join(map(_kind, args))}")


def _kind(value: object) -> str:
    return type(value).__name__


def view_of(kernel: Callable[..., Any], dtype_of: Callable[[Any], dtype]) -> Kernel:
    """Return a kernel that creates a view by a kernel of the reference: it computes nothing and is not deferred."""

    def view(array: FakeArray, *args: Any) -> FakeArray:
        hidden = kernel(array._hidden, *args)
        return FakeArray(array._block, hidden, tuple(hidden.shape), dtype_of(hidden))

    return view
