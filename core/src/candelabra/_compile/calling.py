"""Compiled functions: which program serves a call, and what happens if none does."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import update_wrapper
from itertools import count
from os.path import basename
from types import MethodType
from weakref import WeakSet

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._compile import observing
from candelabra._compile.backends import CompilerError, GraphCompiler
from candelabra._compile.config import config
from candelabra._compile.containers import Containers, classes_in, flattened, is_constant
from candelabra._compile.environment import Unguarded, environment_of
from candelabra._compile.first_call import Program, TracedCall, kinds_of
from candelabra._compile.program import MISS, same_kind
from candelabra._dispatch import autocasting
from candelabra._dispatch.levels import active_frames
from candelabra._invalidation import KEEPERS
from candelabra._keys import DEFERRED, FUNCTION_MODE, LAYER_MASK, PACK, TRACING, state
from candelabra._tensor import Tensor
from candelabra.utils._pytree import TreeSpec

if TYPE_CHECKING:
    from candelabra._compile.segments import SegmentCache

EAGER_MODES: Final = TRACING | FUNCTION_MODE | PACK | DEFERRED
"""Modes in which compiled functions run eagerly: others have to see their operators."""


forced_eager: Final[list[str]] = []
"""The stance ``force_eager`` while it is in force: compiled functions run eagerly."""
without_recompiling: Final[list[str]] = []
"""The stance ``eager_on_recompile`` or ``fail_on_recompile`` while it is in force, for calls that no program serves."""
_numbers: Final = count()
compiled_functions: Final[WeakSet[CompiledFunction]] = WeakSet()
"""All compiled functions, for ``compiler.reset()``."""


class _Generation:
    """Counts the changes after which no program is valid: of kernels, layers, policies, the default dtype."""

    number = 0


def forget_programs() -> None:
    """Forget the programs of all compiled functions."""
    _Generation.number += 1
    for function in list(compiled_functions):
        function.reset()


KEEPERS.append(forget_programs)


class CompiledFunction:
    """A function that is traced at the first call of each kind, and then runs as compiled graphs.

    It returns what the function returns and has its effects on tensors. ``fullgraph``: raise an error for what a graph
    cannot repeat, instead of running in segments (``candelabra._compile.segments``). ``compiler`` makes functions of
    the graphs.
    """

    recompile_limit: int | None = None
    """The number of programs of the function; None: that of the settings. More kinds of calls run eagerly."""

    is_segment = False
    """Whether the function is a segment of another one."""

    def __init__(
        self, function: Callable[..., Any], fullgraph: bool = False, compiler: GraphCompiler | None = None
    ) -> None:
        update_wrapper(self, function, updated=())
        self.function = function
        self.fullgraph = fullgraph
        self.compiler = compiler or GraphCompiler()
        self._lock = threading.Lock()
        compiled_functions.add(self)
        self.number = next(_numbers)
        self.reset()

    def reset(self) -> None:
        """Forget all programs."""
        self.programs: list[Program] = []
        self._plain: tuple[Callable[..., Any], ...] = ()
        self.eager: str | None = None
        """Why a call that no program serves runs eagerly, or in segments."""
        self.segments: SegmentCache | None = None
        """The segments of such calls. None: they run eagerly."""
        self._misses = 0

    def __reduce__(self) -> Any:
        """Return how to copy and to pickle the function: without programs, and by name if that leads to it."""
        name = getattr(self, "__qualname__", "")
        if getattr(sys.modules.get(self.__module__), name, None) is self:
            return name
        return type(self), (self.function, self.fullgraph, self.compiler)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and not forced_eager:
            for position, function in enumerate(self._plain):
                try:
                    out = function(*args)
                except Exception as error:
                    if function.__code__.co_argcount == len(args):
                        return self._failed(function, error, args)
                    continue  # another number of arguments
                if out is not MISS:
                    if position:  # the kind that was called last is tried first
                        self._plain = (function, *(other for other in self._plain if other is not function))
                    return out
        return self._slowly(args, kwargs)

    def _failed(self, function: Callable[..., Any], error: Exception, args: tuple[Any, ...]) -> Any:
        """Let the eager function raise the error in the user's terms, if the failed call has changed nothing."""
        repeatable = any(p.function is function and p.repeatable for p in self.programs)
        if not repeatable or isinstance(error, CompilerError):
            raise error
        out = self.function(*args)
        warnings.warn(
            f"candelabra.compile: a compiled graph of {self._name}() failed where the function itself does not, which "
            f"is an error of the device's compiler: {type(error).__name__}: {error}",
            RuntimeWarning,
            stacklevel=3,
        )
        return out

    def _slowly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if forced_eager or active_frames() or _sees_operators(state.bits):
            return self.function(*args, **kwargs)
        leaves, spec = flattened((args, kwargs))
        for program in list(self.programs):
            if program.spec is not None and program.spec == spec:
                given = [*leaves, Containers(args, kwargs)] if program.takes_containers else leaves
                out = program.function(*given)
                if out is not MISS:
                    return out
        if self.eager is not None and not self.fullgraph:
            return self._eagerly(args, kwargs)
        if any(isinstance(leaf, Tensor) and leaf._instance.depth for leaf in leaves):
            return self.function(*args, **kwargs)
        if without_recompiling:
            if "fail_on_recompile" in without_recompiling:
                raise RuntimeError(
                    f"compile({self._name}): the stance 'fail_on_recompile' forbids to compile it for this call, which "
                    f"differs from those before in {self._change(leaves)}"
                )
            return self.function(*args, **kwargs)
        return self._traced(args, kwargs, leaves, spec)

    def _eagerly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call that is no single graph: in segments, or eagerly if each call would have others."""
        if self.segments is None:
            return self.function(*args, **kwargs)
        from candelabra._compile.segments import run_in_segments

        return run_in_segments(self.function, self.segments, args, kwargs)

    # -- the first call of a kind -------------------------------------------------------------------------------------
    def _traced(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any], spec: TreeSpec) -> Any:
        if len(self.programs) >= (self.recompile_limit or config.recompile_limit):
            changes = f"it was compiled {len(self.programs)} times; what changes is {self._change(leaves)}"
            self._give_up(changes, segments=False)
            return self.function(*args, **kwargs)
        try:
            others = [leaf for leaf in leaves if not isinstance(leaf, Tensor) and not is_constant(leaf)]
            objects = [(each, "an argument") for each in (*others, *classes_in(spec))]
            replaced = self.programs[-1].environment.replaced_tensors() if self.programs else frozenset[str]()
            environment = environment_of([(self.function, self._name), *objects], replaced)
        except Unguarded as error:
            self._give_up(f"it depends on {error}")
            return self.function(*args, **kwargs)
        observing.tracing_begins(self, len(self.programs))
        if self.programs:
            observing.recompiles(self, self._change(leaves))
        call, generation = TracedCall(self, environment, leaves, spec, Containers(args, kwargs)), _Generation.number
        out = call.run(args, kwargs)
        if call.recorder.breaks:
            observing.broken(call.recorder.pieces())
            self._give_up(str(call.recorder.breaks[0]))
            return out
        changed = call.difference
        if changed is not None:
            self._misses += 1
            if self._misses >= (self.recompile_limit or config.recompile_limit):
                self._give_up(f"each call changes {changed}")
            return out
        program = call.program
        if program is not None and generation == _Generation.number:
            with self._lock:  # another thread may have traced the same kind of call meanwhile
                if any(program.spec == p.spec and same_kind(program.kind, p.kind) for p in self.programs):
                    return out
                self.programs.append(program)
                self._plain = tuple(p.function for p in self.programs if p.spec is None)
            observing.compiled(self, program)
        return out

    def _change(self, leaves: Sequence[Any]) -> str:
        """Name a difference from the last program, for a call that none serves."""
        if not self.programs:
            return "everything: it has no program yet"
        changed = self.programs[-1].environment.failure()
        if changed is not None:
            return changed
        then, now = self.programs[-1].arguments, kinds_of(leaves)
        for before, after in zip(then, now, strict=False):
            if before != after:
                return f"{before}, which is now {after.partition(': ')[2]}"
        return "the structure of its arguments" if len(then) != len(now) else "the strides or flags of its arguments"

    @property
    def title(self) -> str:
        """The name of the function, with the file and line of its definition if it has one."""
        code = getattr(self.function, "__code__", None)
        return self._name if code is None else f"{self._name} ({basename(code.co_filename)}:{code.co_firstlineno})"

    @property
    def _name(self) -> str:
        return getattr(self.function, "__name__", None) or type(self.function).__name__

    def _give_up(self, reason: str, segments: bool = True) -> None:
        """Run further kinds of calls in segments, or eagerly. Warn once."""
        if self.fullgraph:
            raise RuntimeError(f"compile({self._name}, fullgraph=True): {reason}")
        how = "in segments" if segments else "eagerly"
        observing.breaks(self, reason, how)
        if self.eager is None:
            self.eager = reason
            if segments:
                from candelabra._compile.segments import SegmentCache

                self.segments = SegmentCache(self.title, self.compiler)
            warnings.warn(
                f"candelabra.compile: {self._name}() runs {how}: {reason}. fullgraph=True makes this an error",
                UserWarning,
                stacklevel=5,
            )


def _sees_operators(bits: int) -> bool:
    """Return whether a mode has to see the operators of a function, as a profiler does; autocast is traced through."""
    layers = bits & LAYER_MASK
    return bool(bits & EAGER_MODES) or (layers != 0 and layers != autocasting.layer().bit)


__all__ = ["CompiledFunction", "compiled_functions", "forced_eager", "forget_programs"]
