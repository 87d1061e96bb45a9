"""``opcheck``: does an operator of one's own keep the promises that autograd and dispatch build on?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from candelabra_conformance.opchecking.promises import TESTS
from candelabra_conformance.opchecking.subject import subject_of
from candelabra_conformance.opchecking.verdicts import Broken, NotApplicable

PASSED: Final = "passed"
NOT_APPLICABLE: Final = "not applicable: "
"""How the text of a test begins that has nothing to check; the reason follows."""


class OpCheckError(AssertionError):
    """Some tests failed. ``results`` has the text of every test by name."""

    def __init__(self, name: str, results: Mapping[str, str]) -> None:
        failed = {test: text for test, text in results.items() if not _held(text)}
        told = "\n".join(f"  {test}: {text}" for test, text in failed.items())
        super().__init__(f"opcheck({name}): {len(failed)} of {len(results)} tests failed\n{told}")
        self.results = dict(results)


def opcheck(
    operator: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    device: Any = None,
    tests: Sequence[str] = tuple(TESTS),
    raise_exception: bool = True,
) -> dict[str, str]:
    """Check one call of an operator in every way that needs no further word from its author.

    ``operator`` is a record that ``@operator`` made, its name, an ``autograd.Function``, or any function of tensors.
    Tensors among ``args`` and ``kwargs`` are copied before use (NumPy arrays stand for tensors too); those that
    require grad are differentiated, all floating ones if none does. ``device`` is where it runs: that of the first
    tensor unless given. ``tests`` are names of :data:`TESTS`: ``inputs`` (left alone unless returned), ``result``
    (tensors; dtype and shape by the record's rules), ``aliasing`` (shared memory means a view), ``inplace`` (the
    in-place form of a record), ``determinism``, ``layouts``, ``devices`` (as on the reference), ``gradient`` and
    ``gradient2`` (finite differences, in float64), ``body`` (the record's derivative against its body's).

    Returns the text of each test: ``"passed"``, ``"not applicable: …"`` with the reason, or what is wrong.
    :class:`OpCheckError` where one is wrong, unless ``raise_exception`` is False. ``ValueError`` for a test or
    an operator that does not exist, ``TypeError`` for what is no operator.
    """
    unknown = [test for test in tests if test not in TESTS]
    if unknown:
        raise ValueError(f"opcheck(): there is no test {unknown[0]!r}; tests are {', '.join(TESTS)}")
    subject = subject_of(operator, args, kwargs, device)
    results: dict[str, str] = {}
    for test in tests:
        try:
            TESTS[test](subject)
            results[test] = PASSED
        except NotApplicable as reason:
            results[test] = NOT_APPLICABLE + str(reason)
        except Broken as failure:
            results[test] = str(failure)
        except Exception as error:  # the operator's own
            results[test] = f"{type(error).__name__}: {error}"
    if raise_exception and not all(_held(text) for text in results.values()):
        raise OpCheckError(subject.name, results)
    return results


def _held(text: str) -> bool:
    return text == PASSED or text.startswith(NOT_APPLICABLE)
