"""From what happened in an operator to findings: which rule, which sentence, which line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from nkitools.customop.abi import LOCAL, NO_TENSOR, OUTPUT, SCALAR_TYPES, Event
from nkitools.customop.symbols import Place, Symbols
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding

_SIGNALS = {
    4: "an illegal instruction (a function that ends without its return?)",
    6: "abort()",
    7: "a bus error",
    8: "an arithmetic fault (a division by zero?)",
}
_SEGMENTATION_FAULT = 11
_READS, _WRITES = 1, 2  # of what is out of bounds
_POOL = 16384
_UNKNOWN = Place("<unknown>", 0)


class Told(NamedTuple):
    """A rule, the sentence that speaks for it, and where these are not the rule's own, its remedy and severity."""

    rule: str
    message: str
    remedy: str = ""
    severity: str = ""


@dataclass(frozen=True)
class Scene:
    """What sentences need to know: the operator, its tensors, and where addresses are in its sources."""

    operator: str
    tensors: dict[int, str]
    symbols: Symbols
    home: Place  # of the kernel, where nothing better is known

    def tensor(self, number: int) -> str:
        """How a tensor is called in a sentence."""
        return self.tensors.get(number, "a tensor that the kernel made" if number == LOCAL else "the tensor")

    def line(self, address: int) -> str:
        """`` at giou.cpp:31`` of an address, '' where nobody knows it."""
        place = self.symbols.author_place([address]) if address else None
        return f" (line {place.line})" if place is not None else ""


def findings_of(scene: Scene, events: Iterable[Event]) -> list[Finding]:
    """The findings of a call's events: one for each cause and line, whatever number of cores met it."""
    known = [event for event in events if event.kind in _SENTENCES]
    scene.symbols.warm(address for event in known for address in _addresses(event))
    groups: dict[tuple[int, int, Place], list[Event]] = {}
    for event in known:
        place = scene.symbols.author_place(_addresses(event)) or scene.home
        groups.setdefault((event.kind, event.tensor, place), []).append(event)
    findings = []
    for (kind, _, place), members in groups.items():
        told = _SENTENCES[kind](scene, _joined(members))
        message = told.message + _cores(members)
        findings.append(finding_at(place, told._replace(message=message), program=(members[0].core,)))
    return findings


def _joined(members: list[Event]) -> Event:
    """What the first of the cores met at one line: a compiler that unrolls a loop makes many places of it."""
    whole = Event.from_buffer_copy(members[0])
    for event in members[1:]:
        if event.core != whole.core:
            continue
        whole.repeats += event.repeats
        whole.count += event.count
        if event.kind in (_READS, _WRITES):
            whole.a, whole.b = min(whole.a, event.a), max(whole.b, event.b)
    return whole


def finding_at(place: Place, told: Told, program: tuple[int, ...] = (), column: int | None = None) -> Finding:
    """A finding in the author's source."""
    rule = RULES[told.rule]
    return Finding(
        rule=rule.id,
        slug=rule.slug,
        severity=told.severity or rule.severity,
        message=told.message,
        file=place.file,
        line=place.line,
        column=column,
        remedy=told.remedy or rule.remedy,
        program=program,
        function=place.function,
    )


def _addresses(event: Event) -> list[int]:
    frames = list(event.pcs[: event.frames])
    return [*frames, event.site] if event.site else frames


def _cores(members: list[Event]) -> str:
    """Which cores, where there are several: ``, on cores 0..7``."""
    cores = sorted({event.core for event in members})
    if len(cores) == 1:
        return f" (core {cores[0]})" if cores[0] else ""
    whole = cores == list(range(cores[0], cores[-1] + 1))
    return f", on cores {cores[0]}..{cores[-1]}" if whole else ", on cores " + ", ".join(map(str, cores))


def span(first: int, last: int) -> str:
    """``elements 875..881 (7)``."""
    return f"element {first}" if first == last else f"elements {first}..{last} ({last - first + 1})"


def _dtype(code: int) -> str:
    return SCALAR_TYPES.get(code, ("a type that tensors do not have", 0))[0]


# --- TCM -------------------------------------------------------------------------------------------------------------


def _too_small(scene: Scene, event: Event) -> Told:
    if event.a < 0:
        what = f"a negative number of elements ({event.a} bytes)"
        return Told("CO104", f"a copy of {what} between {scene.tensor(event.tensor)} and TCM")
    return Told(
        "CO104",
        f"a copy of {event.a} bytes between {scene.tensor(event.tensor)} and TCM goes past the end of its block: the "
        f"tcm_malloc of {event.d} bytes{scene.line(event.c)} has {event.b} left from there on",
        "Allocate sizeof(T) * num_elem bytes, or copy what fits.",
    )


def _freed_use(scene: Scene, event: Event) -> Told:
    return Told(
        "CO104",
        f"a copy with {scene.tensor(event.tensor)} uses a TCM block of {event.a} bytes{scene.line(event.c)} after its "
        f"tcm_free{scene.line(event.d)}",
        "Free a block after its last use.",
    )


def _null_use(scene: Scene, event: Event) -> Told:
    if event.a == 0:
        return Told("CO103", f"a copy with {scene.tensor(event.tensor)} is given a null pointer for its TCM buffer")
    return Told("CO101", _exhausted(scene, event.a, event.b, event.c, "a copy uses it"))


def _exhausted(scene: Scene, wanted: int, used: int, site: int, use: str) -> str:
    return (
        f"tcm_malloc of {wanted} bytes{scene.line(site)} returned null, with {used} of {_POOL} bytes in use, and {use} "
        "without a check"
    )


def _not_tcm(scene: Scene, event: Event) -> Told:
    return Told(
        "CO104",
        f"a copy with {scene.tensor(event.tensor)} is given memory that is no block of tcm_malloc",
        "Copy to and from buffers of tcm_malloc.",
        "warning",
    )


def _leak(scene: Scene, event: Event) -> Told:
    times = f" by {event.repeats} calls" if event.repeats > 1 else ""
    return Told("CO102", f"{event.count} bytes of TCM are allocated here{times} and never freed")


def _bad_free(scene: Scene, event: Event) -> Told:
    match event.a:
        case 1:
            return Told(
                "CO116", f"the TCM block of {event.b} bytes{scene.line(event.c)} is freed again{scene.line(event.d)}"
            )
        case 2:
            return Told(
                "CO116", f"tcm_free is given a pointer into a TCM block of {event.b} bytes, which is not its beginning"
            )
        case 3:
            return Told("CO116", "tcm_free is given a null pointer, and no tcm_malloc has returned one", "", "warning")
        case _:
            return Told("CO116", "tcm_free is given a pointer that no tcm_malloc has returned")


def _overrun(scene: Scene, event: Event) -> Told:
    side = "before the beginning" if event.b else "past the end"
    return Told(
        "CO104",
        f"the kernel wrote {side} of the TCM block of {event.a} bytes{scene.line(event.c)}, found when it ended",
    )


# --- tensors and accessors -------------------------------------------------------------------------------------------


def _out_of_bounds(verb: str) -> Callable[[Scene, Event], Told]:
    def sentence(scene: Scene, event: Event) -> Told:
        times = f" by {event.repeats} copies" if event.repeats > 1 else ""
        if event.a < 0:
            where = f"{verb} {scene.tensor(event.tensor)} at offset {event.a}{times}"
            return Told("CO104", f"{where}: nothing is before its beginning")
        first = max(event.a, event.d)
        outside = span(first, event.b) if event.count == event.b - first + 1 else f"{event.count} of them"
        are = "is" if event.count == 1 else "are"
        asked = f"{verb} {span(event.a, event.b)} of {scene.tensor(event.tensor)}{times}"
        return Told("CO104", f"{asked}: {outside} {are} past its end")

    return sentence


def _element_index(scene: Scene, event: Event) -> Told:
    times = f", and {event.repeats - 1} more like it" if event.repeats > 1 else ""
    return Told(
        "CO104",
        f"index {event.a} of dimension {event.c} of {scene.tensor(event.tensor)}, which has {event.b} elements{times}",
        "Check the index against sizes().",
    )


def _in_multicore(scene: Scene, event: Event) -> Told:
    accessor = ("an element accessor", "a read stream accessor", "a write stream accessor")[event.a]
    return Told("CO109", f"{accessor} of {scene.tensor(event.tensor)} in multicore mode")


def _dst_missing(scene: Scene, event: Event) -> Told:
    return Told("CO108", f"operator `{scene.operator}` runs on several cores and never calls get_dst_tensor()")


def _wrong_dtype(scene: Scene, event: Event) -> Told:
    operation = event.text.decode(errors="replace")
    if not operation:
        return Told("CO110", f"an accessor of {_dtype(event.a)} for {scene.tensor(event.tensor)}, of {_dtype(event.b)}")
    if event.a < 0:
        return Told("CO110", f"{operation} of {_dtype(event.b)}: it takes integers")
    return Told("CO110", f"{operation} of {_dtype(event.b)} where {_dtype(event.a)} is needed")


def _wrong_dims(scene: Scene, event: Event) -> Told:
    if event.text == b"sizes":
        return Told("CO117", f"sizes()[{event.a - 1}] of a tensor that has {event.b} dimensions")
    return Told(
        "CO117",
        f"an accessor of {event.a} dimensions for {scene.tensor(event.tensor)}, which has {event.b}",
        "Give accessor<T, N> the number of dimensions that the tensor has.",
    )


def _shapes(scene: Scene, event: Event) -> Told:
    return Told("CO117", f"{event.text.decode(errors='replace')} of tensors of different shapes")


def _shape_function_reads(scene: Scene, event: Event) -> Told:
    return Told(
        "CO107",
        f"the shape function of `{scene.operator}` uses the elements of {scene.tensor(event.tensor)}; it "
        f"runs while the "
        "model is compiled, when there are none",
        "Use the sizes of the arguments alone.",
    )


def _past_end(scene: Scene, event: Event) -> Told:
    verb = "writes" if event.a else "reads"
    many = f"{event.repeats} elements" if event.repeats > 1 else "an element"
    return Told(
        "CO113", f"a stream {verb} {many} past the end of {scene.tensor(event.tensor)}, which has {event.b} elements"
    )


def _closed(scene: Scene, event: Event) -> Told:
    return Told(
        "CO113", f"a stream of {scene.tensor(event.tensor)} is {'written' if event.a else 'read'} after its close()"
    )


def _incoherent(scene: Scene, event: Event) -> Told:
    who = "an element accessor is used while a stream is open on" if event.a else "a stream is opened beside another on"
    also = "" if event.a else ", one of them for writing"
    return Told(
        "CO113",
        f"{who} {scene.tensor(event.tensor)}{also}",
        "Close the one before you use the other, or say with set_accessor_coherence_policy() that the "
        "kernel keeps order.",
        "warning" if event.b else "",
    )


def _many_streams(scene: Scene, event: Event) -> Told:
    return Told(
        "CO113",
        f"{event.a} streams are open at once; from the fifth on they are as slow as element accessors",
        "Close streams that are done with, or use TCM accessors.",
        "warning",
    )


def _operation(scene: Scene, event: Event) -> Told:
    return Told("CO112", event.text.decode(errors="replace"))


def _limit(scene: Scene, event: Event) -> Told:
    what = event.text.decode(errors="replace")
    if what == "dimensions":
        return Told("CO111", f"a tensor of {event.a} dimensions; 8 are the most")
    if what == "negative":
        return Told("CO111", f"a tensor with a dimension of {event.b} elements")
    return Told("CO111", "a tensor of more elements than can be counted")


# --- cores -----------------------------------------------------------------------------------------------------------


def _print(scene: Scene, event: Event) -> Told:
    return Told("CO115", "printf on a core other than core 0")


def _stack(scene: Scene, event: Event) -> Told:
    return Told("CO114", f"kernel `{scene.operator}` has {event.a} bytes on the stack (as a host counts them)")


def _crash(scene: Scene, event: Event) -> Told:
    sites = [int.from_bytes(bytes(event)[Event.text.offset :][i : i + 8], "little") for i in (0, 8)]
    match event.c:
        case 1:
            size, side = event.count, "before its beginning" if event.b < 0 else "past its end"
            distance = -event.b if event.b < 0 else event.b - size
            where = f"{distance} bytes {side}" if distance else "just past its end"
            return Told("CO103", f"an access {where} of the TCM block of {size} bytes{scene.line(sites[0])}")
        case 2:
            return Told(
                "CO103",
                f"an access to the TCM block of {event.count} bytes{scene.line(sites[0])} after its "
                f"tcm_free{scene.line(sites[1])}",
            )
        case 3 if event.d >= 0:
            wanted = f"tcm_malloc of {event.d} bytes{scene.line(event.count)} returned null"
            return Told(
                "CO101", f"{wanted}, for want of room in the pool of {_POOL} bytes, and the kernel uses it unchecked"
            )
        case 3:
            return Told("CO103", "an access through a null pointer")
        case 4:
            return Told("CO114", f"the stack overflows ({event.d} bytes deep on this host)", "", "error")
    if event.a == _SEGMENTATION_FAULT:
        return Told("CO103", f"an access to address {event.b & (1 << 64) - 1:#x}, where there is nothing")
    return Told("CO103", f"the kernel ends with {_SIGNALS.get(event.a, f'signal {event.a}')}")


def _exception(scene: Scene, event: Event) -> Told:
    return Told(
        "CO103", f"the kernel throws an exception that it does not catch: {event.text.decode(errors='replace')}"
    )


def _exit(scene: Scene, event: Event) -> Told:
    return Told("CO103", f"the kernel calls exit({event.a})")


def _assertion(scene: Scene, event: Event) -> Told:
    return Told("CO103", f"assertion failed: {event.text.decode(errors='replace')}")


def _timeout(scene: Scene, event: Event) -> Told:
    return Told("CO103", "the core was still running when its time was over", "Look at the loop in this line.")


_SENTENCES: dict[int, Callable[[Scene, Event], Told]] = {
    _READS: _out_of_bounds("reads"),
    _WRITES: _out_of_bounds("writes"),
    3: _element_index,
    4: _too_small,
    5: _freed_use,
    6: _null_use,
    7: _not_tcm,
    8: _leak,
    9: _bad_free,
    10: _overrun,
    11: _in_multicore,
    12: _dst_missing,
    13: _wrong_dtype,
    14: _wrong_dims,
    15: _shapes,
    16: _shape_function_reads,
    18: _past_end,
    19: _closed,
    20: _incoherent,
    21: _many_streams,
    22: _print,
    23: _crash,
    24: _exception,
    25: _assertion,
    26: _timeout,
    28: _stack,
    29: _operation,
    30: _limit,
    32: _exit,
}
# Of the whole output, which output.py judges: 17 (what was returned is not what was said), 27 (overlap), 31 (what
# looks like memory that nobody has written is copied to a tensor).
RETURNED, OVERLAP, CANARY_COPIED = 17, 27, 31

__all__ = [
    "CANARY_COPIED",
    "NO_TENSOR",
    "OUTPUT",
    "OVERLAP",
    "RETURNED",
    "Scene",
    "Told",
    "finding_at",
    "findings_of",
    "span",
]
