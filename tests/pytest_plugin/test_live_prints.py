"""Device prints and probes on the command line: as they come, once each, and what a watch did not find."""

from __future__ import annotations

from typing import Any

# pytester forgets what a session in this process imported, and NumPy cannot be imported twice.
import numpy as np  # noqa: F401
import pytest

import nkitools.dialects.modern.isa
import nkitools.dialects.modern.language
import nkitools.launch.simulate  # noqa: F401

KERNEL = """
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl
import nkitools

@nki.jit
def rows(x):
    for m in range(2):
        tile = nl.load(x[m:m + 1])
        nl.device_print("row", tile)
    return x

x = np.arange(4, dtype=np.float32).reshape(2, 2)
"""


def lines_with(result: Any, text: str) -> list[str]:
    return [line for line in result.stdout.lines if text in line]


@pytest.fixture
def writes(bare_author: Any) -> Any:
    """Run pytest on tests behind the kernel."""

    def run(test: str, *flags: str) -> Any:
        return bare_author.run("-m", "not hw", *flags, test=KERNEL + test)

    return run


def test_prints_are_written_while_the_test_runs(writes: Any) -> None:
    """Under the test's name, before its outcome, whole and once; stdout of the test is what it is without."""
    test = """
def test_it(run_kernel, capsys):
    run_kernel(rows, x)
    nki.simulate(rows)(x)
    assert capsys.readouterr().out.count("row [program 0") == 2
"""
    result = writes(test, "--nki-prints")
    result.assert_outcomes(passed=1, deselected=1)
    place = "[program 0, m={}, test_it.py:11] SBUF float32 [1, 2]"
    found = result.stdout.lines[result.stdout.lines.index("test_it.py::test_it[sim]") :]
    assert found[1:9] == [
        f"row {place.format(m)}" if line == 0 else ("[[0. 1.]]", "[[2. 3.]]")[m]
        for _ in range(2)
        for m in range(2)
        for line in range(2)
    ]
    assert found[9].startswith(".")
    assert lines_with(result, "nki device prints") == []


def test_nothing_is_shown_twice_without_capturing(writes: Any) -> None:
    """With -s the way in has printed it."""
    result = writes("def test_it():\n    nki.simulate(rows)(x)\n    nkitools.simulate(rows, x)\n", "--nki-prints", "-s")
    result.assert_outcomes(passed=1)
    assert len(lines_with(result, "row [program 0, m=0")) == 2


def test_a_worker_of_xdist_has_no_terminal(writes: Any) -> None:
    """The first prints stand at the end."""
    pytest.importorskip("xdist")
    result = writes("def test_it(run_kernel):\n    run_kernel(rows, x)\n", "--nki-prints", "-n", "1")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*nki device prints*", "test_it.py::test_it?sim?", "row ?program 0, m=0*"])


def test_without_the_flag_nothing_is_shown(writes: Any) -> None:
    """A passing test is silent."""
    result = writes("def test_it(run_kernel):\n    run_kernel(rows, x)\n")
    assert lines_with(result, "row [program") == []


WATCHED = """
def test_it(run_kernel, device_prints):
    run_kernel(rows, x)
    assert [one.loops for one in device_prints["tile"]] == [{"m": 0}, {"m": 1}]
    np.testing.assert_array_equal(np.concatenate(device_prints["tile"].values), x)

def test_other(run_kernel, device_prints):
    run_kernel(rows, x, watch={"tile": {"m": 1}})
    assert len(device_prints["tile"].where(m=1)) == 2
"""


def test_a_watch_holds_for_every_test(writes: Any) -> None:
    """Beside what a call watches itself; what nobody found in the whole session is told at its end."""
    result = writes(WATCHED, "--nki-watch=tile", "--nki-watch", "title,rows")
    result.assert_outcomes(passed=2, deselected=2)
    assert lines_with(result, "--nki-watch") == [
        "nki: --nki-watch: watch 'title' recorded nothing: no tensor of that name was written; did you mean 'tile'?",
        "nki: --nki-watch: watch 'rows' recorded nothing: no tensor of that name was written; written were tile",
    ]


def test_a_watch_from_the_ini_file(writes: Any, bare_author: Any) -> None:
    """As every option."""
    bare_author.pytester.makeini("[pytest]\nnki_watch = tile\n")
    writes(WATCHED).assert_outcomes(passed=2, deselected=2)


def test_a_limit_that_is_no_number_is_a_usage_error(writes: Any) -> None:
    """Before anything runs."""
    result = writes(WATCHED, "--nki-print-limit=much")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--nki-print-limit is 'much'; it must be a number that is not negative.*"])
