"""The arguments with which every operator is measured: common forms, and the calls that no common form fits.

The names of the setups are those of large or small inputs; ``n`` is the number of elements of most of them. Names in
``LEAVES`` are tensors of floats, with respect to which derivatives are measured.
"""

from __future__ import annotations

LARGE = """
n, r, batch = 1 << 20, 1024, 16
"""
SMALL = """
n, r, batch = 64, 8, 1
"""
SETUP = """
xp.manual_seed(0)
x, y, z = (xp.rand(n) * 0.8 + 0.1 for _ in range(3))
m, w = xp.rand(r, r), xp.rand(r, r)
k, l = xp.randint(1, 100, (n,)), xp.randint(1, 30, (n,))
b, c = x > 0.5, xp.complex(x, y)
i, j = xp.randint(0, n, (n,)), xp.randint(0, r, (r, r))
d = min(256, r)
s = xp.rand(d, d); a = s @ s.mT + 256 * xp.eye(d); v = xp.rand(d, 8)
h = r // 8
t = xp.rand(batch * 4, h, h)
side = 32 if n > 64 else 4
image, filters = xp.rand(batch, 32, side, side), xp.rand(32, 32, 3, 3)
rows, classes = xp.randn(n // 16, 16), xp.randint(0, 16, (n // 16,))
others, more = xp.randn(n // 16, 16), xp.randn(n // 16, 16)
labels = xp.randint(0, 2, rows.shape).float()
sign = xp.where(xp.randn(n // 16) > 0, 1.0, -1.0)
channel = xp.rand(32)
line = image.view(batch, 32, side * side)
volume, filters3 = xp.rand(batch, 8, side, 8, 8), xp.rand(8, 8, 3, 3, 3)
grid, grid3 = xp.rand(batch, side, side, 2) * 2 - 1, xp.rand(batch, side, 8, 8, 3) * 2 - 1
heads = xp.rand(batch, 4, h, 16)
bags = xp.randint(0, r, (n // 512 + 4, 8))
steps = xp.rand(side, 8, 16)
recurrent = xp.rand(64, 16), xp.rand(64, 16), xp.rand(64), xp.rand(64)
gates3 = xp.rand(48, 16), xp.rand(48, 16), xp.rand(48), xp.rand(48)
gates1 = xp.rand(16, 16), xp.rand(16, 16), xp.rand(16), xp.rand(16)
state = xp.zeros(1, 8, 16)
lengths = xp.full((8,), side, dtype=xp.int64)
log_steps = steps.log_softmax(-1)
window = xp.ones(16)
spectrum = xp.stft(x, 16, window=window, return_complex=True)
"""
LEAVES = (
    "x", "y", "z", "m", "w", "s", "a", "v", "t", "image", "filters", "rows", "others", "more", "channel", "line",
    "volume", "filters3", "grid", "grid3", "heads", "steps", "log_steps",
)  # fmt: skip
FORMS = (
    "x", "x, y", "x, y, z", "m", "m, 1", "m, w", "x, 0", "k", "k, l", "b", "b, b", "c", "c, c", "x, 3", "x, 0.5",
    "a", "a, a", "a, v", "t", "t, t", "m, 0, j", "m, 0, j, w", "m, 0, j[0]", "m, 0, j[0], w", "m, b.view(r, r)",
    "m, b.view(r, r), 0.5", "m, 0, 1", "m, (0, 1)", "(m, w)", "m, (r * r,)", "x, 2, 0", "k, x", "3, x",
    "m, 8, 1", "m, 8", "r, r", "0, n", "image, filters", "image, 2", "v, 0, True", "x, x, 0.5", "m, m[0], m[0]",
    "m, 0, 2, 2", "m, x[0], x[1], x[2]", "0.0, 1.0, n", "(n,)", "(n,), 1.0", "n", "m, 'ij->ji'", "'ij,jk->ik', m, w",
)  # fmt: skip
"""Argument lists to try, the most common first."""
POOLED = {1: "line", 2: "image", 3: "volume"}
CALLS: dict[str, str] = {
    # creation and views
    "as_strided": "x, (r, r), (r, 1)", "as_strided_copy": "x, (r, r), (1, r)",
    "as_strided_scatter": "x, m, (r, r), (r, 1)",
    "broadcast_to": "x, (2, n)", "expand_copy": "x, (2, n)", "diagflat": "m[0]", "diagonal_scatter": "m, w[0]",
    "empty_permuted": "(r, r), (1, 0)", "empty_strided": "(r, r), (1, r)", "randint": "0, 10, (n,)",
    "select_scatter": "m, w[0], 0, 1", "split_with_sizes": "m, [r // 2, r // 2]",
    "split_with_sizes_copy": "m, [r // 2, r // 2]", "unsafe_split_with_sizes": "m, [r // 2, r // 2]",
    "unflatten": "x, 0, (r, r)", "view_as_complex": "xp.view_as_real(c)", "view_as_complex_copy": "xp.view_as_real(c)",
    "signal.windows.general_cosine": "n, a=[0.5, 0.3, 0.2]", "_chunk_cat": "(m, w), 0, 2",
    # indexing
    "index_fill": "m, 0, j[0, :4], 0.5", "index_put": "x, (i,), y", "index_reduce": "m, 0, j[0], w, 'amax'",
    "masked_scatter": "x, b, y", "put": "x, i, y", "scatter_reduce": "m, 0, j, w, 'amax'",
    "nonzero_static": "x, size=n",
    "unravel_index": "i, (r, r)", "segment_reduce": "m, 'sum', lengths=xp.full((4,), r // 4, dtype=xp.int64)",
    "renorm": "m, 2.0, 0, 1.0", "histogramdd": "rows[:, :2], bins=[8, 8]",
    # products and factorizations
    "addbmm": "s[:h, :h], t, t", "addmm": "m, m, w", "addmv": "m[0], m, w[0]", "baddbmm": "t, t, t",
    "cross": "x[: n // 3 * 3].view(-1, 3), y[: n // 3 * 3].view(-1, 3)", "ger": "m[0], w[0]", "outer": "m[0], w[0]",
    "linalg.cross": "x[: n // 3 * 3].view(-1, 3), y[: n // 3 * 3].view(-1, 3)", "mv": "m, w[0]",
    "linalg.householder_product": "s, s[0]", "orgqr": "s, s[0]", "ormqr": "s, s[0], v",
    "linalg.ldl_solve": "*xp.linalg.ldl_factor(a), v", "linalg.lu_solve": "*xp.linalg.lu_factor(a), v",
    "lu_solve": "v, *xp.linalg.lu_factor(a)", "lu_unpack": "*xp.linalg.lu_factor(a)",
    "linalg.solve_triangular": "a, v, upper=True", "linalg.tensorsolve": "a, a[0]",
    "bilinear": "rows, others, xp.rand(4, 16, 16), channel[:4]",
    "nn.functional.bilinear": "rows, others, xp.rand(4, 16, 16), channel[:4]",
    # convolutions, pools, samples
    "conv3d": "volume, filters3", "nn.functional.conv3d": "volume, filters3",
    "conv_tbc": "line.permute(2, 0, 1), filters[:, :, 0].permute(2, 1, 0), channel",
    "nn.functional.conv_tbc": "line.permute(2, 0, 1), filters[:, :, 0].permute(2, 1, 0), channel",
    "conv_transpose1d": "line, filters[:, :, 0]", "nn.functional.conv_transpose1d": "line, filters[:, :, 0]",
    "conv_transpose3d": "volume, filters3", "nn.functional.conv_transpose3d": "volume, filters3",
    "affine_grid_generator": "xp.rand(batch, 2, 3), [batch, 3, side, side], False",
    "nn.functional.affine_grid": "xp.rand(batch, 2, 3), [batch, 3, side, side], False",
    "grid_sampler": "image, grid, 0, 0, False", "grid_sampler_2d": "image, grid, 0, 0, False",
    "grid_sampler_3d": "volume, grid3, 0, 0, False", "nn.functional.grid_sample": "image, grid, align_corners=False",
    "nn.functional.fold": "xp.nn.functional.unfold(image, 2), (side, side), 2",
    **{f"nn.functional.{name}{end}": f"{POOLED[dims]}, 2, 2"
       for name, all_dims in (("lp_pool", (2, 3)), ("fractional_max_pool", (2, 3))) for dims in all_dims
       for end in ((f"{dims}d", f"{dims}d_with_indices") if "max" in name else (f"{dims}d",))},
    **{f"nn.functional.max_unpool{dims}d": f"*xp.nn.functional.max_pool{dims}d({each}, 2, return_indices=True), 2"
       for dims, each in POOLED.items()},
    "stft": "x, 16, window=window, return_complex=True", "istft": "spectrum, 16, window=window",
    # normalization
    "batch_norm": "image, channel, channel, channel, channel, True, 0.1, 1e-5, False",
    "instance_norm": "image, channel, channel, None, None, True, 0.1, 1e-5, False",
    "native_batch_norm": "image, channel, channel, None, None, True, 0.1, 1e-5",
    "native_group_norm": "image, channel, channel, batch, 32, side * side, 4, 1e-5",
    "native_layer_norm": "m, (r,), w[0], w[0], 1e-5", "layer_norm": "m, (r,), w[0], w[0]",
    "nn.functional.layer_norm": "m, (r,), w[0], w[0]", "rms_norm": "m, (r,), w[0]",
    "nn.functional.rms_norm": "m, (r,), w[0]",
    # losses and layers
    "cosine_embedding_loss": "rows, others, sign", "nn.functional.cosine_embedding_loss": "rows, others, sign",
    "nn.functional.triplet_margin_loss": "rows, others, more", "triplet_margin_loss": "rows, others, more",
    "nn.functional.triplet_margin_with_distance_loss": "rows, others, more",
    "ctc_loss": "log_steps, xp.randint(1, 16, (8, 1)), lengths, xp.ones_like(lengths)",
    "nn.functional.ctc_loss": "log_steps, xp.randint(1, 16, (8, 1)), lengths, xp.ones_like(lengths)",
    "nn.functional.multi_margin_loss": "rows, classes", "nn.functional.nll_loss": "rows, classes",
    "nn.functional.cross_entropy": "rows, classes", "nn.functional.one_hot": "classes, 16",
    "nn.functional.multilabel_margin_loss": "rows, xp.where(labels > 0, 1, -1)",
    "nn.functional.multilabel_soft_margin_loss": "rows, labels",
    "nn.functional.linear_cross_entropy": "rows, more[:16] if n > 256 else more.repeat(4, 1), classes",
    "poisson_nll_loss": "x, y, True, False, 1e-8, 1", "nn.functional.gaussian_nll_loss": "x, y, z",
    "prelu": "image, channel", "nn.functional.prelu": "image, channel", "nn.functional.softmin": "rows, -1",
    "nn.functional.glu": "rows", "nn.functional.gumbel_softmax": "rows", "nn.functional.pdist": "rows[:512]",
    "pdist": "rows[:512]", "nn.functional.pairwise_distance": "rows, others",
    "nn.functional.cosine_similarity": "rows, others", "nn.functional.normalize": "rows",
    "embedding": "m, j", "nn.functional.embedding": "j, m", "nn.functional.embedding_bag": "bags, m",
    "nn.functional.scaled_dot_product_attention": "heads, heads, heads",
    "rnn_tanh": "steps, state, gates1, True, 1, 0.0, False, False, False",
    "rnn_relu": "steps, state, gates1, True, 1, 0.0, False, False, False",
    "gru": "steps, state, gates3, True, 1, 0.0, False, False, False",
    "lstm": "steps, (state, state), recurrent, True, 1, 0.0, False, False, False",
    "rnn_tanh_cell": "steps[0], state[0], *gates1", "rnn_relu_cell": "steps[0], state[0], *gates1",
    "gru_cell": "steps[0], state[0], *gates3", "lstm_cell": "steps[0], (state[0], state[0]), *recurrent",
}  # fmt: skip
"""The arguments of operators that none of the forms fits, or that do other work with the form that fits first."""
