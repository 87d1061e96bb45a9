"""One step of a recurrent network after its products, as one kernel: the loops around the text of a step.

The arrays are contiguous matrices with the same rows. Each has one or several parts of ``width`` columns. In the text,
``s[2]`` is the element of the third part of ``s`` that belongs to the current element of the state.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from candelabra.dtypes import dtype

from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.types import CTYPES


@dataclass(frozen=True)
class GateStep:
    """A step: the arrays that it reads and writes, each with its number of parts, and its text.

    In the text ``T`` is the type of the elements, also as the suffix of library functions.
    """

    name: str
    read: tuple[tuple[str, int], ...]
    written: tuple[tuple[str, int], ...]
    text: str

    def source(self, d: dtype, serial: bool) -> Source:
        """Return the kernel: one work-item for each row on ``serial`` devices, otherwise one for each element.

        Parameters are the written buffers, the buffers that are read, their offsets, and the width.
        """
        type = CTYPES[d].value
        head = (
            *[writes(name, type) for name, _ in self.written],
            *[reads(name, type) for name, _ in self.read],
            *[number(f"{name}_at") for name, _ in self.read],
            number("width"),
        )
        text = re.sub(r"\bT\b|(?<=_)T\b", type, self.text)
        starts = ""
        for name, parts in (*self.written, *self.read):
            offset = "" if (name, parts) in self.written else f" + {name}_at"
            starts += f"{name} += row * {parts}u * width{offset};\n"
            text = re.sub(rf"\b{name}\[(\d+)\]", rf"{name}[\1u * width + i]", text)
        if serial:
            body = f"const INDEX row = GLOBAL_ID;\n{starts}INDEPENDENT\nfor (INDEX i = 0; i < width; ++i) {{\n{text}}}"
        else:
            body = f"const INDEX row = GLOBAL_ID / width, i = GLOBAL_ID % width;\n{starts}{text}"
        return Source(f"{self.name}_{d.name}", head, body, group=1 if serial else None, wide=True)


GRADIENT_OF_SIGMOID = "{0} * ({1} * (1 - {1}))"
GRADIENT_OF_TANH = "{0} * (1 - {1} * {1})"

LSTM = GateStep(
    "lstm_step", (("s", 4), ("last", 1)), (("hidden", 1), ("cell", 1), ("gates", 4)),
    "const T gi = sigmoid_T(s[0]), gf = sigmoid_T(s[1]), gg = tanh_T(s[2]), go = sigmoid_T(s[3]);\n"
    "const T c = gf * last[0] + gi * gg;\n"
    "gates[0] = gi;\ngates[1] = gf;\ngates[2] = gg;\ngates[3] = go;\n"
    "cell[0] = c;\nhidden[0] = go * tanh_T(c);\n",
)  # fmt: skip
GRU = GateStep(
    "gru_step", (("p", 3), ("q", 3), ("last", 1)), (("hidden", 1), ("gates", 4)),
    "const T r = sigmoid_T(p[0] + q[0]), z = sigmoid_T(p[1] + q[1]), qn = q[2];\n"
    "const T n = tanh_T(p[2] + r * qn);\n"
    "gates[0] = r;\ngates[1] = z;\ngates[2] = n;\ngates[3] = qn;\n"
    "hidden[0] = n + z * (last[0] - n);\n",
)  # fmt: skip


@lru_cache(None)
def lstm_backward(with_cell: bool, with_gates: bool) -> GateStep:
    """Return the gradient of the step of an LSTM, with a gradient of its cell and of its gates if they have one."""
    more = [f" + dgates[{k}]" if with_gates else "" for k in range(4)]
    read = [("gates", 4), ("cell", 1), ("last", 1), ("dh", 1)]
    read += [("dcell", 1)] * with_cell + [("dgates", 4)] * with_gates
    slopes = [GRADIENT_OF_TANH if k == 2 else GRADIENT_OF_SIGMOID for k in range(4)]
    sums = ("dc * gg", "dc * last[0]", "dc * gi", "dh[0] * top")
    text = (
        "const T gi = gates[0], gf = gates[1], gg = gates[2], go = gates[3], top = tanh_T(cell[0]);\n"
        f"const T dc = dh[0] * go * (1 - top * top){' + dcell[0]' * with_cell};\n"
    )
    for k, (gate, total) in enumerate(zip(("gi", "gf", "gg", "go"), sums, strict=True)):
        text += f"ds[{k}] = {slopes[k].format(f'({total}{more[k]})', gate)};\n"
    name = f"lstm_step_backward{'_cell' * with_cell}{'_gates' * with_gates}"
    return GateStep(name, tuple(read), (("ds", 4), ("dlast", 1)), f"{text}dlast[0] = dc * gf;\n")


@lru_cache(None)
def gru_backward(with_gates: bool) -> GateStep:
    """Return the gradient of the step of a GRU, with a gradient of its gates if they have one."""
    more = [f" + dgates[{k}]" if with_gates else "" for k in range(4)]
    read = [("gates", 4), ("last", 1), ("dh", 1), *[("dgates", 4)] * with_gates]
    text = (
        "const T r = gates[0], z = gates[1], n = gates[2], qn = gates[3], g = dh[0];\n"
        f"const T dpn = {GRADIENT_OF_TANH.format(f'(g * (1 - z){more[2]})', 'n')};\n"
        f"const T dpr = {GRADIENT_OF_SIGMOID.format(f'(dpn * qn{more[0]})', 'r')};\n"
        f"const T dpz = {GRADIENT_OF_SIGMOID.format(f'(g * (last[0] - n){more[1]})', 'z')};\n"
        "dp[0] = dpr;\ndp[1] = dpz;\ndp[2] = dpn;\n"
        f"dq[0] = dpr;\ndq[1] = dpz;\ndq[2] = dpn * r{more[3]};\ndlast[0] = g * z;\n"
    )
    written = ("dp", 3), ("dq", 3), ("dlast", 1)
    return GateStep(f"gru_step_backward{'_gates' * with_gates}", tuple(read), written, text)
