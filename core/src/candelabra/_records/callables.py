"""Public callables: public functions that cannot be operators' records.

A record takes tensors and plain values and returns a fixed number of tensors. A function with other arguments or
results (``from_numpy``, ``to``, ``split``, ``x[index]``, ``equal``) is an ordinary typed function with the decorator
:func:`public`. As with a record, its signature is its schema and its docstring is its documentation. It has no kernel,
key or derivative: it calls operators.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from candelabra._annotations import Any, Final, TypeVar, overload
from candelabra._codegen.callable_entry import compile_callable
from candelabra._namespace.index import await_import
from candelabra._records.registry import ENTRIES, METHODS, Entry, Signature, add
from candelabra._records.schema import Parameter, read_parameters

F = TypeVar("F", bound=Callable[..., Any])


class PublicCallable(Entry):
    """One public callable: the declared function, and the keywords that the grammar adds to it."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        out: bool | str = False,
        factory: bool | tuple[str, ...] = False,
        guarded: bool = True,
        elementwise: bool = False,
        **names: Any,
    ) -> None:
        doc = function.__doc__ or ""
        super().__init__(function.__name__ if name is None else name, doc, function.__module__, **names)
        self.declared: Final = function
        self.parameters: Final[tuple[Parameter, ...]] = read_parameters(getattr(function, "__wrapped__", function))
        self.returns: Final[str] = str(function.__annotations__.get("return"))
        self.out: Final = out
        self.factory: Final = factory
        self.elementwise: Final = elementwise
        """Whether each element of the result depends only on the elements of the tensors at its position."""
        self.guarded: Final = guarded and not self.is_property and (self.is_function or len(self.parameters) > 1)
        """Whether the method, too, describes errors by the arguments. That takes one more frame per call, so methods
        of a microsecond go without: their tensor is one."""
        if not self.doc:
            raise TypeError(f"public callable {self.name}: a docstring is required, as it is the documentation")

    def methods(self) -> dict[str, str]:
        """Return ``{method of Tensor: form}``."""
        if not self.public:
            return {}
        return dict.fromkeys(self.method_names(), "function" if self.guarded else "method")

    def form(self, kind: str) -> Callable[..., Any]:
        """Return the function that users call: the declared one with a handler of errors and the grammar's keywords.

        The ``"method"`` form of a callable without a handler is the declared function.
        """
        await_import(self.declared_in)
        return self.declared if kind == "method" else self.compiled

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """Return the declared function with a handler of errors and the grammar's keywords."""
        return compile_callable(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.form("function")(*args, **kwargs)

    def signatures(self) -> tuple[Signature, ...]:
        """Return the signature, in a tuple."""
        return (Signature(self.parameters, self.returns, self),)

    def __repr__(self) -> str:
        return f"<public callable {self.public_name}>"


def callable_of(function: Callable[..., Any]) -> PublicCallable | None:
    """Return the public callable whose function, as users call it, is ``function``, or None."""
    declared = getattr(function, "__wrapped__", function)
    for entry in (*ENTRIES.values(), *[entry for entry, _ in METHODS.values()]):
        if isinstance(entry, PublicCallable) and declared in (entry.declared, entry.__dict__.get("compiled")):
            return entry
    return None


@overload
def public(function: F, /) -> F: ...
@overload
def public(function: None = None, /, *, is_function: bool = True, **options: Any) -> Callable[[F], F]: ...
def public(function: Any = None, /, *, is_function: bool = True, **options: Any) -> Any:
    """Publish a function, by default also as a method of Tensor.

    ``name`` is the public name if the module uses it for something else. ``is_function=False``: only a method;
    ``method=False``: only a function; ``method="where"``: a method of another name; ``is_property``: a property of
    Tensor. ``namespace="linalg"`` publishes ``candelabra.linalg.<name>``, with a method only if ``method`` is a name.
    ``aliases`` are further public names, such as ``"concat"`` or ``"special.expit"``.

    Options add the grammar's keywords without code in the function: ``out=True`` (with ``out="exact"`` the tensor must
    have the result's dtype), ``factory=True`` (``out``, ``layout``, ``pin_memory``, ``requires_grad`` and
    ``memory_format``, for a function with ``dtype`` and ``device``; ``factory=("requires_grad",)`` adds only the
    keywords that it names). A factory's sizes and dtypes (``Shape``, ``DType``) are canonical before it is called.
    ``axis`` and ``keepdims`` are accepted for ``dim`` and ``keepdim`` as in records.

    The function that users call describes errors of the interpreter in their words, at the cost of one frame.
    ``guarded=False`` leaves that out of the method, and of the function that is returned: for functions that take about
    a microsecond.

    ``elementwise``: each element of the result depends only on the elements of the tensors at its position, as those of
    ``x.to(dtype)``. So a tensor that is divided among devices is processed in parts. ``uses`` says what a call uses of
    its tensors, if not their elements; see ``candelabra._records.registry.USES``.

    ``public=False`` declares a member of an overload set, which has no public name of its own.

    Returns the function that users call; with ``public=False``, the :class:`PublicCallable`. Raises ``ValueError`` if
    the name exists already, ``TypeError`` for a parameter without an annotation and for a missing docstring.
    """
    if function is None:
        return lambda declared: public(declared, is_function=is_function, **options)
    entry = PublicCallable(function, is_function=is_function, **options)
    if not entry.public:
        return entry
    add(entry)
    return entry.compiled if entry.guarded else entry.declared
