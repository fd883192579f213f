"""Indices and views."""

from __future__ import annotations

from typing import Any

from nkitools.chip.argument_types import Bound
from nkitools.chip.device_numbers import DeviceNumber
from nkitools.chip.tensor import DynamicSlice, NkiTensor
from nkitools.rules.finding import refuse


def ds(start: Bound, size: int) -> DynamicSlice:
    """Return the index of elements ``start`` to ``start + size - 1`` of a dimension.

    ``start`` may be a register or a scalar.

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
    """Return a view with a new dimension of size 1 at ``axis``.

    Errors: NK109, NK609. Source: nki.language.expand_dims (NKI 0.6).
    """
    if not isinstance(x, NkiTensor):
        refuse("NK609", f"nl.expand_dims: x must be a tensor, it is {type(x).__name__}")
    return x.expand_dim(axis)
