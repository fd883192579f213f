"""The options that several commands have: each works, seen by its effect, or is not there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner

from nkitools.cli import main
from nkitools.cli.sweep import sweep_kernel
from nkitools.kernel_settings import settings_of, texts_of
from tests.fakes import machines

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).parents[2]
KERNEL = """
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

ADDED = 0.0
OFF = False

@nki.jit
def scaled(x, times=1, factor=2.0):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    for _ in range(times):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor, op1=nl.add, operand1=ADDED)
    nisa.dma_copy(dst=out, src=tile)
    return out

space = {"rows": [4, 8]}

def inputs(rows):
    return {"x": np.ones((rows, 16), np.float32)}

def reference(x):
    return 2 * x
"""
TESTS = """
import numpy as np
import kernels_of_table

def test_it():
    x = np.ones((4, 8), np.float32)
    np.testing.assert_array_equal(kernels_of_table.nki.simulate(kernels_of_table.scaled)(x), 2 * x)
"""
# Each command with the options that it has; what a command does not have would mean nothing there, for the reason said.
TABLE: dict[str, tuple[set[str], str]] = {
    "estimate": ({"chip", "nki-version", "set", "json", "inputs"}, "sums take as long in every order"),
    "bisect": ({"chip", "nki-version", "set", "json", "inputs"}, "it compares in float64"),
    "compare": ({"chip", "nki-version", "sum-order", "set", "json", "inputs"}, ""),
    "tune": ({"chip", "nki-version", "set", "json", "inputs"}, "sums take as long in every order"),
    "verify": ({"chip", "nki-version", "sum-order", "set", "json", "inputs"}, ""),
    "compile": ({"chip", "nki-version", "set", "json", "inputs"}, "it adds nothing"),
    "sweep run": ({"chip", "nki-version", "sum-order", "set", "json"}, "its arguments are those of the space"),
    "mutate": ({"chip", "nki-version", "sum-order", "set", "json"}, "its arguments are those of the tests"),
    "run": ({"chip", "nki-version", "sum-order", "json"}, "a script calls its kernels itself"),
    "try": ({"json"}, "tests and scripts call their kernels themselves"),
    "view": ({"chip", "nki-version", "sum-order"}, "it writes a page"),
    "lint": ({"nki-version", "json"}, "it judges for all chips, and runs nothing"),
    "why": ({"json"}, "the run is over"),
    "diff": ({"json"}, "the runs are over"),
    "timeline": (set(), "the run is over, and it writes a trace"),
    "reproduce": (set(), "the run is over, and it writes Python"),
    "rules": ({"json"}, "the catalogue is of all chips and versions"),
    "explain": ({"json"}, "a rule names its chips itself"),
    "doctor": ({"json"}, "it looks at the machine"),
    "guide": ({"chip", "nki-version"}, "it writes Markdown"),
    "sweep report": ({"json"}, "its cases have run"),
    "sweep merge": (set(), "it writes a store"),
    "sweep export": (set(), "it writes a table"),
    "demo": (set(), "it shows all chips"),
    "new": (set(), "it writes files"),
    "completion": (set(), "it prints a line for a shell"),
    "lsp": (set(), "the editor says them"),
    "mcp": (set(), "the client says them with each call"),
}
SHARED = {"chip", "nki-version", "sum-order", "set", "json", "inputs"}


def commands() -> dict[str, click.Command]:
    found = {name: each for name, each in main.commands.items() if name != "sweep"}
    return found | {f"sweep {name}": each for name, each in sweep_kernel.commands.items()}


def flags_of(command: click.Command) -> dict[str, click.Option]:
    options = [each for each in command.params if isinstance(each, click.Option)]
    return {flag.removeprefix("--"): each for each in options for flag in each.opts}


def test_every_command_stands_in_the_table_with_the_options_that_it_has() -> None:
    """A new command says which of the shared options it takes; what it does not take has its reason."""
    assert set(TABLE) == set(commands())
    for name, command in commands().items():
        has, reason = TABLE[name]
        assert set(flags_of(command)) & SHARED == has, name
        assert has == SHARED or reason, name


def test_an_option_is_the_same_wherever_it_stands() -> None:
    """One metavar for each, none where the choices show; with ``--json`` comes ``--format json``, shown where it has
    more forms.
    """
    for flag, metavars in (
        ("nki-version", {None}),
        ("set", {"NAME=VALUE"}),
        ("sum-order", {None}),
        ("chip", {"NAME", "A,B"}),
    ):
        there = [flags_of(each)[flag] for each in commands().values() if flag in flags_of(each)]
        assert {each.metavar for each in there} == metavars
    for name, command in commands().items():
        if "json" in TABLE[name][0] and name not in ("run", "try"):
            form = flags_of(command)["format"]
            assert isinstance(form.type, click.Choice)
            assert form.hidden is (len(form.type.choices) == 2), name
    (file,) = {flags_of(commands()["run"])["json"].metavar}
    assert file == "FILE"  # what a script prints is the script's


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a kernel, its tests, a script, a store and two saved runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("kernels_of_table.py").write_text(KERNEL)
    Path("test_kernels_of_table.py").write_text(TESTS)
    return tmp_path


class Done(NamedTuple):
    """The end of a command."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """All that it has printed."""
        return self.stdout + self.stderr


def ended(*args: str) -> Done:
    """Run a command; `mutate`, whose workers run pytest, in a process of its own."""
    if args[0] != "mutate":
        done = CliRunner().invoke(main, args)
        assert not isinstance(done.exception, Exception), done.exception
        return Done(done.exit_code, done.stdout, done.stderr)
    command = [sys.executable, "-m", "nkitools", *args]
    own = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return Done(own.returncode, own.stdout, own.stderr)


def called(*args: str) -> Done:
    done = ended(*args)
    assert done.exit_code in (0, 1), done.output
    return done


def told(*args: str) -> Any:
    return json.loads(called(*args).stdout)


K = "kernels_of_table.py::scaled"
SWEEP = ("sweep", K, "--workers", "1")
MUTATE = ("mutate", K, "--workers", "1", "--kind", "change-operator")
ERROR = "max_error"


def test_tune_ranks_what_is_not_set(there: Path) -> None:
    """A name of `settings` that is set has this value alone, also where the inputs say another one by position."""
    said = "settings = {'times': [1, 2], 'factor': [2.0, 3.0]}\n"
    Path("tuned.py").write_text(KERNEL.replace('return {"x": np.ones((rows, 16), np.float32)}',
                                               "return np.ones((rows, 16), np.float32), 7") + said)  # fmt: skip
    ranked = told("estimate", "tuned.py::scaled", "--tune", "--json", "--set", "factor=5.0")
    assert [each["values"] for each in ranked] == [{"times": n, "factor": 5.0} for n in (1, 2)]
    assert not any(each["refused"] for each in ranked)


def test_estimate(there: Path) -> None:
    """Chips side by side, the version that holds, a keyword, a constant, a parameter of ``inputs``."""
    assert [each["chip"] for each in told("estimate", K, "--chip", "trn1,trn3", "--json")] == ["trn1", "trn3"]
    one, many = (told("estimate", K, "--json", "--set", f"times={n}")[0]["latency_us"] for n in (1, 40))
    assert many > 1.2 * one
    wide = told("estimate", K, "--json", "--set", "rows=128")[0]
    assert wide != told("estimate", K, "--json")[0]
    refused = ended("estimate", K, "--nki-version", "0.9")
    assert (refused.exit_code, "'0.9' is not one of" in refused.output) == (2, True)


VERSIONED: dict[str, tuple[str, ...]] = {
    "estimate": ("estimate", "new_of_table.py::scaled"),
    "bisect": ("bisect", "new_of_table.py::scaled"),
    "sweep run": ("sweep", "new_of_table.py::scaled", "--workers", "1"),
    "mutate": ("mutate", "new_of_table.py::scaled", "--workers", "1", "--kind", "change-operator"),
    "run": ("run", "script.py"),
    "view": ("view", "script.py"),
    "lint": ("lint", "new_of_table.py"),
}


@pytest.mark.parametrize("verb", VERSIONED)
def test_a_version_decides_what_the_kernel_may_use(verb: str, there: Path) -> None:
    """What NKI 0.7 has brought is refused under 0.6, by every command alike."""
    new = KERNEL.replace("    nisa.dma_copy(dst=out", "    wide = nl.int64\n    nisa.dma_copy(dst=out")
    Path("new_of_table.py").write_text(new)
    Path("test_new_of_table.py").write_text(TESTS.replace("kernels_of_table", "new_of_table"))
    Path("script.py").write_text(f"{new}nki.simulate(scaled)(**inputs(4))\n")
    old, now = (ended(*VERSIONED[verb][:1], "--nki-version", each, *VERSIONED[verb][1:])
                for each in ("0.6", "0.7"))  # fmt: skip
    assert re.search("NK608|int64|RemovedAttribute", old.output)  # of `mutate` the end of the failed test
    assert "NK608" not in now.output
    assert (old.exit_code != 0, now.exit_code) == (True, now.exit_code if verb == "mutate" else 0)


CHIPS: dict[str, tuple[str, ...]] = {
    "bisect": ("bisect", "chip_of_table.py::scaled"),
    "mutate": ("mutate", "chip_of_table.py::scaled", "--workers", "1", "--kind", "change-operator"),
    "run": ("run", "script.py"),
    "view": ("view", "script.py"),
}


@pytest.mark.parametrize("verb", CHIPS)
def test_a_chip_is_the_one_that_the_kernel_runs_on(verb: str, there: Path) -> None:
    """A kernel that is made for trn1 alone fails on trn3."""
    text = KERNEL.replace(
        "def scaled(x, times=1, factor=2.0):\n",
        "def scaled(x, times=1, factor=2.0):\n"
        "    assert nisa.get_nc_version() == nisa.nc_version.gen2, 'of trn1 alone'\n",
    )
    Path("chip_of_table.py").write_text(text)
    Path("test_chip_of_table.py").write_text(TESTS.replace("kernels_of_table", "chip_of_table"))
    Path("script.py").write_text(f"{text}nki.simulate(scaled)(**inputs(4))\n")
    wrong, right = (ended(*CHIPS[verb][:1], "--chip", each, *CHIPS[verb][1:])
                    for each in ("trn3", "trn1"))  # fmt: skip
    assert wrong.exit_code != 0
    assert (right.exit_code in (0, 1), "of trn1 alone" in right.output) == (True, False), right.output


ORDERED: dict[str, tuple[str, ...]] = {
    "sweep run": ("sweep", "sum_of_table.py::scaled", "--workers", "1"),
    "mutate": ("mutate", "sum_of_table.py::scaled", "--workers", "1", "--kind", "change-operator"),
    "run": ("run", "script.py"),
    "view": ("view", "script.py"),
}


@pytest.mark.parametrize("verb", ORDERED)
def test_an_order_of_sums_holds_while_the_kernel_runs(verb: str, there: Path) -> None:
    """A kernel that adds a large number, ones and the number's negative is 0 in the order of elements alone."""
    sums = (
        "    sums = nl.sum(tile, axis=[1], keepdims=True)\n"
        "    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=0.0, op1=nl.add, operand1=sums)\n"
    )
    text = (
        KERNEL.replace("    nisa.dma_copy(dst=out", f"{sums}    nisa.dma_copy(dst=out")
        .replace("np.ones((rows, 16), np.float32)", "np.float32([[2.0**24] + [0.5] * 14 + [-(2.0**24)]] * rows)")
        .replace("return 2 * x", "return np.zeros_like(x)")
    )
    Path("sum_of_table.py").write_text(text)
    Path("test_sum_of_table.py").write_text(
        "import sum_of_table as k\n\ndef test_it():\n    x = k.inputs(4)['x']\n"
        "    assert (k.nki.simulate(k.scaled)(x) == k.reference(x)).all()\n"
    )
    call = "x = inputs(4)['x']\nassert (nki.simulate(scaled)(x) == reference(x)).all()\n"
    Path("script.py").write_text(text + call)
    fast, ordered = (ended(*ORDERED[verb][:1], "--sum-order", each, *ORDERED[verb][1:])
                     for each in ("fast", "chip"))  # fmt: skip
    wrong = "differ|wrong|AssertionError|do not pass"
    assert re.search(wrong, fast.output), fast.output
    assert not re.search("AssertionError|do not pass", ordered.output), ordered.output
    assert verb == "mutate" or (fast.exit_code, ordered.exit_code) == (1, 0), ordered.output


def test_bisect(there: Path) -> None:
    """What is set decides whether the kernel is right."""
    assert told("bisect", K, "--json")["kind"] == "right"
    assert told("bisect", K, "--json", "--set", "factor=3.0")["kind"] != "right"
    assert told("bisect", K, "--json", "--set", "ADDED=1.0")["kind"] != "right"
    assert told("bisect", K, "--json", "--set", "rows=6")["kind"] == "right"
    assert told("bisect", K, "--json")["kind"] == "right"  # what was set is as it was


def test_sweep(there: Path) -> None:
    """A name that is set has this value alone in every case; rows are JSON; each chip has its cases."""
    plain = told(*SWEEP, "--json", "--chip", "trn1,trn2")
    assert (plain["cases"], plain["outcomes"], len(plain["rows"])) == (4, {"pass": 4}, 4)
    assert {row["chip"] for row in plain["rows"]} == {"trn1", "trn2"}
    fixed = told(*SWEEP, "--json", "--set", "rows=6", "--set", "ADDED=1.0")
    assert [(row["rows"], row["ADDED"], row["outcome"], row[ERROR]) for row in fixed["rows"]] == [
        (6, 1.0, "wrong", 1.0)
    ]


def test_mutate(there: Path) -> None:
    """A constant that is set makes the tests fail before any mistake; a keyword is the tests' own."""
    assert told(*MUTATE, "--json")[0]["kind"] == "change-operator"
    for setting, words in (("ADDED=1.0", "the tests do not pass without a mistake"), ("times=3", "no constant of the")):
        done = ended(*MUTATE, "--set", setting)
        assert (done.exit_code, words in done.output) == (2, True), done.output


VERBS: dict[str, tuple[str, ...]] = {"estimate": ("estimate", K), "bisect": ("bisect", K), "sweep run": SWEEP}
WRONG = {
    "NAME": "NAME: write NAME=VALUE",
    "a.b=1": "a.b=1: write NAME=VALUE",
    "nothing=1": "nothing is no parameter of the kernel or of `inputs`, and no constant",
    "np=1": "np is module, and no constant",
    "reference=1": "reference is function, and no constant",
    "OFF=false": "OFF is False, and 'false' is no literal of Python",
    "times=2*3": "times is 1, and '2*3' is no literal",
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("setting", WRONG)
def test_a_setting_that_means_nothing_is_one_sentence(verb: str, setting: str, there: Path) -> None:
    """The same one from every command, exit code 2."""
    done = ended(*VERBS[verb], "--set", setting)
    assert (done.exit_code, WRONG[setting] in done.output, "Traceback" in done.output) == (2, True, False), done.output


def test_settings_go_to_another_process_as_they_are() -> None:
    """JSON has no tuples; text that looks like a number stays text."""
    said = {"shape": (128, 4), "name": "7", "on": True, "none": None, "by": {1: "a"}, "rate": -0.5}
    assert settings_of(texts_of(said)) == said
    assert settings_of(["order=mn", "n = 3"]) == {"order": "mn", "n": 3}
    with pytest.raises(ValueError, match="n is set twice"):
        settings_of(["n=1", "n=2"])


FORMS: dict[str, tuple[str, ...]] = {
    "estimate": ("estimate", K),
    "bisect": ("bisect", K),
    "sweep run": SWEEP,
    "mutate": MUTATE,
    "lint": ("lint", "kernels_of_table.py"),
    "why": ("why", "a.run", "--element", "0,0"),
    "diff": ("diff", "a.run", "a.run"),
    "rules": ("rules", "--family", "NK1"),
    "explain": ("explain", "NK101"),
    "doctor": ("doctor",),
    "sweep report": ("sweep", "report", "s.db"),
}


@pytest.mark.parametrize("verb", FORMS)
def test_json_is_one_value_in_both_spellings(verb: str, there: Path) -> None:
    """``--json``, ``--format json`` and ``--format=json`` print the same one object or list, and nothing else."""
    if "a.run" in FORMS[verb]:
        Path("script.py").write_text(KERNEL + "nki.simulate(scaled)(**inputs(4))\n")
        called("run", "--save", "a.run", "script.py")
    if verb == "sweep report":
        called(*SWEEP, "--store", "s.db")
    found = [told(*FORMS[verb], *form) for form in (("--json",), ("--format", "json"), ("--json", "--format=json"))]
    assert isinstance(found[0], dict | list)
    if verb not in ("sweep run", "doctor"):  # which measure seconds and free memory
        assert found[0] == found[1] == found[2]
    both = ended(*FORMS[verb], "--json", "--format", "text")
    assert (both.exit_code, "--json and --format text say two forms" in both.output) == (2, True)
    text = called(*FORMS[verb], "--format", "text").stdout
    with pytest.raises(json.JSONDecodeError):
        json.loads(text or "-")


def test_json_has_nothing_beside_it(there: Path) -> None:
    """A list of sweeps is JSON too; a file that is written besides is said on stderr; nothing is ignored."""
    called(*SWEEP, "--store", "s.db", "--set", "factor=3.0")
    (listed,) = told("sweep", "report", "s.db", "--list", "--json")
    assert (listed["kernel"], listed["wanted"], listed["stored"]) == ("scaled", 2, 2)
    assert told("sweep", "report", "s.db", "--json", "--test", "t.py")[0]["outcomes"] == {"wrong": 2}
    assert Path("t.py").is_file()
    Path("loud.py").write_text(f"import os\nprint('loud')\nos.system('echo loud')\n{KERNEL}")
    assert told("bisect", "loud.py::scaled", "--json")["kind"] == "right"
    refused = ended("doctor", "--json", "--hardware", "out")
    assert (refused.exit_code, "--hardware writes a file of JSON by itself" in refused.output) == (2, True)


def test_view_takes_a_chip_and_a_version_for_a_script_alone(there: Path) -> None:
    """A saved run is of its chip: another one is refused, and not ignored."""
    Path("script.py").write_text(KERNEL + "print(nki.simulate(scaled)(**inputs(4)).sum())\n")
    called("run", "--save", "a.run", "script.py")
    assert "trn1" in (called("view", "--chip", "trn1", "script.py") and Path("script.html").read_text())
    for option in ("--chip=trn1", "--nki-version=0.6"):
        done = ended("view", option, "a.run")
        assert (done.exit_code, "a.run has been run already" in done.output) == (2, True)


@pytest.mark.parametrize("chip", ["trn1", "gen3", "trn9"])
@pytest.mark.parametrize("verb", ["bisect", "compare", "compile", "mutate", "run", "view", "guide"])
def test_a_chip_goes_by_all_its_names_everywhere(chip: str, verb: str, there: Path) -> None:
    """A name that no chip has is refused by the option, with those that there are."""
    done = ended(verb, "--chip", chip, *(["--help"] if chip != "trn9" else ["x", "y"]))
    said = "Invalid value for '--chip': 'trn9' is not one of 'trn1'"
    assert (done.exit_code, said in done.output) == ((2, True) if chip == "trn9" else (0, False)), done.output


def test_the_guide_to_the_legacy_dialect_has_no_version(there: Path) -> None:
    """The option is refused beside it; the environment's version is not meant for it."""
    done = ended("guide", "--legacy", "--nki-version", "0.6")
    assert (done.exit_code, "leave --nki-version out" in done.output) == (2, True)
    assert called("guide", "--legacy").stdout.startswith("# neuronxcc.nki")


def test_options_decide_while_the_command_runs_and_no_longer(there: Path) -> None:
    """What one call says is not there in the next one."""
    from nkitools.facts import options

    called("bisect", K, "--chip", "trn1", "--nki-version", "0.6")
    assert not {"chip", "nki_version"} & set(options.overrides() or {})


def test_compare_gives_its_options_to_both_sides(there: Path) -> None:
    """The chip, the version and the settings reach the processes of the sides."""
    root = machines.neuron_root(there / "root")
    path = os.pathsep.join([machines.packages("aws"), str(REPOSITORY)])
    environment = {**os.environ, "NKITOOLS_SYSROOT": str(root), "PYTHONPATH": path}

    def compared(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "nkitools", "compare", K, *args]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    asked = ("--between", "sim,official", "--set", "factor=3.0", "--set", "rows=6", "--chip", "trn1", "--keep", "kept")
    done = compared(*asked, "--json")
    assert json.loads(done.stdout)["verdict"] == "agree", done.stderr
    import numpy as np

    from nkitools.record.run import load_run

    run = load_run("kept/sim.run")
    assert run.chip == "trn1"
    np.testing.assert_array_equal(np.asarray(run.outputs), np.full((6, 16), 3.0))
    done = compared("--between", "official,hw", "--chip", "trn1")
    assert (done.returncode, "--between official,hw has no sim" in done.stderr) == (2, True)


def test_help_groups_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command once, in a group; the texts begin in one column and fit into 80."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = CliRunner().invoke(main, ["--help"], terminal_width=80).output.splitlines()
    assert [each for each in lines if each.endswith(":") and not each.startswith((" ", "Options"))] == [
        "Start:", "Check:", "Explain:", "Measure:", "Save:", "Serve:",
    ]  # fmt: skip
    listed = [each for each in lines[lines.index("Start:") :] if each.startswith("  ")]
    assert [each.split()[0] for each in listed] == list(main.commands)
    assert len({len(each) - len(each[2:].partition(" ")[2].lstrip()) for each in listed}) == 1
    assert max(map(len, lines)) <= 80
    assert "..." not in "".join(listed)
