"""Parametrizations of weights: orthogonal matrices, and weights that are divided by a norm."""

from __future__ import annotations

from typing import Any

import candelabra as cd
from candelabra import Tensor, no_grad
from candelabra.nn import functional as F
from candelabra.nn.modules.module import Module
from candelabra.nn.utils.parametrize import register_parametrization
from candelabra.nn.utils.spectral_norm import as_matrix, default_dim
from candelabra.nn.utils.weight_norm import norm_except_dim, scaled_to_norm

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

MAPS = ("matrix_exp", "cayley", "householder")


# -- orthogonal -------------------------------------------------------------------------------------------------------
class _Orthogonal(Module):
    """Map any matrix to one with orthonormal columns (or rows, if it is wide).

    With ``use_trivialization``, the result is ``base @ map(X)``, where ``base`` is the value that the weight was set to
    and X begins as that of the identity: the dynamic trivialization of Lezcano-Casado (2019).
    """

    base: Any

    def __init__(self, weight: Any, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        wide = X.size(-2) < X.size(-1)
        if wide:
            X = X.mT
        out = _householder(X) if self.orthogonal_map == "householder" else self._exponential(X)
        if hasattr(self, "base"):
            out = self.base @ out
        return out.mT if wide else out

    def _exponential(self, X: Any) -> Any:
        """Apply exp, or its approximation by Cayley, to the skew-symmetric matrix of the lower triangle."""
        n, k = X.size(-2), X.size(-1)
        X = X.tril()
        if n != k:
            X = cd.cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], -1, -1)], dim=-1)
        A = X - X.mH
        if self.orthogonal_map == "matrix_exp":
            out: Any = cd.matrix_exp(A)
        else:
            identity: Any = cd.eye(n, dtype=A.dtype, device=A.device)
            out = cd.linalg.solve(identity - A / 2, identity + A / 2)
        return out[..., :k] if n != k else out

    def right_inverse(self, Q: Any) -> Any:
        """Return the matrix whose image is an orthogonal matrix ``Q``; with a base, store Q there."""
        with no_grad():
            if Q.shape != self.shape:
                raise ValueError(
                    f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
                )
            wide = Q.size(-2) < Q.size(-1)
            tall = Q.mT if wide else Q
            if hasattr(self, "base"):
                self.base = _square_base(tall)
                negative = cd.zeros_like(Q)
                negative.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
                return negative
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            A, tau = cd.geqrf(tall)
            diagonal: Any = A.diagonal(dim1=-2, dim2=-1)
            sign = diagonal.sign()
            diagonal.copy_(cd.where(tau == 0.0, -sign, sign))  # a reflection with tau = 0 is the identity
            return A.mT if wide else A


def _householder(X: Any) -> Any:
    """Return the product of the reflections whose vectors are the columns of the lower triangle."""
    A = X.tril(diagonal=-1)
    tau = 2.0 / (1.0 + (A * A).sum(dim=-2))
    Q: Any = cd.linalg.householder_product(A, tau)
    return Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)


def _square_base(Q: Any) -> Any:
    """Return a square orthogonal matrix that begins with the columns of Q, orthogonalized if necessary."""
    n, k = Q.size(-2), Q.size(-1)
    if n != k:
        more = cd.randn(*Q.shape[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
        return _orthogonalized(cd.cat([Q, more], dim=-1))
    identity = cd.eye(k, dtype=Q.dtype, device=Q.device)
    if cd.allclose(Q.mH @ Q, identity, atol=10.0 * n * cd.finfo(Q.dtype).eps):
        return Q.clone()
    return _orthogonalized(Q)


def _orthogonalized(A: Any) -> Any:
    """Return the factor Q of A = QR where R has a non-negative diagonal."""
    X, tau = cd.geqrf(A)
    Q: Any = cd.linalg.householder_product(X, tau)
    return Q * X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Make a matrix, or a batch of matrices, orthogonal or unitary. Returns ``module``.

    ``orthogonal_map``: ``"matrix_exp"`` (the default for square and complex matrices), ``"cayley"`` or
    ``"householder"``. With ``use_trivialization``, the weight keeps its value if it is orthogonal, and is
    orthogonalized otherwise. Raises ``ValueError`` if the module has no such tensor, or if it is not a matrix.
    """
    weight = _checked_weight(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, parametrization, unsafe=True)


def _checked_weight(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


# -- weight norm ------------------------------------------------------------------------------------------------------
class _WeightNorm(Module):
    """A weight from its norms and its direction."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return scaled_to_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train the norm and the direction of a weight separately (Salimans and Kingma, 2016). Returns ``module``.

    They are ``parametrizations.weight.original0``, one norm per index of ``dim`` (one in all for None), and
    ``original1``. States of the older :func:`candelabra.nn.utils.weight_norm` load too.
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: Any, prefix: str, *_: Any) -> None:
        old = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if all(key in state_dict for key in old):
            for number, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{number}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


# -- spectral norm ----------------------------------------------------------------------------------------------------
class _SpectralNorm(Module):
    """Divide a weight by its largest singular value, which power iterations estimate."""

    _u: Any
    _v: Any

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        rank = weight.ndim
        if not -rank <= dim < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{rank}, {rank - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % rank
        self.eps = eps
        if rank > 1:
            self.n_power_iterations = n_power_iterations
            with no_grad():
                matrix = as_matrix(weight, self.dim)
                for key, size in zip(("_u", "_v"), matrix.size(), strict=True):
                    self.register_buffer(key, F.normalize(matrix.new_empty(size).normal_(0, 1), dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _iterate(self, matrix: Any, count: int) -> None:
        """Improve the singular vectors, in place."""
        with no_grad():
            for _ in range(count):
                self._u.copy_(F.normalize(cd.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(cd.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # Copies, because the next call writes into the buffers before this one's backward pass.
        sigma: Any = cd.vdot(self._u.clone(), cd.mv(matrix, self._v.clone()))
        return weight / sigma

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value (Miyato et al., 2018). Returns ``module``.

    In training mode each use of the weight improves the estimate by ``n_power_iterations`` steps. ``dim``: the dim of
    the outputs, 0 by default, and 1 for transposed convolutions. A vector is divided by its norm.
    """
    weight = _checked_weight(module, name)
    found = default_dim(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, found, eps))


def __dir__() -> list[str]:
    return sorted(__all__)
