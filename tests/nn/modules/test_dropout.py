"""Modules and functions of dropout: what is dropped, warnings, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn
from candelabra.nn import functional as F

MODULES = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


def slices_of(x: cd.Tensor, lead: int) -> set[tuple[float, ...]]:
    """Return the distinct slices of a tensor with a common index of the first ``lead`` dims."""
    return {tuple(row) for row in x.reshape(*x.shape[:lead], -1).flatten(0, lead - 1).tolist()}


@pytest.mark.parametrize("module_class", MODULES)
def test_modules_of_dropout(module_class: type[nn.Module]) -> None:
    """Evaluation returns the input; the printed form has the arguments; a probability outside of [0, 1] raises."""
    module: Any = module_class(0.25).eval()
    sizes = (3, 4) if module_class is nn.Dropout1d else (3, 4, 4) if module_class is not nn.Dropout3d else (3, 4, 4, 4)
    x = cd.ones(2, *sizes)
    assert module(x) is x
    assert repr(module) == f"{module_class.__name__}(p=0.25, inplace=False)"
    assert not module.state_dict()
    for p in (-0.1, 1.1):
        with pytest.raises(ValueError, match=f"dropout probability has to be between 0 and 1, but got {p}"):
            module_class(p)
    assert module_class(0.5)(cd.ones(0, *sizes)).shape == (0, *sizes)


@pytest.mark.parametrize(
    ("function", "shape", "lead"),
    [
        (F.dropout1d, (20, 8, 3), 2), (F.dropout1d, (64, 3), 1), (F.dropout2d, (20, 8, 2, 2), 2),
        (F.dropout3d, (20, 8, 2, 2, 2), 2), (F.dropout3d, (64, 2, 2, 2), 1),
        (lambda x, p: F.feature_alpha_dropout(x, p, True), (20, 8, 3), 2),
    ],
)  # fmt: skip
def test_channels_are_dropped_as_a_whole(function: Callable[..., Any], shape: tuple[int, ...], lead: int) -> None:
    """Each channel has one of two values, and samples do not drop all of theirs together."""
    cd.manual_seed(0)
    out = function(cd.ones(shape), 0.5)
    found = slices_of(out, lead)
    assert len(found) == 2
    assert all(len(set(values)) == 1 for values in found)
    if lead == 2:
        assert len(slices_of(out, 1)) > 2


def test_dropout2d_of_other_ranks() -> None:
    """As in PyTorch, a 3-d input is (N, C, L), with a warning; 2-d and 5-d ones are accepted, with another."""
    cd.manual_seed(0)
    with pytest.warns(UserWarning, match="Received a 3D input to dropout2d and assuming that channel-wise 1D"):
        out = F.dropout2d(cd.ones(20, 8, 4))
    assert all(len(set(values)) == 1 for values in slices_of(out, 2))
    assert any(len(set(values)) == 2 for values in slices_of(out, 1))
    with pytest.warns(UserWarning, match="Received a 2-D input to dropout2d, which is deprecated"):
        assert set(F.dropout2d(cd.ones(20, 8)).reshape(-1).tolist()) == {0.0, 2.0}
    with pytest.warns(UserWarning, match="Received a 5-D input to dropout2d"):
        assert len(slices_of(F.dropout2d(cd.ones(20, 8, 1, 2, 2)), 2)) == 2
    with pytest.warns(UserWarning, match="Received a 2-D input to dropout3d"):
        assert len(slices_of(F.dropout3d(cd.ones(64, 4)), 1)) == 2


def test_in_place_dropout() -> None:
    """``inplace`` writes into the input; the alpha modules ignore it, as in PyTorch."""
    x = cd.ones(64)
    assert nn.Dropout(0.5, inplace=True)(x) is x
    assert set(x.tolist()) == {0.0, 2.0}
    y = cd.ones(64, 2)
    assert nn.AlphaDropout(0.5, inplace=True)(y) is not y
    assert nn.FeatureAlphaDropout(0.5, inplace=True)(y) is not y
    assert (y == 1).all().item()


@pytest.mark.parametrize("name", ["dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"])
def test_functions_of_the_top_namespace(name: str) -> None:
    """They take ``p`` and ``train`` without defaults, agree with F, and have forms that write into the input."""
    x = cd.ones(20, 8, 3)
    plain, inplace = getattr(cd, name), getattr(cd, name + "_")
    cd.manual_seed(1)
    expected = plain(x, 0.5, True)
    assert (x == 1).all().item()
    cd.manual_seed(1)
    same = F.dropout1d if name == "feature_dropout" else getattr(F, name)
    assert (same(x, 0.5, True) == expected).all().item()
    cd.manual_seed(1)
    assert inplace(x, 0.5, True) is x
    assert (x == expected).all().item()
    assert plain(x, 0.5, False) is x
    for call in (plain, inplace):
        with pytest.raises(RuntimeError, match="dropout probability has to be between 0 and 1, but got 2"):
            call(x, 2.0, True)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        plain(cd.ones(3, 2, dtype=cd.int64), 0.5, True)


def test_ranks_without_channels() -> None:
    """Vectors have no channels."""
    with pytest.raises(RuntimeError, match="Feature dropout requires at least 2 dimensions in the input"):
        cd.feature_dropout(cd.ones(3), 0.5, True)
    for shape in ((3,), (3, 2, 2, 2)):
        with pytest.raises(RuntimeError, match=f"dropout1d: Expected 2D or 3D input, but received a {len(shape)}D"):
            F.dropout1d(cd.ones(shape))
