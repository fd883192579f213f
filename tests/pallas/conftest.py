"""What the tests of the Pallas room share."""

from __future__ import annotations

import pytest

from nkitools.pallas import imports


@pytest.fixture(autouse=True)
def _our_own_lines_may_not_use_deprecated_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user is spared such warnings; here they are errors."""
    monkeypatch.setattr(imports, "OURS", "no module")
