"""The Array API namespace on two devices in addition to the reference: one with strides, one with immutable arrays."""

from __future__ import annotations

from typing import Any

import candelabra.array_api as xp
import numpy as np
import pytest

A = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("device", ["lantern", "lantern:1", "ember"])
def test_arrays_live_on_any_device(device: str, lantern: Any) -> None:
    """Creation, operators, indexing, writing and reductions stay on the device and return an Array."""
    x = xp.asarray(A, device=device)
    y = xp.concat([x[::-1, :], xp.ones((1, 4), device=device)]) * 2 + xp.arange(4, device=device)
    y[0, ::-2] = -1
    y[xp.asarray(np.array([1], np.uint8), device=device)] += 1
    want = np.concatenate([A[::-1], np.ones((1, 4), np.float32)]) * 2 + np.arange(4)
    want[0, ::-2] = -1
    want[[1]] += 1
    assert isinstance(y, xp.Array)
    assert y.device == x.device == x.to_device(device).device
    np.testing.assert_array_equal(xp.asarray(y.to_device("cpu")).numpy(), want)
    assert xp.sum(y, axis=0).device == x.device
    assert x.to_device("cpu").tolist() == A.tolist()


@pytest.mark.parametrize("device", ["lantern", "ember"])
def test_inspection_knows_every_device(device: str, lantern: Any) -> None:
    """devices() lists them, and dtypes() lists what each supports."""
    info = xp.__array_namespace_info__()
    assert device in {place.type for place in info.devices()}
    assert info.dtypes(device=device, kind="real floating")["float32"] is xp.float32
