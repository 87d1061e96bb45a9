"""The operator that raises for nonzero error codes."""

from __future__ import annotations

import candelabra as cd
import pytest
from candelabra.library import OPERATORS


def test_codes_of_zero_pass() -> None:
    """The result is False without a gradient; empty codes pass too."""
    check = OPERATORS["raise_if_nonzero"]
    for codes in (cd.zeros(2, 3, requires_grad=True), cd.tensor(0), cd.zeros(0, dtype=cd.int32)):
        found = check(codes, "never", ValueError)
        assert found.item() is False
        assert not found.requires_grad


def test_the_first_code_is_in_the_text() -> None:
    """The text has the code and its index in a batch; the caller chooses the class of the error."""
    check, text = OPERATORS["raise_if_nonzero"], "name: {element}code {code} e^{i phi}"
    with pytest.raises(ValueError, match=r"^name: \(Batch element 2\): code 5 e\^\{i phi\}$"):
        check(cd.tensor([[0, 0], [5, 7]]), text, ValueError)
    with pytest.raises(cd.linalg.LinAlgError, match=r"^name: code 3 e\^\{i phi\}$"):
        check(cd.tensor(3, dtype=cd.int32), text, cd.linalg.LinAlgError)
