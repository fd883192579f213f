"""Creating tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nkitools.chip.argument_types import Memory, Number, Shape
from nkitools.chip.core import CORE, current_core
from nkitools.chip.dtypes import DType, DTypeLike
from nkitools.chip.memory import ON_CHIP, MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.isa.move import dma_copy, memset, tensor_copy
from nkitools.language.promotion import known_dtype
from nkitools.language.repeated_tiles import keep_tile, tile_again
from nkitools.record.source_sites import author_frame
from nkitools.rules.catalogue import removed_memory
from nkitools.rules.finding import refuse, report

sbuf = MemoryRegion.sbuf
psum = MemoryRegion.psum
private_hbm = hbm = MemoryRegion.private_hbm
shared_hbm = MemoryRegion.shared_hbm

_FILL_CHUNK = 8192


def region(buffer: Memory) -> MemoryRegion:
    """Return a memory by its object, in the legacy dialect also by its name (modern: NK608); NK609 for others."""
    if isinstance(buffer, MemoryRegion):
        return buffer
    name = "private_hbm" if isinstance(buffer, str) and buffer == "hbm" else buffer
    if not isinstance(name, str) or name not in MemoryRegion.__members__:
        refuse("NK609", f"buffer must be nl.sbuf, nl.psum, nl.hbm, nl.private_hbm or nl.shared_hbm, it is {buffer!r}")
    core = CORE.get()
    if core is None or not core.dialect.memory_names_as_text:
        message, remedy = removed_memory(buffer)
        report("NK608", message, remedy=remedy)
    return MemoryRegion[name]


def checked_shape(shape: Any, what: str) -> tuple[int, ...]:
    """Return a shape as a tuple of positive integers; NK609 for others."""
    if type(shape) is tuple and shape:
        for size in shape:
            if type(size) is not int or size < 1:
                break
        else:
            return shape
    sizes = tuple(shape) if isinstance(shape, (Sequence, np.ndarray)) and not isinstance(shape, str) else (shape,)
    for size in sizes:
        if isinstance(size, bool) or not hasattr(size, "__index__"):
            refuse("NK609", f"{what}: a shape is a tuple of integers, it is {shape!r}")
    found = tuple(size.__index__() for size in sizes)
    if not found or any(size < 1 for size in found):
        refuse("NK609", f"{what}: every size of a shape must be at least 1, it is {found}")
    return found


def _checked_address(address: tuple[int, ...] | None, memory: MemoryRegion) -> tuple[int, ...] | None:
    if address is None:
        return None
    whole = isinstance(address, (tuple, list)) and all(hasattr(each, "__index__") for each in address)
    if not whole or len(address) not in ((2,) if memory in ON_CHIP else (1, 2)):
        form = "(partition, byte offset)" if memory in ON_CHIP else "(byte offset,)"
        refuse("NK609", f"ndarray: address must be {form}, it is {address!r}")
    return tuple(each.__index__() for each in address)


def ndarray(
    shape: Shape, dtype: DTypeLike, buffer: Memory = sbuf, name: str | None = "", address: tuple[int, ...] | None = None
) -> NkiTensor:
    """Return a new tensor, not initialised: reading an element before it is written is NK401.

    ``shape``: integers from 1 on. On chip at least 2-D (NK110), partition dimension first; ``[1]`` is made ``(1, 1)``,
    as AWS's docstrings of nisa.register_load and register_store allocate scalars so. ``buffer``: nl.sbuf, nl.psum,
    nl.hbm (private) or nl.shared_hbm; a name in quotes is NK608. The programs of a launch share shared HBM: the k-th
    tensor there is the same one in all of them (NK208 if the shapes or dtypes differ). ``name`` is for messages.
    ``address``: (partition, byte offset) of an SBUF or PSUM tensor; from NKI 0.7 on (byte offset,) of a tensor in HBM.
    Tensors at the same bytes of one memory share them.
    Errors: NK101, NK110, NK207, NK208, NK301, NK402, NK607, NK608, NK609, NK611. Source: nki.language.ndarray (NKI
    0.7).
    """
    core = current_core("nl.ndarray")
    frame = author_frame(2) if name == "" and address is None else None
    if frame is not None and shape.__class__ is tuple:
        tile = tile_again(core, frame, shape, dtype, buffer)  # type: ignore[arg-type]  # others are not found
        if tile is not None:
            return tile
    memory = region(buffer)
    if name is not None and not isinstance(name, str):
        refuse("NK609", f"nl.ndarray: name must be a string, it is {type(name).__name__}")
    sizes = checked_shape(shape, "nl.ndarray")
    if memory in ON_CHIP and sizes == (1,):
        sizes = (1, 1)
    if memory in ON_CHIP and len(sizes) < 2:
        message = (
            f"nl.ndarray: a tensor in {memory.name.upper()} has at least 2 dimensions (partition and free), its shape "
            f"is {sizes}"
        )
        refuse("NK110", message, remedy=f"Give it the shape ({sizes[0]}, 1) or (1, {sizes[0]}).")
    kind = known_dtype(dtype)
    storage = core.allocate(sizes, kind, memory, name or "", _checked_address(address, memory))
    tile = NkiTensor.whole(storage)
    if frame is not None and dtype is kind:
        keep_tile(core, frame, tile, shape, kind, memory)  # type: ignore[arg-type]  # others are not kept
    return tile


def converted(tile: NkiTensor, dtype: DType, buffer: MemoryRegion = sbuf) -> NkiTensor:
    """Return a tile itself where it is of this dtype, else a copy that is."""
    if tile.dtype is dtype:
        return tile
    copied = ndarray(tile.shape, dtype, buffer)
    tensor_copy(dst=copied, src=tile)
    return copied


def full(shape: Shape, fill_value: Number, dtype: DTypeLike, buffer: Memory = sbuf, name: str | None = "") -> NkiTensor:
    """Return a new tensor filled with a number: by nisa.memset on chip; in HBM by copies of a filled tile in SBUF.

    ``fill_value`` is checked and cast as the value of nisa.memset: integer dtypes take integers. The tensor lies in
    SBUF unless ``buffer`` says otherwise.
    Errors: NK101, NK107, NK110, NK208, NK301, NK304, NK608, NK609, NK611, NK621. Source: nki.language.full (NKI 0.6).
    """
    tensor = ndarray(shape, dtype, buffer, name)
    if tensor.on_chip:
        memset(dst=tensor, value=fill_value)
        return tensor
    total = math.prod(tensor.shape)
    flat = tensor.reshape((total,))
    source = ndarray((1, min(total, _FILL_CHUNK)), dtype, sbuf)
    memset(dst=source, value=fill_value)
    for start in range(0, total, _FILL_CHUNK):
        count = min(_FILL_CHUNK, total - start)
        dma_copy(dst=flat[start : start + count], src=source[:, :count])
    return tensor


def zeros(shape: Shape, dtype: DTypeLike, buffer: Memory = sbuf, name: str | None = "") -> NkiTensor:
    """Return a new tensor of zeros, in SBUF unless ``buffer`` says otherwise.

    Errors: NK101, NK107, NK110, NK208, NK301, NK304, NK608, NK609, NK611. Source: nki.language.zeros (NKI 0.6).
    """
    return full(shape, 0, dtype, buffer, name)


def ones(shape: Shape, dtype: DTypeLike, buffer: Memory = sbuf, name: str | None = "") -> NkiTensor:
    """Return a new tensor of ones, in SBUF unless ``buffer`` says otherwise.

    Errors: NK101, NK107, NK110, NK208, NK301, NK608, NK609, NK611. Source: nki.language.ones (NKI 0.6).
    """
    return full(shape, 1, dtype, buffer, name)


def zeros_like(
    x: NkiTensor, dtype: DTypeLike | None = None, buffer: Memory | None = None, name: str | None = ""
) -> NkiTensor:
    """Return a new tensor of zeros of the shape of ``x``, and its dtype unless ``dtype`` is given.

    It lies in SBUF unless ``buffer`` says otherwise, wherever ``x`` lies: "Defaults to sbuf", says the reference, where
    that of nl.empty_like says "same as x"; we take both at their word.
    Errors: NK101, NK107, NK110, NK208, NK301, NK304, NK608, NK609, NK611. Source: nki.language.zeros_like (NKI 0.6).
    """
    check_like("nl.zeros_like", x)
    return zeros(x.shape, dtype or x.dtype, sbuf if buffer is None else buffer, name)


def check_like(what: str, x: NkiTensor) -> None:
    """NK609: what is to be like another tensor has a tensor to be like."""
    if not isinstance(x, NkiTensor):
        refuse("NK609", f"{what}: x must be a tensor, it is {type(x).__name__}")
