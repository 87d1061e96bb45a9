"""The interface to declare operators, layers and kernels, for nn, backends, conformance and vendors.

Other distributions than the core use this module, :mod:`candelabra.backend` (the contract of devices),
:mod:`candelabra.dtypes`, :mod:`candelabra.errors` and :mod:`candelabra.typing`, in addition to the public functions.
Modules whose names begin with an underscore may change in any release.

- Declaring: ``operator``, ``overloads``, ``public``; rules for shapes, dtypes and derivatives; ``record`` for an
  existing operator.
- Reading: the registry of operators and public names, schemas, dispatch keys, ``explain``.
- Opaque operators of programs: ``custom_op``, ``register_fake``, ``register_autograd``, ``opcheck``, as in PyTorch's
  module of this name.
- Extending: ``Layer``, ``register_kernel``, ``add_contribution``, ``own_kernels``, ``plugins``; ``Transform`` for
  transforms of functions; ``deferred_imports`` for modules that import their names at the first use, as this one does.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._namespace.deferred_imports import deferred_imports
from candelabra._records.record import Operator
from candelabra._records.registry import OPERATORS

if TYPE_CHECKING:  # each at the first use of its name: few programs need the registration of kernels or explain
    from candelabra._autograd.engine import after_backward
    from candelabra._autograd.hooks import RemovableHandle, add_hook
    from candelabra._autograd.views import check_targets
    from candelabra._codegen.overloading import bind, member_for
    from candelabra._codegen.source import build, indent
    from candelabra._custom_operators import custom_op, register_autograd, register_fake
    from candelabra._device import Instance, get_default_device, instance_of_key, open_device, open_instances
    from candelabra._dispatch.autocasting import autocast_on_host, float32_on_host
    from candelabra._dispatch.contributed import own_kernels, serve_every_size
    from candelabra._dispatch.declining import DeclinedKernel, declined_kernels
    from candelabra._dispatch.explain import Explanation, canonical, explain, explain_key
    from candelabra._dispatch.failure import fail
    from candelabra._dispatch.fallback import fallback, fallback_policy
    from candelabra._dispatch.key import redispatch
    from candelabra._dispatch.layers import Layer
    from candelabra._dispatch.levels import active_levels, batch_levels, level
    from candelabra._dispatch.out import store
    from candelabra._dispatch.promote import common_dtype
    from candelabra._dispatch.rows import has_one_kernel
    from candelabra._dispatch.tracing import depends_on, is_compiling, note_break, outside_graph, untraced
    from candelabra._interchange.numpy import dtype_of_array
    from candelabra._keys import AUTOGRAD, DEVICE_SHIFT, EVERY_SIZE, NO_GRAD, OVERRIDE, OWN_KERNELS, VIEW, mode, state
    from candelabra._layout import wrap_dim
    from candelabra._namespace.index import UNGUARDED_METHODS
    from candelabra._namespace.publishing import members, operator_named
    from candelabra._operator_checks import opcheck
    from candelabra._overrides import disabled_torch_function
    from candelabra._plugins import contributions
    from candelabra._plugins import registry as plugins
    from candelabra._plugins.contributed_kernels import add_contribution
    from candelabra._plugins.kernels import get_kernel, register_kernel
    from candelabra._plugins.names import registered_names as device_names
    from candelabra._random.generator import take_counters
    from candelabra._records import batching
    from candelabra._records.accepts import refusal
    from candelabra._records.autocasting import Autocast
    from candelabra._records.callables import PublicCallable, callable_of, public
    from candelabra._records.derivative import applied, conjugate
    from candelabra._records.lookup import entries, entry_named, public_function, public_names
    from candelabra._records.overloads import OverloadSet, overloads
    from candelabra._records.promotion import (
        accumulated,
        boolean,
        common,
        highest,
        identical,
        index,
        real_part,
        same,
        to_float,
        to_integer,
        unpromoted,
    )
    from candelabra._records.record import operator
    from candelabra._records.registry import ENTRIES, METHODS, Entry, Signature, factory_keywords, title_of
    from candelabra._records.rules import (
        by,
        checked_pointwise,
        like_input,
        normalized_dims,
        pointwise,
        reduction,
        shape_of,
        unchecked,
    )
    from candelabra._records.schema import (
        BOUND,
        DEVICE,
        DIFFERENTIABLE,
        DIM,
        DIMS,
        DTYPE,
        INDEX,
        INDICES,
        LIST,
        MASK,
        OPERAND,
        OPTIONAL,
        PLAIN,
        REQUIRED,
        SHAPE,
        TENSOR,
        Parameter,
        Schema,
    )
    from candelabra._reduce_op import ReduceOp
    from candelabra._serving import kernel_for
    from candelabra._tensor import Tensor, wrap
    from candelabra._transforms.level import Frame, Payload, Transform, below
    from candelabra._versions import join_versions
else:
    __getattr__ = deferred_imports(__name__)

__all__ = [
    # declaring
    "operator", "overloads", "public", "record", "Autocast", "autocast_on_host", "float32_on_host", "Operator",
    "OverloadSet", "PublicCallable", "by",
    "checked_pointwise", "like_input", "normalized_dims", "pointwise", "reduction", "shape_of", "unchecked",
    "accumulated", "boolean", "common", "index", "real_part", "same", "highest", "identical", "to_float", "to_integer",
    "unpromoted", "applied", "build", "conjugate", "indent", "fail", "store", "take_counters", "wrap_dim",
    "check_targets", "batching", "batch_levels", "active_levels",
    # reading
    "ENTRIES", "METHODS", "OPERATORS", "UNGUARDED_METHODS", "Entry", "Signature", "Schema", "Parameter",
    "REQUIRED", "BOUND", "DEVICE",
    "DIFFERENTIABLE", "DIM", "DIMS", "DTYPE", "INDEX", "INDICES", "LIST", "MASK", "OPERAND", "OPTIONAL", "PLAIN",
    "SHAPE", "TENSOR", "bind", "callable_of", "entries", "entry_named", "factory_keywords", "member_for", "members",
    "operator_named", "public_function", "public_names", "title_of", "refusal", "common_dtype", "Explanation",
    "canonical", "explain",
    "explain_key", "DeclinedKernel", "declined_kernels", "AUTOGRAD", "DEVICE_SHIFT", "EVERY_SIZE", "NO_GRAD",
    "OVERRIDE", "OWN_KERNELS", "VIEW", "mode", "state",
    "Instance", "get_default_device", "instance_of_key", "kernel_for", "open_device", "open_instances",
    "Tensor", "wrap", "dtype_of_array",
    # extending
    "Frame", "Payload", "Transform", "below", "join_versions",
    "Layer", "level", "redispatch", "command", "contributions", "device_names", "fallback", "fallback_policy",
    "get_kernel", "plugins", "register_kernel", "add_contribution", "own_kernels", "serve_every_size",
    "RemovableHandle", "add_hook", "after_backward", "has_one_kernel", "outside_graph", "depends_on", "untraced",
    "is_compiling", "note_break",
    "ReduceOp", "deferred_imports", "disabled_torch_function", "custom_op", "opcheck", "register_autograd",
    "register_fake",
]  # fmt: skip


def record(name: str) -> Operator[..., Any]:
    """Return an operator, for use in another one: ``cast = record("cast")``. Raise KeyError if it is unknown."""
    found: Operator[..., Any] = OPERATORS[name]
    return found


def command(arguments: list[str]) -> int:
    """Run the command ``candelabra`` with these arguments and return its exit status."""
    from candelabra._cli.main import main

    return main(arguments)


def __dir__() -> list[str]:
    return sorted(__all__)
