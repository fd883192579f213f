"""How many cases a property test or a fuzz test runs, and many small cases in one test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

# Set by the option --soak before any test is imported (see tests/soak.py).
FULL = False


def cases(full: int) -> int:
    """Return how many of ``full`` random cases a test runs: 1 % of them (at least one), and all under ``make soak``.

    For the counts of every test that draws at random: ``settings(max_examples=cases(1000))``, ``range(cases(2000))``. A
    test that is no Hypothesis test carries ``@pytest.mark.soak`` beside it, so that ``make soak`` finds the test.
    """
    return full if FULL else max(1, full // 100)


def each(names: str, cases: Iterable[Any], show: Callable[[Any], str] = str) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator: one test runs all cases, where a test for each would take longer than what it tests.

    ``names`` are parameters of the test, parted by commas; of several names, a case holds as many values. All failures
    are told, each with the case that it belongs to. Each case has a ``tmp_path`` of its own.
    """
    given = [name.strip() for name in names.split(",")]
    listed = list(cases)

    def in_one_test(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def all_cases(*args: Any, **fixtures: Any) -> None:
            failures = []
            folder = fixtures.get("tmp_path")
            for number, case in enumerate(listed):
                values = (case,) if len(given) == 1 else case
                if folder is not None:
                    fixtures["tmp_path"] = folder / str(number)
                    fixtures["tmp_path"].mkdir()
                try:
                    test(*args, **dict(zip(given, values, strict=True)), **fixtures)
                except Exception as error:
                    error.add_note(f"case: {show(case)}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(listed)} cases", failures)

        signature = inspect.signature(test)
        kept = [each for each in signature.parameters.values() if each.name not in given]
        all_cases.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return all_cases

    return in_one_test
