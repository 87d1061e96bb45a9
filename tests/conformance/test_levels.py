"""Level 2 tries values in each dtype that a device claims, and special values."""

import functools

import candelabra as cd
from candelabra.dtypes import ALL
from candelabra.library import OPERATORS
from candelabra_conformance.context import Context
from candelabra_conformance.properties import registry
from candelabra_conformance.suite import plan

PRIMITIVES = tuple(sorted(name for name, op in OPERATORS.items() if op.body is None))


@functools.cache
def planning() -> Context:
    """Return a context on the reference for planning."""
    registry.load()
    context = Context(str(cd.get_default_device()))
    context.planning = True
    return context


@functools.cache
def dtypes_tried(property: str, name: str) -> frozenset[str]:
    """Return the dtypes of an operator whose case of a property belongs to level 2 or below, on the reference."""
    axes = registry.OF_OPERATORS[property].axes(planning(), OPERATORS[name])
    return frozenset(axis.dtype.name for axis in axes if axis.dtype is not None and axis.level <= 2)


def tried(property: str, names: tuple[str, ...]) -> set[tuple[str, str]]:
    """Return pairs of operator and dtype whose case of a property belongs to level 2 or below, on the reference."""
    planning()
    return {(name, dtype) for name in names for dtype in dtypes_tried(property, name)}


def accepted(name: str) -> set[str]:
    """Return the dtypes that a primitive accepts on the reference."""
    return {d.name for d in planning().dtypes(OPERATORS[name])}


def test_each_family_has_a_value_case_in_each_claimed_dtype() -> None:
    """For each module that declares primitives, one is tried at level 2 in each dtype that one of them takes."""
    families = {(OPERATORS[name].declared_in, dtype) for name, dtype in tried("value", PRIMITIVES)}
    for name in PRIMITIVES:
        module = OPERATORS[name].declared_in
        assert {(module, dtype) for dtype in accepted(name)} <= families, name
    assert {dtype for _, dtype in families} == {d.name for d in ALL}


def test_each_kernel_is_tried_in_wide_dtypes() -> None:
    """An error of single precision in a wider dtype is found at level 2: every kernel has a value case in each."""
    kernels = Context(str(cd.get_default_device())).instance.kernels
    served = {name.removesuffix("_") for name in kernels}
    names = tuple(sorted({*PRIMITIVES, *served}))
    wide = {"float64", "complex128", "int32"}
    found = {(name, dtype) for name, dtype in tried("value", names) if dtype in wide}
    assert found == {(name, dtype) for name in names for dtype in accepted(name) & wide}
    assert ("sigmoid", "float64") in found
    assert ("stack", "float64") not in tried("value", ("stack",))


def test_an_operator_without_usual_dtypes_is_tried_in_its_first() -> None:
    """Operators of complex numbers only have cases at level 2, in every layout of the lower levels."""
    registry.load()
    context = Context(str(cd.get_default_device()))
    axes = registry.OF_OPERATORS["value"].axes(context, OPERATORS["view_as_real"])
    low = {(axis.dtype.name, axis.layout) for axis in axes if axis.dtype is not None and axis.level <= 2}
    assert {("complex64", "contiguous"), ("complex64", "transposed"), ("complex64", "zero-size")} <= low


def test_special_values_belong_to_level_2() -> None:
    """A maximum that ignores NaN is found at level 2, in the usual dtypes and in those that are computed in others."""
    names = ("maximum", "amax", "exp", "sort")
    due = {(name, dtype) for name in names for dtype in ("float32", "float64", "int64", "int32")}
    assert due <= tried("special", names)


def test_special_values_of_kernels_in_half_precision_belong_to_level_2() -> None:
    """A sum of squares that overflows in float16 is found at level 2, in primitives and in overridden bodies."""
    names = ("sum", "mean", "softmax", "log_softmax", "linalg_vector_norm", "normalize")
    assert {(name, "float16") for name in names} <= tried("special", names)
    assert ("stack", "float16") not in tried("special", ("stack",))


def test_refusals_of_kernels_belong_to_level_2_in_one_dtype() -> None:
    """An index beyond the end, or shapes that do not fit, that a kernel takes without an error are found at level 2."""
    names = ("index_put", "gather", "matmul", "bitwise_and", "stack")
    due = {("index_put", "float32"), ("gather", "float32"), ("matmul", "float32"), ("bitwise_and", "int64")}
    assert tried("errors", names) == due


def test_exported_memory_belongs_to_level_2_in_one_dtype() -> None:
    """Capsules with wrong strides, and memory that they do not keep, are found at level 2; as are unordered streams."""
    cases = plan(Context(str(cd.get_default_device())), level=2, operators=["device"])
    found = {case.id for case in cases if case.property in ("dlpack", "dlpack-lifetime", "streams")}
    layouts = ("contiguous", "transposed", "offset", "step")
    assert found == {*(f"device/dlpack/float32/{name}" for name in layouts), "device/dlpack-lifetime", "device/streams"}
