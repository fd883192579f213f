"""Random numbers: the generators of the Vector and the GpSimd Engine, their seeds and states.

Every lane (partition) of an engine has a generator of its own: four XORWOW states in the Vector Engine, which take
turns, and one in GpSimd. The algorithm is published, and so are these numbers of states; not published is how the chip
orders the words of a state, turns a seed into states and picks numbers for narrow dtypes, and before NeuronCore-v4 the
Vector Engine has another generator (an LFSR, trainium3_arch) of an unpublished polynomial. So the distribution, and
what depends on the state, are the chip's here; the numbers are not. The same seed or state gives the same numbers in
every run and on every generation that has the instruction. Each core has engines of its own: what one of them seeds or
draws is nothing to the other, and the same seed gives the same numbers on both. An engine without a seed begins as
if seeded with the number of its program, so that two cores do not by accident draw the same.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from nkitools.chip.core import Core, current_core
from nkitools.chip.dtypes import FLOATS, INTEGERS, float32, tfloat32, uint32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array, to_float32
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.chip.xorwow import WORDS, draw, seeded
from nkitools.engines.arithmetic import column
from nkitools.engines.cast_on_write import put
from nkitools.engines.costs import GPSIMD_START, streaming
from nkitools.engines.enums import engine as engines
from nkitools.facts.generations import Generation, first_with
from nkitools.issue import guards, instruction_guards
from nkitools.issue.element_maps import GPSIMD_GENERATORS, VECTOR_GENERATORS, Elements, made
from nkitools.issue.element_rules import ALONG_FREE, BROADCAST, SAME, Rule
from nkitools.issue.instruction import Check, Dst, Operand, Plan, Src, instruction
from nkitools.issue.plan import Value
from nkitools.issue.reduce_registers import lanes_of
from nkitools.issue.scalar_operands import single_precision
from nkitools.issue.touched_elements import use_state
from nkitools.rules.finding import report

Engine = Literal["vector", "gpsimd"]
STATES = {"vector": 4, "gpsimd": 1}  # in each lane: 24 and 6 words (rand_set_state, Tile size)
UNIFORM = (*FLOATS, tfloat32, *INTEGERS)
_ENGINES = (engines.vector, engines.gpsimd)


_GENERATORS = {"vector": VECTOR_GENERATORS, "gpsimd": GPSIMD_GENERATORS}


class Generators:
    """The generators of one engine, in the lanes that an operand occupies."""

    def __init__(self, instruction: str, engine: Engine, operand: NkiTensor) -> None:
        self.instruction = instruction
        self.engine = engine
        self.lanes = lanes_of(operand)

    def states(self, *, reads: bool = True, writes: bool = True) -> Array:
        """Their states (lanes, states, 6): a view, so that what is written to it stays."""
        core = current_core(f"nisa.{self.instruction}")
        use_state(core, f"{self.engine} random states", self.lanes, reads=reads, writes=writes)
        states = core.random_states.get(self.engine)
        if states is None:
            first = seeded(_number_of(core), core.generation.partitions, STATES[self.engine])
            states = core.random_states[self.engine] = first
        if self.lanes.stop > len(states):  # reported already (NK101); a run that collects findings goes on
            states = seeded(0, self.lanes.stop, STATES[self.engine])
        return states[self.lanes]

    def draw(self, count: int) -> Array:
        """Return the next ``count`` numbers of 32 bits of each lane."""
        return draw(self.states(), count)

    def uniform(self, count: int) -> Array:
        """Return the next ``count`` numbers of each lane as float32 in [0, 1): multiples of 2**-24."""
        return (self.draw(count) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def _drawn(engine: Engine, **operands: Rule) -> Elements:
    """Return the element map of an instruction that draws numbers, which moves the generators on."""
    generators = _GENERATORS[engine]
    return made({"dst": {**operands, generators: BROADCAST}, generators: {generators: SAME}})


def _number_of(core: Core) -> int:
    """Return the place of a core's program in the launch grid (0 without one), counted on from rank to rank."""
    place = int(np.ravel_multi_index(core.program, core.grid)) if core.grid else 0
    return place + (core.rank or 0) * max(1, len(core.team))


@instruction
def rng(check: Check, dst: Dst, engine: engines = engines.vector, name: str | None = None) -> Plan:
    """Fill ``dst`` with random bits: 32 are drawn for each element, whose dtype keeps the lowest.

    ``dst``: int8, int16, int32, uint8, uint16 or uint32, in SBUF or PSUM. ``engine``: vector, or from NeuronCore-v3 on
    gpsimd (no PSUM); each has generators of its own, one for each partition. A run without nisa.set_rng_seed or
    nisa.rand_set_state gives the same numbers each time. A chip gives other numbers (`nkitools.isa.random`).
    Errors: NK101, NK107, NK108, NK110, NK201, NK206, NK301, NK606, NK609. Source: nki.isa.rng (NKI 0.6).
    """
    guards.one_of(check, "engine", engine, engines, _ENGINES)
    guards.tiles(check, dst=dst)
    guards.gpsimd_reaches(check, engine, dst=dst)
    instruction_guards.of_dtype(check, "dst", dst, *INTEGERS)
    if engine is engines.gpsimd:
        guards.came_later(check, "gpsimd_random", f"`engine`={engine}: rng on it", argument="engine")
    count = dst.layout.free_elements
    generators = Generators("rng", _named(engine), dst)

    def compute(destination: Array) -> None:
        bits = generators.draw(count)
        np.copyto(destination, bits.reshape(destination.shape).astype(destination.dtype))

    return Plan(engine.name, _cost(check.chip, engine, dst), compute, _drawn(_named(engine)))


@instruction
def dropout(check: Check, dst: Dst, data: Src, prob: Operand, name: str | None = None) -> Plan:
    """Copy ``data`` to ``dst`` with zeros in place of elements, each with probability ``prob``; Vector Engine.

    The elements that are kept are not scaled: the reference mentions their original values. ``prob``: a number, or a
    (partitions, 1) tile with a probability for each partition: float32 where ``data`` is of integers, else of any float
    dtype. 0.0 keeps all elements, 1.0 keeps none; more than 1.0 acts as 1.0 (NK621), less than 0 is NK609. Equal
    partitions and elements per partition; ``dst.dtype`` is ``data.dtype``. A chip replaces other elements than the
    simulator (`nkitools.isa.random`). Memory: SBUF or PSUM.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK609, NK621. Source: nki.isa.dropout (NKI 0.6).
    """
    guards.tiles(check, dst=dst, data=data)
    guards.not_packed(check, data=data)
    guards.same_elements(check, ("dst", dst), ("data", data))
    instruction_guards.same_dtype(check, ("dst", dst), ("data", data))
    guards.vector_operand(check, "prob", prob, data)
    if isinstance(prob, NkiTensor):
        _check_probability_dtype(check, prob, data)
    count, shape, ndim = data.layout.free_elements, data.shape, data.ndim
    generators = Generators("dropout", "vector", data)

    def compute(destination: Array, values: Array, probability: Value) -> None:
        threshold = np.float32(probability) if not isinstance(probability, np.ndarray) else to_float32(probability)
        _check_probability(threshold)
        if isinstance(threshold, np.ndarray):
            threshold = column(threshold, ndim)
        dropped = generators.uniform(count).reshape(shape) < threshold
        kept = np.where(dropped, np.zeros((), values.dtype), values)
        np.copyto(destination, kept.reshape(destination.shape))

    elements = _drawn("vector", data=SAME, prob=BROADCAST)
    return Plan("vector", streaming(check.chip, data), compute, elements, lanes="travel")


def _check_probability_dtype(check: Check, prob: NkiTensor, data: NkiTensor) -> None:
    """NK301: float32 for integers, any float dtype for floats."""
    if not data.dtype.is_float:
        instruction_guards.of_dtype(check, "prob", prob, float32)
    elif not prob.dtype.is_float:
        check.refuse("NK301", f"`prob` must be of a float dtype, it is {describe(prob)}", prob)


def _check_probability(probability: Value | np.float32) -> None:
    """NK609 below 0, NK621 above 1: looked at in each call, since values are data."""
    values = np.ravel(probability)
    if not np.all(values >= 0):
        report("NK609", f"dropout: `prob` must be between 0 and 1, it is {values[np.argmin(values >= 0)]}")
    elif np.any(values > 1):
        message = (
            f"dropout: `prob` is {values.max()}; the documents have probabilities from 0 to 1. AWS's own test passes "
            "larger ones, which replace every element here"
        )
        report("NK621", message, remedy="Divide percentages by 100.")


@instruction
def rand2(check: Check, dst: Dst, min: Operand, max: Operand, name: str | None = None) -> Plan:
    """Fill ``dst`` with float32 numbers, uniform between ``min`` and ``max``, cast once; Vector Engine, NeuronCore-v4.

    ``min`` < ``max`` (else NK609): numbers, or float32 tiles of shape (partitions, 1). ``dst``: float8_e4m3,
    float8_e5m2, float16, bfloat16, float32, tfloat32 or an integer dtype of up to 32 bits (nearest even, saturating),
    in SBUF or PSUM. ``min`` itself may come, ``max`` by rounding only. A chip gives other numbers
    (`nkitools.isa.random`).
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK606, NK609. Source: nki.isa.rand2 (NKI 0.6).
    """
    if not check.chip.uniform_random:
        came = first_with("uniform_random")
        check.fail("NK606", f"rand2 came with {came}; {check.chip.name} does not have it; nisa.rng is there")
    guards.tiles(check, dst=dst)
    instruction_guards.of_dtype(check, "dst", dst, *UNIFORM)
    for role, bound in (("min", min), ("max", max)):
        guards.vector_operand(check, role, bound, dst)
        single_precision(check, role, bound)
    count, dtype = dst.layout.free_elements, dst.dtype
    generators = Generators("rand2", "vector", dst)

    def compute(destination: Array, low: Value, high: Value) -> None:
        first, last = (_bound(each) for each in (low, high))
        if not np.all(first < last):
            report("NK609", f"rand2: `min` must be less than `max`, they are {_shown(low)} and {_shown(high)}")
        values = generators.uniform(count)
        values *= last - first
        values += first
        put(destination, values, dtype)

    return Plan("vector", streaming(check.chip, dst, 0.25), compute, _drawn("vector", min=BROADCAST, max=BROADCAST))


def _bound(value: Any) -> Any:
    """Return a bound as a float32 number, or as a column of them."""
    return value.reshape(-1, 1) if isinstance(value, np.ndarray) else np.float32(value)


def _shown(value: Any) -> str:
    return "tiles of bounds" if isinstance(value, np.ndarray) else str(value)


@instruction
def set_rng_seed(check: Check, src_seeds: Src, name: str | None = None) -> Plan:
    """Seed the Vector Engine's generators, of all partitions of this core, with a [1, 1] tensor in SBUF or PSUM.

    ``src_seeds``: of any 32-bit dtype; its bits are the seed. Each partition gets a state of its own. The same seed
    gives the same numbers of nisa.rng, nisa.dropout and nisa.rand2 on that engine. The GpSimd Engine's generators stay
    as they are.
    Errors: NK101, NK107 to NK110, NK201, NK301, NK401, NK609. Source: nki.isa.set_rng_seed (NKI 0.6).
    """
    guards.tiles(check, src_seeds=src_seeds)
    if src_seeds.shape != (1, 1):
        check.refuse("NK109", f"`src_seeds` must have shape [1, 1], it is {describe(src_seeds)}", src_seeds)
    if src_seeds.dtype.itemsize != 4 or src_seeds.dtype.kind == "packed":
        check.refuse("NK301", f"`src_seeds` must be of a 32-bit dtype, it is {describe(src_seeds)}", src_seeds)

    def compute(values: Array) -> None:
        core = current_core("nisa.set_rng_seed")
        seed = int(np.array(values).view(np.uint32)[0, 0])
        core.random_states["vector"] = seeded(seed, core.generation.partitions, STATES["vector"])
        use_state(core, "vector random states", slice(0, core.generation.partitions), reads=False, writes=True)

    elements = made({VECTOR_GENERATORS: {"src_seeds": BROADCAST}})
    return Plan("vector", float(check.chip.min_initiation_cycles), compute, elements)


@instruction
def rand_set_state(check: Check, src_seeds: Src, engine: engines = engines.gpsimd, name: str | None = None) -> Plan:
    """Put states into an engine's generators: each partition of ``src_seeds`` sets that of the same partition.

    ``src_seeds``: 2-D, uint32, SBUF, with 6 words for GpSimd or 24 (four states) for the Vector Engine. NeuronCore-v3
    has it for GpSimd, v4 for both. The words are taken as x, y, z, w, v, d of each state, in this order.
    Errors: NK101, NK107 to NK110, NK201, NK206, NK301, NK401, NK606, NK609. Source: nki.isa.rand_set_state (NKI 0.6).
    """
    _check_state(check, "src_seeds", src_seeds, engine, (MemoryRegion.sbuf,))
    generators = Generators("rand_set_state", _named(engine), src_seeds)

    def compute(words: Array) -> None:
        generators.states(reads=False)[...] = words.reshape(len(words), -1, WORDS)

    elements = made({_GENERATORS[_named(engine)]: {"src_seeds": ALONG_FREE}})
    return Plan(engine.name, _cost(check.chip, engine, src_seeds), compute, elements)


@instruction
def rand_get_state(check: Check, dst: Dst, engine: engines = engines.gpsimd, name: str | None = None) -> Plan:
    """Store the states of an engine's generators, each partition its own, in the form that rand_set_state takes.

    ``dst``: 2-D, uint32, with 6 words for GpSimd or 24 for the Vector Engine; SBUF, and PSUM from the Vector Engine.
    NeuronCore-v3 has it for GpSimd, v4 for both.
    Errors: NK101, NK107 to NK110, NK201, NK206, NK301, NK606, NK609. Source: nki.isa.rand_get_state (NKI 0.6).
    """
    memories = guards.ON_CHIP if check.chip.vector_random_states else (MemoryRegion.sbuf,)
    _check_state(check, "dst", dst, engine, memories)
    generators = Generators("rand_get_state", _named(engine), dst)

    def compute(destination: Array) -> None:
        np.copyto(destination, generators.states(writes=False).reshape(destination.shape))

    elements = made(dst={_GENERATORS[_named(engine)]: BROADCAST})
    return Plan(engine.name, _cost(check.chip, engine, dst), compute, elements)


def _check_state(check: Check, role: str, words: NkiTensor, engine: engines, on: tuple[MemoryRegion, ...]) -> None:
    """Check the constraints of rand_set_state and rand_get_state."""
    guards.one_of(check, "engine", engine, engines, _ENGINES)
    ability = "gpsimd_random" if engine is engines.gpsimd else "vector_random_states"
    guards.came_later(check, ability, f"`engine`={engine}: {check.instruction} on it", argument="engine")
    guards.tiles(check, on=on, **{role: words})
    guards.gpsimd_reaches(check, engine, **{role: words})
    instruction_guards.of_dtype(check, role, words, uint32)
    instruction_guards.dimensions(check, role, words, 2, least=2)
    instruction_guards.exactly(check, role, words, STATES[_named(engine)] * WORDS)


def _named(engine: engines) -> Engine:
    return "gpsimd" if engine is engines.gpsimd else "vector"


def _cost(chip: Generation, engine: engines, tile: NkiTensor) -> float:
    """One element a cycle; undocumented beyond the start of GpSimd."""
    if engine is engines.gpsimd:
        return GPSIMD_START + tile.layout.free_elements
    return streaming(chip, tile)
