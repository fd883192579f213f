"""`nkitools run`: a script as under python, with the simulator behind `import nki`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nkitools.facts.options import OPTIONS

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).parents[2]

KERNEL = """
import numpy as np
import nki
import nki.language as nl

@nki.jit
def copy(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.device_print("tile", tile)
    nl.store(out, tile)
    return out

@nki.jit
def tall(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))  # broken
    return out

x = np.ones((4, 4), np.float32)
many_rows = np.ones((256, 4), np.float32)
"""


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No option decided by the environment, and a directory of the test's own."""
    for option in OPTIONS.values():
        monkeypatch.delenv(option.env, raising=False)
    for name in ("NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION"):
        monkeypatch.delenv(name, raising=False)
    paths = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.chdir(tmp_path)


def run(
    source: str, *args: str, options: tuple[str, ...] = (), name: str = "script.py"
) -> subprocess.CompletedProcess[str]:
    """``python -m nkitools run [options] script.py [args]`` on a script of this ``source``."""
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(source)
    command = [sys.executable, "-m", "nkitools", "run", *options, name, *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_script_runs_unmodified_and_its_prints_come_out() -> None:
    """Outputs and device prints on stdout, the summary on stderr, exit code 0; the run as JSON on request."""
    done = run(KERNEL + "print(nki.simulate(copy)(x).sum())\n", options=("--json", "runs.json"))
    assert done.returncode == 0, done.stderr
    plain = json.loads(Path("runs.json").read_text())
    assert [(each["kernel"], each["findings"], len(each["prints"])) for each in plain["runs"]] == [("copy", [], 1)]
    lines = done.stdout.splitlines()
    assert lines[0].startswith("tile [program 0, script.py:10]")
    assert lines[-1] == "16.0"
    assert done.stderr == "nkitools: 1 kernel run, 0 findings, 1 device print\n"


def test_a_script_that_changes_the_folder_does_not_move_the_json() -> None:
    """The file lies where the command was started."""
    Path("other").mkdir()
    done = run(KERNEL + "import os\nos.chdir('other')\nnki.simulate(copy)(x)\n", options=("--json", "runs.json"))
    assert (done.returncode, Path("runs.json").exists()) == (0, True)


def test_a_file_of_kernels_that_calls_none_says_so() -> None:
    """The exit code is 1; a script of other things stays its own master."""
    done = run(KERNEL)
    assert done.returncode == 1
    summary, hint = done.stderr.splitlines()
    assert summary == "nkitools: 0 kernels run, 0 findings, 0 device prints"
    assert hint.startswith("nkitools: script.py calls no kernel. A test file runs with `pytest -m sim`; ")
    assert run("import numpy\n").returncode == 0


def test_the_script_sees_what_python_would_show_it() -> None:
    """Arguments, also those that look like options; its directory first on the path; __main__; __file__."""
    Path("sub").mkdir()
    Path("sub/neighbour.py").write_text("name = 'neighbour'\n")
    source = """
import inspect, pickle, sys
import neighbour

class Mine: ...

if __name__ == "__main__":
    print(sys.argv, neighbour.name, __file__, sys.modules["__main__"].Mine is Mine)
    print(type(pickle.loads(pickle.dumps(Mine()))) is Mine, inspect.getsource(Mine))
    print(__doc__, __spec__, __package__)
    print(sys.path[0])
"""
    args = ("--chip", "-x", "--", "a b")
    ours = run(source, *args, name="sub/script.py")
    pythons = subprocess.run([sys.executable, "sub/script.py", *args], capture_output=True, text=True, check=True)
    assert ours.returncode == 0, ours.stderr
    assert ours.stdout == pythons.stdout


@pytest.mark.parametrize(
    ("ending", "code", "said"),
    [
        ("sys.exit(0)", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(7)", 7, ""),
        ("sys.exit('no device')", 1, "no device\n"),
        ("raise SystemExit(True)", 1, ""),
        ("sys.excepthook = lambda *_: None; raise KeyboardInterrupt", 130, ""),
    ],
)
def test_the_exit_code_is_the_scripts_own(ending: str, code: int, said: str) -> None:
    """sys.exit means what it means to python."""
    done = run(f"import sys\n{ending}\n")
    assert done.returncode == code
    assert done.stderr == f"{said}nkitools: 0 kernels run, 0 findings, 0 device prints\n"


DYING = """
def inner():
    raise ValueError("mine")

try:
    inner()
except ValueError as error:
    raise KeyError("x") from error
"""


def test_a_script_that_dies_shows_its_own_traceback() -> None:
    """As python shows it, without a frame of nkitools; exit code 1."""
    ours = run(DYING)
    pythons = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, check=False)
    assert ours.returncode == 1
    traceback, _, summary = ours.stderr.partition("nkitools: ")
    assert traceback == pythons.stderr.replace('"script.py"', f'"{Path("script.py").absolute()}"')
    assert summary == "0 kernels run, 0 findings, 0 device prints\n"


def test_a_syntax_error_of_the_script_is_shown_as_python_does() -> None:
    """The script's own line, nothing of ours."""
    done = run("x = = 1\n")
    assert done.returncode == 1
    assert 'script.py", line 1' in done.stderr
    assert "nkitools/" not in done.stderr


def test_a_broken_rule_ends_the_script_at_the_kernels_line() -> None:
    """rules=error, the default: the traceback ends in the kernel, the finding is in the summary too."""
    done = run(KERNEL + "nki.simulate(tall)(many_rows)\n")
    assert done.returncode == 1
    traceback, _, summary = done.stderr.partition("nkitools: ")
    assert "# broken" in traceback
    assert "nkitools/" not in traceback
    assert "NK101" in traceback
    lines = summary.splitlines()
    assert lines[0] == "1 kernel run, 1 finding, 0 device prints"
    assert lines[1].startswith("script.py:17:")
    assert ": NK101 " in lines[1]


def test_collected_errors_fail_a_script_that_ended_well() -> None:
    """rules=report: the script goes on to its end; repeats are folded with their count and remedy; exit code 1."""
    source = KERNEL + "for _ in range(2):\n    nki.simulate(tall)(many_rows)\nprint('to the end')\n"
    done = run(source, options=("--rules", "report"))
    assert done.returncode == 1
    assert done.stdout.endswith("to the end\n")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("nkitools: 2 kernels run, ")
    assert lines[1].startswith("script.py:17:")
    assert lines[2:6] == [
        "    17 | nl.store(out, nl.load(x))  # broken",
        "       |               ^",
        "    Split dimension 0 into tiles of nl.tile_size.pmax and handle one tile per iteration of a loop.",
        "    and 1 more",
    ]


def test_prints_of_every_run_come_out_and_watches_too() -> None:
    """Also of nkitools.simulate; --watch names tensors and lines; one that finds nothing is told at the end."""
    source = KERNEL + "import nkitools\nprint(nkitools.simulate(copy, x).outputs.sum())\n"
    done = run(source, options=("--watch", "tile", "--watch", "outt,script.py:11"))
    assert done.returncode == 0, done.stderr
    assert [line.partition(" [")[0] for line in done.stdout.splitlines() if "[program" in line] == [
        "tile",
        "tile",
        "script.py:11",
    ]
    assert "script.py:11 [program 0, script.py:11] `out` shared HBM float32 [4, 4]" in done.stdout
    assert done.stderr == (
        "nkitools: watch 'outt' recorded nothing: no tensor of that name was written; did you mean 'out'?\n"
        "nkitools: 1 kernel run, 0 findings, 3 device prints\n"
    )


DEALING = f"""{KERNEL}
import nkitools

try:
    nki.simulate(tall)(many_rows)
except nkitools.KernelError:
    print("expected")
"""


def test_an_error_that_the_script_deals_with_is_no_failure() -> None:
    """A script that expects a KernelError and goes on has ended well."""
    done = run(DEALING)
    assert (done.returncode, done.stdout) == (0, "expected\n")
    assert "1 finding" in done.stderr


def test_the_options_reach_the_run() -> None:
    """--rules, --chip, --precision and --sum-order hold while the script runs; off finds nothing."""
    source = "import nkitools.facts.options as o\nprint(*map(o.value, ('chip', 'rules', 'precision', 'sum_order')))\n"
    said = ("--chip", "trn1", "--rules", "off", "--precision", "full", "--sum-order", "chip")
    assert run(source, options=said).stdout == "trn1 off full chip\n"
    assert run(source).stdout == "None error None fast\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("no_such.py",), "File 'no_such.py' does not exist."),
        ((".",), "File '.' is a directory."),
        (("--rule", "off", "script.py"), "Did you mean"),
        (("--json", "no/such/folder/x.json", "script.py"), "there is no directory no/such/folder"),
        (("--save", "no/such/folder/x.json", "script.py"), "there is no directory no/such/folder"),
        (("--save", ".", "script.py"), "File '.' is a directory."),
        (("--chip", "trn9", "script.py"), "'trn9' is not one of 'trn1', 'inf2'"),
        ((), "Missing argument 'SCRIPT'."),
    ],
)
def test_a_mistake_in_the_command_is_reported_with_exit_code_2(args: tuple[str, ...], said: str) -> None:
    """Before anything runs."""
    Path("script.py").write_text("print('ran')\n")
    done = subprocess.run([sys.executable, "-m", "nkitools", "run", *args], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_a_mistake_in_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that means nothing is a usage error that names it."""
    monkeypatch.setenv("NKITOOLS_RULES", "loud")
    done = run("print('ran')\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "NKITOOLS_RULES is 'loud'; choose one of error, strict, report, off." in done.stderr


def test_the_stand_in_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """NKITOOLS_STAND_IN=never: the script gets what is installed, here nothing."""
    monkeypatch.setenv("NKITOOLS_STAND_IN", "never")
    done = run("import neuronxcc.nki\n")
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'neuronxcc'" in done.stderr
