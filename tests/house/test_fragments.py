"""Code in the text of the documents: fragments of Python run, and commands have the options that are shown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import nki
import nki.language as nl
import numpy as np
import pytest

import nkitools
from docs.shown_files import BLOCK
from nkitools.cli import main
from nkitools.facts.options import OPTIONS

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted([*(REPOSITORY / "docs").glob("*.md"), *(REPOSITORY / "docs").glob("*/*.md"), *REPOSITORY.glob("*.md")])
GENERATED = {"calibration", "cheat_sheet", "chips", "coverage", "gallery", "instructions", "options", "rules"}

# Whole programs, which tests/house/{test_examples,test_docs}.py, tests/cli/test_new.py and tests/sweeps/test_how_to.py
# run in sessions of their own.
PROGRAMS = {"README.md", "assignment.md", "estimate.md", "first-pallas-kernel.md", "notebook.md", "sweep.md"}


def fragments(language: str) -> list[tuple[str, str]]:
    """Return the blocks in a language that pages have of their own: pasted files have tests of their own."""
    found = []
    for page in PAGES:
        if page.stem not in GENERATED:
            text = BLOCK.sub("", page.read_text())
            blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
            found += [(page.name, block) for block in blocks]
    return found


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), 2.0))
    return out


def printing(x):
    nl.device_print("tile", nl.load(x))


class Given(dict[str, Any]):
    """The names that the text around a fragment has introduced, and how often a benchmark was asked for."""

    def __init__(self) -> None:
        x = np.random.default_rng(0).standard_normal((128, 64), np.float32)
        super().__init__(nkitools=nkitools, np=np, kernel=kernel, double=kernel, x=x, outputs=2 * x)
        self.update(reference=lambda x: 2 * x, matmul=kernel, lhs_t=x, rhs=x, M=128, N=64, K=128)


@pytest.mark.parametrize(
    ("page", "text"), [each for each in fragments("python") if each[0] not in PROGRAMS and each[0] != "why.md"]
)
def test_a_fragment_runs(page: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the names of the text around it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nkitools, "install_stand_in", lambda: None)  # it is installed here
    nkitools.simulate(printing, np.ones((128, 64), np.float32)).save("before.npz", compress=False)
    names = Given()
    exec(compile(text, page, "exec"), names)
    if "test_speed" in names:
        asked: list[dict[str, Any]] = []
        names["test_speed"](lambda *args, **settings: asked.append(settings))
        assert asked == [{"operations": 2 * 128 * 64 * 128}]


def test_the_arguments_of_a_bisection_fit_together() -> None:
    """The reference is of the inputs, and what a tensor should hold ends as it does."""
    (text,) = [block for page, block in fragments("python") if page == "why.md" and "expect =" in block]
    names = Given()
    exec(text, names)
    (x,) = names["inputs"]()
    last = names["expect"]["running"](x, k=x.shape[1] // 128 - 1)
    np.testing.assert_array_equal(last, names["reference"](x))


def test_commands_have_the_options_that_are_shown() -> None:
    """Of nkitools, of its pytest plugin, and the targets of make."""
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), flags=re.MULTILINE))
    checks: dict[str, Callable[[list[str]], list[str]]] = {
        "nkitools": _unknown_to_nkitools,
        "pytest": _unknown_to_the_plugin,
        "make": lambda words: [word for word in words[:1] if word not in targets and "=" not in word],
    }
    seen, wrong = 0, []
    in_text = [
        (page.name, command)
        for page in PAGES
        if page.stem not in GENERATED and page.name != "CHANGELOG.md"
        for command in re.findall(r"`((?:nkitools|pytest|make) [^`]*)`", page.read_text().replace("\n", " "))
    ]
    for page, block in [*fragments("sh"), *fragments("console"), *in_text]:
        for line in block.replace("\\\n", " ").splitlines():
            program, *words = shlex.split(line.removeprefix("$ "), comments=True) or [""]
            if program in checks:
                seen += 1
                wrong += [f"{page}: {line}: {each}" for each in checks[program](words)]
    assert seen > 150
    assert wrong == []


def _unknown_to_nkitools(words: list[str]) -> list[str]:
    name, *rest = words[: words.index("--")] if "--" in words else words
    if name == "--version":
        return []
    if name not in main.commands:
        return [name]
    command = main.commands[name]
    if isinstance(command, click.Group):  # whose command `run` needs no name
        command = command.commands[rest[0] if rest and rest[0] in command.commands else "run"]
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    return [word for word in rest if word.startswith("-") and word.partition("=")[0] not in {*known, "--help"}]


def _unknown_to_the_plugin(words: list[str]) -> list[str]:
    known = {each.flag for each in OPTIONS.values()}
    return [word for word in words if word.startswith("--nki-") and word.partition("=")[0] not in known]
