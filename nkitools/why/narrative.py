"""A backward slice as text: one line for each source line, with the loop turns folded together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import numpy as np

from nkitools.chip.element_boxes import boxes_text
from nkitools.chip.numerics import Array
from nkitools.record.element_slice import Slice, SlicePart, SliceStep
from nkitools.rules.shown_text import shown_file

_FEW = 4  # values of a tensor that are shown
_TERMS = 3  # terms of a sum that are shown


def lines_of(found: Slice) -> list[str]:
    """Return a slice as lines: the asked elements, the instructions from the last one back, the ends of the walk."""
    lines = [_shown(found.asked)]
    if found.without_values:
        lines.append(f"  without values: {found.without_values}")
    if not found.is_exact:
        lines.append(
            "  an index on the device chooses elements, and its values are not known: all that it may have chosen"
        )
    for steps in _folded(found.steps):
        lines += _group_lines(steps)
    for what, ends in (
        ("argument", found.arguments),
        ("constant", found.constants),
        ("never written", found.unwritten),
    ):
        lines += [f"  {what}: {part.text()}{_rank(part)} ({_count(part)})" for part in ends]
    return lines


def _folded(steps: Sequence[SliceStep]) -> list[list[SliceStep]]:
    """Return the steps grouped by line, instruction, program and rank, in the order of the walk back."""
    found: dict[tuple[object, ...], list[SliceStep]] = {}
    for step in steps:
        one = step.instruction
        found.setdefault((one.file, one.line, one.name, one.program, one.rank), []).append(step)
    return list(found.values())


def _group_lines(steps: Sequence[SliceStep]) -> list[str]:
    one = steps[0].instruction
    where = [f"rank {one.rank}"] if one.rank is not None else []
    where += [f"program {', '.join(map(str, one.program))}"] if any(one.program) else []
    where += [_turns(steps)] if one.loops else []
    head = (
        f"  {shown_file(one.file, whole=False)}:{one.line}: {one.name}{' (' + '; '.join(where) + ')' if where else ''}"
    )
    made = _joined([part for step in steps for part in step.results])
    read = _joined([part for step in steps for part in step.operands])
    if made:
        head += f" made {made}"
    if read:
        head += f" of {read}"
    lines = [head]
    return [*lines, *_terms(steps), *_marks(steps)]


def _terms(steps: Sequence[SliceStep]) -> list[str]:
    """Return a line with the largest terms of a sum, over all turns that add to one element; [] if it is no sum."""
    sums = [(step, step.terms) for step in reversed(steps) if step.terms is not None]
    made = {part.indices.tobytes() for step in steps for part in step.results}
    if len(sums) != len(steps) or len(made) != 1 or sum(terms.size for _, terms in sums) < _TERMS:
        return []
    every = [(value, at, step) for step, terms in sums for at, value in enumerate(terms[: _own(step, terms)].tolist())]
    every.sort(key=lambda each: -abs(each[0]) if each[0] == each[0] else -np.inf)
    shown = [f"{value:.4g} (number {at}{_of_turn(step, steps)})" for value, at, step in every[:_TERMS]]
    return [f"    a sum of {len(every)} terms, the largest {', '.join(shown)}"]


def _own(step: SliceStep, terms: Array) -> int:
    """Return the number of terms without the result's earlier value, which is the last term if it is there."""
    return terms.size - any(part.operand in {one.operand for one in step.results} for part in step.operands)


def _of_turn(step: SliceStep, steps: Sequence[SliceStep]) -> str:
    changing = [
        f"{name}={value}"
        for name, value in step.instruction.loops.items()
        if len({one.instruction.loops.get(name) for one in steps}) > 1
    ]
    return f" of turn {', '.join(changing)}" if changing else ""


def _marks(steps: Sequence[SliceStep]) -> list[str]:
    """Return a line for each kind of mark, with the first loop turn that has it."""
    lines, seen = [], set[str]()
    for step in reversed(steps):
        for mark in step.marks:
            kind = mark.split(":")[0]
            if kind in seen:
                continue
            seen.add(kind)
            turn = ", ".join(f"{name}={value}" for name, value in step.instruction.loops.items())
            lines.append(f"    {f'turn {turn}: ' if turn else ''}{mark}")
    return lines + _brought(steps, seen)


def _brought(steps: Sequence[SliceStep], seen: set[str]) -> list[str]:
    """Return a line about the first loop turn that read NaN or infinity; [] for one turn, or if a mark is shown."""
    if len(steps) < 2 or seen:
        return []
    for step in reversed(steps):
        for part in step.operands:
            values = part.values
            if values is None or np.asarray(values).dtype.names is not None:
                continue
            bad = np.flatnonzero(~np.isfinite(np.asarray(values).astype(np.float64).reshape(-1)))
            if bad.size:
                turn = ", ".join(f"{name}={value}" for name, value in step.instruction.loops.items())
                value = np.asarray(values).reshape(-1)[bad[0]]
                at = ", ".join(map(str, part.indices[bad[0]].tolist()))
                return [f"    turn {turn} brought the {value} from {part.tensor or 'a tensor'}[{at}]"]
    return []


def _turns(steps: Sequence[SliceStep]) -> str:
    """Return the loop counters of some steps, such as ``turns m=0, k=0..7``."""
    found = []
    for name in steps[0].instruction.loops:
        values = sorted({step.instruction.loops[name] for step in steps if name in step.instruction.loops})
        found.append(f"{name}={_stretch(values)}")
    return f"turn{'s' if len(steps) > 1 else ''} {', '.join(found)}"


def _stretch(values: Sequence[int]) -> str:
    """Return ascending numbers as text: ``0..7``, ``0..8 by 2`` or ``0, 2, 5``."""
    steps = {later - earlier for earlier, later in pairwise(values)}
    if len(values) > 2 and len(steps) == 1:
        step = steps.pop()
        return f"{values[0]}..{values[-1]}" + (f" by {step}" if step != 1 else "")
    return ", ".join(map(str, values[:8])) + (", ..." if len(values) > 8 else "")


def _joined(parts: Sequence[SlicePart]) -> str:
    """Return elements as text, tensor by tensor; with their values if these are few."""
    ordered = sorted(parts, key=_tensor)
    found = []
    for _, group in groupby(ordered, key=_tensor):
        mine = list(group)
        mask = np.zeros(mine[0].shape, np.bool_)
        for part in mine:
            mask[tuple(part.indices.T)] = True
        text = boxes_text(mine[0].tensor or "a tensor", mask)
        found.append(text + (_values(mine[0]) if len(mine) == 1 else ""))
    return ", ".join(found)


def _tensor(part: SlicePart) -> tuple[str, tuple[int, ...], int]:
    return part.tensor, part.shape, -1 if part.rank is None else part.rank


def _values(part: SlicePart) -> str:
    if part.values is None:
        return ""
    values = np.asarray(part.values).reshape(-1)
    if values.dtype.names is not None or not values.size:
        return ""
    if values.size <= _FEW:
        return " = " + ", ".join(
            f"{each:.6g}" if values.dtype.kind not in "iub" else str(each) for each in values.tolist()
        )
    return ""


def _shown(part: SlicePart) -> str:
    return f"{part.text()}{_values(part)}{_rank(part)}"


def _rank(part: SlicePart) -> str:
    return "" if part.rank is None else f" of rank {part.rank}"


def _count(part: SlicePart) -> str:
    count = len(part.indices)
    return f"{count} element{'s' if count != 1 else ''}"
