"""What an instruction states of its elements is what it does: every element of every operand is changed in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.chip.core import current_core
from nkitools.chip.registers import VirtualRegister
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts.versions import names_of
from nkitools.issue.element_maps import STATES, Elements
from nkitools.issue.element_rules import VOCABULARY
from nkitools.issue.instruction import Instruction
from nkitools.issue.plan import DATA, WRITTEN, Plan
from tests import cases
from tests.isa.issued import Tile, inside, placed
from tests.issue.element_calls import CALLS, Call
from tests.issue.sources_of import sources_in
from tests.nki_versions import SINCE_0_7

MOST_SEEDS = 12  # where values decide which elements count
# Two cores: test_element_maps_between_cores.
ELSEWHERE = {"sendrecv", "sendrecv_compute"}
_ENGINE = {name: name.split()[0] for name in STATES}
Seen = dict[tuple[str, str], np.ndarray]  # by result and operand: (elements of the result, elements of the operand)


# Instructions that 0.6 does not have, and `topk`, whose result has another layout since.
NEW = {"topk", *(name for name, row in names_of("nki.isa").items() if row.since == "0.7")}


def every_form() -> list[Any]:
    return [
        pytest.param(
            each,
            chip,
            id=f"{each.instruction}-{each.form or 'plain'}-{chip}",
            marks=SINCE_0_7 if each.instruction in NEW else (),
        )
        for each in CALLS
        for chip in (each.chips if cases.FULL else each.chips[-1:])  # a map hardly ever depends on the chip
    ]


class Trial:
    """A call whose computation runs again and again on its operands, of which one element is another each time."""

    def __init__(self, call: Call, rng: np.random.Generator) -> None:
        self.core, self.rng, self.call = current_core("test"), rng, call
        for engine in ("scalar", "vector"):
            self.core.reduce_registers[engine] = rng.uniform(0.5, 2, 128).astype(np.float32)
        for engine, states in (("vector", 4), ("gpsimd", 1)):
            self.core.random_states[engine] = rng.integers(1, 2**32, (128, states, 6), dtype=np.uint32)
        arguments = {name: self._tensor(value) for name, value in call.arguments(rng).items()}
        instruction: Instruction[...] = getattr(nisa, call.instruction).instruction
        bound = tuple(
            arguments.get(name, instruction.signature.parameters[name].default) for name in instruction.parameters
        )
        flat, roles = instruction.flat(bound)
        names = instruction.names(bound)
        self.operands = {
            name: (value, role) for name, value, role in zip(names, flat, roles, strict=True) if role in DATA
        }
        self.start = {name: self._kept(value) for name, (value, _) in self.operands.items()}
        self.registers = {engine: each.copy() for engine, each in self.core.reduce_registers.items()}
        self.generators = {engine: each.copy() for engine, each in self.core.random_states.items()}
        instruction(**arguments)
        self.plan = self.core.record.plan_at(self.core.record.latest)
        elements = self.plan.elements
        assert isinstance(elements, Elements)
        self.elements = elements

    def _tensor(self, value: Any) -> Any:
        if isinstance(value, list) and value and isinstance(value[0], Tile):
            return [placed(each) for each in value]
        return placed(value) if isinstance(value, Tile) else value

    def _kept(self, value: Any) -> Any:
        if isinstance(value, NkiTensor):
            return np.array(value.array)
        return value.read("test") if isinstance(value, VirtualRegister) else value

    @property
    def lanes(self) -> int:
        """How many partitions the instruction works on."""
        return max([value.shape[0] for value, _ in self.operands.values() if isinstance(value, NkiTensor)], default=1)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of tensors and registers, as the map is asked with."""
        return {
            name: value.shape if isinstance(value, NkiTensor) else ()
            for name, (value, _) in self.operands.items()
            if isinstance(value, (NkiTensor, VirtualRegister))
        }

    def inputs(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Every element of every operand and of what the engines keep."""
        for name, shape in self.shapes().items():
            yield from ((name, index) for index in np.ndindex(shape))
        for name in sorted(STATES):
            if name in dict(self.elements.made) or any(
                name == source.operand for _, rules in self.elements.made for source, _ in rules
            ):
                yield from ((name, (lane,)) for lane in range(self.lanes))

    def results(self) -> list[str]:
        """What the call writes."""
        written = [name for name, (value, role) in self.operands.items() if role in WRITTEN and value is not None]
        kept = [name for name, (value, _) in self.operands.items() if isinstance(value, VirtualRegister)]
        return [*written, *(name for name in kept if name == "dst"), *sorted(STATES)]

    def run(self, changed: str = "", index: tuple[int, ...] = (), number: int = 0) -> dict[str, np.ndarray]:
        """Compute once, with one element changed; what the results are then."""
        arrays = {name: each.copy() if isinstance(each, np.ndarray) else each for name, each in self.start.items()}
        self.core.reduce_registers.update({engine: each.copy() for engine, each in self.registers.items()})
        self.core.random_states.update({engine: each.copy() for engine, each in self.generators.items()})
        for name, (value, _) in self.operands.items():
            if isinstance(value, VirtualRegister):
                value.write("test", arrays[name])
                arrays[name] = value
        if changed in STATES:
            self._change(self._state(changed)[index[0] : index[0] + 1], changed, number)
        elif changed and isinstance(arrays[changed], VirtualRegister):
            more = self.call.alternatives.get(changed, (1, 2))[number]
            arrays[changed].write("test", self.start[changed] + more)
        elif changed:
            self._change(arrays[changed][tuple(slice(each, each + 1) for each in index)], changed, number)
        keywords = {"fresh": False} if self.plan.wants_fresh else {}
        self.plan.compute(*(arrays[name] for name in self.operands), **keywords)
        found = {name: arrays[name] for name, (value, _) in self.operands.items() if isinstance(value, NkiTensor)}
        found |= {
            name: np.array(value.read("test")) for name, value in arrays.items() if isinstance(value, VirtualRegister)
        }
        return found | {name: self._state(name)[: self.lanes] for name in STATES}

    def _state(self, name: str) -> np.ndarray:
        kept = self.core.reduce_registers if "registers" in name else self.core.random_states
        found: np.ndarray = kept[_ENGINE[name]]
        return found

    def _change(self, element: np.ndarray, operand: str, number: int) -> None:
        """Put another value in the place of an element."""
        if operand in self.call.alternatives:
            element[...] = self.call.alternatives[operand][number]
        elif element.dtype.names is not None:
            element[...] = self.rng.integers(1, 0x70, (4,), np.uint8).view(element.dtype)
        elif operand in STATES and element.dtype.kind == "u":
            element[...] = self.rng.integers(1, 2**32, element.shape)
        elif element.dtype.kind in "iu":
            element[...] = element + 1
        else:
            element[...] = self.rng.uniform(0.5, 2, element.shape)


def differing(first: np.ndarray, second: np.ndarray, dimensions: int) -> np.ndarray:
    """Which elements have other bits."""
    bits = [np.ascontiguousarray(each).reshape(*each.shape, 1).view(np.uint8) for each in (first, second)]
    different: np.ndarray = (bits[0] != bits[1]).any(axis=-1)
    return different.reshape(*different.shape[:dimensions], -1).any(axis=-1)


def seen(trial: Trial) -> Seen:
    """Which elements of results change with which elements of operands."""
    first = trial.run()
    again = trial.run()
    assert all(not differing(first[name], again[name], 1).any() for name in first)
    found: Seen = {}
    for name, index in trial.inputs():
        shape = trial.shapes().get(name, (trial.lanes,))
        at = int(np.ravel_multi_index(index, shape)) if shape else 0
        for number in range(len(trial.call.alternatives.get(name, (0.0, 0.0)))):
            changed = trial.run(name, index, number)
            for result in trial.results():
                if result == name and result not in trial.elements.results:
                    continue  # what is no result stays as it was
                dimensions = 1 if result in STATES else first[result].ndim
                different = differing(first[result], changed[result], dimensions).reshape(-1)
                matrix = found.setdefault((result, name), np.zeros((different.size, max(1, int(np.prod(shape)))), bool))
                matrix[:, at] |= different
    return found


def stated(trial: Trial) -> Seen:
    """The same as the map has it, which says the same in both directions."""
    values = {name: trial.start[name] for result in trial.elements.results for name in trial.elements.needs(result)}
    shapes, found = trial.shapes(), {}
    for result, operands in trial.elements.made:
        shape = (trial.lanes,) if result in STATES else shapes.get(result)
        if shape is None:
            continue
        size = max(1, int(np.prod(shape)))
        for number in range(size):
            wanted = np.zeros(shape, np.bool_)
            wanted.reshape(-1)[number] = True
            for source, mask in trial.elements.sources(result, wanted, shapes, values).items():
                matrix = found.setdefault((result, source.operand), np.zeros((size, mask.size), bool))
                matrix[number] |= mask.reshape(-1)
        for source, rule in operands:
            matrix = found.get((result, source.operand))
            for number in range(0 if matrix is None else matrix.shape[1]):
                marked = np.zeros((trial.lanes,) if source.operand in STATES else shapes[source.operand], np.bool_)
                marked.reshape(-1)[number] = True
                assert rule.results(marked, shape, values).reshape(-1).tolist() == matrix[:, number].tolist()
    return found


def missing(named: Seen, union: Seen, pair: tuple[str, str]) -> np.ndarray:
    """Which elements a map names that have not been seen to count."""
    return np.argwhere(named[pair] & ~union.get(pair, np.zeros_like(named[pair])))


@pytest.mark.soak
@pytest.mark.parametrize(("call", "chip"), every_form())
def test_the_map_is_what_the_instruction_does(call: Call, chip: str) -> None:
    """No element depends on one that its map leaves out; on each that it names it depends for some values."""
    union: Seen = {}
    for seed in range(MOST_SEEDS):

        def body(seed: int = seed) -> tuple[Seen, Seen]:
            trial = Trial(call, np.random.default_rng(seed))
            return seen(trial), stated(trial)

        changed, named = inside(body, chip=chip)
        for pair, matrix in changed.items():
            beyond = np.argwhere(matrix & ~named.get(pair, np.zeros_like(matrix)))
            assert beyond.size == 0, f"{pair}: {beyond[:5].tolist()} count and are not named"
            union[pair] = union.get(pair, np.zeros_like(matrix)) | matrix
        tried = [pair for pair in named if call.alternatives.get(pair[1]) != ()]
        strict = [pair for pair in tried if pair[1] not in call.may]
        if not any(missing(named, union, pair).size for pair in strict):
            break
    for pair in strict:
        assert missing(named, union, pair).size == 0, f"{pair}: {missing(named, union, pair)[:5].tolist()} never count"
    assert all(union[pair].any() for pair in tried if pair[0] != pair[1])


@SINCE_0_7
def test_every_instruction_is_tried() -> None:
    """No instruction of nki.isa is missing from the table of calls."""
    instructions = {name for name in nisa.__all__ if hasattr(getattr(nisa, name), "instruction")}
    assert instructions - ELSEWHERE == {each.instruction for each in CALLS}


def test_an_instruction_must_state_its_elements() -> None:
    """A plan without a map cannot be made."""
    with pytest.raises(TypeError, match="elements"):
        Plan("vector", 1.0, lambda: None)  # type: ignore[call-arg]


@SINCE_0_7
def test_the_vocabulary_is_fixed() -> None:
    """Every rule that is used has a word of the vocabulary, and every word is used."""
    words: set[str] = set()
    for each in CALLS:
        elements = inside(lambda each=each: Trial(each, np.random.default_rng(0)).elements, chip=each.chips[-1])
        words |= {rule.kind for _, rules in elements.made for _, rule in rules}
    assert words == set(VOCABULARY)


def test_an_element_is_followed_back_through_a_run() -> None:
    """From the record: a reduction of a transposed gather is made of one row of the table."""

    def kernel(table: Any, index: Any) -> Any:
        rows, there = nl.ndarray((4, 3), nl.float32), nl.ndarray((4, 1), nl.int32)
        nisa.dma_copy(dst=there, src=index)
        nisa.dma_copy(dst=rows, src=table.vector_select(0, there))
        turned, total = nl.ndarray((3, 4), nl.float32), nl.ndarray((3, 1), nl.float32)
        nisa.nc_transpose(turned, rows)
        nisa.tensor_reduce(total, nl.add, turned, 1)
        return nl.store(nl.ndarray((3, 1), nl.float32, nl.shared_hbm), total)

    table = np.arange(24, dtype=np.float32).reshape(8, 3)
    record = nkitools.simulate(kernel, table, np.array([[1], [3], [3], [0]], np.int32)).record
    wanted: list[list[int]] = [[2, 0]]
    for position in (3, 2, 1):
        ((source, found),) = sources_in(record, position, np.array(wanted)).items()
        wanted = found.tolist()
        assert source.operand in record.plan_at(position).operands
    assert wanted == [[0, 2], [1, 2], [2, 2], [3, 2]]  # of the gathered view, whose index names the rows


def test_a_register_is_one_element() -> None:
    """A number that comes from a register is a source, one that is written in the call is none."""

    def kernel() -> None:
        nisa.iota(nl.ndarray((2, 3), nl.int32), [[1, 3]], nisa.register_alloc(4))
        nisa.iota(nl.ndarray((2, 3), nl.int32), [[1, 3]], 4)

    record = nkitools.simulate(kernel).record
    found = [sources_in(record, position, np.array([[1, 2]])) for position in (0, 1)]
    assert [{source.operand: places.shape for source, places in each.items()} for each in found] == [
        {"offset": (1, 0)},
        {},
    ]
