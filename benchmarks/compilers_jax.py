"""The work of :mod:`benchmarks.fused` in JAX, over ``xp``, which is the module ``jax``: one compiled function each."""

from __future__ import annotations

NUMBERS = """
jnp, nn, lax = xp.numpy, xp.nn, xp.lax
keys = iter(xp.random.split(xp.random.key(0), 200))
def normal(*shape, scale=1.0):
    return xp.random.normal(next(keys), shape) * scale
def layer(inside, outside):
    return normal(inside, outside, scale=inside ** -0.5), jnp.zeros(outside)
def classes(count, *shape):
    return xp.random.randint(next(keys), shape, 0, count)
def cross_entropy(scores, target):
    return -jnp.take_along_axis(nn.log_softmax(scores), target[:, None], 1).mean()
"""
DESCENT = """
@xp.jit
def descend(params, x, y):
    grads = xp.grad(lambda params: cross_entropy(model(params, x), y))(params)
    return xp.tree.map(lambda p, g: p - 0.01 * g, params, grads)
state = [params]
def step():
    state[0] = xp.block_until_ready(descend(state[0], x, y))
"""
SMALL = f"""{NUMBERS}
a, b = normal(8), normal(8)
gradient = xp.jit(xp.grad(lambda a, b: (a * b + b).sum()))
"""
MLP = f"""{NUMBERS}
params = [layer(784, 128), layer(128, 10)]
def model(params, x):
    (w, b), (v, c) = params
    return nn.relu(x @ w + b) @ v + c
x, y = normal(32, 784), classes(10, 32)
{DESCENT}"""
CNN = f"""{NUMBERS}
params = [(normal(3, 3, 1, 32, scale=0.3), jnp.zeros(32)), (normal(3, 3, 32, 64, scale=0.06), jnp.zeros(64))]
params.append(layer(64 * 7 * 7, 10))
def convolved(x, w, b):
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return lax.reduce_window(nn.relu(y + b), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
def model(params, x):
    first, second, (w, b) = params
    return convolved(convolved(x, *first), *second).reshape(x.shape[0], -1) @ w + b
x, y = normal(64, 28, 28, 1), classes(10, 64)
{DESCENT}"""
GPT = f"""{NUMBERS}
width, heads, context, vocabulary = 128, 4, 64, 65
norm = lambda: (jnp.ones(width), jnp.zeros(width))
def block():
    return dict(before=norm(), between=norm(), qkv=layer(width, 3 * width), out=layer(width, width),
                up=layer(width, 4 * width), down=layer(4 * width, width))
params = dict(tokens=normal(vocabulary, width), positions=normal(context, width), blocks=[block() for _ in range(4)],
              last=norm(), head=normal(width, vocabulary, scale=0.1))
def normalized(x, weight, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * weight + bias
def attended(p, x):
    n, t, _ = x.shape
    w, b = p["qkv"]
    q, k, v = ((x @ w + b).reshape(n, t, 3, heads, width // heads)[:, :, i] for i in range(3))
    w, b = p["out"]
    return nn.dot_product_attention(q, k, v, is_causal=True).reshape(n, t, width) @ w + b
def apply(p, x):
    x = x + attended(p, normalized(x, *p["before"]))
    (w, b), (v, c) = p["up"], p["down"]
    return x + nn.gelu(normalized(x, *p["between"]) @ w + b, approximate=False) @ v + c
def model(params, x):
    x = params["tokens"][x] + params["positions"]
    for each in params["blocks"]:
        x = apply(each, x)
    return (normalized(x, *params["last"]) @ params["head"]).reshape(-1, vocabulary)
x, y = classes(vocabulary, 12, context), classes(vocabulary, 12 * context)
@xp.jit
def adamw(params, mean, square, count, x, y):
    grads = xp.grad(lambda params: cross_entropy(model(params, x), y))(params)
    count = count + 1
    mean = xp.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = xp.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, grads)
    def update(p, m, s):
        return p * (1 - 1e-5) - 1e-3 * (m / (1 - 0.9 ** count)) / (jnp.sqrt(s / (1 - 0.999 ** count)) + 1e-8)
    return xp.tree.map(update, params, mean, square), mean, square, count
zeros = xp.tree.map(jnp.zeros_like, params)
state = [(params, zeros, zeros, jnp.zeros(()))]
def step():
    state[0] = xp.block_until_ready(adamw(*state[0], x, y))
"""
TEN = f"""{NUMBERS}
x, y = normal(1 << 22), normal(1 << 22)
@xp.jit
def arithmetic(x, y):
    a = (x * y + x) * 0.5 - y
    return nn.relu((jnp.abs(a) + 1.0).clip(0.5, 4.0) * x + y)
@xp.jit
def functions(x, y):
    a = jnp.exp(jnp.tanh(x * y + x) * 0.5) - y
    return nn.relu(nn.sigmoid(a) * x + y)
"""
RESIDUAL = f"""{NUMBERS}
x, residual, g, weight, bias = normal(4096, 512), normal(4096, 512), normal(4096, 512), jnp.ones(512), jnp.zeros(512)
def normalized(x, residual, weight, bias, key):
    y = residual + jnp.where(xp.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0.0)
    centred = y - y.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * weight + bias
@xp.jit
def gradients(x, residual, weight, bias, key, g):
    key, now = xp.random.split(key)
    _, back = xp.vjp(lambda *leaves: normalized(*leaves, now), x, residual, weight, bias)
    return key, back(g)
state = [next(keys)]
def block():
    state[0], grads = xp.block_until_ready(gradients(x, residual, weight, bias, state[0], g))
"""

JAX: dict[str, tuple[str, str]] = {
    "mul, add, sum, backward on 8 elements": (SMALL, "xp.block_until_ready(gradient(a, b))"),
    "compiled MLP step, batch 32, 784-128-10, SGD": (MLP, "step()"),
    "compiled CNN step, batch 64, 1×28×28": (CNN, "step()"),
    "compiled GPT step 4×128, T 64, batch 12, AdamW": (GPT, "step()"),
    "ten arithmetic operators, 4 M": (TEN, "xp.block_until_ready(arithmetic(x, y))"),
    "ten operators with exp, tanh, sigmoid, 4 M": (TEN, "xp.block_until_ready(functions(x, y))"),
    "layer_norm + residual + dropout and back": (RESIDUAL, "block()"),
}
"""The setup and the statement, by the name of the case."""
