"""Two device types as unlike NumPy as a test can make them, so that the core leans on nothing but the contract.

``lantern`` has two devices, keeps its data where only it can look, hands results over when it is synchronised, holds no
64-bit floats, and lacks many operators. ``ember`` has arrays that never change and no strides.
"""

from tests.lantern.backends import EmberBackend, LanternBackend

__all__ = ["EmberBackend", "LanternBackend"]
