"""Merely installed, the plugin changes nothing for a project that does not use it; it serves one that does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nkitools.pytest_plugin.adoption import mentions_us
from tests.processes import LEAN

PLAIN = ("-p", "no:randomly", *LEAN)

# A project that has never heard of nkitools, with what it might share with a project that has.
CONFTEST = """
import json, sys
import pytest

try:
    import neuronxcc
    FOUND = True
except ImportError:
    FOUND = False

@pytest.fixture
def run_kernel():
    return lambda x: x + 1

def pytest_collection_finish(session):
    config = session.config
    told = {
        "neuronxcc": FOUND,
        "marks": sorted({mark.name for item in session.items for mark in item.iter_markers()}),
        "items": [item.nodeid for item in session.items],
        "markers": len(config.getini("markers")),
        "debugger": str(config.option.usepdb_cls),
        "meta_path": [type(each).__name__ for each in sys.meta_path],
        "modules": sorted(each for each in sys.modules if each.split(".")[0] in ("nki", "neuronxcc", "numpy", "jax")),
    }
    (config.rootpath / "told.json").write_text(json.dumps(told))
"""
TESTS = """
import importlib.util
import pytest

@pytest.mark.hw
def test_on_a_board():
    pass

@pytest.mark.hw("board0", speed=3)
def test_on_one_board():
    pass

@pytest.mark.sim
@pytest.mark.simulation("of weather")
class TestWeather:
    def test_rain(self):
        pass

@pytest.mark.sim(seed=1)
@pytest.mark.parametrize("number", [1, 2])
def test_numbers(number, run_kernel):
    assert run_kernel(number) == number + 1

def test_no_compiler():
    assert importlib.util.find_spec("nki") is None

def test_that_fails():
    assert 1 == 2

def test_mark(request):
    request.node.add_marker("hw")
"""


def outcome(pytester: pytest.Pytester, *args: str) -> tuple[dict[str, int], list[str], dict[str, Any]]:
    """Return the outcomes of a session of its own, its warnings, and what its conftest.py saw."""
    result = pytester.runpytest_subprocess(*PLAIN, "-p", "no:cacheprovider", *args)
    warned = [line.strip() for line in result.outlines if "Warning:" in line]
    seen = json.loads((pytester.path / "told.json").read_text())
    return result.parseoutcomes(), warned, seen


@pytest.mark.process
@pytest.mark.parametrize("args", [(), ("-m", "hw"), ("-m", "sim and not hw"), ("--collect-only", "-q")])
def test_a_project_without_us_is_as_it_would_be(pytester: pytest.Pytester, args: tuple[str, ...]) -> None:
    """The same tests with the same outcomes, warnings, marks and imports as without the plugin."""
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_boards=TESTS)
    alone = outcome(pytester, "-p", "no:nkitools", *args)
    beside = outcome(pytester, *args)
    waiting = beside[2]["meta_path"].count("FirstImport")
    beside[2]["meta_path"] = [each for each in beside[2]["meta_path"] if each != "FirstImport"]
    assert beside == alone
    assert waiting <= 1
    assert not beside[2]["neuronxcc"]
    if not args:
        assert beside[0]["passed"] == 7
        assert beside[0]["failed"] == 1


KERNEL = """
import nki
import nki.language as nl

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(nl.load(x), nl.load(x)))
    return out
"""
BY_FIXTURE = """
import numpy as np
from kernels_of_mine import double

def test_double(run_kernel):
    x = np.ones((4, 8), np.float32)
    assert (run_kernel(double, x) == 2).all()
"""


@pytest.mark.process
@pytest.mark.parametrize("place", ["test_double.py", "tests/deep/test_double.py"])
def test_a_fixture_is_use_enough(pytester: pytest.Pytester, place: str) -> None:
    """The kernel's file imports nki before any file that names a fixture of ours was collected."""
    pytester.makepyfile(kernels_of_mine=KERNEL, test_a="import kernels_of_mine\n\ndef test_a():\n    pass\n")
    path = pytester.path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(BY_FIXTURE)
    result = pytester.runpytest_subprocess(*PLAIN, "-o", "pythonpath=.", "--strict-markers", "-m", "sim")
    result.assert_outcomes(passed=1, deselected=1)


@pytest.mark.process
def test_a_kernel_without_any_sign_of_use_is_not_served(pytester: pytest.Pytester) -> None:
    """The ini key decides for a suite that only imports nki."""
    pytester.makepyfile(kernels_of_mine=KERNEL, test_a="import kernels_of_mine\n\ndef test_a():\n    pass\n")
    plain = (*PLAIN, "-o", "pythonpath=.")
    pytester.runpytest_subprocess(*plain).assert_outcomes(errors=1)
    pytester.runpytest_subprocess(*plain, "-o", "nki_stand_in=always").assert_outcomes(passed=1)


@pytest.mark.process
@pytest.mark.parametrize("is_ours", [False, True])
def test_marks_of_tests_without_our_fixtures(pytester: pytest.Pytester, *, is_ours: bool) -> None:
    """They are the project's own, also where it uses nkitools elsewhere; the ini key nki_marks makes them ours."""
    pytester.makepyfile(
        test_it="""
        import pytest
        import nkitools

        @pytest.mark.hw
        def test_board():
            pass

        @pytest.mark.simulation
        def test_weather():
            pass
        """
    )
    options = ("-o", "nki_marks=true") if is_ours else ()
    result = pytester.runpytest_subprocess(*PLAIN, *options)
    result.assert_outcomes(passed=1 if is_ours else 2, skipped=1 if is_ours else 0)


@pytest.mark.parametrize(
    ("text", "is_use"),
    [
        ("import nkitools", True),
        ("def f():\n    from nkitools.expect import expect_finding", True),
        ('n = pytest.importorskip("nkitools")', True),
        ("def test_it(run_kernel): ...", True),
        ("@pytest.fixture\ndef run_kernel(): ...\ndef test_it(run_kernel): ...", False),
        ("# see nkitools", False),
        ("import nkitools_of_another", False),
        ("def test_it(rerun_kernels): ...", False),
        ("", False),
    ],
)
def test_signs_of_use(tmp_path: Path, text: str, *, is_use: bool) -> None:
    """An import of nkitools, or a fixture of it that the file does not define."""
    path = tmp_path / "test_it.py"
    path.write_text(text)
    assert mentions_us(path, tmp_path) is is_use
    assert not mentions_us(tmp_path / "absent.py", tmp_path)
