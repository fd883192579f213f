"""The judgement of a call's output: complete, written once, and as the shape function declared."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nkitools.chip.element_boxes import boxes_text
from nkitools.chip.numerics import Array
from nkitools.chip.pictures import UNWRITTEN, picture_of
from nkitools.customop.abi import Call, TensorRecord
from nkitools.customop.arguments import array_at, numpy_dtype, shape_problem
from nkitools.customop.errors import DamagedCall
from nkitools.customop.event_context import Context, Message
from nkitools.customop.events import CANARY_COPIED, OVERLAP, RETURNED, finding_at, lost_stores
from nkitools.customop.symbols import Place
from nkitools.rules.finding import Finding

_FILL = (
    "Fill memory before it is read: a block of tcm_malloc, and a tensor of torch::empty or get_dst_tensor(), holds "
    "whatever was there."
)


def output_of(call: Call, memory: mmap.mmap) -> Array:
    """Return a copy of the output."""
    return array_at(memory, call.out.offset, numpy_dtype(call.out.dtype), call.out.shape()).copy()


def shadow_of(call: Call, memory: mmap.mmap) -> Array:
    """Of each element which cores wrote it, a bit each; of a call that left some unwritten, or written by several."""
    return array_at(memory, call.shadow, np.uint8, call.out.shape())


def unwritten_elements(call: Call, memory: mmap.mmap, confirmed: Callable[[], Array] | None) -> Array | None:
    """Return a mask of the output's elements that are never written; None if there are none.

    ``confirmed``: finds them if the shadow alone does not show them.
    """
    if not call.unwritten or _has_other_form(call):
        return None
    missing = shadow_of(call, memory) == 0 if confirmed is None else confirmed()
    return missing if missing.any() else None


def _has_other_form(call: Call) -> bool:
    return any(event.kind == RETURNED for event in call.events[: call.events_used])


def judge_output(
    context: Context, call: Call, memory: mmap.mmap, shape_place: Place, missing: Array | None
) -> list[Finding]:
    """Return CO105 and CO106 with the exact elements, CO107 where the kernel returned another tensor than declared.

    ``missing``: of `unwritten_elements`. Parts of cores that overlap come first: they leave a gap elsewhere.
    """
    if _has_other_form(call):
        return [finding_at(shape_place, _returned(context, call))]
    findings = []
    place = context.symbols.author_place([call.output_site]) or context.home
    if call.overlapping:
        events = call.events[: call.events_used]
        at = next(
            (context.symbols.author_place(event.pcs[: event.frames]) for event in events if event.kind == OVERLAP), None
        )
        findings.append(finding_at(at or place, _overlapping(shadow_of(call, memory), call)))
    if missing is not None:
        finding = finding_at(place, _never_written(call, missing))
        findings.append(replace(finding, picture=picture_of(missing, UNWRITTEN)))
    return findings


def fold_unwritten(context: Context, call: Call, known: list[Finding], missing: Array) -> bool:
    """Say with the finding of stores beyond a tensor which elements these leave unwritten; whether that is so.

    It is where as many elements at least are stored beyond as are missing.
    """
    lost, causes = lost_stores(context, call.events[: call.events_used])
    if lost < np.count_nonzero(missing) or not causes or causes[-1] not in known:
        return False
    cause = causes[-1]
    text = f"{cause.message}; {_unwritten(missing, call)}"
    known[known.index(cause)] = replace(cause, message=text, picture=picture_of(missing, UNWRITTEN))
    return True


def _unwritten(missing: Array, call: Call) -> str:
    return f"{boxes_of_output(missing, call)} {'is' if np.count_nonzero(missing) == 1 else 'are'} never written"


def _never_written(call: Call, missing: Array) -> Message:
    count, size = int(missing.sum()), missing.size
    share = f", {100 * count / size:.2f} % of {size}" if count < size else ", all of it"
    return Message("CO106", f"output {_described(call.out)}: {_unwritten(missing, call)}{share}")


def judge_origin(context: Context, call: Call, output: Array, again: Callable[[], Any]) -> list[Finding]:
    """Return CO106 for elements that a run with other contents of unwritten memory computes differently.

    Among elements written by TCM accessors these are floats that were computed from such memory, and integers of 16 or
    32 bits that were copied from it.
    """
    events = list(call.events[: call.events_used])
    copied = next((event for event in events if event.kind == CANARY_COPIED), None)
    if copied is None:
        return []
    place = context.symbols.author_place(list(copied.pcs[: copied.frames])) or context.home
    said = _described(call.out)
    made = again()
    words = np.dtype(f"u{output.itemsize}")
    most = np.iinfo(words).max
    if made.damage or made.call.out.shape() != output.shape:
        raise DamagedCall(made.damage or "its output has another shape in a second run")
    first, second = output.view(words), output_of(made.call, made.memory).view(words)
    if output.dtype.kind in "iu":
        missing = (first == most) & (second == most // 255 * made.call.canary)
    else:
        missing = ((first & (most >> 1)) == most >> 1) & (first != second)
    if not missing.any():
        return []
    are = "is" if np.count_nonzero(missing) == 1 else "are"
    message = f"output {said}: {boxes_of_output(missing, call)} {are} computed from unwritten memory"
    return [finding_at(place, Message("CO106", message, _FILL))]


def _overlapping(shadow: Array, call: Call) -> Message:
    several = (shadow & (shadow - np.uint8(1))) != 0
    if not several.any():
        raise DamagedCall("it counts elements of several cores, and there are none")
    cores = [core for core in range(8) if (shadow[several] & np.uint8(1 << core)).any()]
    are = "is" if np.count_nonzero(several) == 1 else "are"
    message = f"{boxes_of_output(several, call)} {are} written by several cores ({', '.join(map(str, cores))})"
    return Message("CO105", message)


def _returned(context: Context, call: Call) -> Message:
    said, got = call.out, call.returned
    return Message(
        "CO107",
        f"the shape function of `{context.operator}` says {_described(said)}; the kernel returns {_described(got)}",
    )


def _described(record: TensorRecord) -> str:
    return f"{numpy_dtype(record.dtype)} {list(record.shape())}"


def boxes_of_output(mask: Array, call: Call) -> str:
    """Return ``output[875:882] (7)``: elements in the output's own indices, and how many they are."""
    shape = call.out.shape()
    return f"{boxes_text('output', mask.reshape(shape))} ({np.count_nonzero(mask)})"


def judge_shape_function(context: Context, call: Call, place: Place) -> list[Finding]:
    """CO111 for an output beyond the limits."""
    problem = shape_problem(call.out.shape())
    if not problem:
        return []
    return [
        finding_at(
            place,
            Message(
                "CO111", f"the output of `{context.operator}`, {_described(call.out)}, is beyond the limits: {problem}"
            ),
        )
    ]
