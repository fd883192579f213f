"""The memory that a run's tensors take of the host, and how much they may."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING
from weakref import ref

if TYPE_CHECKING:
    from nkitools.chip.dtypes import DType
    from nkitools.chip.memory import Storage

ASK_FROM = 256 << 20  # bytes below which the system is not asked what is free
MOST_OF_A_TILE = 32 << 20  # bytes; no tile of this size fits a core
_NAMED = 3  # the largest tensors that a refusal names

Site = Callable[[int], str]


class MemoryLimitError(MemoryError):
    """The tensors of a run would take more of the host's memory than they may."""


class HostMemory:
    """Counts the bytes of a run's tensors in HBM while they live.

    ``limit()`` returns the limit in bytes and its reason, or None; ``at_once``: call it at the first tensor. ``given``:
    the bytes of the arguments, which the caller owns. ``peak``: the most bytes so far, arguments included.
    """

    def __init__(self, limit: Callable[[], tuple[int, str] | None], *, at_once: bool = False) -> None:
        self.given = 0
        self.peak = 0
        self._limit = limit
        self._made = 0
        self._asks_from = 0 if at_once else ASK_FROM
        self._most: tuple[int, str] | None = None
        self._alive: dict[int, tuple[ref[Storage], Callable[[], str], int]] = {}  # with what messages call each

    def give(self, nbytes: int) -> None:
        """Count memory that the caller holds."""
        self.given += nbytes
        self.peak = max(self.peak, self.given + self._made)

    def hold(self, storage: Storage, where: Site) -> None:
        """Count a storage that was just made, and to which nothing is written yet. MemoryLimitError: it is too much.

        ``where``: returns the place of its site.
        """
        number, nbytes = storage.id, storage.nbytes
        what = partial(_described, storage.shape, storage.dtype, nbytes, storage.name, partial(where, storage.site))
        self.check(nbytes, what)
        self._made += nbytes
        self.peak = max(self.peak, self.given + self._made)
        self._alive[number] = ref(storage, lambda _: self._free(number)), what, nbytes

    def _free(self, number: int) -> None:
        self._made -= self._alive.pop(number)[2]

    def check(self, nbytes: int, what: Callable[[], str]) -> None:
        """Raise MemoryLimitError if ``nbytes`` more exceed the limit; ``what`` returns the words for them."""
        total = self._made + nbytes
        if total <= self._asks_from:
            return
        if self._most is None:
            self._most = self._limit() or (1 << 62, "")
            self._asks_from = 0
        most, reason = self._most
        if total > most:
            largest = sorted(self._alive.values(), key=lambda each: -each[2])[:_NAMED]
            beside = "; beside it there are " + ", ".join(each[1]() for each in largest) if largest else ""
            raise MemoryLimitError(
                f"{what()} is refused: the tensors of this run would take {size_text(total)}, and may take "
                f"{size_text(most)}, {reason}{beside}. Make the tensors smaller, or say how much a run may take: "
                "--nki-memory=GIB, NKITOOLS_MEMORY."
            )

    def failed(self, shape: tuple[int, ...], dtype: DType, name: str, where: Callable[[], str]) -> MemoryLimitError:
        """Return the error for a tensor for which the system had no memory; ``where`` returns the place of its site."""
        nbytes = prod(shape) * dtype.itemsize
        what = partial(_described, shape, dtype, nbytes, name, where)
        self.check(nbytes, what)
        return MemoryLimitError(f"{what()} is refused: the system has no memory for it.")


def size_text(nbytes: int) -> str:
    """``1.5 GiB``: a number of bytes in the unit that suits it."""
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if nbytes >= 1 << bits:
            return f"{nbytes / (1 << bits):.3g} {unit}"
    return f"{nbytes} bytes"


def _described(shape: tuple[int, ...], dtype: DType, nbytes: int, name: str, where: Callable[[], str]) -> str:
    """``tensor `scratch`, float32 [64, 8192], 2 MiB (kernel.py:12)``."""
    named, place = f"tensor `{name}`" if name else "a tensor", where()
    return f"{named}, {dtype} {list(shape)}, {size_text(nbytes)}{f' ({place})' if place else ''}"
