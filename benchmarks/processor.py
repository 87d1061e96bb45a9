"""The cases of a processor: training steps of whole networks, and operators on large arrays.

The text of a case is over ``xp``, candelabra on its device ``cpu`` or PyTorch, like those of :mod:`benchmarks.cases`.
"""

from __future__ import annotations

from benchmarks.cases import RECURRENT, Case

LIBRARY = """
F = __import__(xp.__name__ + ".nn.functional", fromlist=["functional"])
nn = __import__(xp.__name__ + ".nn", fromlist=["nn"])
optim = __import__(xp.__name__ + ".optim", fromlist=["optim"])
xp.manual_seed(0)
"""
TRAINING = """
loss = nn.CrossEntropyLoss()
def step():
    optimizer.zero_grad()
    loss(model(x).flatten(0, -2), y).backward()
    optimizer.step()
"""
MLP = f"""{LIBRARY}
model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = optim.SGD(model.parameters(), lr=0.01)
x, y = xp.randn(32, 784), xp.randint(0, 10, (32,))
{TRAINING}"""
CNN = f"""{LIBRARY}
model = nn.Sequential(
    nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(64 * 7 * 7, 10),
)
optimizer = optim.SGD(model.parameters(), lr=0.01)
x, y = xp.randn(64, 1, 28, 28), xp.randint(0, 10, (64,))
{TRAINING}"""
GPT = f"""{LIBRARY}
width, heads, context, vocabulary = 128, 4, 64, 65
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
    def forward(self, x):
        n, t, _ = x.shape
        parts = self.qkv(self.before(x)).split(width, dim=2)
        q, k, v = (part.reshape(n, t, heads, width // heads).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(n, t, width))
        return x + self.mlp(self.between(x))
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block() for _ in range(4)])
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("order", xp.arange(context))
    def forward(self, x):
        return self.head(self.last(self.blocks(self.tokens(x) + self.positions(self.order))))
model = Network()
optimizer = optim.AdamW(model.parameters(), lr=1e-3)
x, y = xp.randint(0, vocabulary, (12, context)), xp.randint(0, vocabulary, (12 * context,))
{TRAINING}"""
RESNET = f"""{LIBRARY}
def normed(inside, outside, size, stride):
    convolution = nn.Conv2d(inside, outside, size, stride=stride, padding=size // 2, bias=False)
    return [convolution, nn.BatchNorm2d(outside)]
class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.body = nn.Sequential(*normed(inside, outside, 3, stride), nn.ReLU(), *normed(outside, outside, 3, 1))
        same = stride == 1 and inside == outside
        self.shortcut = nn.Identity() if same else nn.Sequential(*normed(inside, outside, 1, stride))
        self.relu = nn.ReLU()
    def forward(self, x):
        return self.relu(self.body(x) + self.shortcut(x))
sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
sizes += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
model = nn.Sequential(
    *normed(3, 64, 3, 1), nn.ReLU(), *[Block(*each) for each in sizes], nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    nn.Linear(512, 10),
)
optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
x, y = xp.randn(16, 3, 32, 32), xp.randint(0, 10, (16,))
{TRAINING}"""
LARGE = f"{LIBRARY}x, y = xp.rand(1 << 22) + 0.5, xp.rand(1 << 22)"
ROWS = f"""{LIBRARY}
x = xp.randn(4096, 1000)
weight, bias = xp.rand(1000), xp.rand(1000)
"""
IMAGES = f"""{LIBRARY}
x, w, g = xp.randn(16, 64, 32, 32).requires_grad_(), xp.randn(64, 64, 3, 3).requires_grad_(), xp.randn(16, 64, 32, 32)
def there_and_back():
    return xp.autograd.grad(F.conv2d(x, w, padding=1), (x, w), g)
"""
SQUARE = f"{LIBRARY}a, b = xp.rand(2000, 2000), xp.rand(2000, 2000)"
STEPS, OPERATORS = "training on the processor", "large operators on the processor"


def _step(name: str, setup: str, mark: float, goal: float) -> Case:
    return Case(name, "step()", setup, mark, goal, STEPS)


PROCESSOR: list[Case] = [
    _step("MLP step, batch 32, 784-128-10, SGD", MLP, 0.9, 0.6),
    _step("CNN step, batch 64, 1×28×28", CNN, 0.9, 0.7),
    _step("GPT 4×128, T 64, batch 12, AdamW", GPT, 1.0, 0.85),
    _step("ResNet-18, 16×3×32×32, SGD", RESNET, 1.0, 0.85),
    Case("LSTM 2×256, T 100, batch 32", "unroll()", RECURRENT, 1.3, 1.0, STEPS),
    Case("x + y, 4 M", "x + y", LARGE, 1.1, 0.9, OPERATORS),
    Case("x.exp(), 4 M", "x.exp()", LARGE, 0.6, 0.45, OPERATORS),
    Case("F.gelu(x), 4 M", "F.gelu(x)", LARGE, 0.7, 0.5, OPERATORS),
    Case("softmax, 4096×1000", "x.softmax(1)", ROWS, 1.0, 0.9, OPERATORS),
    Case("layer_norm, 4096×1000", "F.layer_norm(x, (1000,), weight, bias)", ROWS, 0.6, 0.4, OPERATORS),
    Case("x.sum(), 4 M", "x.sum()", LARGE, 1.2, 1.0, OPERATORS),
    Case("sum of rows, 4096×1000", "x.sum(1)", ROWS, 1.1, 1.0, OPERATORS),
    Case("conv 3×3, 16×64×32², forward and backward", "there_and_back()", IMAGES, 1.05, 0.9, OPERATORS),
    Case("a + b.T, 2000×2000", "a + b.t()", SQUARE, 1.0, 0.6, OPERATORS),
]
"""The cases, with the ratios that must hold."""
