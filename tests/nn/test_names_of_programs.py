"""Names without documentation that programs import from PyTorch, and kinds of modules that they test for."""

from __future__ import annotations

import warnings
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn, optim
from candelabra.nn import functional as F
from candelabra.nn.modules import batchnorm, pooling, transformer
from candelabra.optim import optimizer as base
from candelabra.utils.data import ConcatDataset, DataLoader, dataloader

from tests.nn.network_samples import array, normal


# -- kinds of modules -------------------------------------------------------------------------------------------------
def test_a_module_is_an_instance_of_its_family_only() -> None:
    """Programs choose by isinstance: no module is an instance of another public class than in PyTorch."""
    assert isinstance(nn.ReLU6(), nn.Hardtanh)
    for module, other in (
        (nn.AvgPool2d(2), nn.AvgPool1d), (nn.AvgPool3d(2), (nn.AvgPool1d, nn.AvgPool2d)), (nn.CELU(), nn.ELU),
        (nn.Hardshrink(), nn.Softshrink), (nn.LazyBatchNorm2d(), nn.BatchNorm2d),
        (nn.LazyInstanceNorm1d(), nn.InstanceNorm1d),
    ):  # fmt: skip
        assert not isinstance(module, other), module
    assert isinstance(nn.LazyBatchNorm2d(), batchnorm._BatchNorm)


@pytest.mark.parametrize(
    ("base_class", "kinds"),
    [
        ("_MaxPoolNd", (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)),
        ("_AvgPoolNd", (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)),
        ("_AdaptiveAvgPoolNd", (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)),
        ("_AdaptiveMaxPoolNd", (nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d)),
        ("_LPPoolNd", (nn.LPPool1d, nn.LPPool2d, nn.LPPool3d)),
        ("_MaxUnpoolNd", (nn.MaxUnpool1d, nn.MaxUnpool2d, nn.MaxUnpool3d)),
    ],
)
def test_pools_have_pytorchs_common_bases(base_class: str, kinds: tuple[Any, ...]) -> None:
    """The pools of all ranks, and only they, have one common base."""
    found = {
        kind for kind in vars(nn).values() if isinstance(kind, type) and issubclass(kind, getattr(pooling, base_class))
    }
    assert found == set(kinds)


def test_older_names_of_arguments() -> None:
    """Hardtanh takes min_value and max_value with a warning; Sequential.extend and RMSNorm take PyTorch's keywords."""
    with pytest.warns(FutureWarning, match="keyword argument `min_value` is deprecated and renamed to `min_val`"):
        module = nn.Hardtanh(min_value=-2.0)
    assert (module.min_val, module.max_val) == (-2.0, 1.0)
    refused = pytest.raises(AssertionError, match=r"max_val must be larger than min_val, got -1\.0 and -1\.0")
    with pytest.warns(FutureWarning, match="`max_value`"), refused:
        nn.Hardtanh(max_value=-1.0)
    assert len(nn.Sequential().extend(sequential=[nn.ReLU()])) == 1
    x = cd.tensor([[3.0, 4.0]])
    assert array(nn.RMSNorm(2)(x=x)) == pytest.approx(array(x) / np.sqrt(12.5), rel=1e-6)


def test_attributes_and_first_values() -> None:
    """ReLU6 has the bounds of Hardtanh; PReLU keeps its first value and returns to it."""
    assert (nn.ReLU6().min_val, nn.ReLU6().max_val, repr(nn.ReLU6())) == (0.0, 6.0, "ReLU6()")
    module = nn.PReLU(3, init=0.5)
    with cd.no_grad():
        module.weight.zero_()
    module.reset_parameters()
    assert module.init == 0.5
    assert module.weight.tolist() == [0.5] * 3


# -- attention --------------------------------------------------------------------------------------------------------
def test_projections_of_attention() -> None:
    """_in_projection_packed projects by thirds of one weight what _in_projection projects by three."""
    q, k, v = (cd.from_numpy(normal(5, 2, 4)) for _ in range(3))
    w, b = cd.from_numpy(normal(12, 4)), cd.from_numpy(normal(12))
    packed = F._in_projection_packed(q, k, v, w, b)
    single = F._in_projection(q, k, v, *w.chunk(3), *b.chunk(3))
    for x, found, other, weight, bias in zip((q, k, v), packed, single, w.chunk(3), b.chunk(3), strict=True):
        assert array(found) == pytest.approx(array(x) @ array(weight).T + array(bias), abs=1e-12)
        assert array(other) == pytest.approx(array(found), abs=0)
    assert array(F._in_projection_packed(q, q, q, w)[0]) == pytest.approx(array(q) @ array(w)[:4].T, abs=1e-12)


def test_masks_as_numbers() -> None:
    """A bool mask becomes -inf where it is True; two masks of different dtypes are a warning, integers an error."""
    mask = cd.tensor([True, False])
    assert F._canonical_mask(mask, "attn_mask", None, "", cd.float64).tolist() == [-np.inf, 0.0]
    assert F._none_or_dtype(mask) is cd.bool
    assert F._none_or_dtype(None) is None
    assert F._canonical_mask(None, "attn_mask", cd.bool, "", cd.float64) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F._canonical_mask(mask, "attn_mask", cd.float32, "padding", cd.float32, check_other=False)
    with pytest.warns(UserWarning, match="Support for mismatched attn_mask and padding is deprecated"):
        F._canonical_mask(mask, "attn_mask", cd.float32, "padding", cd.float32)
    with pytest.raises(AssertionError, match="only bool and floating types of attn_mask are supported"):
        F._canonical_mask(cd.tensor([1]), "attn_mask", None, "", cd.float32)


def test_parts_of_a_transformer() -> None:
    """Layers are copied, activations named, causal masks recognised and lengths read as PyTorch's helpers do it."""
    copies = transformer._get_clones(nn.Linear(2, 3), 2)
    assert isinstance(copies, nn.ModuleList)
    assert copies[0].weight is not copies[1].weight
    assert transformer._get_activation_fn("gelu") is F.gelu
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not tanh"):
        transformer._get_activation_fn("tanh")
    x = cd.zeros(2, 5, 4)
    assert transformer._get_seq_len(x, True) == 5
    assert transformer._get_seq_len(x, False) == 2
    assert transformer._get_seq_len(x[0], True) == 5
    causal = nn.Transformer.generate_square_subsequent_mask(4)
    assert transformer._detect_is_causal_mask(causal)
    assert not transformer._detect_is_causal_mask(causal * 0)
    assert not transformer._detect_is_causal_mask(causal, size=3)
    assert transformer._detect_is_causal_mask(None, True)


def test_functions_of_tensors_with_a_class_of_their_own() -> None:
    """nn.functional has the functions of the protocol, which PyTorch's own functions begin with."""
    assert F.handle_torch_function is cd.overrides.handle_torch_function
    assert F._pair(3) == (3, 3)
    assert F._Reduction.get_enum("mean") == 1
    assert not {"_pair", "handle_torch_function"} & set(dir(F))
    for suffix in ("", "_unary", "_variadic"):
        assert getattr(F, f"has_torch_function{suffix}") is getattr(cd.overrides, f"has_torch_function{suffix}")


# -- optimizers -------------------------------------------------------------------------------------------------------
class Descent(optim.Optimizer):
    """A step that is recorded if the option ``differentiable`` is set."""

    def __init__(self, params: Any, differentiable: bool) -> None:
        super().__init__(params, {"lr": 0.5, "differentiable": differentiable})
        self.recorded: list[bool] = []

    @base._use_grad_for_differentiable
    def step(self, closure: Any = None) -> None:
        self.recorded.append(cd.is_grad_enabled())


@pytest.mark.parametrize("differentiable", [True, False])
def test_steps_are_recorded_if_the_optimizer_is_differentiable(differentiable: bool) -> None:
    """The decorator sets the mode for the step, and the hooks of steps run once."""
    optimizer = Descent([cd.ones(1, requires_grad=True)], differentiable)
    seen: list[str] = []
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    with cd.set_grad_enabled(not differentiable):
        optimizer.step()
        assert cd.is_grad_enabled() is not differentiable
    assert optimizer.recorded == [differentiable]
    assert seen == ["before"]


def test_parts_of_a_step() -> None:
    """Numbers of tensors, dtypes of counts, real views of complex parameters and state."""
    assert base._get_value(cd.tensor(2.5)) == 2.5
    assert base._get_value(3) == 3
    assert base._stack_if_compiling([1]) == [1]
    assert base._to_scalar(cd.ones(1, 1)).shape == ()
    assert base._to_scalar(2) == 2
    assert base._default_to_fused_or_foreach([cd.ones(1)], False, use_fused=True) == (False, False)
    assert base._get_scalar_dtype() is cd.float32
    previous = cd.get_default_dtype()
    cd.set_default_dtype(cd.float64)
    try:
        assert base._get_scalar_dtype() is cd.float64
        assert base._get_scalar_dtype(is_fused=True) is cd.float32
    finally:
        cd.set_default_dtype(previous)
    params, state = [cd.ones(2), cd.ones(2, dtype=cd.complex64)], [cd.zeros(2), cd.zeros(2, dtype=cd.complex64)]
    base._view_as_real(params, state)
    assert [tuple(t.shape) for t in params + state] == [(2,), (2, 2)] * 2
    assert not params[1].is_complex()
    docs = (base._params_doc, base._foreach_doc, base._fused_doc, base._capturable_doc, base._maximize_doc)
    assert all(isinstance(text, str) and text for text in (*docs, base._differentiable_doc))
    assert callable(optim.Optimizer.profile_hook_step)
    assert optim.Optimizer.OptimizerPreHook is not None


# -- data -------------------------------------------------------------------------------------------------------------
def test_iterators_of_loaders_have_pytorchs_names() -> None:
    """The iterator of a loader is of the class for one process or for workers, with one base."""
    single, several = iter(DataLoader([1, 2])), iter(DataLoader([1, 2], num_workers=1))
    assert isinstance(single, dataloader._SingleProcessDataLoaderIter)
    assert isinstance(several, dataloader._MultiProcessingDataLoaderIter)
    assert all(isinstance(each, dataloader._BaseDataLoaderIter) for each in (single, several))
    assert [int(batch) for batch in several] == [1, 2]


def test_the_older_name_of_cumulative_sizes() -> None:
    """cummulative_sizes warns and is cumulative_sizes."""
    with pytest.warns(FutureWarning, match="`cummulative_sizes` attribute is renamed to `cumulative_sizes`"):
        assert ConcatDataset([[1, 2], [3]]).cummulative_sizes == [2, 3]


def test_constraints_take_pytorchs_keyword() -> None:
    """Two constraints name the argument of ``check`` otherwise than the rest."""
    assert cd.distributions.constraints.multinomial(3).check(x=cd.tensor([1, 2]))
    with pytest.raises(ValueError, match="Cannot determine validity of dependent constraint"):
        cd.distributions.constraints.dependent.check(x=cd.ones(1))


def test_recurrent_functions_by_their_internal_name() -> None:
    """candelabra._VF has the functions of candelabra; an unknown name is an AttributeError."""
    from candelabra import _VF

    assert _VF.lstm is cd.lstm
    assert cd._VF.gru_cell is cd.gru_cell
    with pytest.raises(AttributeError, match="module 'candelabra' has no attribute 'nothing'"):
        _ = _VF.nothing
