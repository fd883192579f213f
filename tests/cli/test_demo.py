"""The first command: every example agrees with its reference, and all fits on two screens."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import nkitools
from kernels import gallery, references
from nkitools.cli import main
from nkitools.cli.demo import operator_of

REPOSITORY = Path(__file__).parents[2]
NKI = [*gallery.NKI, *gallery.LEGACY]


def shown(tmp_path: Path, *args: str) -> Any:
    """Run the command; its page goes into a folder of the test."""
    return CliRunner().invoke(main, ["demo", "--page", str(tmp_path / "page.html"), *args], catch_exceptions=False)


@pytest.mark.process
def test_the_show_fits_and_all_agree(tmp_path: Path) -> None:
    """A line for each example, a print, a finding with its picture, a page, and what to try next."""
    done = shown(tmp_path)
    lines = done.output.splitlines()
    assert done.exit_code == 0
    assert "DISAGREES" not in done.output
    assert len(lines) <= 60
    examples = [each for each in NKI if each.is_first]
    assert len(examples) + 5 <= 25
    for each in examples:
        assert sum(line.startswith(f"  {each.name}") for line in lines) >= 1
    assert any(line.startswith("  preds [program 0, m=0, n=0, giou.py:") for line in lines)
    assert any("NK403 output tensor `out`" in line and "`out[256:300, 0:64]` never written" in line for line in lines)
    assert "softmax" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (find_spec("jax") is None) == any(line.startswith("Pallas kernels: JAX is not here") for line in lines)


@pytest.mark.process
def test_an_example_that_disagrees_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line says so, and the exit code is 1."""
    wrong = gallery.NKI[0]._replace(reference=lambda left, right: 2 * references.product(left, right))
    monkeypatch.setattr(gallery, "NKI", (wrong, *(each for each in gallery.NKI if each.name == "softmax")))
    monkeypatch.setattr(gallery, "PALLAS", ())
    done = shown(tmp_path)
    assert done.exit_code == 1
    assert [line.split()[0] for line in done.output.splitlines() if line.endswith("DISAGREES")] == ["matmul"]


@pytest.mark.process
def test_a_page_that_cannot_be_written_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The show goes on."""
    monkeypatch.setattr(gallery, "NKI", tuple(each for each in gallery.NKI if each.name == "softmax"))
    monkeypatch.setattr(gallery, "LEGACY", ())
    monkeypatch.setattr(gallery, "PALLAS", ())
    path = tmp_path / "none" / "page.html"
    done = CliRunner().invoke(main, ["demo", "--page", str(path)], catch_exceptions=False)
    assert f"No page could be written into {path}: No such file or directory" in done.output
    assert "Next:" in done.output


@pytest.mark.parametrize("example", NKI, ids=lambda example: example.place)
def test_each_example_agrees_and_breaks_no_rule(example: gallery.Example) -> None:
    """On every chip that it is for."""
    args = example.arguments(np.random.default_rng(1))
    settings = {"ranks": example.ranks} if example.ranks else {}
    expected = example.reference(*args, **example.keywords)
    for chip in example.chips:
        run = nkitools.simulate(example.kernel, *args, chip=chip, **settings, **example.keywords)
        assert gallery.relative_error(run.outputs, expected) <= example.within
        assert run.findings == []


@pytest.mark.frameworks
@pytest.mark.parametrize(
    "example", [each for each in gallery.PALLAS if not each.is_first], ids=lambda example: example.name
)
def test_each_pallas_example_agrees(example: gallery.Example) -> None:
    """Those that the command shows only with --all; the others are in the show above."""
    pytest.importorskip("jax")
    args = example.arguments(np.random.default_rng(1))
    run = nkitools.pallas.run(example.kernel, *args)
    assert gallery.relative_error(run.outputs, example.reference(*args)) <= example.within


@pytest.mark.process
@pytest.mark.parametrize("example", gallery.OPERATORS, ids=lambda example: example.name)
def test_each_operator_agrees(example: gallery.Example) -> None:
    """On as many cores as it is said to have."""
    args = example.arguments(np.random.default_rng(1))
    try:
        operator = operator_of(example, REPOSITORY / "cpp_ops")
    except nkitools.customop.BuildError as error:
        pytest.skip(str(error))
    run = operator.run(*args)
    assert gallery.relative_error(run.outputs, example.reference(*args)) <= example.within
    assert len(run.cores) == example.programs


def test_every_file_of_kernels_has_an_example() -> None:
    """A kernel that is added comes into the list."""
    files = {path.relative_to(REPOSITORY / "kernels") for path in (REPOSITORY / "kernels").rglob("*.py")}
    modules = {".".join(path.with_suffix("").parts) for path in files if not path.name.startswith("_")}
    listed = {each.place.partition(":")[0] for each in (*NKI, *gallery.PALLAS)}
    assert modules - listed == {"gallery", "references"}
    assert listed <= modules
    folders = {path.parent.relative_to(REPOSITORY / "cpp_ops") for path in (REPOSITORY / "cpp_ops").rglob("*.cpp")}
    assert {Path(each.place.partition(":")[0]) for each in gallery.OPERATORS} == folders


@pytest.mark.parametrize(
    ("outputs", "expected", "error"),
    [
        (np.float32([1, 2]), np.array([1.0, 2.5]), 0.2),
        ((np.float32([1]), np.float32([3])), (np.array([1.0]), np.array([4.0])), 0.25),
        (np.float32([1]), np.array([[1.0]]), np.inf),
        (np.float32([np.nan]), np.array([1.0]), np.inf),
        (np.float32([]), np.array([]), 0.0),
        ((np.float32([1]),), np.array([1.0]), 0.0),
    ],
)
def test_the_error_is_relative_to_the_largest_value(outputs: Any, expected: Any, error: float) -> None:
    """Of each output; another form is infinitely wrong."""
    assert gallery.relative_error(outputs, expected) == pytest.approx(error)


def test_the_wheel_takes_the_examples_along() -> None:
    """Where an installed package looks for them; they import nothing by the repository's names."""
    for path in (REPOSITORY / "kernels").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] in ("kernels", "cpp_ops") for name in names), path
