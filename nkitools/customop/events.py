"""From what happened in an operator to findings: which rule, which sentence, which line."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from nkitools.customop.abi import LOCAL, MAX_PROCESSES, OUTPUT, SCALAR_TYPES, Event
from nkitools.customop.event_context import Context, Message
from nkitools.customop.symbols import Place
from nkitools.rules.finding import NO_FACTS, Fact, Finding

_PLAIN = Path(__file__).with_name("event_sentences.toml")
_SIGNALS = {
    4: "an illegal instruction (a function that ends without its return?)",
    6: "abort()",
    7: "a bus error",
    8: "an arithmetic fault (a division by zero?)",
}
_SEGMENTATION_FAULT = 11
_READS, _WRITES = 1, 2  # of the data out of bounds
_ELEMENT = 3  # an index out of bounds
_READ_OF_OTHERS = 33
TCM_REFUSED = 36  # a finding only where there are others
_POOL = 16384
_CRASH, _BESIDE_BLOCK, _BESIDE_TENSOR = 23, 1, 5
# Why a call was ended, where it was not for its time.
EXCESSES = {
    "processes": f"the {{who}} has more than {MAX_PROCESSES} processes at a time",
    "memory": "the processes of the {who} have more than {limit} bytes of memory together, which is the limit",
}
_UNKNOWN = Place("<unknown>", 0)


def findings_of(context: Context, events: Iterable[Event]) -> list[Finding]:
    """Return the findings of a call's events: one for each cause and line, whatever number of cores met it."""
    known = [event for event in events if event.kind in _SENTENCES]
    context.symbols.warm(address for event in known for address in _addresses(event))
    groups: dict[tuple[int, int, Place], list[Event]] = {}
    for event in known:
        place = context.symbols.author_place(_addresses(event)) or context.home
        groups.setdefault((event.kind, event.tensor, place), []).append(event)
    findings = []
    for (kind, _, place), members in groups.items():
        message = _SENTENCES[kind](context, _joined(members))
        message = message._replace(text=message.text + _cores(members))
        findings.append(finding_at(place, message, program=(members[0].core,)))
    return findings


def accesses_beyond(context: Context, events: Iterable[Event]) -> list[Finding]:
    """Return the findings of the accesses beyond a block or a tensor that have ended a call."""
    beyond = [event for event in events if event.kind == _CRASH and event.c in (_BESIDE_BLOCK, _BESIDE_TENSOR)]
    return findings_of(replace(context, ended=False), beyond)


def _joined(members: list[Event]) -> Event:
    """Return the event of the first core at a line, with the counts of all: an unrolled loop has many addresses."""
    whole = Event.from_buffer_copy(members[0])
    for event in members[1:]:
        if event.core != whole.core:
            continue
        whole.repeats += event.repeats
        whole.count += event.count
        if event.kind in (_READS, _WRITES, _READ_OF_OTHERS):
            whole.a, whole.b = min(whole.a, event.a), max(whole.b, event.b)
    return whole


def finding_at(place: Place, message: Message, program: tuple[int, ...] = (), column: int | None = None) -> Finding:
    """Return a finding in the author's source."""
    return Finding.of(
        message.rule,
        message.text,
        (place.file, place.line, place.function),
        remedy=message.remedy,
        severity=message.severity,
        column=column,
        program=program,
        facts=message.facts,
    )


def _addresses(event: Event) -> list[int]:
    frames = list(event.pcs[: event.frames])
    return [*frames, event.site] if event.site else frames


def _cores(members: list[Event]) -> str:
    """Return ``, on cores 0..7`` if there are several cores; else ''."""
    cores = sorted({event.core for event in members})
    if len(cores) == 1:
        return f" (core {cores[0]})" if cores[0] else ""
    whole = cores == list(range(cores[0], cores[-1] + 1))
    return f", on cores {cores[0]}..{cores[-1]}" if whole else ", on cores " + ", ".join(map(str, cores))


def _dtype(code: int) -> str:
    return SCALAR_TYPES.get(code, ("a type that tensors do not have", 0))[0]


def _sentence(
    rule: str, text: str, remedy: str = "", severity: str = "", facts: Mapping[str, Fact] = NO_FACTS
) -> Callable[[Context, Event], Message]:
    """Return a sentence with gaps: ``{event.a}``, the ``{tensor}``, ``{line_c}`` of the address in ``event.c``."""

    def sentence(context: Context, event: Event) -> Message:
        said = text.format(
            event=event,
            operator=context.operator,
            who=context.who,
            tensor=context.tensor(event.tensor),
            text=event.text.decode(errors="replace"),
            line_c=context.line(event.c) if "{line_c}" in text else "",
            line_d=context.line(event.d) if "{line_d}" in text else "",
        )
        return Message(rule, said, remedy, severity, facts)

    return sentence


# --- TCM -------------------------------------------------------------------------------------------------------------


def _too_small(context: Context, event: Event) -> Message:
    if event.a < 0:
        what = f"a negative number of elements ({event.a} bytes)"
        return Message("CO104", f"a copy between {context.tensor(event.tensor)} and TCM is of {what}")
    message = (
        f"a copy of {event.a} bytes between {context.tensor(event.tensor)} and TCM goes past the end of its block: the "
        f"tcm_malloc of {event.d} bytes{context.line(event.c)} has {event.b} left from there on"
    )
    return Message("CO104", message, "Allocate sizeof(T) * num_elem bytes, or copy what fits.")


def _null_use(context: Context, event: Event) -> Message:
    if event.a == 0:
        message = f"a copy with {context.tensor(event.tensor)} is given a null pointer for its TCM buffer"
        return Message("CO103", message)
    return Message(
        "CO101",
        f"tcm_malloc of {event.a} bytes{context.line(event.c)} returned null, with {event.b} of {_POOL} bytes in use, "
        "and a copy uses it without a check",
    )


def _leak(context: Context, event: Event) -> Message:
    times = f" by {event.repeats} calls" if event.repeats > 1 else ""
    return Message("CO102", f"{event.count} bytes of TCM are allocated here{times} and never freed")


def _bad_free(context: Context, event: Event) -> Message:
    match event.a:
        case 1:
            message = f"the TCM block of {event.b} bytes{context.line(event.c)} is freed again{context.line(event.d)}"
            return Message("CO116", message)
        case 2:
            return Message(
                "CO116", f"tcm_free is given a pointer into a TCM block of {event.b} bytes, which is not its beginning"
            )
        case 3:
            return Message(
                "CO116", "tcm_free is given a null pointer, and no tcm_malloc has returned one", "", "warning"
            )
        case _:
            return Message("CO116", "tcm_free is given a pointer that no tcm_malloc has returned")


def _overrun(context: Context, event: Event) -> Message:
    side = "before the beginning" if event.b else "past the end"
    message = f"the kernel wrote {side} of the TCM block of {event.a} bytes{context.line(event.c)}, found when it ended"
    return Message("CO104", message, facts={"seen": "end"})  # no guard page has seen it


# --- tensors and accessors -------------------------------------------------------------------------------------------


def _out_of_bounds(verb: str) -> Callable[[Context, Event], Message]:
    def sentence(context: Context, event: Event) -> Message:
        tensor, beyond = context.tensor(event.tensor), f"{event.count} element{'s' if event.count > 1 else ''}"
        if event.a < 0:
            times = f" by {event.repeats} copies" if event.repeats > 1 else ""
            where = f"a copy {verb}s {tensor} at offset {event.a}{times}"
            return Message("CO104", f"{where}: nothing is before its beginning")
        if event.repeats > 1:
            return Message("CO104", f"{event.repeats} copies {verb} {beyond} past the end of {tensor}")
        if event.a >= event.d:
            text = f"a copy {verb}s {beyond} past the end of {tensor}, from offset {event.a} on"
            return Message("CO104", text)
        inside = context.elements(event.tensor, event.a, event.d - 1)
        return Message("CO104", f"a copy {verb}s {inside} of {tensor}, and {beyond} past its end")

    return sentence


def lost_stores(context: Context, events: Iterable[Event]) -> tuple[int, list[Finding]]:
    """Return the number of output elements that may have been stored beyond a tensor, and the findings about it."""
    lost = [event for event in events if event.kind in (_WRITES, _ELEMENT) and event.tensor in (OUTPUT, LOCAL)]
    return sum(event.count for event in lost), findings_of(context, lost)


def _element_index(context: Context, event: Event) -> Message:
    times = f", and {event.repeats - 1} more like it" if event.repeats > 1 else ""
    where = "before the beginning" if event.a < 0 else "past the end"
    message = (
        f"index {event.a} is {where} of dimension {event.c} of {context.tensor(event.tensor)}, which has {event.b} "
        f"elements{times}"
    )
    return Message("CO104", message, "Check the index against sizes().")


def _in_multicore(context: Context, event: Event) -> Message:
    accessor = ("an element accessor", "a read stream accessor", "a write stream accessor")[event.a]
    return Message("CO109", f"{accessor} of {context.tensor(event.tensor)} is opened in multicore mode")


def _wrong_dtype(context: Context, event: Event) -> Message:
    operation = event.text.decode(errors="replace")
    if not operation:
        message = f"an accessor of {_dtype(event.a)} is opened for {context.tensor(event.tensor)}, of {_dtype(event.b)}"
        return Message("CO110", message)
    if event.a < 0:
        return Message("CO110", f"{operation} is given a tensor of {_dtype(event.b)}, and takes integers")
    return Message("CO110", f"{operation} is given a tensor of {_dtype(event.b)} where {_dtype(event.a)} is needed")


def _wrong_dims(context: Context, event: Event) -> Message:
    if event.text == b"sizes":
        return Message("CO117", f"sizes()[{event.a - 1}] is asked of a tensor that has {event.b} dimensions")
    message = f"an accessor of {event.a} dimensions is opened for {context.tensor(event.tensor)}, which has {event.b}"
    return Message("CO117", message, "Give accessor<T, N> the number of dimensions that the tensor has.")


def _past_end(context: Context, event: Event) -> Message:
    verb = "writes" if event.a else "reads"
    many = f"{event.repeats} elements" if event.repeats > 1 else "an element"
    message = f"a stream {verb} {many} past the end of {context.tensor(event.tensor)}, which has {event.b} elements"
    return Message("CO113", message)


def _closed(context: Context, event: Event) -> Message:
    message = f"a stream of {context.tensor(event.tensor)} is {'written' if event.a else 'read'} after its close()"
    return Message("CO113", message)


def _incoherent(context: Context, event: Event) -> Message:
    who = "an element accessor is used while a stream is open on" if event.a else "a stream is opened beside another on"
    also = "" if event.a else ", one of them for writing"
    message = f"{who} {context.tensor(event.tensor)}{also}"
    remedy = (
        "Close the one before you use the other, or say with set_accessor_coherence_policy() that the "
        "kernel keeps order."
    )
    return Message("CO113", message, remedy, "warning" if event.b else "")


def _limit(context: Context, event: Event) -> Message:
    what = event.text.decode(errors="replace")
    if what == "dimensions":
        return Message("CO111", f"a tensor is made with {event.a} dimensions; 8 are the most")
    if what == "negative":
        return Message("CO111", f"a tensor is made with a dimension of {event.b} elements")
    return Message("CO111", "a tensor is made of more elements than can be counted")


# --- cores -----------------------------------------------------------------------------------------------------------


def _crash(context: Context, event: Event) -> Message:
    sites = [int.from_bytes(bytes(event)[Event.text.offset :][i : i + 8], "little") for i in (0, 8)]
    match event.c:
        case 1:
            size, side = event.count, "before the beginning" if event.b < 0 else "past the end"
            distance = -event.b if event.b < 0 else event.b - size
            where = f"{distance} bytes {side}" if distance else "just past the end"
            rule = "CO103" if context.ended else "CO104"
            remedy = (
                "" if distance else "Let the index end below the number of elements, i < n, or allocate more of them."
            )
            message = f"an access goes {where} of the TCM block of {size} bytes{context.line(sites[0])}"
            return Message(rule, message, remedy)
        case 2:
            return Message(
                "CO103",
                f"an access goes to the TCM block of {event.count} bytes{context.line(sites[0])} after its "
                f"tcm_free{context.line(sites[1])}",
            )
        case 5:
            before, end = event.b < 0, event.b - event.count
            where = f"{-event.b} bytes before the beginning" if before else f"{end} bytes past the end"
            where = where if before or end else "just past the end"
            return Message(
                "CO104",
                f"an access through a pointer goes {where} of {context.tensor(event.tensor)}",
                "Keep pointers to elements within their tensor; index through the accessor, which is checked.",
            )
        case 3 if event.d >= 0:
            size = f"{event.d} bytes" if event.d < 1 << 60 else "more bytes than there can be"
            wanted = f"tcm_malloc of {size}{context.line(event.count)} returned null"
            message = f"{wanted}, for want of room in the pool of {_POOL} bytes, and the kernel uses it unchecked"
            return Message("CO101", message)
        case 3:
            return Message("CO103", "an access goes through a null pointer")
        case 4:
            return Message("CO114", f"the stack overflows ({event.d} bytes deep on this host)", "", "error")
    if event.a == _SEGMENTATION_FAULT:
        return Message("CO103", f"an access goes to address {event.b & (1 << 64) - 1:#x}, where there is nothing")
    return Message("CO103", f"the {context.who} ends with {_SIGNALS.get(event.a, f'signal {event.a}')}")


def _read_of_others(context: Context, event: Event) -> Message:
    first, last = (context.elements(event.tensor, at, at) for at in (event.a, event.b))
    said = f"elements from {first} to {last}" if event.b > event.a else first
    return Message(
        "CO105",
        f"the core reads {said} of {context.tensor(event.tensor)} that another core writes; nothing orders the two",
        "Let each core compute what it reads, from the arguments, or put the second pass into an operator of its own.",
    )


_SENTENCES: dict[int, Callable[[Context, Event], Message]] = {
    _READS: _out_of_bounds("read"),
    _WRITES: _out_of_bounds("write"),
    _ELEMENT: _element_index,
    4: _too_small,
    6: _null_use,
    8: _leak,
    9: _bad_free,
    10: _overrun,
    11: _in_multicore,
    13: _wrong_dtype,
    14: _wrong_dims,
    18: _past_end,
    19: _closed,
    20: _incoherent,
    23: _crash,
    30: _limit,
    _READ_OF_OTHERS: _read_of_others,
    **{int(kind): _sentence(**said) for kind, said in tomllib.loads(_PLAIN.read_text(encoding="utf-8")).items()},
}
# Of the whole output, which output.py judges: 17 (what was returned is not what was said), 27 (overlap), 31 (what
# looks like unwritten memory is copied to a tensor).
RETURNED, OVERLAP, CANARY_COPIED = 17, 27, 31
