"""SciPy's functions on candelabra's arrays: with SCIPY_ARRAY_API=1 it computes through an array's own namespace."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import numpy as np
import scipy.special, scipy.stats
import candelabra as cd
import candelabra.array_api as xp

host = np.linspace(0.0, 3.0, 12).reshape(4, 3)
for function in (scipy.special.logsumexp, scipy.stats.zscore, scipy.stats.gmean, scipy.stats.kurtosis):
    found = function(xp.asarray(host))
    assert isinstance(found, xp.Array), function
    np.testing.assert_allclose(found.numpy(), function(host))

leaf = cd.tensor(host, requires_grad=True)
scipy.special.logsumexp(leaf).backward()
np.testing.assert_allclose(leaf.grad.numpy(), scipy.special.softmax(host))
print("computed")
"""


def test_scipy_computes_and_differentiates_through_the_namespace() -> None:
    """SciPy finds the namespace of arrays and of plain tensors, returns arrays, and gradients flow through it."""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "computed\n", done.stderr
