"""Adds to the report of a failed `import nki`, in a project that does not use nkitools, how it would work."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from nkitools.dialects.import_hint import ROOTS
from nkitools.pytest_plugin.adoption import adoption_of


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Add how to use the stand-in if a test file cannot be imported for want of AWS's package."""
    report = yield
    call = getattr(report, "call", None)
    if call is not None and call.excinfo is not None:
        _add(report, call.excinfo.value.__cause__, collector)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Add it if an import inside a test fails."""
    report = yield
    if report.failed and call.excinfo is not None:
        _add(report, call.excinfo.value, item)
    return report


def _add(report: Any, error: BaseException | None, node: pytest.Collector | pytest.Item) -> None:
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing not in ROOTS or adoption_of(node.config).is_adopted:
        return
    sentence = f"nkitools stands in for {missing} with `pytest -o nki_stand_in=always`, or with the ini key"
    report.sections.append(("nkitools", f"{sentence} `nki_stand_in = always`."))
