"""A call of an operator, made and judged."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.customop import process
from nkitools.customop.abi import GUARDS, LOCAL, MAX_FORKS, NO_GUARD, OUTPUT, TIMED_OUT, Call, give_room, open_library
from nkitools.customop.arguments import Arguments, argument_name, give_back, numpy_dtype
from nkitools.customop.compiled_operator import CompiledOperator, Settings
from nkitools.customop.core_trace import CoreTrace
from nkitools.customop.errors import DamagedCall
from nkitools.customop.event_context import Context, Message
from nkitools.customop.events import EXCESSES, TCM_REFUSED, accesses_beyond, finding_at, findings_of
from nkitools.customop.output import (
    fold_unwritten,
    judge_origin,
    judge_output,
    judge_shape_function,
    output_of,
    shadow_of,
    unwritten_elements,
)
from nkitools.customop.printed import printed
from nkitools.customop.returned_call import ask, check_returned
from nkitools.customop.run import CoreCounters
from nkitools.record.prints.device_print import Print
from nkitools.record.trace import Trace
from nkitools.rules.finding import Finding

_MOST_GUARDED = 1 << 26  # bytes of a call that is made again between guard pages
_CANARIES = (0xFF, 0x5A)  # the second one to confirm the suspicion of the first
_NO_ROOM = 77
_ASTRAY = "; it has overwritten memory that is not its own: debug=True finds the line"
_WHY_SIGNAL = {
    **dict.fromkeys((4, 6, 7, 8, 11), _ASTRAY),
    9: " (SIGKILL), which is sent from outside: by a person, or by the system for want of memory",
    15: " (SIGTERM), which is sent from outside",
}
_STATUS = ("not run", "stopped", "finished", "stopped", "crashed", "timed out")


@dataclass
class JudgedCall:
    """The outputs of a call, and what was found in it."""

    outputs: Any = None
    prints: list[Print] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    cores: tuple[CoreCounters, ...] = ()
    traces: list[Trace] = field(default_factory=list)
    refusals: list[Finding] = field(default_factory=list)  # of tcm_malloc; findings only where there are others

    def with_refusals(self) -> JudgedCall:
        """Return the call with its refusals as the first findings, where there are others, and none has them in it."""
        if self.findings and not any(finding.rule == "CO101" for finding in self.findings):
            self.findings = [*self.refusals, *self.findings]
        return self


@dataclass
class CallResult:
    """A call that has been made, before it is judged."""

    call: Call
    memory: Any  # the buffer that the call's offsets count in
    exit: int = 0  # status of the process that ran it
    killed: str = ""  # why the process was ended: its `time` was over, or it had too much `memory` or `processes`
    text: str = ""  # what the process wrote
    damage: str = ""  # which part of the call its operator has overwritten


@dataclass
class OperatorCall:
    """Makes a call of an operator and judges what it left."""

    operator: CompiledOperator
    arguments: Arguments
    settings: Settings
    order: Sequence[int]  # of the cores
    guard: int = NO_GUARD  # of the call that is made now

    def made(self) -> JudgedCall:
        """Return the call, judged."""
        if self.settings.isolation == "none":
            return self._here()
        with self.operator.worker() as worker:
            return self._judge_all(lambda canary: self._ask(worker, canary))

    def _ask(self, worker: process.Worker, canary: int) -> CallResult:
        call = worker.memory.begin(self.arguments.size())
        self._fill(call, worker.memory.buffer, canary)
        asked, end = ask(call, self.settings.timeout, self.settings.memory_limit)
        del call  # or the memory could not be given back when it grows
        answer = worker.call(self.settings.timeout, self.settings.memory_limit)
        text = worker.text()
        if answer["left_out"]:
            text = text.rstrip("\n") + f"\n... {answer['left_out']:,} more bytes of stdout and stderr are left out"
        made = CallResult(worker.memory.end(), worker.memory.buffer, int(answer["status"]), str(answer["killed"]), text)
        try:
            check_returned(made.call, asked, end, len(worker.memory.buffer))
        except DamagedCall as error:
            made.damage = str(error)
        return made

    def _fill(self, call: Call, memory: mmap.mmap, canary: int) -> None:
        self.arguments.write(call, memory)
        self.operator.prepare(call, self.settings, self.order)
        call.canary = canary
        call.guard = self.guard
        call.at_once = self.guard != NO_GUARD or self.arguments.shapes() not in self.operator.ends_freeing

    def _here(self) -> JudgedCall:
        built = self.operator.library.built
        shape, compute = open_library(built.shape), open_library(built.compute)

        memory = process.memory_here()

        def make(canary: int) -> CallResult:
            call = memory.begin(self.arguments.size())
            self._fill(call, memory.buffer, canary)
            shape.nkt_shape(ctypes.addressof(call))
            if call.stage == 2:
                call = memory.grow(give_room(call))
                compute.nkt_run(ctypes.addressof(call), ctypes.addressof(call))
            return CallResult(call, memory.buffer)

        return self._judge_all(make)

    def _judge_all(self, make: Callable[[int], CallResult]) -> JudgedCall:
        made = make(_CANARIES[0])
        if made.damage:
            return self._damaged(made.damage)
        if made.call.went_on and not made.call.at_once:
            self.operator.ends_freeing.discard(self.arguments.shapes())
            if not _timed_out(made):
                made = make(_CANARIES[0])
        elif made.call.stage == 3 and not made.call.went_on and not made.call.events_used:
            self.operator.ends_freeing.add(self.arguments.shapes())
        try:
            judged = self._judged(made, lambda: make(_CANARIES[1]))
            return self._looked_beyond(judged, make).with_refusals()
        except DamagedCall as error:
            return self._damaged(str(error))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if self.settings.isolation == "none":
                raise
            return self._damaged(f"{type(error).__name__}: {error}")

    def _looked_beyond(self, judged: JudgedCall, make: Callable[[int], CallResult]) -> JudgedCall:
        """Add what only guard pages on the other sides of blocks and tensors show, once for each shapes of arguments.

        The call is made again with them. Nothing of these calls is kept but their accesses beyond.
        """
        shapes = self.arguments.shapes()
        plain = [finding for finding in judged.findings if finding.facts.get("seen") != "end"]
        errors = any(finding.severity == "error" for finding in plain)
        if self.settings.isolation == "none" or errors or shapes in self.operator.looked_beyond:
            return judged
        if self.arguments.size() > _MOST_GUARDED or any(core.status != "finished" for core in judged.cores):
            return judged
        self.operator.looked_beyond.add(shapes)
        elements = any(core.element_reads + core.element_writes for core in judged.cores)
        blocks = any(core.tcm_peak for core in judged.cores)
        try:
            for self.guard in GUARDS if elements or blocks else ():
                made = make(_CANARIES[0])
                if made.damage:
                    continue
                beyond = accesses_beyond(self._context(made.call, False), made.call.events[: made.call.events_used])
                if beyond:
                    judged.findings = [*plain, *beyond]
                    break
        finally:
            self.guard = NO_GUARD
        return judged

    def _damaged(self, what: str) -> JudgedCall:
        """Return the judgement of a call whose description cannot be believed."""
        text = f"operator `{self.operator.name}` has overwritten the description of its own call: {what}"
        remedy = "It writes through a pointer that goes astray; debug=True may find the line."
        return JudgedCall(findings=[finding_at(self.operator.kernel_place(), Message("CO103", text, remedy))])

    def _judged(self, made: CallResult, again: Callable[[], CallResult]) -> JudgedCall:
        call = made.call
        judged = JudgedCall()
        judged.cores = tuple(_counters(call, core) for core in sorted(self.order))
        in_shape = call.stage < 2
        context = self._context(call, in_shape)
        judged.prints = printed(call, context, made.text)
        events = list(call.events[: call.events_used])
        judged.findings = findings_of(context, [event for event in events if event.kind != TCM_REFUSED])
        judged.refusals = findings_of(context, [event for event in events if event.kind == TCM_REFUSED])
        judged.findings += self._endings(made, context, judged.findings)
        if in_shape:
            return judged
        judged.findings += judge_shape_function(context, call, self.operator.shape_place())
        finished = all(each.status == "finished" for each in judged.cores)
        if call.traced:
            left = output_of(call, made.memory) if call.stage == 3 and finished else None
            judged.traces = [CoreTrace(call, context, self._arrays(), left).made()]
        returned = call.stage == 3 and call.out.numel > 0
        if finished and returned:
            suspect = call.unwritten > 0 and call.by_reference
            output = output_of(call, made.memory)
            shadow = shadow_of(call, made.memory).copy() if suspect else None
            missing = unwritten_elements(call, made.memory, None if shadow is None else lambda: _both(shadow, again()))
            folded = missing is not None and fold_unwritten(context, call, judged.findings, missing)
            findings = judge_output(
                context, call, made.memory, self.operator.shape_place(), None if folded else missing
            )
            judged.findings += findings
            if not findings and not folded:
                judged.findings += judge_origin(context, call, output, again)
            if not any(finding.rule == "CO107" for finding in findings):
                judged.outputs = give_back(output, self.arguments.torch)
        return judged

    def _context(self, call: Call, in_shape: bool) -> Context:
        operator = self.operator
        home = operator.shape_place() if in_shape else operator.kernel_place()
        return Context(
            operator.name,
            self._tensors(call),
            operator.shape_symbols if in_shape else operator.symbols,
            home,
            "shape function" if in_shape else "kernel",
            shapes=self._shapes(call),
        )

    def _shapes(self, call: Call) -> dict[int, tuple[str, tuple[int, ...]]]:
        names = self.operator.parameters
        arrays = [(index, value) for index, value in enumerate(self.arguments.values) if isinstance(value, np.ndarray)]
        shapes = {index: (names[index] if names else "", value.shape) for index, value in arrays}
        return shapes | ({OUTPUT: ("output", call.out.shape())} if call.stage >= 2 else {})

    def _arrays(self) -> dict[int, tuple[str, Array]]:
        """Return the arrays among the arguments, with their names, by their numbers."""
        values = self.arguments.values
        arrays = {at: each for at, each in enumerate(values) if isinstance(each, np.ndarray)}
        named = dict(enumerate(self.operator.parameters))
        return {at: (named.get(at, f"argument {at}"), each) for at, each in arrays.items()}

    def _tensors(self, call: Call) -> dict[int, str]:
        names = {}
        for index, value in enumerate(self.arguments.values):
            if isinstance(value, np.ndarray):
                name = argument_name(index, self.operator.parameters)
                names[index] = f"{name} ({value.dtype} {list(value.shape)})"
        if call.stage >= 2:
            names[OUTPUT] = f"the output ({numpy_dtype(call.out.dtype)} {list(call.out.shape())})"
        names[LOCAL] = "a tensor that the kernel made"
        return names

    def _endings(self, made: CallResult, context: Context, known: list[Finding]) -> list[Finding]:
        """Return findings about the end of the process that its events do not have yet."""
        ended = {finding.facts.get("ended_by") for finding in known}
        if "forks" in ended:
            return []  # the author's line is in it; the worker may have ended the rest of them at the same moment
        if made.killed in EXCESSES:
            text = EXCESSES[made.killed].format(who=context.who, limit=self.settings.memory_limit)
            return [finding_at(context.home, Message("CO103", text, facts={"ended_by": made.killed}))]
        if _timed_out(made) and "time" not in ended:
            seconds = self.settings.timeout
            text = f"the {context.who} is still running after {seconds:g} seconds"
            return [
                finding_at(context.home, Message("CO103", text, facts={"ended_by": "time", "seconds": float(seconds)}))
            ]
        if made.exit == _NO_ROOM:
            size, limit = made.call.end, self.settings.memory_limit
            text = f"the call needs {size} bytes of memory; the limit is {limit}"
            return [finding_at(context.home, Message("CO103", text, facts={"ended_by": "memory", "limit": limit}))]
        if made.call.forks > MAX_FORKS:
            text = f"the processes of the {context.who} fork more than {MAX_FORKS} times"
            return [finding_at(context.home, Message("CO103", text, facts={"ended_by": "forks", "limit": MAX_FORKS}))]
        if made.killed or any(finding.severity == "error" for finding in known):
            return []
        if made.exit != 0:
            how = f"signal {-made.exit}" if made.exit < 0 else f"exit status {made.exit}"
            how += _WHY_SIGNAL.get(-made.exit, "")
            message = Message("CO103", f"the process of operator `{context.operator}` ends with {how}")
            return [finding_at(context.home, message)]
        if made.call.stage != 3:
            who = "shape function" if made.call.stage < 2 else "kernel"
            text = f"the {who} of operator `{context.operator}` ends its process, with exit status 0, and never returns"
            return [
                finding_at(context.home, Message("CO103", text, "Return from it: no _exit(), quick_exit() or exec."))
            ]
        return []


def _timed_out(made: CallResult) -> bool:
    return bool(made.killed) or any(core.status == TIMED_OUT for core in made.call.core)


def _both(shadow: Array, made: CallResult) -> Array:
    """Return the elements that neither of two runs has written, whatever was in them before."""
    if made.damage:
        raise DamagedCall(made.damage)
    if not made.call.unwritten:
        return np.zeros_like(shadow, bool)
    other = shadow_of(made.call, made.memory)
    if other.shape != shadow.shape:
        raise DamagedCall("its output has another shape in a second run")
    mask: Array = (shadow == 0) & (other == 0)
    return mask


def _counters(call: Call, number: int) -> CoreCounters:
    record = call.core[number]
    names = [name for name, *_ in record._fields_ if name not in ("status", "dst_taken")]
    return CoreCounters(
        core=number, status=_STATUS[record.status], **{str(name): int(getattr(record, name)) for name in names}
    )
