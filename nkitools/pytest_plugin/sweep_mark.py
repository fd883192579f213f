"""The mark ``nki_sweep``: each case of a space is a test of its own, which pytest selects, shares out and reports."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from nkitools.sweeps.checked_call import Case, CheckedCall

EACH_TIME = pytest.StashKey[str]()
"""The sentence of a test whose case no store can keep for another session."""
NO_CASES = pytest.StashKey[str]()
"""The sentence of a test whose mark runs no case."""
_COMPLAINT = pytest.StashKey[str]()
_OF_PYTEST = ("engine", "workers", "timeout", "memory", "address")  # what a session decides


@dataclass(frozen=True)
class MarkedCase:
    """One case of a marked test. ``store``: the file that keeps it, if any."""

    call: CheckedCall
    case: Case
    store: str | os.PathLike[str] | None


def cases_of(item: pytest.Item) -> tuple[list[Any], list[str]]:
    """Return the cases of the mark of a test, and their ids. UsageError for a mark that does not fit."""
    mark = item.get_closest_marker("nki_sweep")
    if mark is None:
        raise pytest.UsageError(
            f"{item.nodeid}: the fixture nki_case takes the mark: @pytest.mark.nki_sweep(kernel, space)"
        )
    for name in mark.kwargs:
        if name in _OF_PYTEST:
            raise pytest.UsageError(
                f"{item.nodeid}: {name} is no argument of the mark nki_sweep: pytest runs its cases, pytest-xdist "
                "several at a time"
            )
    try:
        made = _cases(*mark.args, **mark.kwargs)
    except (TypeError, ValueError, OSError) as error:
        raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.nki_sweep: {error}") from None
    return made, [_id(each.case) for each in made]


def _cases(
    kernel: Any,
    space: Any,
    *,
    arguments: Any = None,
    reference: Any = None,
    chips: str | Sequence[str] | None = None,
    store: str | os.PathLike[str] | None = None,
    sample: int | None = None,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    mutates: str | Sequence[str] = (),
) -> list[MarkedCase]:
    from nkitools.sweeps.sweep import cases_of, checked_call

    if isinstance(space, (str, os.PathLike)):  # beside the file of the kernel's tests, wherever pytest is started
        space = _beside(arguments or reference or kernel, space)
    call = checked_call(kernel, space, arguments, reference, rtol, atol, mutates)
    return [MarkedCase(call, case, store) for case in cases_of(call, space, chips, sample, seed)]


def _beside(function: Any, path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    if os.path.exists(path):
        return path
    folder = os.path.dirname(inspect.getsourcefile(inspect.unwrap(function)) or "")
    return os.path.join(folder, path)


def _id(case: Case) -> str:
    return "-".join([*(f"{name}={value}" for name, value in case.values.items()), case.chip])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """UsageError for a test with the mark, its own or its class's, that asks for no case: it would pass unseen.

    In a worker of pytest-xdist, where a usage error is a crash, the test fails.
    """
    for item in items:
        if item.get_closest_marker("nki_sweep") is None or "nki_case" in getattr(item, "fixturenames", ()):
            continue
        is_own = any(mark.name == "nki_sweep" for mark in item.own_markers)
        instead = "" if is_own else ", or mark only the tests that have it"
        said = f"{item.nodeid}: @pytest.mark.nki_sweep runs nothing here: give the test the fixture nki_case{instead}"
        if not hasattr(config, "workerinput"):
            raise pytest.UsageError(said)
        item.stash[NO_CASES] = said


def run_case(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the row of a test's case; one that the store has is not run again."""
    from nkitools.pytest_plugin.reference_check import LooseToleranceWarning, TiedChoicesWarning
    from nkitools.sweeps.answers import left_out_of
    from nkitools.sweeps.local_engine import InProcess
    from nkitools.sweeps.sweep import not_reused, run_cases

    marked: MarkedCase = request.param
    found = run_cases(marked.call, [marked.case], InProcess(), marked.store)
    (row,) = found.rows
    if found.each_time:
        request.node.stash[EACH_TIME] = f"{found.kernel}: {not_reused(found)}"
    if row["left_out"]:
        warnings.warn(f"{_id(marked.case)}: {left_out_of([row])}", TiedChoicesWarning, stacklevel=2)
    if row["outcome"] == "pass" and row["error"]:
        warnings.warn(f"{_id(marked.case)}: {row['error']}", LooseToleranceWarning, stacklevel=2)
    request.node.stash[_COMPLAINT] = "" if row["outcome"] == "pass" else _complaint(marked.case, row)
    return row


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Fail a test whose case does not pass: at its call, as a failure and no error of a fixture."""
    complaint = pyfuncitem.stash.get(_COMPLAINT, "")
    if complaint:
        pytest.fail(complaint, pytrace=False)


def _complaint(case: Case, row: dict[str, Any]) -> str:
    said = [f"{each['file']}:{each['line']}: {each['rule']} {each['message']}" for each in row["findings"]]
    if row["outcome"] == "wrong":
        said.append(f"the result differs from the reference by up to {row['max_error']:.3g}")
    return "\n".join([f"{_id(case)}: {row['outcome']}", *said, *filter(None, [row["error"]])])
