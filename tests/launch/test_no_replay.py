"""What once asked for replay: it is accepted for one more version, says that it does nothing, and does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.facts import options

X = np.arange(32, dtype=np.float32).reshape(8, 4)
SAYS = "nkitools: nkitools no longer replays runs"
calls: list[int] = []


@pytest.fixture(autouse=True)
def _new_process() -> Iterator[None]:
    """Nothing was said before, as in a new process."""
    calls.clear()
    options.say_that_nothing_is_replayed.cache_clear()
    yield
    options.say_that_nothing_is_replayed.cache_clear()


def counted(x: Any) -> Any:
    """Add the number of times that the kernel's Python has run."""
    calls.append(1)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(nl.load(x), float(len(calls))))
    return out


def run(*arrays: Any, **asked: Any) -> Any:
    """Run it; that it depends on what it changes is NK617."""
    return nkitools.simulate(counted, *arrays, rules="report", **asked)


@pytest.mark.parametrize("replay", ["off", "auto", "on"])
def test_the_argument_says_once_that_it_does_nothing(replay: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The kernel's Python runs each time, and sees what has changed."""
    runs = [run(X, replay=replay) for _ in range(4)]
    for number, each in enumerate(runs, 1):
        np.testing.assert_array_equal(each.outputs, X + number)
    said = capsys.readouterr()
    assert said.err.count(SAYS) == said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("NKITOOLS_REPLAY", "off"),
        ("NKITOOLS_REPLAY", "auto"),
        ("NKITOOLS_REPLAY", "on"),
        ("NKITOOLS_REPLAY_THREADS", "2"),
    ],
)
def test_a_variable_says_once_that_it_does_nothing(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same of the environment."""
    monkeypatch.setenv(variable, value)
    for number in range(1, 4):
        np.testing.assert_array_equal(run(X).outputs, X + number)
    assert capsys.readouterr().err.count(SAYS) == 1


def test_of_ranks_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Each of two ranks runs the kernel, in both runs."""
    for _ in range(2):
        found = run((X,), (X,), ranks=2, replay="auto")
    assert len(calls) == 4
    np.testing.assert_array_equal(sorted(int(each[0, 0]) for each in found.outputs), [3, 4])
    assert capsys.readouterr().err.count(SAYS) == 1


def test_no_run_is_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    """The attribute is false, also where it is asked for its parts."""
    found = run(X)
    assert capsys.readouterr().err == ""
    assert not found.replayed
    assert found.replayed.done is False
    assert "no longer" in found.replayed.reason
    assert capsys.readouterr().err.count(SAYS) == 1


def test_who_asks_for_nothing_is_told_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty variable counts as not set."""
    with options.override(replay=None, replay_threads=""):
        run(X)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("wrong", ["", "often", "ON", 1, True, ["auto"]])
def test_an_argument_that_never_was_valid_is_refused(wrong: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """With the values that there were, before the kernel runs."""
    with pytest.raises(ValueError, match=r"^replay: must be one of off, auto, on, it is "):
        run(X, replay=wrong)
    assert calls == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("variable", "wrong", "message"),
    [
        ("NKITOOLS_REPLAY", "often", "NKITOOLS_REPLAY is 'often'; choose one of off, auto, on."),
        ("NKITOOLS_REPLAY_THREADS", "-1", "NKITOOLS_REPLAY_THREADS is '-1'; it must be a number"),
    ],
)
def test_a_variable_that_never_was_valid_is_refused(
    variable: str, wrong: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also beside one that is valid."""
    monkeypatch.setenv("NKITOOLS_REPLAY", "auto")
    monkeypatch.setenv(variable, wrong)
    with pytest.raises(ValueError, match=message):
        run(X)
    assert calls == []


@pytest.mark.process
def test_it_is_no_warning(tmp_path: Path) -> None:
    """A process in which warnings are errors runs to its end, and says it once, whatever asks for replay."""
    script = tmp_path / "kernel.py"
    script.write_text(
        "import numpy as np, nkitools\nimport nki.language as nl\n"
        "def kernel(x):\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    nl.store(out, nl.load(x))\n"
        "    return out\n"
        "x = np.ones((8, 4), np.float32)\n"
        "for _ in range(3):\n"
        "    print(nkitools.simulate(kernel, x, replay='auto').replayed.done)\n"
    )
    asked = {
        "NKITOOLS_REPLAY": "on",
        "NKITOOLS_REPLAY_THREADS": "1",
        "PYTHONPATH": str(Path(nkitools.__file__).parents[1]),
    }
    command = [sys.executable, "-W", "error", "-m", "nkitools", "run", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | asked, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("False\n") == 3
    assert done.stderr.count(SAYS) == 1
