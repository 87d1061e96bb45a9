"""nn.attention: named causal masks, and the choice of an implementation."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.nn import functional as F
from candelabra.nn.attention import SDPBackend, sdpa_kernel
from candelabra.nn.attention.bias import CausalBias, CausalVariant, causal_lower_right, causal_upper_left

from tests.nn.network_samples import array, normal, tensor

Q, K = tensor(normal(2, 3, 4)), tensor(normal(2, 5, 4, seed=1))


@pytest.mark.parametrize(("variant", "last"), [(causal_upper_left, 0), (causal_lower_right, 2)])
@pytest.mark.parametrize("keys", [3, 5])
def test_causal_masks(variant: object, last: int, keys: int) -> None:
    """A named mask has the effect of the mask that it prints."""
    bias, key = variant(3, keys), K[:, :keys]  # type: ignore[operator]
    mask = np.tri(3, keys, last if keys == 5 else 0, dtype=bool)
    assert repr(bias) == repr(cd.tensor(mask))
    found = F.scaled_dot_product_attention(Q, key, key, attn_mask=bias)
    want = F.scaled_dot_product_attention(Q, key, key, attn_mask=cd.tensor(mask))
    np.testing.assert_allclose(array(found), array(want), rtol=1e-12)


def test_a_mask_that_is_a_parameter_is_an_ordinary_mask() -> None:
    """Other subclasses of Tensor are used as they are, and get gradients."""
    mask = nn.Parameter(tensor(normal(3, 5, seed=2)))
    found = F.scaled_dot_product_attention(Q, K, K, attn_mask=mask)
    want = F.scaled_dot_product_attention(Q, K, K, attn_mask=mask.detach())
    np.testing.assert_allclose(array(found.detach()), array(want), rtol=1e-12)
    found.sum().backward()
    assert mask.grad is not None


def test_the_choice_of_an_implementation_is_accepted() -> None:
    """Programs select one or several; numbers and printed forms are PyTorch's."""
    want = F.scaled_dot_product_attention(Q, K, K).tolist()
    for backends in (SDPBackend.MATH, [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
        with sdpa_kernel(backends, set_priority=True):
            assert F.scaled_dot_product_attention(Q, K, K).tolist() == want
    assert [int(b) for b in SDPBackend] == [-1, 0, 1, 2, 3, 4]
    assert repr(SDPBackend.CUDNN_ATTENTION) == "<SDPBackend.CUDNN_ATTENTION: 3>"
    assert not nn.attention.WARN_FOR_UNFUSED_KERNELS


def test_mistakes() -> None:
    """Other names, sizes and combinations raise PyTorch's errors."""
    with pytest.raises(AssertionError, match=r"Backend must be an instance of SDPBackend or a list .* got str"), \
            sdpa_kernel("math"):  # type: ignore[arg-type]  # fmt: skip
        pass
    with pytest.raises(AssertionError, match="causal_upper_left only supports 2D tensors"):
        causal_upper_left(3)
    with pytest.raises(AssertionError, match="variant must be a CausalVariant, got int"):
        CausalBias(1, 3, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
        F.scaled_dot_product_attention(Q, K, K, attn_mask=causal_upper_left(3, 5), is_causal=True)
    with pytest.warns(UserWarning, match="Lower right causal bias will produce NaNs in the output"):
        CausalBias(CausalVariant.LOWER_RIGHT, 5, 3)
