"""``tensor.rearrange``: split, reorder and merge dimensions by names, as einops does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nkitools.chip.view_checks import Call, infer_sizes, integer, shown, wrong, wrong_call

if TYPE_CHECKING:
    from nkitools.chip.strided_view import StridedView


@dataclass(frozen=True)
class Rearrangement:
    """A rearrange as three steps: split into named dimensions, reorder them, merge the groups."""

    split: tuple[int, ...]
    order: tuple[int, ...]
    merged: tuple[int, ...]


def _groups(tensor: StridedView, pattern: Sequence[Any], what: str) -> list[tuple[str, ...]]:
    if not isinstance(pattern, (tuple, list)):
        wrong_call(tensor, f"{what} takes tuples of names, one is {pattern!r}")
    groups = [(group,) if isinstance(group, str) else group for group in pattern]
    for group in groups:
        if not isinstance(group, (tuple, list)) or not all(isinstance(name, str) for name in group):
            wrong_call(tensor, f"{what} has {group!r}, which is neither a name nor a tuple of names")
    return [tuple(group) for group in groups]


def plan_rearrange(
    tensor: StridedView, source: Sequence[Any], target: Sequence[Any], fixed: Mapping[str, int] | None, call: Call
) -> Rearrangement:
    """Return the three steps of ``rearrange(source, target, fixed)``, which messages show as ``call``."""
    what = shown(call)
    source_groups, target_groups = _groups(tensor, source, what), _groups(tensor, target, what)
    before = [name for group in source_groups for name in group]
    after = [name for group in target_groups for name in group]
    if len(set(before)) != len(before) or sorted(before) != sorted(after):
        wrong(tensor, f"{what} does not name the same dimensions once on both sides")
    if len(source_groups) != len(tensor.shape):
        wrong(tensor, f"{what} has {len(source_groups)} groups for {len(tensor.shape)} dimensions")
    fixed = fixed or {}
    if not isinstance(fixed, Mapping):
        wrong_call(tensor, f"fixed_sizes of {what} must be a dictionary, it is {fixed!r}")
    unknown = [name for name in fixed if name not in before]
    if unknown:
        wrong(tensor, f"{what} is given sizes of {unknown}, which it does not name")
    known = {name: integer(tensor, size, f"fixed_sizes[{name!r}]") for name, size in fixed.items()}
    sizes: dict[str, int] = {}
    for group, total in zip(source_groups, tensor.shape, strict=True):
        wanted = tuple(known.get(name, -1 if len(group) > 1 else total) for name in group)
        sizes.update(zip(group, infer_sizes(tensor, wanted, total, call), strict=True))
    return Rearrangement(
        split=tuple(sizes[name] for name in before),
        order=tuple(before.index(name) for name in after),
        merged=tuple(math.prod(sizes[name] for name in group) for group in target_groups),
    )
