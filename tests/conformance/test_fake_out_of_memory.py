"""If any allocation of a call fails, tensors, versions and gradients keep the values that they had before it."""

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra.errors import OutOfMemoryError
from candelabra_conformance.fake import FakeAccelerator, after, installed


class Scene:
    """Tensors of one device: a leaf, a result with history, a base with a view, and a tensor without gradient."""

    def __init__(self) -> None:
        device = "fake"
        self.leaf = cd.tensor([1.0, 2.0, 3.0], device=device).requires_grad_()
        self.result = self.leaf * 2
        self.base = cd.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device=device)
        self.view = self.base[1]
        self.mask = cd.tensor([True, False, True], device=device)
        self.index = cd.tensor([2, 0], device=device)

    def state(self) -> list[Any]:
        """Return all state that a user can observe."""
        found: list[Any] = []
        for tensor in (self.leaf, self.result, self.base, self.view):
            grad = tensor.grad if tensor.is_leaf else None
            found += [
                tensor.tolist(),
                tensor._version,
                tensor.requires_grad,
                type(tensor.grad_fn).__name__,
                tuple(tensor.shape),
            ]
            found.append(None if grad is None else grad.tolist())
        return found


PROGRAMS: dict[str, Callable[[Scene], object]] = {
    "add": lambda s: s.base + s.view,
    "in place": lambda s: s.base.mul_(2),
    "in place on a view": lambda s: s.view.add_(1),
    "in place with history": lambda s: s.result.mul_(s.result),
    "in place with history, on a view": lambda s: s.result[1:].exp_(),
    "copy": lambda s: s.base.copy_(s.view),
    "copy from the host": lambda s: s.base.copy_(cd.ones(2, 3)),
    "fill": lambda s: s.base.fill_(cd.tensor(3.0, device="fake")),
    "assignment by a slice": lambda s: s.base.__setitem__((slice(None), 1), 7.0),
    "assignment by a mask": lambda s: s.base.__setitem__((0, s.mask), 7.0),
    "assignment by indices": lambda s: s.view.__setitem__(s.index, s.view[:2] * 2),
    "an output": lambda s: cd.add(s.base, s.base, out=s.base),
    "several outputs": lambda s: s.base.sort(1),
    "random numbers": lambda s: s.base.uniform_(),
    "a composite": lambda s: s.base.softmax(1).log_softmax(0),
    "backward": lambda s: (s.result * s.result).sum().backward(retain_graph=True),
    "an immediate gradient": lambda s: cd.autograd.grad((s.result * s.leaf).sum(), s.leaf, create_graph=True),
    "to another device": lambda s: s.base.to("fake:1"),
    "resizing": lambda s: cd.empty(0, device="fake").resize_(4),
}


def outcome(name: str, immutable: bool, number: int | None) -> tuple[bool, list[Any], list[Any], list[Any]]:
    """Run a program while allocation ``number`` of it fails, or none if it is None.
    Return whether it failed, and the state before, after, and after a second, undisturbed run.
    """
    with installed(immutable=immutable) as fake:
        scene = Scene()
        before = scene.state()
        failing(fake, number)
        try:
            PROGRAMS[name](scene)
            failed = False
        except OutOfMemoryError:
            failed = True
        failing(fake, None)
        found = scene.state()
        if failed:
            PROGRAMS[name](scene)
        return failed, before, found, scene.state()


def failing(fake: FakeAccelerator, number: int | None) -> None:
    """Let a future allocation fail, on both devices."""
    for ledger in fake.ledgers:
        ledger.failing = None if number is None else after(ledger.number + number)


@pytest.mark.parametrize("immutable", [False, True], ids=["strided", "immutable"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_call_that_runs_out_of_memory_changes_nothing(name: str, immutable: bool) -> None:
    """Any allocation of the call may fail; a second attempt succeeds."""
    cd.manual_seed(0)
    _, _, _, expected = outcome(name, immutable, None)
    for number in range(50):
        cd.manual_seed(0)
        failed, before, found, again = outcome(name, immutable, number)
        if not failed:
            break
        assert found == before, f"allocation {number} failed"
        # The failed call has used its random numbers: another thread may have drawn since.
        if name != "random numbers":
            assert again == expected, f"allocation {number} failed"
    else:
        raise AssertionError("the program never got to its end")
