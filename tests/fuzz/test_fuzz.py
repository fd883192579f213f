"""The simulator beside an oracle of its own and beside itself: random programs, a corpus, and faults that are found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tests.fuzz.kernel as kernel
import tests.oracle.steps as oracle
from tests.cases import cases, each
from tests.fuzz.comparisons import NAMES, comparison, disagreement, judge, shrunk
from tests.oracle.programs import executed, program_of
from tests.oracle.state import State

CORPUS = [json.loads(line) for line in (Path(__file__).parent / "corpus.jsonl").read_text().splitlines()]
ORACLE = comparison("oracle")


def _first_step(name: str) -> dict[str, Any]:
    """A program of the first step of an instruction that is drawn."""
    program = next(program for seed in range(400) if (program := program_of(seed, [name]))["steps"])
    return {**program, "steps": program["steps"][:1]}


_alone = [step["instruction"] for program in CORPUS if len(program["steps"]) == 1 for step in program["steps"]]
CORPUS += [_first_step(name) for name in oracle.INSTRUCTIONS if name not in _alone]
# Of each comparison: how many programs `make soak` runs; the suite runs a hundredth.
SOAKED = {"oracle": 100_000, "careful": 4000, "legacy": 4000, "jnp": 300}
_PART = 5000  # programs of one test
PARTS = [
    pytest.param(name, first, marks=[pytest.mark.frameworks] * (name == "jnp"))
    for name in NAMES
    for first in range(0, SOAKED[name], _PART)
]


@each("program", CORPUS)
def test_a_program_of_the_corpus_agrees(program: dict[str, Any]) -> None:
    """One for each instruction, and those that once disagreed."""
    assert disagreement(ORACLE, program) == ""


@pytest.mark.soak
@pytest.mark.parametrize(("name", "first"), PARTS)
def test_random_programs_agree(name: str, first: int) -> None:
    """`make fuzz` runs more, of other seeds."""
    if name == "jnp":
        pytest.importorskip("jax")
    against, wrong = comparison(name), []
    for seed in range(first, first + cases(min(_PART, SOAKED[name]))):
        program, said = judge(against, seed)
        if said:
            wrong.append((said, program))
    assert wrong == []


SUMS = ("tensor_reduce", "tensor_scalar_reduce", "activation_reduce")


@pytest.mark.soak
def test_sums_of_fractions_have_the_bits_of_the_order_of_elements() -> None:
    """With ``sum_order="chip"`` the oracle knows sums that are rounded, too; many of them are another sum in pairs."""
    differ = 0
    for seed in range(cases(SOAKED["oracle"])):
        program = program_of(seed, SUMS, sum_order="chip")
        assert disagreement(ORACLE, program) == "", program
        both = (kernel.simulated({**program, "sum_order": order}) for order in ("chip", "fast"))
        ordered, fast = (kernel.outputs_of(program, run, 0) for run in both)
        differ += any(ordered[name].tobytes() != fast[name].tobytes() for name in ordered)
    assert differ > 0


def test_programs_come_again_with_their_seed() -> None:
    """The same data, other data for another seed, and the oracle's tiles the same bits."""
    programs = [program_of(seed) for seed in range(20)]
    assert programs == [program_of(seed) for seed in range(20)] == json.loads(json.dumps(programs))
    assert len({json.dumps(program) for program in programs}) == 20
    for program in programs:
        for one, other in zip(executed(program), executed(program), strict=True):
            assert all(one.tiles[name].tobytes() == other.tiles[name].tobytes() for name in one.tiles)


@pytest.mark.parametrize("name", oracle.INSTRUCTIONS)
def test_a_fault_of_any_instruction_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An oracle that is off by one in the first element of what the instruction writes disagrees."""
    (program,) = [each for each in CORPUS if [step["instruction"] for step in each["steps"]] == [name]]
    put_exactly, kept = State._put, State.keep

    def put(state: State, view: Any, values: Any, *, exact: bool) -> None:
        put_exactly(state, view, values, exact=exact)
        state.tiles[view["tile"]][view["rows"][0], state._places(view)[0]] += 1

    def keep(state: State, view: Any, values: Any, *, exact: bool = True) -> None:
        values = values.copy()
        values.reshape(-1)[0] = 77 - values.reshape(-1)[0]
        kept(state, view, values, exact=exact)

    monkeypatch.setattr(State, "_put", put)
    monkeypatch.setattr(State, "keep", keep)
    assert disagreement(ORACLE, program) != ""


def test_a_fault_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Down to a program of the instruction alone."""
    place = oracle.PLACES["tensor_copy"]
    monkeypatch.setattr(place, "do_tensor_copy", lambda state, step: state.write(step["dst"], -state.read(step["src"])))
    wrong = (program for seed in range(400) if len((program := program_of(seed))["steps"]) > 2
             and "tensor_copy" in ORACLE.names_of(program) and disagreement(ORACLE, program))  # fmt: skip
    assert ORACLE.names_of(shrunk(ORACLE, next(wrong))) == ["tensor_copy"]


@pytest.mark.parametrize("name", ["careful", "legacy"])
def test_a_fault_of_one_way_is_found_and_made_small(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the two kernels copies what the other one adds."""
    against, texts = comparison(name), []
    exact = kernel.text_of

    def text_of(program: Any) -> str:
        texts.append(program)
        text = exact(program)
        return text if name != "legacy" and len(texts) % 2 else text.replace("op=nl.add", "op=nl.subtract")

    monkeypatch.setattr(kernel, "text_of", text_of)
    for seed in range(200):
        texts.clear()
        program = against.program_of(seed)
        if disagreement(against, program):
            small = shrunk(against, program)
            assert len(small["steps"]) <= len(program["steps"])
            assert "op=nl.add" in exact(small)
            return
    raise AssertionError("no program showed the fault")


@pytest.mark.frameworks
def test_a_fault_of_a_pallas_kernel_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum that begins anew with each block, down to the two blocks that show it."""
    pytest.importorskip("jax")
    against = comparison("jnp")
    whole, _ = against.REDUCTIONS["sum"]
    monkeypatch.setitem(against.REDUCTIONS, "sum", (whole, lambda before, part: part + 0 * before))
    seeds = (seed for seed in range(100) if (found := against.program_of(seed))["kind"] == "reduction"
             and found["reduction"] == "sum" and found["grid"][1] == 3)  # fmt: skip
    program = against.program_of(next(seeds))
    assert disagreement(against, program) != ""
    assert shrunk(against, program)["grid"] == [1, 3, 1]
