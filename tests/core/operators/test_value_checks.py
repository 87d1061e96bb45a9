"""The operator that raises for codes that are not 0."""

from __future__ import annotations

import candelabra as cd
import pytest
from candelabra.library import OPERATORS


def test_codes_of_zero_pass() -> None:
    """The result is False and carries no gradient; no codes pass too."""
    check = OPERATORS["raise_if_nonzero"]
    for codes in (cd.zeros(2, 3, requires_grad=True), cd.tensor(0), cd.zeros(0, dtype=cd.int32)):
        found = check(codes, "never", ValueError)
        assert found.item() is False
        assert not found.requires_grad


def test_the_first_code_is_in_the_text() -> None:
    """With its index in a batch; one code alone has no index. The class of the error is the caller's."""
    check, text = OPERATORS["raise_if_nonzero"], "name: {element}code {code} e^{i phi}"
    with pytest.raises(ValueError, match=r"^name: \(Batch element 2\): code 5 e\^\{i phi\}$"):
        check(cd.tensor([[0, 0], [5, 7]]), text, ValueError)
    with pytest.raises(cd.linalg.LinAlgError, match=r"^name: code 3 e\^\{i phi\}$"):
        check(cd.tensor(3, dtype=cd.int32), text, cd.linalg.LinAlgError)
