"""Forms of calls and recorded lists are kept for the whole process: each test of replays begins without any."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nkitools.replay.kept_lists import KEPT


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    KEPT.clear()
    yield
    KEPT.clear()
