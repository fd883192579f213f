"""The simulator beside an oracle of its own: random programs, a corpus, and faults that are found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tests.oracle.steps as oracle
from tests.careful import carefully
from tests.cases import each
from tests.fuzz.judge import disagreement, judge, shrunk
from tests.fuzz.kernel import simulated
from tests.oracle.programs import executed, program_of

CORPUS = [json.loads(line) for line in (Path(__file__).parent / "corpus.jsonl").read_text().splitlines()]


@each("program", CORPUS)
def test_a_program_of_the_corpus_agrees(program: dict[str, Any]) -> None:
    """One for each instruction, and those that once disagreed."""
    assert disagreement(program) == ""


def test_the_corpus_has_every_instruction_of_the_oracle() -> None:
    """In some program."""
    assert {step["instruction"] for program in CORPUS for step in program["steps"]} == set(oracle.INSTRUCTIONS)


@each("seed", range(60))
def test_random_programs_agree(seed: int) -> None:
    """`make fuzz` runs many more."""
    program, said = judge(seed)
    assert said == "", program


@each("seed", range(100, 130))
def test_the_careful_path_gives_the_bits_of_the_fast_one(seed: int) -> None:
    """Instruction by instruction, whatever was planned before."""
    program = program_of(seed)
    fast = simulated(program)
    with carefully():
        careful = simulated(program)
    for output, other in zip(fast.outputs, careful.outputs, strict=True):
        assert output.tobytes() == other.tobytes()


def test_programs_come_again_with_their_seed() -> None:
    """The same data, other data for another seed, and the oracle's tiles the same bits."""
    assert [program_of(seed) for seed in range(20)] == [program_of(seed) for seed in range(20)]
    assert len({json.dumps(program_of(seed)) for seed in range(20)}) == 20
    for seed in range(20):
        one, other = executed(program_of(seed)), executed(program_of(seed))
        assert all(np.array_equal(one.tiles[name], other.tiles[name]) for name in one.tiles)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (
            "do_tensor_reduce",
            lambda state, step: state.write(step["dst"], -oracle._reduced(step["op"], state.read(step["data"]))),
        ),
        ("do_iota", lambda state, step: state.write(step["dst"], step["offset"])),
        ("do_nc_transpose", lambda state, step: state.write(step["dst"], np.flip(state.read(step["data"]).T, 1))),
    ],
)
def test_a_fault_is_found_and_made_small(name: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An oracle with a mistake in one instruction disagrees, down to a program of that instruction alone."""
    monkeypatch.setattr(oracle, name, fault)
    wanted = name.removeprefix("do_")
    for seed in range(200):
        program = program_of(seed)
        if len(program["steps"]) > 1 and wanted in [step["instruction"] for step in program["steps"]]:
            if not disagreement(program):
                continue
            assert [step["instruction"] for step in shrunk(program)["steps"]] == [wanted]
            return
    raise AssertionError("no program showed the fault")
