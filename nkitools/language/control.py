"""Loops that run on the device: their bounds and counters are registers or scalars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from nkitools.chip.argument_types import Bound
from nkitools.chip.core import current_core
from nkitools.chip.device_numbers import DeviceNumber, made_of
from nkitools.chip.dtypes import int32
from nkitools.chip.endless_loops import TurnCount
from nkitools.chip.registers import VirtualRegister
from nkitools.chip.scalars import NkiScalar, fits
from nkitools.issue.instruction_names import DeviceLoop
from nkitools.language.body_state import FirstTurn
from nkitools.rules.finding import refuse, report


def _bound(what: str, role: str, value: Bound) -> int:
    if isinstance(value, DeviceNumber):
        return value.short_integer(what)
    if isinstance(value, bool) or not isinstance(value, int):
        refuse("NK609", f"{what}: {role} must be an integer, a register or a scalar, it is {type(value).__name__}")
    return value


def _step(what: str, step: Bound) -> int:
    if isinstance(step, bool) or not isinstance(step, int) or step < 1:
        shown = "known on the device only" if isinstance(step, DeviceNumber) else repr(step)
        refuse("NK609", f"{what}: step must be a positive integer known when the kernel is built, it is {shown}")
    return step


def _outside_no_reorder(what: str) -> None:
    if current_core(what).no_reorder:
        message = f"{what} runs inside nl.no_reorder(), where dynamic loops are not supported"
        refuse("NK601", message, remedy="Put the `with nl.no_reorder():` into the loop's body.")


def _iterations(what: str, lower: Bound, upper: Bound, step: int) -> Iterator[VirtualRegister]:
    """Yield the counters of a dynamic loop. A wrong call is refused at the call, not at the first iteration."""
    _outside_no_reorder(what)
    values = range(_bound(what, "start", lower), _bound(what, "stop", upper), _step(what, step))
    return _counters(what, values, made_of(lower, upper))


def _counters(what: str, values: range, sources: tuple[int, ...]) -> Iterator[VirtualRegister]:
    """Yield a frozen register for each iteration; the record learns which one runs.

    ``sources``: the instructions that made the bounds of the loop.
    """
    core = current_core(what)
    record = core.record
    parent, site = record.loop, record.site()
    record.ranges[site] = what.removeprefix("nl.")
    record.skipped_loop = record.skipped_loop or not values
    with DeviceLoop.begun(core, site) as loop:
        try:
            for value in values:
                record.loop = record.loop_states.enter(parent, site, value, values.step)
                yield VirtualRegister(value, frozen=True).made_by(sources)
                loop.end_turn(core)
        finally:
            record.loop = parent


def dynamic_range(start: Bound, stop: Bound | None = None, step: int = 1) -> Iterator[VirtualRegister]:
    """Return the counters of a loop on the device: in each turn a new register, which nothing may write.

    ``start`` is the first counter, ``stop`` lies behind the last one; with one argument that is ``stop``, and the loop
    begins at 0. Both are integers, registers or int32 scalars. ``step`` is an integer above 0. NKI 0.7 has no
    dynamic_range (NK608; without a named version NK618): it has `fori_loop`.

    Errors: NK301, NK401, NK601, NK608, NK609, NK611, NK618. Source: nki.language.dynamic_range (NKI 0.6), dynamic loops
    deep dive.
    """
    lower, upper = (0, start) if stop is None else (start, stop)
    return _iterations("nl.dynamic_range", lower, upper, step)


def fori_loop(lower: Bound, upper: Bound, body_fun: Callable[[Any], Any], step: int = 1) -> None:
    """Call ``body_fun(i)`` with an int32 scalar for each i of ``range(lower, upper, step)``.

    Bounds are integers, registers and scalars, of 32 bits (NK301 for an int64 scalar). If a bound is a register, and
    always before NKI 0.7, i is a register. ``step`` is an integer above 0. What the body writes to i does not change
    the loop; what it returns is not used.

    Errors: NK301, NK401, NK601, NK609, NK611. Source: nki.language.fori_loop (NKI 0.7).
    """
    what = "nl.fori_loop"
    _body(what, body_fun)
    registers = any(isinstance(bound, VirtualRegister) for bound in (lower, upper))
    kind = VirtualRegister if registers or not current_core(what).language.scalar_counters else NkiScalar
    for bound in (lower, upper):
        if kind is NkiScalar and isinstance(bound, int) and not fits(bound, int32):
            refuse("NK609", f"{what}: bound {bound} does not fit into the 32 bits of the loop's counter")
    turns = _iterations(what, lower, upper, step)
    state = FirstTurn.of(current_core(what), "fori_loop", body_fun)
    for counter in turns:
        body_fun(kind(counter.value).made_by(counter.sources))
        if state is not None:
            state.compare()
            state = None


def while_loop(init: DeviceNumber, body_fun: Callable[[Any], DeviceNumber]) -> None:
    """Call ``body_fun(r)`` while the condition is not 0; ``body_fun`` returns the next condition.

    ``init``: a register with the first condition. ``r`` is a new register with the value of the condition; ``init``
    does not change.

    An int32 scalar in place of the register works as well; no document has that (NK621). A loop whose condition
    nothing changes is refused after 1,000 turns, any loop after a million (NK504).

    Errors: NK301, NK401, NK504, NK601, NK609, NK611, NK621. Source: nki.language.while_loop (NKI 0.6).
    """
    what = "nl.while_loop"
    _outside_no_reorder(what)
    _body(what, body_fun)
    core, condition = current_core(what), _condition(what, "init", init)
    core.record.skipped_loop = core.record.skipped_loop or condition.read(what) == 0
    state, turns = FirstTurn.of(core, "while_loop", body_fun), TurnCount()
    with DeviceLoop.begun(core, core.record.site()) as loop:
        while condition.read(what) != 0:
            turns.check(what, condition)
            given = type(condition)(condition.value).made_by(condition.sources)
            condition = _condition(what, "what body_fun returns", body_fun(given))
            if state is not None:
                state.compare()
                state = None
            loop.end_turn(core)


def _body(what: str, body_fun: Callable[..., Any]) -> None:
    if not callable(body_fun):
        refuse("NK609", f"{what}: body_fun must be a function of a register, it is {type(body_fun).__name__}")


def _condition(what: str, role: str, value: DeviceNumber) -> DeviceNumber:
    """Return a condition of a while_loop. Errors: NK301, NK609, NK621."""
    if not isinstance(value, DeviceNumber):
        refuse("NK609", f"{what}: {role} must be a register, it is {type(value).__name__}")
    value.check_width(what)
    if isinstance(value, NkiScalar) and role == "init":
        value.integer(what)
        remedy = "Keep the condition in a register: nisa.register_alloc and nisa.register_load."
        report("NK621", f"{what}: {role} is a scalar; the documents have conditions in registers only", remedy=remedy)
    return value


def no_reorder() -> NoReorder:
    """Return a context manager, ``with nl.no_reorder():``, that keeps the order of the instructions inside.

    It changes no result here, where instructions always run in the order of the program. Dynamic loops inside are
    refused (NK601), as AWS's compiler does not support them.
    Errors: NK601, NK609, NK611. Source: nki.language.no_reorder (NKI 0.6).
    """
    return NoReorder()


class NoReorder:
    """The block of a ``with nl.no_reorder():``."""

    def __enter__(self) -> None:
        core = current_core("nl.no_reorder")
        core.no_reorder += 1
        self.start = core.record.count

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        core = current_core("nl.no_reorder")
        core.no_reorder -= 1
        core.record.ordered.append((core.program, self.start, core.record.count))
