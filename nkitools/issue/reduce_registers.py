"""The reduce registers of the Scalar and the Vector Engine: one float32 a lane, kept from instruction to instruction.

A register that was never set holds a NaN with bits of its own, so that its use can be reported (NK507).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal
from weakref import ReferenceType, ref

import numpy as np

from nkitools.chip.core import current_core
from nkitools.chip.dtypes import float32
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.twin_storage import WIDE
from nkitools.chip.view_checks import describe
from nkitools.engines import lost_integers
from nkitools.engines.cast_on_write import put
from nkitools.engines.enums import reduce_cmd as commands
from nkitools.engines.operators import ADD_IN_ORDER, Operator, OperatorToken, sum_in_order
from nkitools.facts.light_classes import dataclass
from nkitools.issue import guards
from nkitools.issue.element_maps import SCALAR_REGISTERS, VECTOR_REGISTERS
from nkitools.issue.element_rules import BROADCAST, SAME, Rule
from nkitools.issue.instruction import Check
from nkitools.issue.plan import Operand, Value
from nkitools.issue.touched_elements import use_state
from nkitools.rules.finding import report

COMMANDS = (commands.idle, commands.reset, commands.reduce, commands.reset_reduce)  # those without a value to load
RESETTING = (commands.reset, commands.reset_reduce)
REDUCING = (commands.reduce, commands.reset_reduce, commands.load_reduce)

# What a register is reset to. Sources: nki.isa.tensor_scalar_reduce and tensor_scalar_cumulative, Accumulator behavior;
# activate2 says "the identity value for reduce_op" of the last two as well (NKI 0.6).
IDENTITY = {
    "add": 0.0,
    "subtract": 0.0,
    "multiply": 1.0,
    "maximum": -np.inf,
    "minimum": np.inf,
    "abs_max": 0.0,
    "abs_min": np.inf,
}

_NOTHING = {4: 0x7FC01DEA, 8: 0x7FF8000000001DEA}
"""The bits of a register that holds nothing, by its bytes: a NaN."""


def _bits(registers: Array) -> Array:
    return registers.view(f"u{registers.itemsize}")


def lanes_of(operand: NkiTensor) -> slice:
    """Return the lanes of an engine that an operand occupies."""
    layout = operand.layout
    step = max(1, layout.partition_step)  # a gathered view has no step: its rows stand in one lane after the other
    return slice(layout.start_partition, layout.start_partition + (layout.partitions - 1) * step + 1, step)


@dataclass(frozen=True, slots=True)
class _Chain:
    """The last reduction into a register."""

    instruction: str
    operator: str
    site: int
    result: ReferenceType[Array] | None  # the memory that received it; its identity may come again once it is gone

    def goes_on_in(self, later: _Chain) -> bool:
        """Return whether a later reduction may be meant to go on from this one.

        A sum may change the instruction, as long as none of them has handed it out; at another line it is handed out
        to the same tile.
        """
        if self.operator != later.operator:
            return False
        if self.result is None or self.site == later.site:
            return True
        memory = self.result()
        same_tile = memory is not None and later.result is not None and later.result() is memory
        return same_tile and self.instruction == later.instruction


def _memory_of(result: Array | None) -> ReferenceType[Array] | None:
    return None if result is None else ref(result if result.base is None else result.base)


class Lanes:
    """The registers of one engine in the lanes (partitions) that an operand occupies."""

    def __init__(
        self, instruction: str, engine: Literal["scalar", "vector"], operand: NkiTensor, operator: str = "add"
    ) -> None:
        self.instruction = instruction
        self.engine = engine
        self.operator = operator
        self.lanes = lanes_of(operand)

    def begin(
        self, command: commands, identity: float, initial: Value | None = None, result: Array | None = None
    ) -> Array:
        """Return the registers made ready for what ``command`` says, as a float32 array to reduce into.

        ``result``: the tile that receives them behind the reduction.
        """
        registers = self.registers()
        self._use(reads=command is commands.reduce, writes=True)
        self._chain(command, result)
        if command in RESETTING:
            registers[:] = identity
        elif command is commands.load_reduce:
            registers[:] = np.asarray(initial).reshape(-1)
        elif command is commands.reduce:
            self._settle(registers, "`reduce_cmd`=reduce continues")
        return registers

    def read(self) -> Array:
        """Return the registers as they are, for an instruction that reads them without having reduced into them."""
        registers = self.registers()
        self._use(reads=True, writes=False)
        self._settle(registers, "`reduce_res` receives")
        return registers

    def forget(self) -> None:
        """Leave the registers in an unknown state."""
        _bits(self.registers())[:] = _NOTHING[self.registers().itemsize]
        self._use(reads=False, writes=True)
        self._chain(commands.idle, None)

    def _chain(self, command: commands, result: Array | None) -> None:
        """Note the reduction into the registers; NK507 if it continues the result of another reduction."""
        core = current_core(f"nisa.{self.instruction}")
        chains, lanes = core.reduce_chains.setdefault(self.engine, []), self.lanes
        mine = _Chain(self.instruction, self.operator, core.record.site(), _memory_of(result))
        if command is commands.reduce:
            self._check_chains(chains, mine)
        chains[:] = [each for each in chains if each[0].start < lanes.start or each[0].stop > lanes.stop]
        chains.append((lanes, mine if command in REDUCING else None))

    def _check_chains(self, chains: list[tuple[slice, _Chain | None]], mine: _Chain) -> None:
        for lanes, chain in reversed(chains):
            if lanes.stop <= self.lanes.start or lanes.start >= self.lanes.stop:
                continue
            if chain is not None and not chain.goes_on_in(mine):
                place = current_core(f"nisa.{self.instruction}").record.place_of(chain.site)
                message = (
                    f"{self.instruction}: `reduce_cmd`=reduce continues reduce registers of the "
                    f"{self.engine.capitalize()} Engine that {chain.instruction} at {place} has filled by "
                    f"nl.{chain.operator}; nothing has begun this reduction"
                )
                report("NK507", message)
                return
            if lanes.start <= self.lanes.start and lanes.stop >= self.lanes.stop:
                return

    def _use(self, *, reads: bool, writes: bool) -> None:
        core = current_core(f"nisa.{self.instruction}")
        use_state(core, f"{self.engine} reduce registers", self.lanes, reads=reads, writes=writes)

    def registers(self) -> Array:
        """Return the running core's registers of these lanes."""
        core = current_core(f"nisa.{self.instruction}")
        every = core.reduce_registers.get(self.engine)
        if every is None or every.size < self.lanes.stop:
            # More lanes than partitions only where NK101 was reported already.
            grown = np.empty(max(self.lanes.stop, core.generation.partitions), WIDE.get().dtype)
            _bits(grown)[:] = _NOTHING[grown.itemsize]
            if every is not None:
                grown[: every.size] = every
            core.reduce_registers[self.engine] = every = grown
        return every[self.lanes]

    def _settle(self, registers: Array, what: str) -> None:
        """NK507 once for registers that hold nothing; from then on they hold NaN."""
        nothing = _bits(registers) == _NOTHING[registers.itemsize]
        if nothing.any():
            report(
                "NK507",
                f"{self.instruction}: {what} {int(nothing.sum())} of {registers.size} reduce registers of the "
                f"{self.engine.capitalize()} Engine that hold no defined value: nothing has reset or loaded them, or "
                "an instruction ran with reduce_cmd=idle since",
            )
            registers[nothing] = np.nan


def commanded(
    check: Check,
    engine: Literal["scalar", "vector"],
    command: commands,
    operator: Operator | None,
    data: NkiTensor,
    reduce_res: NkiTensor | None,
    *,
    negated: bool = False,
) -> Callable[[Array, Array | None, Value | None], None]:
    """Return the function that does a command with an engine's registers and float32 results, and fills ``reduce_res``.

    After ``idle`` the Scalar Engine's registers are unchanged, the Vector Engine's are unknown.
    """
    lanes = Lanes(check.instruction, engine, data, "add" if operator is None else operator.name)
    identity = 0.0 if operator is None else IDENTITY[operator.name]
    dtype = None if reduce_res is None else reduce_res.dtype
    exactly = _exactly(command, operator, data, reduce_res, negated)

    def reduce(values: Array, result: Array | None, initial: Value | None) -> None:
        if command is not commands.idle:
            registers = lanes.begin(command, identity, initial, result)
            if operator is not None and command in REDUCING:
                combine(registers, operator, values)
        elif engine == "vector":
            lanes.forget()
        if result is not None and dtype is not None:
            registers = lanes.read() if command is commands.idle else registers
            put(result, np.negative(registers) if negated else registers, dtype)
            if exactly is not None:
                lost_integers.note_sum(values, exactly, result)

    return reduce


def _exactly(
    command: commands, operator: Operator | None, data: NkiTensor, reduce_res: NkiTensor | None, negated: bool
) -> Callable[[Array], Array] | None:
    """Return the reduction of integers in float64, where it starts afresh and its result is an integer (NK307)."""
    if reduce_res is None or not (data.dtype.is_integer and reduce_res.dtype.is_integer):
        return None
    if command is not commands.reset_reduce or operator is None or operator.reduce is None:
        return None
    reduce = operator.reduce

    def exactly(values: Array) -> Array:
        total: Array = reduce(values.reshape(values.shape[0], -1), (1,), False)
        return -total if negated else total

    return exactly


def combine(registers: Array, operator: Operator, values: Array) -> None:
    """Reduce each partition of ``values`` (float32) into its register."""
    rows = values.reshape(values.shape[0], -1)
    if operator is ADD_IN_ORDER:
        registers[:] = sum_in_order(np.concatenate([registers[:, None], rows], axis=1), (1,), False)
        return
    reduced = _folded(operator, rows) if operator.reduce is None else operator.reduce(rows, (1,), False)
    # Into an array of its own: an operator may read its operands after it has begun to write.
    registers[:] = operator.compute(registers, reduced, out=np.empty(reduced.shape, registers.dtype))


def _folded(operator: Operator, rows: Array) -> Array:
    """Return the reduction by an associative operator that NumPy lacks, neighbours first so that order is kept."""
    while rows.shape[1] > 1:
        odd = rows[:, -1:] if rows.shape[1] % 2 else rows[:, :0]
        left, right = rows[:, 0 : rows.shape[1] - 1 : 2], rows[:, 1::2]
        rows = np.concatenate([operator.compute(left, right, out=np.empty_like(left)), odd], axis=1)
    return rows[:, 0]


def register_elements(
    engine: Literal["scalar", "vector"], command: commands, inputs: Mapping[str, Rule], initial: str = ""
) -> dict[str, dict[str, Rule]]:
    """Return the element map of the registers after a command, and of the tile that receives them.

    ``inputs``: the operands that are reduced; ``initial``: the parameter that load_reduce loads. After ``idle`` the
    Scalar Engine's registers are unchanged, the Vector Engine's are unknown.
    """
    registers = SCALAR_REGISTERS if engine == "scalar" else VECTOR_REGISTERS
    if command is commands.idle:
        return {"reduce_res": {registers: SAME}} if engine == "scalar" else {"reduce_res": {}, registers: {}}
    contents: dict[str, Rule] = dict(inputs) if command in REDUCING else {}
    if command is commands.reduce:
        contents[registers] = SAME
    elif command is commands.load_reduce:
        contents[initial] = BROADCAST
    return {"reduce_res": contents, registers: contents}


def kept_apart(command: commands, reduce_res: NkiTensor | None) -> str:
    """Return `Plan.lanes` for undefined elements that an instruction reduces: they reach ``reduce_res``, or are a use.

    Undefined registers are not tracked: values that stay in them, or are added to, are a use.
    """
    stays = command is commands.reduce or (command in REDUCING and reduce_res is None)
    return "use" if stays else "apart"


def reducer(check: Check, role: str, token: OperatorToken, allowed: tuple[str, ...]) -> Operator:
    """NK306, NK606: the operator that reduces into the registers, one of ``allowed``."""
    found = guards.operator(check, role, token)
    if found.name not in allowed:
        names = ", ".join(f"nl.{name}" for name in allowed)
        check.refuse("NK306", f"`{role}`={found} does not reduce here; possible are {names}")
    return guards.in_sum_order(check, found)


def result_tile(check: Check, reduce_res: NkiTensor | None, data: NkiTensor, role: str = "data") -> None:
    """NK102, NK109: ``reduce_res`` takes one element for each partition of the input."""
    if reduce_res is None:
        return
    guards.same_partitions(check, (role, data), ("reduce_res", reduce_res))
    if reduce_res.layout.free_elements != 1:
        check.refuse(
            "NK109", f"`reduce_res` must be a ({data.shape[0]}, 1) tile, it is {describe(reduce_res)}", reduce_res
        )


def initial_value(check: Check, role: str, value: Operand | None, command: commands, data: NkiTensor) -> None:
    """NK609, NK301, NK109: what load_reduce loads is given, a number or a float32 (partitions, 1) vector."""
    if value is None and command is commands.load_reduce:
        message = f"reduce_cmd=load_reduce needs `{role}`, which is missing"
        remedy = f"Pass the number or float32 vector to start from as {role}, or reset the registers: reset_reduce."
        check.refuse("NK609", message, remedy=remedy)
    guards.vector_operand(check, role, value, data)
    if isinstance(value, NkiTensor) and value.dtype is not float32:
        check.fail("NK301", f"`{role}` must be float32, it is {describe(value)}", value)
