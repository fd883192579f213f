"""The tests of replay ask for it. What a process keeps of forms and recorded lists is gone before each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nkitools.replay.kept_lists import KEPT


@pytest.fixture(autouse=True)
def _replays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NKITOOLS_REPLAY", "auto")
    KEPT.clear()
    yield
    KEPT.clear()
