"""A run, with what can be done with it: it is saved, loaded and shown."""

from __future__ import annotations

import os
from functools import cached_property
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from nkitools.record.offers import answer
from nkitools.record.run_contents import RunContents

if TYPE_CHECKING:
    from nkitools.chip.argument_types import FrameworkArray
    from nkitools.record.dependences import Dependences
    from nkitools.record.element_slice import Slice
    from nkitools.record.explained_errors import ExplainedErrors
    from nkitools.record.time_estimate import Estimate


Index: TypeAlias = int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]
"""Elements of an output, as an array takes them."""

Output: TypeAlias = "int | str | FrameworkArray"
"""A result by its number, a tensor by its name, or an array that is a result."""

_LISTED = 4  # outputs that the text of a run names


class Run(RunContents):
    """The result of one simulated (or measured) kernel call.

    ``precision``: ``precise`` where every value is rounded to its dtype, ``full`` where the low-precision ones are kept
    in float32, in which ``outputs`` and ``prints`` then are. A run of communicating ranks has the outputs of each in a
    tuple; its prints, findings and instructions name their ``rank``. ``record`` is then the first rank's.
    ``expected`` are those of ``findings`` and ``allowed`` that a test asked for (`expect_finding`). ``settings``: the
    settings of its launch, where nkitools simulated it: ``rules``, ``grid``, ``schedule_seed``, ``sum_order``.
    ``kept_sources``: the sources of a run out of a file.
    """

    @cached_property
    def dependences(self) -> Dependences:
        """Return which instructions made, overwrote and read what each one touches; computed when first asked for.

        ``flow``, ``output`` and ``anti``, each compressed rows (``starts``, ``sources``, int64) over positions in
        ``instructions``; -1 is an argument, -2 memory that was never written.
        """
        from nkitools.record.dependences import Dependences

        return Dependences(self.all_records)

    def why(self, output: Output = 0, index: Index = ()) -> Slice:
        """Return everything that an element, or a region, of a result was made of: its exact backward slice.

        ``output``: the name of a tensor in HBM, the number of a result, or an array that is a result or an argument.
        ``index``: as an array takes it, ``(3, 17)`` or ``(slice(0, 4), 17)``; of whole dimensions where it is shorter.
        The values are those of a second run on the arguments as they were, or of a watched run that was saved; where
        they are not known the slice says why. IndexError, ValueError, TypeError for what is not there.
        """
        return cast("Slice", answer("slice", self, output, index))

    def estimate(self) -> Estimate:
        """Return the time that the kernel would take on the run's chip, with its error band, and what bounds it.

        It is computed when it is asked for, and no part of a run. ValueError for a run without instructions.
        """
        return cast("Estimate", answer("estimate", self))

    def tolerance(self) -> ExplainedErrors:
        """Return the error of each output that this run's dtypes, sums and functions explain.

        ``rtol`` and ``atol`` of each output; ``sentences(rtol, atol)`` says whether a test's own tolerance lies below
        that, so that it will flake, or far above it, so that it would not see a lost tile. The kernel runs five times
        more on the arguments as they were. ValueError where that cannot be: a run of ranks, out of a file, of a device.
        """
        return cast("ExplainedErrors", answer("tolerance", self))

    def to_json(self, *, compress: bool = True) -> str:
        """Return everything of the run as one line of JSON, which `Run.from_json` reads again; arrays keep every bit.

        ``compress``: whether arrays are compressed (zlib) where that makes them shorter. The keys are explained in
        `nkitools.record.saved.saving`.
        """
        from nkitools.record.saved.saving import run_as_json

        return run_as_json(self, compress=compress)

    @staticmethod
    def from_json(text: str | bytes) -> Run:
        """Return the run that ``to_json`` made ``text`` of; `SavedRunError`, a ValueError, for anything else."""
        from nkitools.record.saved.loading import run_from_json

        return run_from_json(text, Run)

    def __repr__(self) -> str:
        """Return one line: the chip, the form of the outputs, the counts of instructions, findings and prints."""
        from nkitools.record.saved.encoding import leaves

        arrays = [f"{array.dtype} {list(array.shape)}" for _, array in leaves(self.outputs) if hasattr(array, "dtype")]
        if len(arrays) > _LISTED:
            arrays[_LISTED:] = [f"and {len(arrays) - _LISTED} more outputs"]
        ended = [f"ended by {type(self.error).__name__}"] if self.error is not None else []
        found = sum(each.count for each in self.findings)
        counts = [(len(self.instructions), "instruction"), (found, "finding"), (len(self.prints), "print")]
        said = [*(arrays or ["no outputs"]), *ended, *(f"{count} {what}{'s' * (count != 1)}" for count, what in counts)]
        return f"<Run of {self.kernel} on {self.chip} ({self.target}): {', '.join(said)}>"

    def _repr_html_(self) -> str:
        """Return the page of the run in a frame, which notebooks show where this is the last value of a cell."""
        return str(answer("notebook_frame", self))

    def save(self, path: str | os.PathLike[str], *, compress: bool = True) -> None:
        """Write everything of the run to a file, a zip, for `nkitools.load_run`. OSError where it cannot be written.

        ``compress``: whether the file is compressed where that makes it shorter. How it is laid out says
        `nkitools.record.saved.saving`.
        """
        from nkitools.record.saved.saving import save_run

        save_run(self, path, compress=compress)


def load_run(path: str | os.PathLike[str], *, most_bytes: int = 4 << 30) -> Run:
    """Return the run that ``run.save(path)`` has written.

    It answers as the run did: outputs, prints, findings, instructions, sources. Arrays of torch and jax are NumPy's,
    and other objects among the outputs are namespaces of their fields, or their texts. Raises `SavedRunError` (a
    ValueError) for what is no whole saved run that this version can read and for arrays of more than ``most_bytes``
    in all, OSError where the file cannot be read.
    """
    from nkitools.record.saved.loading import SavedRunError, run_of_file

    with open(path, "rb") as file:
        content = file.read()
    try:
        return run_of_file(content, Run, most_bytes)
    except SavedRunError as error:
        raise SavedRunError(f"{os.fspath(path)}: {error}") from error.__cause__


def must_be_run(value: Any, asks: str) -> None:
    """TypeError where ``value`` is no run (the path of one, say, or its outputs); ``asks`` says who wants one."""
    if not isinstance(value, Run):
        raise TypeError(
            f"{asks} takes a run, it is given {type(value).__name__}. "
            "Pass what nkitools.simulate returns, run_kernel.run, or nkitools.load_run(path)."
        )
