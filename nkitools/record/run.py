"""The run of a kernel: answers about it, saving, loading and showing it."""

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
    """The result of one kernel call, simulated or on a device.

    ``kernel``: the kernel's name. ``target``: where it ran, ``builtin`` for this simulator. ``outputs``: what the
    kernel returned; None if it returned nothing, or nothing could be computed. ``prints``: the device prints.
    ``findings``: the broken rules. ``error``: the exception that ended the run, or None.

    ``precision``: ``precise`` if every value is rounded to its dtype; ``full`` if low-precision values are kept in
    float32, and ``outputs`` and ``prints`` with them. A run of communicating ranks has a tuple of outputs, one entry a
    rank; its prints, findings and instructions name their ``rank``; ``record`` is the first rank's. ``expected``: the
    findings, also allowed ones, that a test asked for (`expect_finding`). ``settings``: of an NKI kernel that
    nkitools simulated ``rules``, ``grid``, ``schedule_seed``, ``nki_version`` and ``sum_order``; of a Pallas check
    ``rules``, ``modes`` and ``cores``; else empty.
    ``kept_sources``: the sources, if the run was loaded from a file.
    """

    @cached_property
    def dependences(self) -> Dependences:
        """Return for each instruction which others wrote, overwrote and read its elements; computed at first use.

        ``flow``, ``output`` and ``anti``, each compressed rows (``starts``, ``sources``, int64) over positions in
        ``instructions``; -1 is an argument or a constant, -2 memory that was never written.
        """
        from nkitools.record.dependences import Dependences

        return Dependences(self.all_records)

    def why(self, output: Output = 0, index: Index = ()) -> Slice:
        """Return the backward slice of an element or region of a result: every instruction and datum that it comes
        from.

        ``output``: the number of a result, an array out of ``outputs``, or the name of a tensor that an instruction
        reads or writes. ``index``: as for an array, ``(3, 17)`` or ``(slice(0, 4), 17)``; missing dimensions are whole.
        The values come from a second run on the original arguments, or from a watched run that was saved; if they are
        unknown, the slice says why. ValueError for a run without instructions, and for a number or a name that the run
        does not have; TypeError for another array or object; IndexError for an index outside, or of no element.
        """
        return cast("Slice", answer("slice", self, output, index))

    def estimate(self) -> Estimate:
        """Return the estimated time of the kernel on the run's chip, with its error band, and what bounds it.

        Each call computes it anew. ValueError for a run without instructions, such as one of Pallas or on a device.
        """
        return cast("Estimate", answer("estimate", self))

    def tolerance(self) -> ExplainedErrors:
        """Return the error of each result that this run's dtypes, sums and functions explain, as ``rtol`` and ``atol``.

        Results are the outputs, and arguments that the kernel changed. ``sentences(rtol, atol)`` says if a test's own
        tolerance is too tight, so that the test will flake, or so wide that it would not see a lost tile. The kernel
        runs five times more on the original arguments. ValueError for a run of ranks, of a kernel that is not NKI's,
        from a file, on a device or ended by an error; and if arguments have changed since that the run has not copied
        (it copies up to 1 MiB, of NumPy's).
        """
        return cast("ExplainedErrors", answer("tolerance", self))

    def to_json(self, *, compress: bool = True) -> str:
        """Return the whole run as one line of JSON, for `Run.from_json`; arrays keep every bit.

        ``compress``: compress each array (zlib) if that makes it shorter. `nkitools.record.saved.saving` explains the
        keys.
        """
        from nkitools.record.saved.saving import run_as_json

        return run_as_json(self, compress=compress)

    @staticmethod
    def from_json(text: str | bytes) -> Run:
        """Return the run that ``to_json`` made ``text`` of, with what `nkitools.load_run` says.

        `SavedRunError` (a ValueError) for any other text, also the content of a file of ``save``; for a run of a later
        version; and for more than 4 GiB of arrays.
        """
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
        """Return the page of the run in a frame, which notebooks show if the run is the last value of a cell."""
        return str(answer("notebook_frame", self))

    def save(self, path: str | os.PathLike[str], *, compress: bool = True) -> None:
        """Write the whole run to a file, a zip, for `nkitools.load_run`. An existing file is replaced.

        ``compress``: compress each array (zlib) if that makes it shorter. OSError if the file cannot be written.
        `nkitools.record.saved.saving` explains the format.
        """
        from nkitools.record.saved.saving import save_run

        save_run(self, path, compress=compress)


def load_run(path: str | os.PathLike[str], *, most_bytes: int = 4 << 30) -> Run:
    """Return the run that ``run.save(path)`` has written.

    It has the same outputs, prints, findings, instructions and sources (as they were when the run was saved). Arrays of
    torch and jax become NumPy's; other objects among the outputs become namespaces of their fields, or
    objects with their class (``of``) and their ``text``.
    `Run.tolerance` needs the kernel itself, and raises ValueError. Raises `SavedRunError` (a ValueError) if the file is
    no complete saved run that this version can read, or has more than ``most_bytes`` of arrays (by default 4 GiB),
    OSError if the file cannot be read.
    """
    from nkitools.record.saved.loading import SavedRunError, run_of_file

    with open(path, "rb") as file:
        content = file.read()
    try:
        return run_of_file(content, Run, most_bytes)
    except SavedRunError as error:
        raise SavedRunError(f"{os.fspath(path)}: {error}") from error.__cause__


def must_be_run(value: Any, asks: str) -> None:
    """Raise TypeError if ``value`` is no run (but a path, say, or outputs); ``asks`` names the function that takes a
    run.
    """
    if not isinstance(value, Run):
        raise TypeError(
            f"{asks} takes a run, it is given {type(value).__name__}. "
            "Pass what nkitools.simulate returns, run_kernel.run, or nkitools.load_run(path)."
        )
