"""Device prints as records."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nkitools.chip.array_text import elided, short
from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import dataclass, field, replace
from nkitools.record.prints.summaries import Summary, summary_of
from nkitools.rules.shown_text import shown, shown_file


@dataclass(frozen=True, eq=False, repr=False)
class Print:
    """One ``device_print``: its values, its loop counters and its place in the source.

    ``value``: the elements, in their dtype. ``shape`` and ``dtype`` (a name): of the printed tensor, by default those
    of ``value``. ``mask``: an array of bool, True for the elements that the print's mask left out (their values mean
    nothing). ``unwritten``: the same for elements that were never written. Both are None if there are none. ``loops``:
    the counters of the loops around the print, outermost first. ``program``: the program's index in the grid, () for
    program 0 of a run without a grid. In a custom operator ``memory`` is '' and ``program`` the core. ``rank``: None
    without ranks. ``tensor``: the name of the written tensor, if a watched line (``watch``) made the record.
    ``order``: the number of the print in its run, from 0 on; -1 before it has one. ``issued``: the number of
    instructions before it.

    A value of more bytes than the limit (option ``print_limit``, in MiB), or than is left of 16 times the limit for the
    run, is kept as its ``summary`` and corners: ``value`` then has the first and last three elements of each dimension,
    and ``is_whole`` is False. A print of text alone has a value without elements.

    Two prints are equal if prefix, program, rank and loop counters are equal, and `same_values` holds. The place in the
    source, the memory and the order do not count, so that prints of different kernels can be compared. A print without
    a program equals one of program 0.
    """

    prefix: str
    value: Array
    shape: tuple[int, ...] = ()
    dtype: str = ""
    program: tuple[int, ...] = ()
    loops: dict[str, int] = field(default_factory=dict)
    file: str = ""
    line: int = 0
    memory: str = ""
    rank: int | None = None
    order: int = -1
    issued: int = 0
    mask: Array | None = None
    unwritten: Array | None = None
    reduced: Summary | None = None  # what is left where the value is beyond the limit
    tensor: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", np.asarray(self.value))
        object.__setattr__(self, "shape", self.shape or self.value.shape)
        object.__setattr__(self, "dtype", self.dtype or self.value.dtype.name)

    @property
    def is_whole(self) -> bool:
        """Return True if ``value`` holds all elements of the printed tensor, False if only its corners."""
        return self.reduced is None

    @property
    def is_text(self) -> bool:
        """Return True if the value has no elements: only the prefix was printed, or an empty tensor."""
        return self.value.size == 0

    @property
    def size(self) -> int:
        """Return the number of elements of the printed tensor, masked and unwritten ones included."""
        return self.value.size if self.reduced is None else self.reduced.size

    @property
    def nbytes(self) -> int:
        """Return the size in bytes of all elements of the printed tensor, each as large as one of ``value``."""
        return self.size * self.value.itemsize

    @cached_property
    def summary(self) -> Summary:
        """Return minimum, maximum, mean, counts, corners and a coarse picture, computed at first use.

        Masked and unwritten elements count only as ``unwritten``.
        """
        return self.reduced or summary_of(self.value, missing_of(self.mask, self.unwritten))

    @property
    def min(self) -> float | None:
        """Return the smallest finite element (of packed dtypes: the smallest code); None if there is none.

        Masked and unwritten elements do not count.
        """
        return self.summary.minimum if self.size else None

    @property
    def max(self) -> float | None:
        """Return the largest finite element (of packed dtypes: the largest code); None if there is none.

        Masked and unwritten elements do not count.
        """
        return self.summary.maximum if self.size else None

    @property
    def mean(self) -> float | None:
        """Return the mean of the finite elements (of packed dtypes: of the codes), summed in float64; None without any.

        Masked and unwritten elements do not count.
        """
        return self.summary.mean if self.size else None

    @property
    def nan_count(self) -> int:
        """Return the number of NaN elements, without masked and unwritten ones."""
        return self.summary.nan if self.size else 0

    @property
    def inf_count(self) -> int:
        """Return the number of infinite elements of both signs, without masked and unwritten ones."""
        return self.summary.inf if self.size else 0

    @property
    def masked(self) -> np.ma.MaskedArray[tuple[int, ...], np.dtype[np.generic]]:
        """Return ``value`` as a masked array of NumPy: elements that the print's mask left out are masked."""
        return np.ma.MaskedArray(self.value, np.ma.nomask if self.mask is None else self.mask)

    def place(self) -> str:
        """Return the place as text: ``program 0, m=0, n=1, giou.py:41``; with ranks ``rank 2`` comes first.

        The file is its name without folders; it is left out if it is unknown.
        """
        program = ", ".join(str(index) for index in self.program) or "0"
        counters = [f"{name}={value}" for name, value in self.loops.items()]
        where = [f"{shown_file(self.file, whole=False)}:{self.line}"] if self.file else []
        rank = [f"rank {self.rank}"] if self.rank is not None else []
        return ", ".join([*rank, f"program {program}", *counters, *where])

    def header(self) -> str:
        """Return the prefix, the place and the tensor: ``preds [program 0, m=1, giou.py:41] SBUF float32 [128, 4]``.

        A print without elements has no tensor there.
        """
        if self.is_text:
            return shown(f"{self.prefix} [{self.place()}]")
        return shown(f"{self.prefix} [{self.place()}] {self.described()}")

    def described(self) -> str:
        """Return the memory, dtype and shape of the tensor: ``SBUF float32 [128, 4]``.

        In the print of a watched line the tensor's name comes first.
        """
        name = f"`{self.tensor}`" if self.tensor not in ("", self.prefix) else ""
        return " ".join(filter(None, (name, self.memory, self.dtype, str(list(self.shape)))))

    def notes(self) -> list[str]:
        """Return sentences with the numbers of masked and of unwritten elements; [] if there are none.

        For a value beyond the limit they are two: its bytes, and `numbers`.
        """
        found = []
        for elements, what in ((self.mask, "masked"), (self.unwritten, "never written")):
            if elements is not None and self.reduced is None:
                found.append(f"{int(np.count_nonzero(elements))} of {self.size} elements {what}")
        if self.reduced is not None:
            left_out = f", {self.reduced.unwritten} masked or never written" if self.reduced.unwritten else ""
            found.append(f"{self.nbytes:,} bytes, beyond the print limit: only the corners are kept{left_out}")
            found.append(self.numbers())
        return found

    def numbers(self) -> str:
        """Return ``min -1 max 2.5 mean 0.25``, and the numbers of NaN and infinite elements, if there are any.

        A number has at most six digits. Masked and unwritten elements do not count. '' without elements.
        """
        if self.is_text:
            return ""
        found = [
            f"{name} {short(value)}"
            for name, value in (("min", self.min), ("max", self.max), ("mean", self.mean))
            if value is not None
        ]
        counts = ((self.nan_count, "NaN"), (self.inf_count, "Inf"))
        return " ".join([*found, *(f"{count} {what}" for count, what in counts if count)])

    def text(self) -> str:
        """Return the header, the notes and the values as lines; without elements the header alone.

        Of more than 64 elements the first and last three of each dimension are shown.
        """
        notes = [f"({note})" for note in self.notes()]
        return "\n".join([self.header(), *notes, *([] if self.is_text else [self.values_text()])])

    def values_text(self) -> str:
        """Return the values as NumPy prints them; elements that the print's mask left out are ``--``.

        Of more than 64 elements the first and last three of each dimension are shown.
        """
        return elided(self.value, self.mask, self.shape)

    def __repr__(self) -> str:
        return f"<Print {' '.join(filter(None, (self.header(), self.numbers())))}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Print):
            return NotImplemented
        return self._turn == other._turn and self.same_values(other)

    def __hash__(self) -> int:
        return hash((self.prefix, self.size, self.dtype, self.rank))

    @property
    def _turn(self) -> tuple[object, ...]:
        return self.prefix, self.program or (0,), self.rank, self.loops

    def same_values(self, other: Print) -> bool:
        """Return True if both prints have equal shapes, dtypes, elements and masks; NaN equals NaN.

        All shapes of one element are equal: NKI prints a number as a tile [1, 1], JAX and printf without dimensions.
        Elements that are masked in both do not count. Values beyond the limit are equal if their corners and `numbers`
        are.
        """
        if (self.dtype, self.is_whole) != (other.dtype, other.is_whole):
            return False
        if self.shape != other.shape and not self.size == other.size == 1:
            return False
        if self.size == 1 and self.shape != other.shape:
            return replace(self, value=self.value.reshape(()), shape=()).same_values(
                replace(other, value=other.value.reshape(()), shape=())
            )
        if self.reduced is not None and self.numbers() != other.numbers():
            return False
        return _same(_or_none(self.mask, self.value), _or_none(other.mask, other.value)) and _same(
            _without(self.value, self.mask), _without(other.value, other.mask)
        )


def missing_of(*masks: Array | None) -> Array | None:
    """Return the union of some masks; None if all are None."""
    found: Array | None = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else found | mask
    return found


def _or_none(mask: Array | None, value: Array) -> Array:
    return np.zeros(value.shape, np.bool_) if mask is None else mask


def _without(value: Array, mask: Array | None) -> Array:
    return value if mask is None else value[~mask]


def _same(first: Array, second: Array) -> bool:
    return first.dtype == second.dtype and np.array_equal(first, second, equal_nan=not first.dtype.names)
