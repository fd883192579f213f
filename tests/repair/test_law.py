"""A law of the search: single mistakes in the example kernels that only the values reveal are given back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import nkitools
from kernels import gallery
from nkitools.comparison.rule import Rule
from nkitools.edits.candidates import KINDS, Candidate, candidates_in
from nkitools.edits.source import Source
from nkitools.repair.answers import Answer, answer_of
from nkitools.why.targets import Expected
from nkitools.why.traced_calls import Call
from tests import cases
from tests.loading import loaded
from tests.soak import commit_of

KERNELS = Path(gallery.__file__).parent
EXAMPLES = [each for each in (*gallery.NKI, *gallery.LEGACY) if each.place.startswith("nki") and not each.ranks]
SEED, MANY = 20_261_129, 300
SECONDS = 60.0 if cases.FULL else 8.0
SHOWN = 60  # mutants from which on the share is asserted


class Mutant(NamedTuple):
    """An example kernel with a mistake."""

    example: gallery.Example
    mistake: Candidate
    kernel: Any


def kernel_of(example: gallery.Example, text: str, folder: Path) -> Any:
    """The kernel of a module's text."""
    module, _, name = example.place.partition(":")
    path = folder / f"{abs(hash(text)):x}.py"
    path.write_text(text)
    found = getattr(loaded(path, f"kernels.{module}"), name)
    return found[example.programs] if example.programs else found


def error(example: gallery.Example, kernel: Any, seed: int) -> float:
    """The error of a kernel on drawn arguments; infinite where a rule of level error is broken."""
    args = example.arguments(np.random.default_rng(seed))
    run = nkitools.simulate(kernel, *args, rules="report", chip=example.chips[-1], **example.keywords)
    is_broken = any(each.severity == "error" for each in run.findings) or run.outputs is None
    return np.inf if is_broken else gallery.relative_error(run.outputs, example.reference(*args, **example.keywords))


def mutants(example: gallery.Example, seed: int, folder: Path) -> Iterator[Mutant]:
    """Mutants of an example where only the values are wrong, in an order that the seed draws."""
    module, _, name = example.place.partition(":")
    path = KERNELS / f"{module.replace('.', '/')}.py"
    found = candidates_in(Source(path.read_text(), path.stem), name, list(KINDS))
    random.Random(f"{seed} {example.place}").shuffle(found)
    for mistake in found:
        try:
            kernel = kernel_of(example, mistake.text, folder)
            far = error(example, kernel, 0)
        except Exception:  # a mutant that does not run reveals itself
            continue
        if example.within < far < np.inf:
            yield Mutant(example, mistake, kernel)


def answer_about(mutant: Mutant, seconds: float) -> Answer:
    """The answer of the search, by the tolerance of the example."""
    example = mutant.example
    args = example.arguments(np.random.default_rng(0))
    want = [np.asarray(leaf) for leaf in gallery._leaves(example.reference(*args, **example.keywords))]
    rules = [Rule(atol=example.within * float(np.abs(leaf).max(initial=1e-30))) for leaf in want]
    expected = Expected(example.reference, {}, dict(example.keywords))
    call = Call(mutant.kernel, tuple(args), dict(example.keywords), chip=example.chips[-1])
    return answer_of(call, expected, seconds, rules=rules, want=want)


def outcome(mutant: Mutant, seconds: float, folder: Path) -> tuple[str, Answer]:
    """``left out`` of a statement that is missing, else ``others``, and the answer, whose edit is right elsewhere."""
    answer, example = answer_about(mutant, seconds), mutant.example
    if answer.kind == "repaired":
        assert answer.trial is not None
        mended = kernel_of(example, answer.trial.text, folder)
        assert error(example, mended, 11) <= example.within, (mutant.mistake.change, answer.trial.change)
    return "left out" if mutant.mistake.edit.text == "pass" else "others", answer


@pytest.mark.soak
@pytest.mark.process
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("number", range(len(EXAMPLES)) if cases.FULL else [3])
def test_mistakes_are_given_back(number: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Four of five are repaired, statements left out counted apart; what is repaired is right on other arguments.

    `make soak` runs each kernel once at a commit, in as many sessions as it takes, and keeps the answers beside the
    tests that have passed: the share is that of all of them.
    """
    example = EXAMPLES[number]
    assert error(example, example.kernel, 11) <= example.within
    many = MANY // len(EXAMPLES) + (number < MANY % len(EXAMPLES)) if cases.FULL else 1
    rows = []
    for mutant in islice(mutants(example, SEED, tmp_path), many):
        kind, answer = outcome(mutant, SECONDS, tmp_path)
        rows.append(f"{kind}\t{answer.kind}\t{example.place}\t{mutant.mistake.kind}\t{mutant.mistake.change}\n")
    if cases.FULL:
        kept = request.config.rootpath / ".soak" / f"law-{commit_of(request.config.rootpath)[:12]}.tsv"
        with kept.open("a", encoding="utf-8") as file:
            file.writelines(rows)
        rows = kept.read_text(encoding="utf-8").splitlines()
    others = [each.split("\t")[1] == "repaired" for each in rows if each.startswith("others")]
    assert len(others) < SHOWN or sum(others) >= 0.8 * len(others), f"{sum(others)} of {len(others)}"
