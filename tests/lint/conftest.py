"""Fixtures of the tests of lint."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nkitools.facts import options


@pytest.fixture
def parsed() -> Iterator[None]:
    """Let NKI 0.6 hold, whose compiler parses kernels and takes a part of Python only."""
    with options.override(nki_version="0.6"):
        yield
