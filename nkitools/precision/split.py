"""``nkitools.precision_split``: how much of a kernel's error is low precision, and how much is there without it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from nkitools.chip.argument_types import Argument, Grid, Kernel
from nkitools.chip.numerics import Array
from nkitools.launch.kernel import as_launch
from nkitools.launch.tracebacks import AuthorsTraceback
from nkitools.precision.difference import Difference
from nkitools.precision.independent_reference import independent_of_run
from nkitools.precision.reference import references_of
from nkitools.precision.runs import Half, run_half
from nkitools.record.run import Run


@dataclass(frozen=True)
class TensorSplit:
    """The error of one tensor, split.

    ``low_precision`` is what rounding to low-precision dtypes does: the precise run against the full one. With a
    reference, ``error`` is the precise run's difference from it, and ``remaining`` the full run's: what is not low
    precision, but the algorithm (or the rounding of float32). ``dtype`` is that of the tensor itself.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    low_precision: Difference
    error: Difference | None = None
    remaining: Difference | None = None

    @property
    def is_low_precision(self) -> bool:
        """Return False if a reference shows that the algorithm itself makes a larger error than low precision."""
        return self.remaining is None or self.low_precision.max_abs >= self.remaining.max_abs

    @property
    def verdict(self) -> str:
        """Return one sentence on how much of the error is low precision."""
        low, tensor = self.low_precision, f"{self.name} ({self.dtype})"
        counted = f"; {low.different} of {low.size} elements differ" if _is_whole(self.dtype) and low.different else ""
        if self.error is None or self.remaining is None:
            if not low.different:
                return f"{tensor}: low precision changes nothing."
            return f"{tensor}: low precision changes it by up to {low.max_abs:.2g}, at {list(low.index)}{counted}."
        if not self.error.different:
            return f"{tensor}: no error."
        parts = f"{low.max_abs:.2g} is low precision and {self.remaining.max_abs:.2g} is not{counted}"
        where = "" if self.is_low_precision else "; look at the algorithm"
        return f"{tensor}: error {self.error.max_abs:.2g} at {list(self.error.index)}: {parts}{where}."


@dataclass(frozen=True)
class PrecisionSplit:
    """The result of `precision_split`: ``tensors``, and the two runs, ``precise`` and ``full``."""

    tensors: tuple[TensorSplit, ...]
    precise: Run
    full: Run

    def __getitem__(self, name: str) -> TensorSplit:
        """Return the tensor of a name: ``output``, ``output[1]``, or that of an argument. KeyError for another name."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(f"{name!r} is none of {', '.join(tensor.name for tensor in self.tensors)}")

    def __str__(self) -> str:
        rows = [("tensor", "", "max abs", "rms", "max relative", "at")]
        for tensor in self.tensors:
            for what, difference in _parts(tensor):
                name = f"{tensor.name} {tensor.dtype} {list(tensor.shape)}" if what == _parts(tensor)[0][0] else ""
                rows.append((name, what, *_shown(difference)))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        title = f"precision of {self.precise.kernel}" + (f" on {self.precise.chip}" if self.precise.chip else "")
        return "\n".join([title, *table, *(tensor.verdict for tensor in self.tensors), *self._rounded()])

    def _rounded(self) -> list[str]:
        """Name the instructions whose operands are rounded in full precision too."""
        if not self.full.rounded:
            return []
        named = ", ".join(f"{name} ({count})" for name, count in self.full.rounded.items())
        return [f"Rounded in full precision too, so that it counts as not low precision: operands of {named}."]


def _is_whole(dtype: str) -> bool:
    return dtype.startswith(("int", "uint", "bool"))


def _parts(tensor: TensorSplit) -> list[tuple[str, Difference]]:
    parts = [("error", tensor.error), ("low precision", tensor.low_precision), ("not low precision", tensor.remaining)]
    return [(what, difference) for what, difference in parts if difference is not None]


def _shown(difference: Difference) -> tuple[str, str, str, str]:
    numbers = (f"{number:.1e}" for number in (difference.max_abs, difference.rms, difference.max_relative))
    first, second, third = numbers
    return first, second, third, str(list(difference.index)) if difference.different else ""


def precision_split(
    kernel: Kernel,
    /,
    *arrays: Argument,
    reference: Argument = None,
    grid: Grid | None = None,
    chip: str | None = None,
    rules: str | None = None,
    **kwargs: Argument,
) -> PrecisionSplit:
    """Run ``kernel`` rounded to its dtypes and in full precision, and return how much of its error low precision
    causes.

    In full precision low-precision values are kept in float32. ``grid``, ``chip`` and ``rules`` are those of
    `nkitools.simulate`, other keywords go to the kernel; the arrays are copied. ``reference``: the right results, in
    the form of the kernel's, or a function that returns them; it gets the kernel's arguments, floating-point arrays in
    float64 (JAX's in float32 unless ``jax_enable_x64`` is on). For a kernel that returns nothing the reference is about
    the arguments that the kernel changes. Without a reference only the part of low precision is known: ``error`` and
    ``remaining`` are None.

    TypeError for a reference that holds no array; ValueError for one of another number or shape of arrays, or of NaN
    alone, and for a kernel that neither returns nor changes an array. Exceptions of the kernel pass through.
    """
    __tracebackhide__ = True
    with AuthorsTraceback():
        launch = as_launch(kernel, grid=grid, chip=chip, rules=rules)
        precise = run_half(launch, "precise", arrays, kwargs)
        full = run_half(launch, "full", arrays, kwargs)
        return split_of(precise, full, reference, arrays, kwargs)


def split_of(
    precise: Half, full: Half, reference: Argument, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> PrecisionSplit:
    """Return the split of two runs of a kernel on the same arguments."""
    tensors = [
        TensorSplit(each.name, each.dtype, each.rounded.shape, each.low_precision, each.error, each.remaining)
        for each in results_of(precise, full, reference, args, kwargs)
    ]
    return PrecisionSplit(tuple(tensors), precise.run, full.run)


@dataclass(frozen=True, eq=False)
class Result:
    """One result of a kernel, in float64: rounded to its dtypes, in full precision, and what is right, if known."""

    name: str
    dtype: str
    rounded: Array
    wide: Array
    right: Array | None

    @property
    def low_precision(self) -> Difference:
        """Return the difference between the rounded and the full-precision values."""
        return Difference.of(self.rounded, self.wide)

    @property
    def error(self) -> Difference | None:
        """Return the difference from what is right."""
        return None if self.right is None else Difference.of(self.rounded, self.right)

    @property
    def remaining(self) -> Difference | None:
        """Return the difference from what is right in full precision."""
        return None if self.right is None else Difference.of(self.wide, self.right)


def results_of(
    precise: Half,
    full: Half,
    reference: Argument,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    matches_kinds: bool = False,
) -> list[Result]:
    """Return the results of two runs, the outputs first; errors as of `precision_split`.

    ``matches_kinds``: whether a reference of another kind of number (float, integer, bool) is refused too.
    """
    # A full run returns new arrays, as they are wider: which arguments are results only the precise one can tell.
    changed = (precise.changed | full.changed) - precise.returned
    written = [name for name in precise.arguments if name in changed]
    _must_return(precise, full, written)
    pairs = [(name, precise.outputs[name], full.outputs[name]) for name in precise.outputs]
    pairs += [(name, precise.arguments[name], full.arguments[name]) for name in written]
    shapes = [(name, rounded.array.shape) for name, rounded, _ in pairs]
    dtypes = [rounded.dtype for _, rounded, _ in pairs] if matches_kinds else []
    with independent_of_run(precise.run, args, kwargs):
        references = references_of(reference, shapes, len(precise.outputs), args, kwargs, dtypes)
    return [
        Result(name, rounded.dtype, rounded.array, wide.array, right)
        for (name, rounded, wide), right in zip(pairs, references, strict=True)
    ]


def _must_return(precise: Half, full: Half, written: list[str]) -> None:
    if not (precise.outputs or written) or list(precise.outputs) != list(full.outputs):
        said = [finding.text() for finding in (*precise.run.findings, *full.run.findings)][:1]
        raise ValueError(" ".join([f"{precise.run.kernel} has returned and written no arrays to compare.", *said]))


def with_full(results: list[Result], precise: Half, full: Half) -> list[Result]:
    """Return results of the run ``precise`` with their values in the run ``full``. ValueError for other outputs."""
    _must_return(precise, full, list(precise.arguments))
    wide = {**full.arguments, **full.outputs}
    return [replace(each, wide=wide[each.name].array) for each in results]
