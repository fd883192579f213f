"""`nkitools diff` and `nkitools run --save`: runs as files, two of them side by side."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import nkitools
from nkitools.cli import main
from nkitools.record.run import Run

SCRIPT = """
import sys
import numpy as np
import nki
import nki.language as nl

@nki.jit
def kernel(x, factor):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.multiply(nl.load(x), factor)
    nl.device_print("tile", tile)
    nl.store(out, tile)
    return out

for factor in sys.argv[1:]:
    nki.simulate(kernel)(np.ones((4, 4), np.float32), float(factor))
"""


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of the test's own, with the script in it."""
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text(SCRIPT)


def nkitools_(*args: str) -> Result:
    return CliRunner().invoke(main, args, catch_exceptions=False)


def saved(name: str, value: float = 1.0) -> str:
    Run("k", "builtin", outputs=np.full((2, 2), value, np.float32)).save(name)
    return name


def test_a_run_is_saved() -> None:
    """To the file that is named; the summary and the prints are as ever."""
    done = nkitools_("run", "--save", "run.json", "script.py", "2")
    assert done.exit_code == 0
    assert done.stderr.splitlines() == [
        f"nkitools: saved {Path('run.json').absolute()}",
        "nkitools: 1 kernel run, 0 findings, 1 device print",
    ]
    run = nkitools.load_run("run.json")
    np.testing.assert_array_equal(run.outputs, np.full((4, 4), 2, np.float32))
    assert [one.prefix for one in run.prints] == ["tile"]
    assert run.sources[str(Path("script.py").absolute())] == SCRIPT


def test_several_runs_are_numbered(tmp_path: Path) -> None:
    """In the order of the script; also where it ends badly, and where it goes elsewhere."""
    Path("elsewhere").mkdir()
    Path("script.py").write_text(SCRIPT + "import os\nos.chdir('elsewhere')\nraise SystemExit(7)\n")
    done = nkitools_("run", "--save", "run.json", "script.py", "2", "3")
    assert done.exit_code == 7
    assert [nkitools.load_run(tmp_path / f"run-{number}.json").outputs[0, 0] for number in (1, 2)] == [2, 3]
    assert not (tmp_path / "run.json").exists()


def test_where_no_kernel_ran_nothing_is_saved() -> None:
    """And that is said."""
    done = nkitools_("run", "--save", "run.json", "script.py")
    assert "saved nothing, no kernel has run" in done.stderr
    assert not Path("run.json").exists()


@pytest.mark.parametrize("path", ["missing/run.json", "."])
def test_a_file_that_cannot_be_is_refused_before_anything_runs(path: str) -> None:
    """Exit code 2; the script's prints are not there."""
    done = nkitools_("run", "--save", path, "script.py", "2")
    assert done.exit_code == 2
    assert "'--save'" in done.stderr
    assert done.stdout == ""


def test_a_run_that_cannot_be_saved_fails_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The script's summary is not lost."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Run, "save", full)
    done = nkitools_("run", "--save", "run.json", "script.py", "2")
    assert done.exit_code == 1
    assert "the runs are not saved: [Errno 28] No space left on device" in done.stderr
    assert "1 kernel run" in done.stderr


def test_the_same() -> None:
    """Exit code 0, one line."""
    done = nkitools_("diff", saved("a.json"), saved("b.json"))
    assert (done.exit_code, done.stdout) == (0, "a.json and b.json: the same\n")


def test_different() -> None:
    """Exit code 1: print, element, values and the line that wrote it."""
    for factor, name in (("2", "a.json"), ("3", "b.json")):
        nkitools_("run", "--save", name, "script.py", factor)
    done = nkitools_("diff", "a.json", "b.json")
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "a.json and b.json: different",
        "first diverging print 'tile' [program 0, script.py:11]",
        "  element [0, 0] (0): 2.0 and 3.0; 16 of 16 differ, by up to 1",
        "outputs",
        "  element [0, 0] (0): 2.0 and 3.0; 16 of 16 differ, by up to 1",
        "  written by dma_copy at script.py:12, element [0, 0] of a tile [4, 4]",
    ]


@pytest.mark.parametrize(("option", "code"), [("--rtol=0.4", 0), ("--rtol=0.3", 1), ("--atol=1", 0), ("--atol=0.9", 1)])
def test_tolerances(option: str, code: int) -> None:
    """2 and 3 are a third of the larger one apart, and one."""
    assert nkitools_("diff", option, saved("a.json", 2.0), saved("b.json", 3.0)).exit_code == code


def test_json() -> None:
    """For machines, the same exit code."""
    done = nkitools_("diff", "--format", "json", saved("a.json"), saved("b.json", np.nan))
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert (told["same"], told["first"], told["second"]) == (False, "a.json", "b.json")
    assert told["outputs"][0]["values"]["second"] == "nan"
    assert told["outputs"][0]["values"]["worst"] is None


def test_long_lists_are_cut_and_counted() -> None:
    """Unless all are asked for."""
    run = Run("k", "builtin")
    for number in range(13):
        run.prints.append(nkitools.Print(f"p{number}", np.zeros(1)))
    run.save("a.json")
    Run("k", "builtin").save("b.json")
    short, whole = (nkitools_("diff", *flags, "a.json", "b.json").stdout.splitlines() for flags in ((), ("--all",)))
    assert short[1] == whole[1] == "prints of the first run only: 13"
    assert short[-1] == "  ... and 3 more (--all lists them)"
    assert len(whole) == 2 + 13


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("a.json", "nothing.json"), "nothing.json cannot be read: No such file or directory"),
        (("a.json", "script.py"), "script.py: this is no saved run"),
        (("cut.json", "a.json"), "cut.json: a saved run that is cut off or damaged"),
        (("a.json", "."), ". cannot be read: Is a directory"),
        (("--rtol", "-1", "a.json", "a.json"), "no number from 0 on"),
        (("--atol", "nan", "a.json", "a.json"), "no number from 0 on"),
        (("--atol", "x", "a.json", "a.json"), "not a valid float"),
        (("a.json",), "Missing argument"),
    ],
)
def test_mistakes_are_exit_code_2(args: tuple[str, ...], said: str) -> None:
    """With a sentence that names the file or the option."""
    saved("a.json")
    Path("cut.json").write_bytes(Path("a.json").read_bytes()[:200])
    done = nkitools_("diff", *args)
    assert done.exit_code == 2
    assert said in done.stderr
