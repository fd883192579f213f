"""Tests of the page as it is read: they skip where there is no browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.report.page import browser


@pytest.fixture(scope="session")
def _driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    why = browser.missing()
    if why:
        pytest.skip(why)
    driver = browser.start(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture
def reader(_driver: Any) -> Iterator[browser.Reader]:
    """A reader of pages, of whose page nothing may complain."""
    reader = browser.Reader(_driver)
    yield reader
    assert reader.complaints() == []
