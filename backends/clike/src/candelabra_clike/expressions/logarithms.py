"""Products with logarithms, logits, logarithms of sums of exponentials, and sinc."""

from __future__ import annotations

from candelabra_clike.expressions import Entry

CONTRACTED = True

EXPRESSIONS: dict[str, Entry] = {
    # 0 times a logarithm is 0, except for NaN.
    "xlogy": {"float": "({a} == 0) & ({b} == {b}) ? 0 : {a} * log_{T}({b})"},
    "special_xlog1py": {"float": "({a} == 0) & ({b} == {b}) ? 0 : {a} * log1p_{T}({b})"},
    "special_entr": {"float": "{a} < 0 ? -INFINITE_{W} : {a} == 0 ? 0 : -{a} * log_{T}({a})"},
    "logit": {
        "float": lambda eps: "logit_{T}({a})" if eps is None else "logit_{T}(clamp_{T}({a}, {eps}, 1 - {eps}))",
    },
    "logaddexp": {"float": "logaddexp_{T}({a}, {b})", "complex": "logaddexp_{T}({a}, {b})"},
    "logaddexp2": {"float": "logaddexp2_{T}({a}, {b})"},
    "sinc": {"float": "sinc_{T}({a})", "complex": "sinc_{T}({a})"},
}
