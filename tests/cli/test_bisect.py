"""``nkitools bisect``: the one edit that makes a wrong kernel right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nkitools.cli import main

KERNEL = """
import numpy as np
import nki.isa as nisa
import nki.language as nl

def summed(x):
    out = nl.ndarray((4, 1), nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((4, 1), DTYPE)
    nisa.memset(dst=total, value=0.0)
    for n in range(STEPS):
        tile = nl.load(x[:, n : n + 1])
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out

def inputs():
    return (np.linspace(0.1, 1, 64, dtype=np.float32).reshape(4, 16),)
"""
REFERENCE = """
def reference(x):
    return x.sum(axis=1, keepdims=True)
"""
PALLAS = """
import jax
import numpy as np
from jax.experimental import pallas as pl

def _tripled(x_ref, out_ref):
    out_ref[...] = x_ref[...] * x_ref[...] * 3 + x_ref[...]

def doubled(x):
    return pl.pallas_call(_tripled, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def inputs():
    return (np.arange(1024, dtype=np.float32).reshape(8, 128),)

def reference(x):
    return 2 * x * x + x
"""
EXPECT = """
expect = {"total": lambda x, *, n: x[:, : n + 1].sum(axis=1, keepdims=True)}
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of files with kernels."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bisected(
    directory: Path, *args: str, steps: str = "16", dtype: str = "nl.float32", more: str = REFERENCE
) -> Result:
    """The end of the command on a kernel."""
    text = KERNEL.replace("STEPS", steps).replace("DTYPE", dtype)
    (directory / "sums.py").write_text(text + more)
    return CliRunner().invoke(main, ["bisect", "sums.py::summed", *args], catch_exceptions=False)


def test_nothing_differs(directory: Path) -> None:
    """Exit code 0."""
    done = bisected(directory)
    assert (done.exit_code, done.output) == (0, "summed: nothing differs\n")


@pytest.mark.process
@pytest.mark.parametrize("more", [REFERENCE, REFERENCE + EXPECT])
def test_an_edit_is_named(directory: Path, more: str) -> None:
    """The bound of a loop that ends before, as a line that goes and one that comes, with the cases that it holds on."""
    done = bisected(directory, steps="15", more=more)
    assert done.exit_code == 1
    lines = done.output.splitlines()
    assert lines[0] == "first wrong: output[0, 0] is 3, expected 3.31429; 4 of 4 differ"
    at = lines.index("sums.py:10: with this edit the outputs are right")
    assert lines[at + 1] == "-    for n in range(15):"
    assert lines[at + 2] == "+    for n in range(16):"
    assert lines[at + 3].startswith("verified on this case, fresh values")


@pytest.mark.process
def test_a_patch_and_a_file_that_is_mended(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--diff`` prints a patch and changes nothing; ``--apply`` asks, and the mended kernel is right."""
    wrong = KERNEL.replace("STEPS", "15").replace("DTYPE", "nl.float32") + REFERENCE
    done = bisected(directory, "--diff", steps="15")
    assert done.output.splitlines()[:2] == ["--- sums.py", "+++ sums.py"]
    assert done.output.splitlines()[3:] == ["-    for n in range(15):", "+    for n in range(16):"]
    assert (directory / "sums.py").read_text() == wrong
    called = [main, ["bisect", "sums.py::summed", "--apply"]]
    CliRunner().invoke(*called, input="n\n")
    assert (directory / "sums.py").read_text() == wrong
    CliRunner().invoke(*called, input="y\n")
    assert (directory / "sums.py").read_text() == wrong.replace("range(15)", "range(16)")
    again = CliRunner().invoke(*called)
    assert (again.exit_code, again.output) == (0, "summed: nothing differs\n")


@pytest.mark.process
def test_a_log_for_code_scanning_has_the_edit_as_its_fix(directory: Path) -> None:
    """The fix replaces the piece of the line that is wrong; a right kernel has no result, an array alone no fix."""
    (run,) = json.loads(bisected(directory, "--sarif", steps="15").output)["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("wrong-values", "error")
    (change,) = result["fixes"][0]["artifactChanges"]
    (new,) = change["replacements"]
    assert change["artifactLocation"] == {"uri": "sums.py", "uriBaseId": "SRCROOT"}
    region = {"startLine": 10, "startColumn": 20, "endLine": 10, "endColumn": 22}
    assert new == {"deletedRegion": region, "insertedContent": {"text": "16"}}
    assert json.loads(bisected(directory, "--sarif").output)["runs"][0]["results"] == []
    array = "\nreference = inputs()[0].sum(axis=1, keepdims=True)\n"
    (run,) = json.loads(bisected(directory, "--sarif", steps="15", more=array).output)["runs"]
    assert "fixes" not in run["results"][0]
    assert "this edit fits this case" in run["results"][0]["message"]["text"]


@pytest.mark.process
def test_an_intermediate_narrows_what_no_edit_mends(directory: Path) -> None:
    """With two mistakes the first wrong tensor is named; without an intermediate nothing is."""
    twice = KERNEL.replace("STEPS", "14").replace("DTYPE", "nl.float32").replace("value=0.0", "value=0.75")
    more = 'expect = {"total": lambda x, *, n: x[:, : n + 1].sum(axis=1, keepdims=True)}\n'
    for text, kind in (("", "not found"), (more, "narrowed")):
        (directory / "sums.py").write_text(twice + REFERENCE + text)
        done = CliRunner().invoke(main, ["bisect", "sums.py::summed", "--json", "--seconds", "20"])
        found = json.loads(done.output)
        assert (done.exit_code, found["kind"], found["edit"]) == (1, kind, None)
        assert found["tried"] == found["of"] > 50
    assert found["first"] == {"tensor": "total", "turn": {"n": 0}}


@pytest.mark.process
def test_low_precision(directory: Path) -> None:
    """The line that loses digits is named, and how many; a wider tile mends it, as all arguments are float32."""
    done = bisected(directory, "--json", dtype="nl.bfloat16")
    assert done.exit_code == 1
    found = json.loads(done.output)
    assert found["lost"].startswith("bfloat16 tensor_tensor at sums.py:12 loses ")
    assert (found["kind"], found["edit"]["change"]) == ("repaired", "nl.bfloat16 -> nl.float32")


def test_against_another_kernel_and_an_earlier_run(directory: Path) -> None:
    """The first different write is named with its turn; a kernel that is the same does not differ."""
    (directory / "right.py").write_text(KERNEL.replace("STEPS", "16").replace("DTYPE", "nl.float32"))
    done = bisected(directory, "--against", "right.py::summed")
    assert (done.exit_code, done.output) == (0, "summed: nothing differs from right.py::summed\n")
    done = bisected(directory, "--against", "right.py::summed", dtype="nl.bfloat16")
    assert done.exit_code == 1
    assert done.output.startswith("first different write: ")


def test_mistakes_in_the_command(directory: Path) -> None:
    """Exit code 2, and what is missing."""
    done = bisected(directory, more="")
    assert done.exit_code == 2
    assert "has neither `reference`" in done.output
    done = bisected(directory, "--against", "missing.json")
    assert done.exit_code == 2
    assert "missing.json is no file" in done.output
    for flag in ("--sarif", "--diff", "--apply"):
        done = bisected(directory, "--against", "sums.py::summed", flag)
        assert (done.exit_code, f"leave {flag} out" in done.output) == (2, True)
    done = bisected(directory, "--json", "--diff")
    assert (done.exit_code, "name one" in done.output) == (2, True)


@pytest.mark.frameworks
@pytest.mark.process
def test_a_pallas_kernel_is_mended(directory: Path) -> None:
    """The number in the body; nothing differs once it is right. A comparison with another kernel is refused."""
    pytest.importorskip("jax")
    (directory / "tripled.py").write_text(PALLAS)
    called = [main, ["bisect", "tripled.py::doubled", "--json"]]
    found = json.loads(CliRunner().invoke(*called, catch_exceptions=False).output)
    assert (found["kind"], found["edit"]["diff"]) == (
        "repaired",
        [
            "-    out_ref[...] = x_ref[...] * x_ref[...] * 3 + x_ref[...]",
            "+    out_ref[...] = x_ref[...] * x_ref[...] * 2 + x_ref[...]",
        ],
    )
    (directory / "tripled.py").write_text(PALLAS.replace("* 3", "* 2"))
    assert json.loads(CliRunner().invoke(*called, catch_exceptions=False).output)["kind"] == "right"
    done = CliRunner().invoke(main, [*called[1], "--against", "tripled.py::doubled"], catch_exceptions=False)
    assert done.exit_code == 2
    assert "--against goes through the instructions of NKI kernels" in " ".join(done.output.split())
