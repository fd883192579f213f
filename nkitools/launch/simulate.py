"""``nkitools.simulate``: run a kernel on the builtin simulator and return what happened."""

from __future__ import annotations

from typing import Any

from nkitools.launch.kernel import KernelObject, as_launch
from nkitools.launch.programs import run_launch
from nkitools.launch.ranks import arguments_by_rank, run_ranks
from nkitools.launch.tracebacks import AuthorsTraceback
from nkitools.record.run import Run


def simulate(
    kernel: Any,
    /,
    *arrays: Any,
    grid: Any = None,
    chip: str | None = None,
    ranks: int | None = None,
    rules: str | None = None,
    **kwargs: Any,
) -> Run:
    """Run ``kernel`` (a kernel object of either dialect, or a plain function of the modern dialect) on CPU.

    ``grid``: the launch grid, an int or ints (of a modern kernel the LNC degree, 1 or 2); ``chip``: ``trn1 inf2 trn2
    trn3`` or ``gen2 gen3 gen4`` (default: the option, AWS's environment variables, else trn2); ``rules``: ``"error"``
    raises `KernelError` at the first error-level finding, ``"report"`` collects and goes on (outputs None where
    nothing can be computed), ``"off"`` runs bare. Other keywords go to the kernel; a parameter of the kernel that is
    called like one of these is passed by position. Arrays are NumPy's, torch's (on CPU) or jax's, and results come in
    kind; what the kernel writes into its inputs is in the arrays afterwards.

    ``ranks=N``: N communicating ranks (``nki.collectives``) run the kernel, each on as many cores as the grid says.
    Then the arguments are one tuple or list a rank, ``simulate(kernel, (x0, w), (x1, w), ranks=2)``; keywords go to
    every rank. The outputs are a tuple of each rank's. An array given to several ranks may only be read. TypeError,
    ValueError for other forms.
    """
    __tracebackhide__ = True
    with AuthorsTraceback():
        if not callable(kernel) and not isinstance(kernel, KernelObject):
            raise TypeError(
                f"kernel: simulate needs a kernel or a function, it is given {type(kernel).__name__}. "
                "Call nkitools.simulate(kernel, *arrays)."
            )
        if ranks is not None:
            by_rank = arguments_by_rank(ranks, arrays)
            return run_ranks(as_launch(kernel, grid=grid, chip=chip, rules=rules), by_rank, kwargs)
        return run_launch(as_launch(kernel, grid=grid, chip=chip, rules=rules), arrays, kwargs)
