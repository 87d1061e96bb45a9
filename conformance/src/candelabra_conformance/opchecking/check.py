"""``opcheck``: verify that an operator satisfies the requirements of autograd and dispatch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from candelabra_conformance.context import NotApplicable
from candelabra_conformance.opchecking.promises import TESTS
from candelabra_conformance.opchecking.subject import subject_of
from candelabra_conformance.opchecking.verdicts import Broken

PASSED: Final = "passed"
NOT_APPLICABLE: Final = "not applicable: "
"""The prefix of a test's text if the test does not apply. The reason follows."""


class OpCheckError(AssertionError):
    """Raised if tests fail. ``results`` has the text of every test by name."""

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
    """Check one call of an operator with every test that needs no further information.

    ``operator`` is a record created by ``@operator``, its name, an ``autograd.Function``, or any function of tensors.
    Tensors in ``args`` and ``kwargs`` are copied before use, and NumPy arrays are converted to tensors. Gradients are
    computed for the tensors that require grad, or for all floating tensors if none does. ``device`` is the device to
    run on, by default that of the first tensor. ``tests`` are names of :data:`TESTS`: ``inputs`` (arguments do not
    change unless they are returned), ``result`` (tensors, with dtype and shape by the record's rules), ``aliasing``
    (only views share memory), ``inplace`` (the in-place form of a record), ``determinism``, ``layouts``, ``devices``
    (the same values as on the reference device), ``gradient`` and ``gradient2`` (finite differences, in float64),
    ``body`` (the record's derivative equals that of its body).

    Returns the text of each test: ``"passed"``, ``"not applicable: …"`` with the reason, or the error. Raises
    :class:`OpCheckError` if a test fails, unless ``raise_exception`` is False; ``ValueError`` for an unknown test or
    operator; ``TypeError`` if ``operator`` is not an operator.
    """
    unknown = [test for test in tests if test not in TESTS]
    if unknown:
        raise ValueError(f"opcheck(): there is no test {unknown[0]!r}; the tests are {', '.join(TESTS)}")
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
        except Exception as error:  # an exception of the operator itself
            results[test] = f"{type(error).__name__}: {error}"
    if raise_exception and not all(_held(text) for text in results.values()):
        raise OpCheckError(subject.name, results)
    return results


def _held(text: str) -> bool:
    return text == PASSED or text.startswith(NOT_APPLICABLE)
