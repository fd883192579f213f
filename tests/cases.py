"""How many cases a property test or a fuzz test runs."""

from __future__ import annotations

# Set by the option --soak before any test is imported (see tests/soak.py).
FULL = False


def cases(full: int) -> int:
    """Return how many of ``full`` random cases a test runs: 1 % of them (at least one), and all under ``make soak``.

    For the counts of every test that draws at random: ``settings(max_examples=cases(1000))``, ``range(cases(2000))``. A
    test that is no Hypothesis test carries ``@pytest.mark.soak`` beside it, so that ``make soak`` finds the test.
    """
    return full if FULL else max(1, full // 100)
