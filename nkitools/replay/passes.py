"""Shorter lists of steps, without a change of any bit of the results.

A copy that only moves elements is left out: what reads the copy reads its source, or what makes its source makes it
where the copy would put it. Narrow tiles become float32 once for all of their products
(`nkitools.replay.wide_operands`). Matmuls of neighbouring tiles become one (`nkitools.replay.matmuls`).
"""

from __future__ import annotations

from collections.abc import Sequence

from nkitools.replay.gathers import merged_gathers
from nkitools.replay.matmuls import lean, may_merge, merged
from nkitools.replay.same_bits import SameBits
from nkitools.replay.steps import Root, Step, View
from nkitools.replay.wide_operands import converted_once, widened

_MOST = 20_000  # steps: the passes look at each several times
_WHOLE = ("copy", "transpose", "conversion", "gather")  # kinds of steps that write all of their output
_MOST_FILLS = 8  # of one root that are waited for; in a memory with addresses there may be many
_MOST_MOVED = 256  # steps that are moved to leave out one copy


def shortened(steps: list[Step]) -> list[Step]:
    """Return a list of steps that makes the same of fewer, or the list itself.

    Where a step gives other bits on memory that lies in another way, and so on random values shows that, the list stays
    as it is.
    """
    if len(steps) > _MOST:
        return steps
    wide = widened(steps)
    merges = may_merge(wide)
    found = [each.copied() for each in wide]
    before = {id(one): other for one, other in zip(found, wide, strict=True)}
    found = _without_lost_fills(_read_sources(found))
    found = _write_through(found, with_matmuls=merges)
    found = converted_once(_read_sources(found))
    made = lean(found)
    moves = SameBits()
    if not all(moves.hold(before[id(one)], other) for one, other in zip(found, made, strict=True)):
        return steps
    return merged_gathers(lean(merged(found)) if merges else made)


class _Touches:
    """The steps that read or write each root, by their numbers."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.writers: dict[Root, list[int]] = {}
        self.readers: dict[Root, list[int]] = {}
        for number, step in enumerate(steps):
            for place, view in step.views():
                numbers = (self.writers if place in step.outputs else self.readers).setdefault(view.root, [])
                if not numbers or numbers[-1] != number:
                    numbers.append(number)

    def of(self, root: Root) -> list[int]:
        """Return all of them, in order."""
        return sorted({*self.writers.get(root, ()), *self.readers.get(root, ())})


def _read_sources(steps: list[Step]) -> list[Step]:
    """Leave copies out whose source does not change while the copy is read."""
    touches = _Touches(steps)
    gone: set[int] = set()
    for number, step in enumerate(steps):
        if step.kind not in ("copy", "transpose"):
            continue
        target, source = step.arguments
        if step.kind == "transpose":
            source = View(source.root, source.offset, source.shape[::-1], source.strides[::-1], source.dtype)
        readers = touches.readers.get(target.root, [])
        if not target.root.is_own or not target.is_whole or touches.writers[target.root] != [number] or not readers:
            continue
        if any(number < each <= readers[-1] for each in touches.writers.get(source.root, ())):
            continue
        if source.root is target.root or not all(_may_read(steps[each], step, target, source) for each in readers):
            continue
        for each in readers:
            _put_through(steps[each], target, source)
        touches.readers[source.root] = sorted({*touches.readers[source.root], *readers})
        touches.readers[target.root] = []
        gone.add(number)
    return [step for number, step in enumerate(steps) if number not in gone]


def _may_read(reader: Step, copy: Step, target: View, source: View) -> bool:
    """Return whether a step gives the same bits, and not later, where it reads a copy's source."""
    if reader.masks or reader.kind == "chosen" or any(view.root is target.root for view in reader.writes()):
        return False
    for _, view in reader.views():
        if view.root is not target.root:
            continue
        moved = through(view, target, source)
        if moved is None:
            return False
        if reader.kind == "matmul":
            if moved.dtype.itemsize not in moved.strides:
                return False  # not BLAS's
        elif copy.kind == "transpose" or view.strides[-1] != view.dtype.itemsize:
            return False  # a dense tile in the cache is read faster than elements far apart
        elif reader.kind not in ("copy", "conversion", "gather") and view.shape[-1] * view.dtype.itemsize < 256:
            return False
    return True


def _put_through(step: Step, whole: View, other: View) -> None:
    """Let a step work in ``other`` where it has worked in ``whole``."""
    for number, view in list(step.views()):
        if view.root is whole.root:
            step.arguments[number] = through(view, whole, other)


def through(view: View, whole: View, other: View) -> View | None:
    """Return the elements of ``other`` that lie where a view's lie in ``whole``, its root; None for no matrix."""
    if len(view.shape) != 2 or len(whole.shape) != 2 or len(other.shape) != 2 or view.dtype != whole.dtype:
        return None
    size, width = whole.dtype.itemsize, whole.shape[1]
    row, column = divmod(view.offset // size, width)
    strides = []
    for count, stride in zip(view.shape, view.strides, strict=True):
        if stride % size or stride < 0:
            return None
        down, right = divmod(stride // size, width)
        if count > 1 and right and column + right * (count - 1) >= width:
            return None  # it wraps around the end of a row
        strides.append(down * other.strides[0] + right * other.strides[1])
    offset = other.offset + row * other.strides[0] + column * other.strides[1]
    return View(other.root, offset, view.shape, tuple(strides), view.dtype)


def _without_lost_fills(steps: list[Step]) -> list[Step]:
    """Leave out fills of memory that the next step which meets it writes whole, without a look at what it holds."""
    if not any(step.kind == "fill" for step in steps):
        return steps
    waiting: dict[Root, dict[int, View]] = {}  # the fills that nothing has met, by number
    gone: set[int] = set()
    for number, step in enumerate(steps):
        whole = step.writes()[0] if step.kind in _WHOLE or (step.kind == "matmul" and step.overwrites) else None
        is_lost = whole is not None and all(view.root is not whole.root for view in step.sources())
        for _, view in step.views():
            for fill, filled in list(waiting.get(view.root, {}).items()):
                if filled.meets(view):
                    del waiting[view.root][fill]
                    if is_lost and filled == whole:
                        gone.add(fill)
        if step.kind == "fill":
            mine = waiting.setdefault(step.arguments[0].root, {})
            mine[number] = step.arguments[0]
            if len(mine) > _MOST_FILLS:
                del mine[next(iter(mine))]
    return [step for number, step in enumerate(steps) if number not in gone]


def _write_through(steps: list[Step], *, with_matmuls: bool) -> list[Step]:
    """Leave copies out whose source is made for them: it is made in their place.

    ``with_matmuls``: also where matmuls make it, which add faster to a dense tile, and can be merged in a larger one.
    """
    touches = _Touches(steps)
    gone: set[int] = set()
    for number in reversed(range(len(steps))):
        step = steps[number]
        if step.kind != "copy":
            continue
        target, source = step.arguments
        root = source.root
        if not root.is_own or not source.is_whole or root is target.root:
            continue
        around = [each for each in touches.of(root) if each not in gone]
        if not with_matmuls and any(steps[each].kind == "matmul" for each in around) and not target.is_whole:
            continue
        if len(around) > _MOST_MOVED or around[-1] != number:
            continue
        if not all(_may_move(steps[each], source, target) for each in around[:-1]):
            continue
        if _is_met(steps, range(around[0], number), gone, target):
            continue
        for each in around[:-1]:
            _put_through(steps[each], source, target)
            touches.writers.setdefault(target.root, []).append(each)
        gone.add(number)
    return [step for number, step in enumerate(steps) if number not in gone]


def _may_move(step: Step, whole: View, other: View) -> bool:
    """Return whether a step may work in ``other`` where it has worked in ``whole``."""
    if step.masks or step.kind in ("transpose", "chosen"):
        return False
    views = [view for _, view in step.views() if view.root is whole.root]
    return all(view.strides[-1] == view.dtype.itemsize and through(view, whole, other) is not None for view in views)


def _is_met(steps: list[Step], numbers: range, gone: set[int], target: View) -> bool:
    """Return whether one of these steps reads or writes elements of a view."""
    return any(
        view.root is target.root and view.meets(target)
        for number in numbers
        if number not in gone
        for _, view in steps[number].views()
    )
