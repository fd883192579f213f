"""``--nki-compare``: compares the outputs of a test's kernels on two targets.

Each side keeps the runs of a test in files, whatever its process; at the end the files are compared. AWS's simulator
runs the [sim] tests again in a process of its own, which has AWS's packages in place of the stand-in.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from contextvars import Context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nkitools.facts import options
from nkitools.pytest_plugin.marks import IN_WORKER, target_of
from nkitools.rules.shown_text import shown

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel
    from nkitools.pytest_plugin.process import HardwareProcess
    from nkitools.targets import Target

_DIRECTORY = "NKITOOLS_COMPARE_DIRECTORY"


class Agreeing:
    """Keeps the runs of each test; in the process that the user started it compares them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._sides = str(options.value("compare")).split(",")
        self._is_first = not os.environ.get(IN_WORKER) and not hasattr(config, "workerinput")
        self._directory = _directory(config, is_first=self._is_first)
        self._official: HardwareProcess | None = None
        self._lines: list[str] = []
        self._counts = (0, 0)
        self._alone: dict[str, int] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Keep the runs of ``run_kernel`` in this test and process."""
        result = yield
        from nkitools.pytest_plugin.recording import RECORDER

        self._keep(item, self._config.stash[RECORDER].asked_for)
        if "official" in self._sides and target_of(item) == "sim" and not os.environ.get(IN_WORKER):
            self._run_officially(item)
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare, and fail the session if two runs differ or only one side failed."""
        if self._official is not None:
            self._official.end()
        if not self._is_first:
            return
        self._counts = self._compare()
        self._alone = self._ran_alone()
        failed = [path.read_text(encoding="utf-8") for path in sorted(self._directory.glob("*/failed"))]
        self._lines += failed
        if (self._counts[1] or failed) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        shutil.rmtree(self._directory, ignore_errors=True)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print which kernels differ and where."""
        if not self._is_first:
            return
        one, other = self._sides
        terminalreporter.write_sep("=", f"nki agreement of {one} and {other}")
        for line in self._lines:
            terminalreporter.write_line(shown(line))
        same, different = self._counts
        terminalreporter.write_line(f"kernel calls that agree: {same}, that differ: {different}")
        for side, count in self._alone.items():
            terminalreporter.write_line(
                f"kernel calls on {side} alone, compared with nothing: {count} (pytest -rs says why tests are skipped)"
            )

    def _keep(self, item: pytest.Item, runs: list[Any]) -> None:
        from nkitools.targets.official import NAMES

        side = _side(item)
        # Other kinds than NKI kernels run in nkitools' own simulator whatever is asked for: no second opinion.
        runs = [each for each in runs if side != "official" or each[0].target in NAMES]
        if side not in self._sides or not runs:
            return
        place = self._place(item)
        for number, (run, full) in enumerate(runs):
            if full is not None:
                full.save(place / f"{number}.full")
            run.save(place / f"{number}.{side}")

    def _compare(self) -> tuple[int, int]:
        from nkitools.record.run import load_run
        from nkitools.report.agreement import agreement

        same = different = 0
        for place in sorted(self._directory.iterdir() if self._directory.is_dir() else []):
            test = (place / "test").read_text(encoding="utf-8")
            for first in sorted(place.glob(f"*.{self._sides[0]}")):
                second, full = first.with_suffix(f".{self._sides[1]}"), first.with_suffix(".full")
                if not second.exists():
                    continue
                one, other = load_run(first), load_run(second)
                found = agreement(one, other, load_run(full) if full.exists() else None)
                same, different = same + found.is_same, different + (not found.is_same)
                if not found.is_same:
                    self._lines += [f"{test}: {one.kernel} differs", *(f"  {line}" for line in found.lines())]
        return same, different

    def _ran_alone(self) -> dict[str, int]:
        """Return for each side the number of kernel calls that ran there alone."""
        counts = {}
        for side, partner in (self._sides, reversed(self._sides)):
            paths = self._directory.glob(f"*/*.{side}")
            counts[side] = sum(not path.with_suffix(f".{partner}").exists() for path in paths)
        return {side: count for side, count in counts.items() if count}

    def _run_officially(self, item: pytest.Item) -> None:
        from nkitools.pytest_plugin.process import HardwareProcess, ProcessLost

        try:
            if self._official is None:
                items = [each for each in item.session.items if target_of(each) == "sim"]
                self._official = HardwareProcess(self._config, items, (), nki_simulator="official")
            reports = self._official.run(item, None)
        except ProcessLost as error:
            self._tell(item, f"{error}")
            self._official = None
            return
        except BaseException:
            if self._official is not None:
                self._official.interrupt()
                self._official = None
            raise
        for one in reports:
            if one.failed:
                self._tell(item, one.longreprtext)

    def _tell(self, item: pytest.Item, why: str) -> None:
        """Report a test that fails in AWS's simulator alone to the process that compares, since it is no agreement."""
        place = self._place(item)
        (place / "failed").write_text(f"{item.nodeid}: AWS's simulator: {why}", encoding="utf-8")

    def _place(self, item: pytest.Item) -> Path:
        """Return the folder in which both sides of a test keep their runs."""
        place = self._directory / hashlib.sha256(_key(item).encode()).hexdigest()[:16]
        place.mkdir(parents=True, exist_ok=True)
        (place / "test").write_text(_key(item), encoding="utf-8")
        return place


def in_full_precision(target: Target, kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Simulate the call in full precision, outside of reports; None if the target cannot."""
    from nkitools.targets.builtin import BuiltinSimulator, is_jax_function

    if not isinstance(target, BuiltinSimulator) or is_jax_function(kernel):
        return None
    from nkitools.precision.runs import copied

    chip = options.value("chip")

    def apart() -> Any:
        with options.override(chip=chip, precision="full"):
            here, named = copied((args, kwargs))
            return target.run(kernel, *here, **{**named, "rules": "report"})

    try:
        return Context().run(apart)
    except Exception:
        return None  # the run itself will say what is wrong


def _side(item: pytest.Item) -> str:
    target = target_of(item)
    return "official" if target == "sim" and options.value("simulator") == "official" else str(target)


def _key(item: pytest.Item) -> str:
    """Return the test without its target."""
    target = target_of(item)
    base, bracket, parameters = item.nodeid.partition("[")
    parts = parameters.removesuffix("]").split("-")
    if target in parts:
        parts.remove(target)
    return f"{base}{bracket}{'-'.join(parts)}]" if parts else base


def _directory(config: pytest.Config, *, is_first: bool) -> Path:
    """Return the directory for the runs of both sides; the first process makes it and names it in a variable."""
    if is_first:
        os.environ.pop(_DIRECTORY, None)
    known = os.environ.get(_DIRECTORY)
    if known is None:
        known = tempfile.mkdtemp(prefix="nkitools-compare-")
        variables = pytest.MonkeyPatch()
        variables.setenv(_DIRECTORY, known)  # for the processes of hardware tests and xdist's workers
        config.add_cleanup(variables.undo)
    return Path(known)
