"""The mark ``nki_version``: the NKI versions under which a test holds.

The suite passes under every version that the environment names. A test about names or meanings of some versions names
them with the mark. Where the mark lacks the version of the environment, the test runs under the first of the mark.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nkitools import options

SINCE_0_7 = pytest.mark.nki_version("auto", "0.7")  # names and meanings that came with 0.7
WITH_REMOVED_NAMES = pytest.mark.nki_version("auto", "0.6")  # names and forms that 0.7 removed


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Import test files with the names of every version."""
    with options.override(nki_version="auto"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
    """Run a test under a version that its mark has."""
    mark = item.get_closest_marker("nki_version")
    if mark is None or options.value("nki_version") in mark.args:
        return (yield)
    with options.override(nki_version=mark.args[0]):
        return (yield)
