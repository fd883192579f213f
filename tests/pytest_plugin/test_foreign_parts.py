"""What nkitools takes of other packages that they do not promise: these tests say what a release has moved."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from nkitools.pytest_plugin.benchmarks import count_as_used, measured, replay


def test_pytest_makes_a_configuration_of_a_dictionary() -> None:
    """`Config.fromdictargs(options, args)` (worker), which pytest-xdist needs too."""
    assert list(inspect.signature(pytest.Config.fromdictargs).parameters) == ["option_dict", "args"]


def test_pytest_tears_down_to_the_next_test(request: pytest.FixtureRequest) -> None:
    """`session._setupstate.teardown_exact(nextitem)` (worker, isolation)."""
    state = request.session._setupstate
    assert list(inspect.signature(state.teardown_exact).parameters) == ["nextitem"]
    assert request.node in state.stack


def test_pytest_has_the_directory_of_tmp_path(pytestconfig: pytest.Config, tmp_path: Any) -> None:
    """`config._tmp_path_factory` (process), as pytest-xdist takes it; without it two processes would empty one."""
    factory: Any = pytestconfig
    assert tmp_path.is_relative_to(factory._tmp_path_factory.getbasetemp())


def test_measurements_of_pytest_benchmark_can_be_shown_elsewhere(pytestconfig: pytest.Config) -> None:
    """One of its `Metadata` as plain data, and back: the same statistics, group, name and extra_info."""
    stats = pytest.importorskip("pytest_benchmark.stats")
    fixture = SimpleNamespace(
        name="test_it",
        fullname="a.py::test_it",
        group="g",
        param="1",
        params={"x": object},
        extra_info={"chip": "trn1"},
    )
    fixture.cprofile_stats, fixture.has_error = None, False
    made = stats.Metadata(fixture, iterations=4, options={"timer": len, "min_rounds": 5})
    for seconds in (4.0, 8.0, 16.0):
        made.update(seconds)
    there: Any = SimpleNamespace(_benchmarksession=SimpleNamespace(benchmarks=[made]), stash=pytest.Stash())
    here: Any = SimpleNamespace(_benchmarksession=SimpleNamespace(benchmarks=[]))
    replay(here, measured(there))
    (told,) = here._benchmarksession.benchmarks
    assert told.stats.data == made.stats.data == [1.0, 2.0, 4.0]
    assert told.stats.as_dict() == made.stats.as_dict()
    plain, original = told.as_dict(), made.as_dict()
    assert plain.pop("params") == {"x": repr(original.pop("params")["x"])}
    assert plain == original
    # Of the session itself the list of measurements is all that is touched.
    if pytestconfig.pluginmanager.hasplugin("benchmark"):
        assert isinstance(getattr(pytestconfig, "_benchmarksession").benchmarks, list)  # noqa: B009


def test_a_fixture_of_pytest_benchmark_can_be_counted_as_used(request: pytest.FixtureRequest) -> None:
    """`_mode` is what it looks at to warn of a fixture that was not used."""
    pytest.importorskip("pytest_benchmark")
    benchmark = request.getfixturevalue("benchmark")
    assert benchmark._mode is None
    count_as_used(benchmark)
    assert benchmark._mode == "not timed"
