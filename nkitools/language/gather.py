"""Gathering elements of a tile by index."""

from __future__ import annotations

from nkitools.chip.dtypes import DTypeLike
from nkitools.chip.tensor import NkiTensor
from nkitools.isa.gather import nc_n_gather
from nkitools.language.creation import converted, ndarray, sbuf
from nkitools.language.math import check_tile
from nkitools.language.promotion import result_dtype
from nkitools.rules.finding import not_modelled, refuse


def gather_flattened(data: NkiTensor, indices: NkiTensor, axis: int = 0, dtype: DTypeLike | None = None) -> NkiTensor:
    """Return ``data[p, indices[p, i]]`` with flattened free dimensions: a new SBUF tile of the shape of ``indices``.

    It is a nisa.nc_n_gather ("used to be nl.gather_flattened", release notes of SDK 2.27). ``data``, ``indices``: tiles
    in SBUF. ``dtype``: that of ``data`` if not given; another one costs a nisa.tensor_copy. ``indices``: uint32, as
    that instruction needs; one beyond the elements of a partition is refused when the kernel runs (NK402), where SDK
    2.26 gave garbage. ``axis``: 0, whose meaning the reference does not say beside "select from the free dimension of
    data"; others are refused (NK607).
    Errors: NK101, NK102, NK107, NK108, NK110, NK111, NK201, NK301, NK401, NK402, NK607, NK609, NK611.
    Source: nki.language.gather_flattened (NKI 0.6).
    """
    check_tile("gather_flattened", "data", data)
    check_tile("gather_flattened", "indices", indices)
    if isinstance(axis, bool) or not isinstance(axis, int):
        refuse("NK609", f"nl.gather_flattened: axis must be an integer, it is {axis!r}")
    if axis != 0:
        not_modelled(
            f"nl.gather_flattened: axis={axis} is not described by the reference; its default, 0, gathers along the "
            "flattened free dimensions"
        )
    target = result_dtype(dtype, data)
    gathered = ndarray(indices.shape, data.dtype, sbuf)
    nc_n_gather(dst=gathered, data=data, indices=indices)
    return converted(gathered, target)
