"""Indices and views."""

from __future__ import annotations

from typing import Any

from nkitools.chip.argument_types import Bound
from nkitools.chip.device_numbers import DeviceNumber
from nkitools.chip.tensor import DynamicSlice, NkiTensor
from nkitools.rules.finding import refuse


def ds(start: Bound, size: int) -> DynamicSlice:
    """Return the index of elements ``start`` to ``start + size - 1`` of a dimension: ``tensor[:, nl.ds(start, size)]``.

    ``start``: an integer of at least 0, a register or a scalar. ``size``: an integer; a view of 0 elements is no
    operand. Bounds are checked where the index is used: NK402 outside of the tensor, NK109 for a negative size.

    Errors: NK609. Source: nki.language.ds (NKI 0.6).
    """
    if not (_is_whole(start) or isinstance(start, DeviceNumber)):
        refuse("NK609", f"nl.ds: start must be an integer, a register or a scalar, it is {start!r}")
    if not _is_whole(size):
        refuse("NK609", f"nl.ds: size must be an integer, it is {size!r}")
    return DynamicSlice(start, size)


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def expand_dims(x: NkiTensor, axis: int) -> NkiTensor:
    """Return a view of ``x`` with a new dimension of size 1 at ``axis``; a negative ``axis`` counts from behind.

    ``axis`` -1 puts it last. NK109: an ``axis`` beyond ``x.ndim``, and axis 0 of a tensor in SBUF or PSUM.
    Errors: NK109, NK609. Source: nki.language.expand_dims (NKI 0.6).
    """
    if not isinstance(x, NkiTensor):
        refuse("NK609", f"nl.expand_dims: x must be a tensor, it is {type(x).__name__}")
    return x.expand_dim(axis)
