"""A call of a shape function alone, in the worker of its library."""

from __future__ import annotations

from collections.abc import Callable

from nkitools.customop.abi import CALL_BYTES, Call, aligned
from nkitools.customop.compiled_operator import CompiledOperator
from nkitools.customop.errors import DamagedCall
from nkitools.customop.event_context import Context, Message
from nkitools.customop.events import EXCESSES, finding_at, findings_of
from nkitools.customop.returned_call import ask, check_returned
from nkitools.rules.finding import Finding


def shape_of(
    operator: CompiledOperator, fill: Callable[[Call], None], timeout: float, memory_limit: int
) -> tuple[Call, list[Finding]]:
    """Return a call with the output that the shape function of an operator says, and what is wrong where it says none.

    ``fill`` writes into the call what is asked for. ``timeout`` and ``memory_limit``: as of `Operator.run`. BuildError
    where the worker is ended from outside.
    """
    with operator.worker() as worker:
        call = worker.memory.begin(aligned(CALL_BYTES))
        fill(call)
        asked, end = ask(call, timeout, memory_limit)
        del call  # or the memory could not be given back when it grows
        answer = worker.call(timeout, memory_limit, only_shape=True)
        made = Call.from_buffer_copy(worker.memory.end())
    place = operator.shape_place()
    try:
        check_returned(made, asked, end, end)
    except DamagedCall as error:
        text = f"the shape function of operator `{operator.name}` has overwritten the description of its call: {error}"
        return made, [finding_at(place, Message("CO103", text))]
    if made.stage == 2:
        return made, []
    context = Context(operator.name, {}, operator.shape_symbols, place, "shape function")
    findings = findings_of(context, list(made.events[: made.events_used]))
    excess = EXCESSES.get(answer["killed"], "").format(who=context.who, limit=memory_limit)
    ending = Message("CO103", excess) if excess else _ending(operator.name, timeout, answer["status"], answer["killed"])
    return made, findings or [finding_at(place, ending)]


def _ending(name: str, timeout: float, status: int, killed: str) -> Message:
    """Return a sentence on the end of a shape function that gave no shape."""
    who = f"the shape function of operator `{name}`"
    if killed:
        text = f"{who} is still running after {timeout:g} seconds"
        return Message("CO103", text, facts={"ended_by": "time", "seconds": float(timeout)})
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    return Message("CO103", f"{who} ends its process with {how}")
