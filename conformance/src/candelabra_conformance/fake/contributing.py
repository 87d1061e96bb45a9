"""Kernels that are contributed to a fake accelerator, as a distribution of fast kernels would do."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, Final

from candelabra.backend import Kernel, hookimpl

from candelabra_conformance.fake.backend import FakeAccelerator
from candelabra_conformance.fake.launching import first_array


class FakeContribution:
    """Kernels over the arrays of the reference device, contributed to a fake accelerator by ``add_contribution``.

    Calls whose first array has fewer than ``least`` elements stay with the kernel that served before, unless every size
    is asked for.
    """

    def __init__(
        self, accelerator: FakeAccelerator, kernels: Mapping[str, Kernel], least: int = 0, precedence: int = 0
    ) -> None:
        self.accelerator: Final = accelerator
        self.given: Final = kernels
        self.least: Final = least
        self.precedence: Final = precedence

    @hookimpl
    def candelabra_kernels(self, kernels: Mapping[str, Kernel], every_size: bool) -> dict[str, Kernel]:
        """Return the contributed kernels."""
        made = {name: self.accelerator.serving(name, kernel) for name, kernel in self.given.items()}
        return made if every_size else {name: self._for_large(kernels[name], kernel) for name, kernel in made.items()}

    def _for_large(self, small: Kernel, large: Kernel) -> Kernel:
        def kernel(*args: Any) -> Any:
            return (small if prod(first_array(args).shape) < self.least else large)(*args)

        return kernel
