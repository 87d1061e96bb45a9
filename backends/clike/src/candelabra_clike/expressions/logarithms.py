"""Products with logarithms, logarithms of odds and of sums of exponentials, and the sine quotient."""

from __future__ import annotations

from candelabra_clike.expressions import Entry

CONTRACTED = True

EXPRESSIONS: dict[str, Entry] = {
    # 0 times the logarithm of anything but NaN is 0.
    "xlogy": {"float": "({a} == 0) & ({b} == {b}) ? 0 : {a} * log_{T}({b})"},
    "special_xlog1py": {"float": "({a} == 0) & ({b} == {b}) ? 0 : {a} * log1p_{T}({b})"},
    "special_entr": {"float": "{a} < 0 ? -INFINITE_{W} : {a} == 0 ? 0 : -{a} * log_{T}({a})"},
    "logit": {
        "float": lambda eps: "logit_{T}({a})" if eps is None else "logit_{T}(limited_{T}({a}, {eps}, 1 - {eps}))",
    },
    "logaddexp": {"float": "log_of_sum_{T}({a}, {b})", "complex": "log_of_sum_{T}({a}, {b})"},
    "logaddexp2": {"float": "log2_of_sum_{T}({a}, {b})"},
    "sinc": {"float": "sinc_{T}({a})", "complex": "sinc_{T}({a})"},
}
