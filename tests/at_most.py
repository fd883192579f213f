"""``--at-most N``: of a test with more than N cases, N that are spread evenly over all (``make quick``)."""

from __future__ import annotations

from collections import defaultdict

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--at-most", type=int, metavar="N", help="run N cases of a test that has more")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other cases; the first and the last one stay."""
    most = config.getoption("--at-most")
    if not most:
        return
    cases = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    kept = set()
    for each in cases.values():
        count = min(most, len(each))
        kept.update(each[number * (len(each) - 1) // max(1, count - 1)] for number in range(count))
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
