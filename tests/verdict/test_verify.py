"""The doors of a verdict: command, function, tool for agents, fixture; and the loop of the documents."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import nkitools
from nkitools.cli import main
from nkitools.processes import output_of
from nkitools.serve.verified_file import verified
from nkitools.typing import RunKernel
from nkitools.verdict.cases import Given
from nkitools.verdict.child import Gone
from nkitools.verdict.rows import ROWS
from nkitools.verdict.sureness import how_sure
from tests.verdict import cheats

EXAMPLE = Path(__file__).parents[2] / "docs" / "how-to" / "example"
KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl

def kernel(x):
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, x.shape[0], 128):
        height = min(128, x.shape[0] - start)
        tile = nl.load(x[start : start + height, :])
        total = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
        nisa.tensor_scalar(dst=total, data=total, op0=nl.multiply, operand0=1 / x.shape[1])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.subtract, operand0=total)
        nisa.dma_copy(dst=result[start : start + height, :], src=tile)
    return result
"""
WRONG = KERNEL.replace("1 / x.shape[1]", "1 / 96")
JUDGE = (EXAMPLE / "agent_task.py").read_text()


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a kernel that is right, one that is wrong in other shapes, and the file of the reference."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"right": KERNEL, "wrong": WRONG, "judge": JUDGE, "alone": KERNEL + JUDGE}.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def _verify(*words: str) -> Result:
    return CliRunner().invoke(main, ["verify", *words])


@pytest.mark.process
def test_the_command_says_each_row_and_how_sure_it_is(directory: Path) -> None:
    """Exit code 0; the last line counts rows and mutants; a page has the rows, too."""
    done = _verify("right.py::kernel", "--reference", "judge.py::reference", "--html", "page.html")
    lines = done.stdout.splitlines()
    assert done.exit_code == 0, done.output
    assert {line.split()[1] for line in lines[:-1]} == {*ROWS}
    assert {line.split()[0] for line in lines[:-1]} == {"pass"}
    assert "17 pass, 0 fail, 0 unknown; these rows catch " in lines[-1]
    page = (directory / "page.html").read_text()
    assert all(f"<td>{row}</td>" in page for row in ROWS)


@pytest.mark.process
def test_json_has_a_stable_form_and_the_same_seed_the_same_rows(directory: Path) -> None:
    """One line; two calls differ in nothing but the time."""
    first, second = (_verify("alone.py::kernel", "--json", "--seed", "3") for _ in range(2))
    one, other = (json.loads(each.stdout) for each in (first, second))
    assert first.stdout.count("\n") == 1
    assert list(one) == [
        "schema", "kernel", "outcome", "status", "stopped", "chips", "seed", "seconds", "rows", "how_sure",
    ]  # fmt: skip
    assert all(list(row) == ["row", "outcome", "tried", "why", "data"] for row in one["rows"])
    assert [one["schema"], one["outcome"], one["status"], one["chips"], one["seed"]] == [1, "pass", 0, ["trn2"], 3]
    mutants = ("caught", "mutants", "missed", "says")  # as many as there was time for
    for each in (one, other):
        each.pop("seconds")
        each["how_sure"] = {name: value for name, value in each["how_sure"].items() if name not in mutants}
    assert one == other


@pytest.mark.process
def test_a_kernel_that_is_wrong_in_other_shapes_fails_there(directory: Path) -> None:
    """Exit code 1; with --fail-fast that row is the last one."""
    done = _verify("wrong.py::kernel", "--reference", "judge.py::reference", "--json", "--fail-fast")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["outcome"]) == (1, "fail")
    assert [row["row"] for row in found["rows"] if row["outcome"] == "fail"] == ["shapes"]
    assert found["rows"][-1]["row"] == "shapes"
    assert found["how_sure"] == {}


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["right.py::kernel"], "right.py says no inputs"),
        (["right.py::kernel", "--reference", "judge.py::absent"], "judge.py has no function absent"),
        (["alone.py::kernel", "--chip", "trn9"], "trn9"),
        (["alone.py::kernel", "--seconds", "0"], "seconds is 0"),
        (["alone.py::kernel", "--seconds", "0.01"], "the kernel could not be tried: "),
        (["alone.py::kernel", "--rtol", "-1"], "rtol"),
    ],
)
def test_what_cannot_be_tried_is_said(directory: Path, words: list[str], said: str) -> None:
    """Exit code 2, and the reason."""
    done = _verify(*words)
    assert (done.exit_code, said in done.output) == (2, True), done.output


@pytest.mark.process
def test_arguments_that_do_not_fit_are_no_rows(directory: Path) -> None:
    """One sentence, as of the other commands, and not a finding at a line that is none of the author's."""
    (directory / "two.py").write_text(KERNEL.replace("(x):", "(x, y):"))
    done = _verify("two.py::kernel", "--reference", "judge.py::reference")
    said = "kernel takes x, y, and is given 1 argument by position: missing a required argument: 'y'"
    assert (done.exit_code, done.output) == (2, f"kernel could not be tried: {said}\n")


@pytest.mark.process
def test_a_file_whose_reference_runs_its_kernel_could_not_be_tried(directory: Path) -> None:
    """The kernel is wrong, and so is the reference, in the same way."""
    text = f"import nkitools\n{WRONG}\n{JUDGE}\ndef reference(x):\n    return nkitools.simulate(kernel, x).outputs\n"
    (directory / "itself.py").write_text(text)
    done = _verify("itself.py::kernel")
    assert done.exit_code == 2, done.output
    assert "the reference runs the kernel kernel itself on the same arguments" in done.output


@pytest.mark.process
def test_the_agents_tool_gives_the_same_object(directory: Path) -> None:
    """Rows, and an error for a kernel that the file does not have."""
    request: dict[str, Any] = {"file": str(directory / "wrong.py"), "kernel": "kernel", "seconds": 60.0, "seed": 0}
    request |= {"against": (str(directory / "judge.py"), "reference"), "fail_fast": True, "chip": "trn2"}
    request |= {"rtol": None, "atol": None, "max_traffic": None}
    found = verified(request)
    assert (found["error"], found["outcome"], found["schema"]) == ("", "fail", 1)
    assert "has no kernel absent" in verified(request | {"kernel": "absent"})["error"]


@pytest.mark.process
def test_the_fixture_fails_the_test_where_a_row_fails(run_kernel: RunKernel) -> None:
    """The verdict is returned where none does; options are those of the function."""
    given = cheats.inputs(np.random.default_rng(0), 32, 16)
    found = run_kernel.verify(cheats.right, *given, reference=cheats.softmax, inputs=cheats.inputs, seconds=30.0)
    assert found["values"].tried == "inputs(rng) with seed 1; inputs(rng) with seed 2"
    with pytest.raises(AssertionError, match=r"fail +given .*differ"):
        run_kernel.verify(cheats.constant, *given, reference=cheats.softmax, fail_fast=True)


@pytest.mark.process
def test_traffic_fails_only_beyond_what_is_asked_for() -> None:
    """A kernel that reads its argument once and writes its result once moves 1.0 times the least."""
    given = cheats.inputs(np.random.default_rng(0), 32, 16)
    found = nkitools.verify(cheats.right, *given, reference=cheats.softmax, max_traffic=0.5, fail_fast=True)
    assert found.failed == ("traffic",)
    assert found["traffic"].data["ratio"] == 1.0
    assert found["traffic"].data["bytes"] == 2 * 32 * 16 * 4


@pytest.mark.process
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"mutates": "zz"}, "mutates: right has no parameter zz; it has x"),
        ({"mutates": ("x", "zz")}, "parameter zz"),
        ({"ranks": 0}, "ranks: must be at least 1"),
        ({"ranks": 1.5}, "ranks: must be an integer"),
        ({"grid": -1}, "grid: sizes must be at least 1"),
        ({"max_traffic": -1}, "max_traffic: must be a finite number above 0, it is -1"),
        ({"max_traffic": float("nan")}, "max_traffic: .* nan"),
        ({"max_traffic": "a"}, "max_traffic: .* 'a'"),
        ({"seed": -1}, "seed: must be an integer of at least 0, it is -1"),
        ({"seed": "a"}, "seed: .* 'a'"),
        ({"inputs": 3}, "inputs: must be a function"),
    ],
)
def test_an_option_that_means_nothing_is_refused(said: dict[str, Any], why: str) -> None:
    """No verdict pretends to have looked at it."""
    given = cheats.inputs(np.random.default_rng(0), 32, 16)
    with pytest.raises((TypeError, ValueError), match=why):
        nkitools.verify(cheats.right, *given, reference=cheats.softmax, **said)


@pytest.mark.process
def test_a_mutated_argument_must_be_named(directory: Path) -> None:
    """With mutates= the kernel is compared with what the reference leaves in its own copy."""
    given = cheats.inputs(np.random.default_rng(0), 32, 16)

    def reference(x: Any) -> None:
        x[...] = cheats.softmax(x)

    found = nkitools.verify(cheats.in_place, *given, reference=reference, mutates="x")
    assert found.outcome == "pass", str(found)
    assert nkitools.verify(cheats.in_place, *given, reference=reference, fail_fast=True).failed == ("arguments",)


@pytest.mark.process
def test_the_loop_of_the_documents_ends_with_a_kernel_that_is_right(tmp_path: Path) -> None:
    """A recorded model answers first with no Python, then with a wrong one, then with the right one."""
    for name in ("agent_loop.py", "agent_task.py"):
        shutil.copy(EXAMPLE / name, tmp_path)
    answers = ["I cannot.", f"Here it is:\n```python\n{WRONG}```", f"Mended:\n```python\n{KERNEL}```"]
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    (tmp_path / "model.py").write_text(
        "import json, sys\n"
        "prompt = sys.stdin.read()\n"
        "first, *rest = json.load(open('answers.json'))\n"
        "json.dump(rest, open('answers.json', 'w'))\n"
        "open('prompts.txt', 'a').write(prompt + '=====')\n"
        "print(first)\n"
    )
    command = [sys.executable, "agent_loop.py", "agent_task.py", *shlex.split(f"{sys.executable} model.py")]
    done = output_of(command, 200.0, cwd=tmp_path)
    assert done.end.status == 0, done.stderr
    turns = done.stdout.splitlines()
    assert [line.split()[2] for line in turns] == ["unknown", "fail", "pass"]
    assert "['shapes']" in turns[1]
    prompts = (tmp_path / "prompts.txt").read_text().split("=====")
    assert '"row": "shapes"' in prompts[2]
    assert len((EXAMPLE / "agent_loop.py").read_text().splitlines()) <= 41


@pytest.mark.parametrize(("left", "says"), [(0.0, "no mutant was tried"), (9.0, "these rows catch 1 of 1 ")])
def test_a_mutant_that_has_no_time_is_not_caught(left: float, says: str) -> None:
    """Where all seconds are over nothing was tried; one that does not end in its own time is caught."""

    def lost(*_: Any, **_named: Any) -> None:
        raise Gone("it did not end", is_time=True)

    said = {"met": "", "some_mutants": [(0, "line 3: + for -")]}
    bench: Any = SimpleNamespace(
        ask=lambda name, *_: said[name], described=SimpleNamespace(kind="nki"), run=lost, left=left
    )
    right: Any = [SimpleNamespace(given=Given((np.ones(4, np.float32),), {}), outputs=())]
    assert how_sure(bench, right, 0, 0.1, time.monotonic() + 9)["says"].startswith(says)
