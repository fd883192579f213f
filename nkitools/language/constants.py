"""Constants that are compiled into a kernel: tensors in HBM that are there before it runs."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from nkitools.chip.core import Core, current_core
from nkitools.chip.dtypes import DType, DTypeLike, UnknownDType, as_dtype, float8_e8m0fnu, uint8
from nkitools.chip.memory import MemoryRegion, Storage
from nkitools.chip.numerics import Array, cast
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.isa.move import dma_copy
from nkitools.language.creation import ndarray, sbuf
from nkitools.language.math import check_tile
from nkitools.language.promotion import known_dtype
from nkitools.rules.finding import refuse, report

# "Supported element types" (nl.shared_constant, NKI 0.6); the last four are "not yet tested end-to-end on hardware".
SUPPORTED = (
    "float32", "float16", "bfloat16", "int32", "int16", "int8", "uint32", "uint16", "uint8", "float8_e4m3fn",
    "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4", "tfloat32",
)  # fmt: skip


def shared_constant(constant: Array | str | os.PathLike[str]) -> NkiTensor:
    """Return a tensor in shared HBM with the values, shape and dtype that ``constant`` has at this moment.

    ``constant``: a NumPy array of at least one dimension and element, or the path of a ``.npy`` file. Dtypes: float32,
    float16, bfloat16, int32, int16, int8, uint32, uint16, uint8, float8_e4m3fn, float8_e5m2, float8_e8m0fnu and packed
    ones; others are NK301. A file can hold only NumPy's own dtypes. The programs of a launch share their k-th constant,
    which must be the same in all (NK208). Loading it costs what a copy out of HBM costs, making it costs nothing.
    Errors: NK208, NK301, NK609, NK611. Source: nki.language.shared_constant (NKI 0.6).
    """
    core = current_core("nl.shared_constant")
    values = _values(constant)
    dtype = _element_type(values, from_file=not isinstance(constant, np.ndarray))
    number = core.constant_count
    core.constant_count += 1
    storage = _embedded(core, number, values, dtype)
    if storage.dtype is not dtype or storage.shape != values.shape or storage.array.tobytes() != values.tobytes():
        refuse(
            "NK208",
            f"nl.shared_constant: constant {number} of this program, {dtype} {list(values.shape)}, is not that of "
            "another; the cores of a launch share their constants",
            remedy="Make the same constants in the same order in every program, and choose between them afterwards.",
        )
    return NkiTensor.whole(storage)


def shared_identity_matrix(n: int, dtype: DTypeLike = uint8, dst: NkiTensor | None = None) -> NkiTensor:
    """Return the identity matrix [n, n] in SBUF: a new tile, or ``dst`` (SBUF, [n, n]), which is filled and returned.

    ``n``: up to 128. ``dtype``: any but packed ones and float8_e8m0fnu, which has no 0; ``dst`` keeps its own dtype, to
    which the same applies.
    AWS's sentence that it "has the same behavior" as shared_constant, which gives a tensor in HBM, and is "in SBUF", is
    taken so: the matrix is a constant in HBM, one for each size and dtype ("the compiler will reuse all the identity
    matrices"), and is brought into the tile by one nisa.dma_copy. AWS's page has ``dst`` in the signature only.
    Errors: NK101, NK109, NK201, NK301, NK609, NK611. Source: nki.language.shared_identity_matrix (NKI 0.6).
    """
    core = current_core("nl.shared_identity_matrix")
    size = _size(n)
    kind = known_dtype(dtype)
    for each in (kind, kind if dst is None else _checked(dst, size).dtype):
        if each.kind == "packed" or each is float8_e8m0fnu:
            refuse("NK301", f"nl.shared_identity_matrix: {each} has no zero")
    tile = ndarray((size, size), kind, sbuf) if dst is None else dst
    if size > core.generation.partitions:
        tile.storage.excused |= {"NK101"}
        limit = core.generation.partitions
        message = f"nl.shared_identity_matrix: n is {size}; a NeuronCore has {limit} partitions"
        facts = {"instruction": "shared_identity_matrix", "argument": "n", "extent": size, "limit": limit}
        report("NK101", message, about=(tile,), facts=facts)
    identity = _embedded(core, (size, kind), cast(np.eye(size, dtype=np.float32), kind), kind)
    dma_copy(dst=tile, src=NkiTensor.whole(identity))
    return tile


def _embedded(core: Core, key: int | tuple[int, DType], values: Array, dtype: DType) -> Storage:
    """Return the storage of a constant, made by the first program that asks for it."""
    storage = core.shared.constants.get(key)
    if storage is None:
        own = np.array(values, dtype.dtype, order="C")
        storage = Storage(own.shape, dtype, MemoryRegion.shared_hbm, array=own, site=core.record.site())
        core.shared.constants[key] = storage
        core.record.allocated(storage)
    return storage


def _values(constant: Array | str | os.PathLike[str]) -> Array:
    """NK609: the array that was given, or that the file holds, with at least one dimension and element."""
    values = _read(constant) if isinstance(constant, (str, os.PathLike)) else constant
    if not isinstance(values, np.ndarray):
        refuse(
            "NK609",
            f"nl.shared_constant: constant must be a NumPy array or the path of a .npy file, it is "
            f"{type(values).__name__}",
        )
    if values.ndim == 0 or values.size == 0:
        refuse("NK609", f"nl.shared_constant: every size must be at least 1; the shape is {list(values.shape)}")
    return values


def _read(path: str | os.PathLike[str]) -> Any:
    try:
        with open(path, "rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)  # a pickle or an archive is a ValueError
    except (OSError, ValueError, EOFError) as error:
        refuse("NK609", f"nl.shared_constant: {os.fspath(path)!r} is not a .npy file that can be read: {error}")


def _element_type(values: Array, *, from_file: bool) -> DType:
    """NK301: one of the dtypes of constants."""
    try:
        dtype = as_dtype(values.dtype)
    except UnknownDType:
        dtype = None
    if dtype is not None and dtype.name in SUPPORTED:
        return dtype
    lost = from_file and values.dtype.kind == "V"
    return refuse(
        "NK301",
        f"nl.shared_constant: there are no constants of {values.dtype if dtype is None else dtype}",
        remedy="A .npy file does not keep this dtype; pass np.load(path).view(dtype) instead."
        if lost
        else f"Convert it to one of {', '.join(SUPPORTED)} first.",
    )


def _size(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        refuse("NK609", f"nl.shared_identity_matrix: n must be an integer, at least 1; it is {n!r}")
    return int(n)


def _checked(dst: NkiTensor, size: int) -> NkiTensor:
    """NK609, NK201, NK109: a tile for the matrix."""
    check_tile("shared_identity_matrix", "dst", dst)
    if dst.buffer is not MemoryRegion.sbuf:
        refuse("NK201", f"nl.shared_identity_matrix: `dst` must be in SBUF, it is {describe(dst)}", about=(dst,))
    if dst.shape != (size, size):
        wanted = f"[{size}, {size}]"
        refuse("NK109", f"nl.shared_identity_matrix: `dst` must be {wanted}, it is {describe(dst)}", about=(dst,))
    return dst
