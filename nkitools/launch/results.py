"""The results of a kernel on their way out: in HBM, and all of them written."""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Iterable
from contextlib import nullcontext
from typing import Any, TypeAlias

import numpy as np

from nkitools.chip.argument_types import Argument
from nkitools.chip.element_boxes import boxes_text
from nkitools.chip.layout import LAYOUTS
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.memory_region import MEMORY_NAMES
from nkitools.chip.numerics import Array
from nkitools.chip.own_indices import own_boxes
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe, name_of
from nkitools.launch.nested_arguments import parts_of
from nkitools.record.columns import Columns
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.record.tensor_names import is_grid, tensor_of
from nkitools.rules.finding import refuse, report

_HBM = (MemoryRegion.shared_hbm, MemoryRegion.private_hbm)
_TILE = 512  # elements of the longest side of a tile that a rounded number of tiles leaves out
_NAMES = [MEMORY_NAMES[memory] for memory in _HBM]


# What a kernel returns; a generator or coroutine where its function is none.
Result: TypeAlias = "Argument | Generator[Any, Any, Any] | Coroutine[Any, Any, Any]"


def tensors_of(result: Argument) -> list[NkiTensor]:
    """Return the tensors of a result, also those inside containers, each once."""
    if result.__class__ is NkiTensor:  # as most kernels return
        return [result]
    single = tensor_of(result)
    if single is not None and not is_grid(result):
        return [single]
    found: dict[tuple[int, int, int], NkiTensor] = {}
    for _, part in parts_of(result):
        tensor = tensor_of(part)
        if is_grid(part):
            refuse("NK609", f"the kernel returns {part.words()}", remedy="Return its .data: results are tensors.")
        if tensor is not None:
            found.setdefault((tensor.storage.id, tensor.layout.id, tensor.byte_offset), tensor)
    return list(found.values())


def check_completed(result: Result) -> None:
    """NK601 for a generator or coroutine, whose body has not run."""
    if isinstance(result, (Generator, Coroutine)):
        result.close()
        refuse(
            "NK601", f"the kernel returns a {type(result).__name__}: a function with `yield` or `async` is no kernel"
        )


def check_results(
    tensors: list[NkiTensor], record: Record, reporter: Reporter, *, on_chip: bool = False, is_modern: bool = True
) -> None:
    """NK201 for a result that is not in HBM (unless it may be ``on_chip``), NK403 for elements that nothing wrote.

    NK401 and NK405 for elements computed from undefined ones, NK621 for a result of a modern kernel in private HBM.
    """
    for tensor in tensors:
        memory = tensor.storage.memory
        if memory not in _HBM and not on_chip:
            message = f"the kernel returns {describe(tensor)}; results must be in HBM"
            remedy = (
                f"Copy{name_of(tensor)} into an nl.ndarray(..., buffer=nl.shared_hbm) with nisa.dma_copy and return "
                "that, or make it with buffer=nl.shared_hbm."
            )
            known = record.storages.get(tensor.storage.id)
            with reporter.placed(record.sites[known.site]) if known is not None else nullcontext():
                refuse("NK201", message, about=(tensor,), remedy=remedy)
        missing = None if tensor.storage.full else tensor.storage.unwritten(tensor.layout, tensor.byte_offset)
        if missing is not None:
            from nkitools.record.undefined_elements import report_result

            tensor.storage.poison_unwritten()
            if not report_result(record, tensor, missing) and "NK403" not in tensor.storage.excused:
                _report_unwritten(tensor, missing, record, reporter)
        elif is_modern and memory is MemoryRegion.private_hbm and not _is_given(tensor, record):
            _report_private(tensor, record, reporter)


def check_effect(results: list[Any], inputs: Iterable[int], record: Record, reporter: Reporter) -> None:
    """Report a kernel without effect (NK408): no program returns a tensor, writes an input (by its id) or prints.

    Its writes to its own tensors in HBM are lost then. Not reported if there is an error.
    """
    if record.prints or reporter.findings.has_error:
        return
    if any(tensors_of(result) for result in results):
        return
    written = Columns(record).written_storages
    lost = [number for number in sorted(written) if record.storages[number].memory in _NAMES]
    if not lost or not written.isdisjoint(inputs):
        return
    storage, name = record.storages[lost[-1]], record.name_of(lost[-1])
    whose = f"`{name}` ({storage.memory}" if name else f"a tensor ({storage.memory}"
    with reporter.placed(record.sites[storage.site]):
        report(
            "NK408",
            f"the kernel returns nothing: {whose}, {storage.dtype} {list(storage.shape)}), which it writes, is lost",
            facts={"tensor": name, "memory": storage.memory, "dtype": storage.dtype, "shape": storage.shape},
        )


def _is_given(tensor: NkiTensor, record: Record) -> bool:
    return record.storages[tensor.storage.id].is_given


def _report_private(tensor: NkiTensor, record: Record, reporter: Reporter) -> None:
    with reporter.placed(record.sites[tensor.storage.site]):
        message = (
            f"output {describe(tensor)} is in private HBM; the documents say that using nl.hbm for results fails to "
            "compile, and AWS's own examples do it"
        )
        report("NK621", message, about=(tensor,), remedy="Allocate it with buffer=nl.shared_hbm.")


def _report_unwritten(tensor: NkiTensor, missing: Array, record: Record, reporter: Reporter) -> None:
    from nkitools.chip.pictures import UNWRITTEN, picture_of

    count = np.count_nonzero(missing)
    cause, remedy = _cause_of_unwritten(tensor, missing, record)
    with reporter.placed(record.sites[tensor.storage.site]):
        report(
            "NK403",
            f"output {describe(tensor)}:{_boxes(tensor, missing)} never written ({count} of {missing.size} elements)",
            about=(tensor,),
            remedy=remedy,
            picture=lambda: picture_of(missing, UNWRITTEN),
            facts={"unwritten": int(count), "elements": missing.size, "cause": cause},
        )


def _cause_of_unwritten(tensor: NkiTensor, missing: Array, record: Record) -> tuple[str, str]:
    """Return the cause of missing elements, as the fact ``cause``, and the remedy; '' for the rule's own."""
    from nkitools.record.empty_loops import loop_of_no_turn, return_in_loop

    programs = len({program for _, program in record.programs})
    if programs > 1 and tensor.buffer is MemoryRegion.private_hbm:
        remedy = f"Allocate it in nl.shared_hbm: each of the {programs} programs has a private_hbm of its own."
        return "private memory", remedy
    if missing.all():
        return "nothing writes", loop_of_no_turn(record, tensor.storage.id) or (
            "Nothing writes to it: store the result into this tensor, return the one that is written, and look whether "
            "the loops and branches around the store run."
        )
    # A kernel that knows how many programs there are divides its work by them: one program does it all.
    if programs <= 1 and record.asks_for_program and not record.asks_for_count:
        return "one program", (
            "One program alone has run, and the kernel asks for nl.program_id: launch it with as many programs as it "
            "has tiles for (kernel[2]), or loop over the tiles."
        )
    if remedy := return_in_loop(record, tensor.storage.id):
        return "ends early", remedy
    line = _line_of_same_stores(tensor, record)
    if line:
        return "same elements", (
            f"The store at line {line} goes to the same elements each time: index the output with the counter of the "
            "loop, or with the program."
        )
    if record.device_loops:
        loop = record.device_loops[-1]
        line, times = record.sites[loop.path[-1]].line, f"{loop.turns} time{'s' if loop.turns != 1 else ''}"
        return "device loop", (
            f"The loop on the device at line {line} has turned {times}: look at the register that ends it, and at the "
            "index of the store, which has to come from the counter."
        )
    if (tail := _tail(missing)) is not None:
        return "last tile", _remedy_of_short_store(tensor, record, *tail)
    if _is_rectangle(missing):
        return "block", (
            "A whole block is left out: look at the branch, the program of the grid or the rank that should write it, "
            "and whether two stores go to the same block."
        )
    return "gaps", "The stores leave gaps: look at the step, the mask and the index of the store."


def _line_of_same_stores(tensor: NkiTensor, record: Record) -> int:
    """Return the line that stored several times from the same element of a tensor on; 0 if there is none."""
    columns = Columns(record)
    writes = columns.writes & (columns.storages == tensor.storage.id)
    seen = set[tuple[int, int]]()
    places = zip(columns.positions[writes].tolist(), columns.byte_offsets[writes].tolist(), strict=True)
    for position, offset in places:
        site = int(columns.sites[position])
        if (site, offset) in seen:
            return record.sites[site].line
        seen.add((site, offset))
    return 0


def _boxes(tensor: NkiTensor, missing: Array) -> str:
    """Return the elements of a mask in words, as boxes of the tensor, or of the view if its dtype differs."""
    return own_boxes(tensor, missing) or f" {boxes_text('', missing)}"


def _remedy_of_short_store(tensor: NkiTensor, record: Record, axis: int, first: int) -> str:
    """Return that the last tile is stored in part, where the missing elements begin within a tile; else ''."""
    columns = Columns(record)
    writes = np.flatnonzero(columns.writes & (columns.storages == tensor.storage.id))
    views = [LAYOUTS[number] for number in columns.layouts[writes].tolist()]
    heights = [each.shape[axis] for each in views if len(each.shape) == tensor.ndim]
    if not heights or first % max(heights) == 0:
        return ""
    line = record.sites[int(columns.sites[columns.positions[writes[-1]]])].line
    return (
        f"The last tile is stored in part, up to {first} of {tensor.shape[axis]} in dimension {axis}: mend the mask "
        f"or the bound of the store at line {line}, or the shape that the output is made with."
    )


def _tail(missing: Array) -> tuple[int, int] | None:
    """Return the dimension whose end is missing, across all others, as after whole tiles, and where that begins."""
    for axis in range(missing.ndim):
        others = tuple(each for each in range(missing.ndim) if each != axis)
        places: Array = np.asarray(missing.all(axis=others))
        first = int(np.argmax(places))
        if first and places[first:].all() and places.sum() * (missing.size // places.size) == missing.sum():
            return (axis, first) if missing.shape[axis] - first <= _TILE else None
    return None


def _is_rectangle(missing: Array) -> bool:
    """Return whether the missing elements are one box of the tensor."""
    sides = [np.flatnonzero(missing.any(axis=tuple(set(range(missing.ndim)) - {axis}))) for axis in range(missing.ndim)]
    return bool(missing[tuple(slice(side[0], side[-1] + 1) for side in sides)].all())
