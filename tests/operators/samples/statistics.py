"""Samples of the order statistics and of the scans."""

from typing import Any

import numpy as np

SAMPLES: dict[str, Any] = {
    "kthvalue": lambda t: (t(2, 3), 2, 1, True),
    "median_dim": lambda t: (t(2, 3), 0, False),
    "nanmedian_dim": lambda t: (t(3, 2), 0, False),
    "median_all": lambda t: (t(2, 3),),
    "nanmedian_all": lambda t: (t(2, 3),),
    "mode": lambda t: (t(2, 3), 1, False),
    "topk": lambda t: (t(2, 4), 2, 1, False),
    "cummax": lambda t: (t(3, 2), 0),
    "cummin": lambda t: (t(2, 4), 1),
    "logcumsumexp": lambda t: (t(2, 4), 1),
}
KERNEL_ARGUMENTS: dict[str, Any] = {"tally": {"places": np.array([0, 2]), "weights": np.ones(2), "size": 4}}
