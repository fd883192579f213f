"""The mark ``nki_version``: the NKI versions under which a test holds.

The suite passes under every version that the environment names. A test about names or meanings of some versions names
them with the mark. Where the mark lacks the version of the environment, the test runs under the first of the mark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest

from nkitools.facts import options

SINCE_0_7 = pytest.mark.nki_version("auto", "0.7")  # names and meanings that came with 0.7
WITH_REMOVED_NAMES = pytest.mark.nki_version("auto", "0.6")  # names and forms that 0.7 removed
# The versions of the rules whose examples are about some.
OF_RULES = {"NK618": WITH_REMOVED_NAMES, "NK621": SINCE_0_7, "NK622": SINCE_0_7}


def marks_of(rule_id: str) -> tuple[pytest.MarkDecorator, ...]:
    """Return the marks of tests that run a rule's examples."""
    return (OF_RULES[rule_id],) if rule_id in OF_RULES else ()


def since(name: str, cases: dict[str, str]) -> list[Any]:
    """Return the cases of a test by their names; the named one is as it is since 0.7."""
    return [pytest.param(case, id=each, marks=SINCE_0_7 if each == name else ()) for each, case in cases.items()]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Import test files with the names of every version."""
    with options.override(nki_version="auto"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
    """Run a test under a version that its mark has, also what it runs in another context or process."""
    mark = item.get_closest_marker("nki_version")
    if mark is None or options.value("nki_version") in mark.args:
        return (yield)
    environment = patch.dict(os.environ, {options.OPTIONS["nki_version"].env: mark.args[0]})
    with environment, options.override(nki_version=mark.args[0]):
        return (yield)
