"""Samples for derivatives of special functions, and the domains where they are smooth."""

from typing import Any

SAMPLES: dict[str, Any] = {
    # Not differentiable in the first argument: it must not ask.
    "igamma": lambda t: (t(2, 3).detach(), t(3)),
    "igammac": lambda t: (t(2, 3).detach(), t(3)),
    "special_zeta": lambda t: (t(2, 3).detach() + 1.5, t(3)),
    "polygamma_of": lambda t: (t(2, 3), 2),
    "logit": lambda t: (t(2, 3), 0.35),
    "nan_to_num": lambda t: (t(2, 3), 1.0, 2.0, 3.0),
    "frexp": lambda t: (t(2, 3),),
    "heaviside": lambda t: (t(2, 3), t(3)),
}
BY_KEYWORD: dict[str, Any] = {
    "addcmul": lambda t: ((t(2, 3), t(3), t(2, 1)), {"value": 1.5}),
    "addcdiv": lambda t: ((t(2, 3), t(3), t(2, 1)), {"value": 1.5}),
}
DOMAINS = {"special_log_ndtr": (-2.0, 0.9), "lgamma": (0.5, 3.0), "erfinv": (-0.8, 0.8), "special_airy_ai": (-3.0, 1.0)}
