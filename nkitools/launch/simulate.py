"""``nkitools.simulate``: run a kernel on the builtin simulator and return what happened."""

from __future__ import annotations

from typing import Any

from nkitools.launch.kernel import KernelObject, as_launch
from nkitools.launch.programs import run_launch
from nkitools.record.run import Run
from nkitools.rules.finding import not_modelled


def simulate(
    kernel: Any,
    *arrays: Any,
    grid: Any = None,
    chip: str | None = None,
    ranks: int | None = None,
    rules: str | None = None,
    **kwargs: Any,
) -> Run:
    """Run ``kernel`` (a kernel object of either dialect, or a plain function in the modern dialect) on CPU.

    ``grid``: the launch grid, an int or ints; ``chip``: ``trn1 inf2 trn2 trn3`` or ``gen2 gen3 gen4`` (default: the option, AWS's
    environment variables, else trn2); ``rules``: ``"error"`` raises `KernelError` at the first error-level finding, ``"report"``
    collects, ``"off"`` runs bare. Other keywords go to the kernel. Returns a `Run`.
    """
    __tracebackhide__ = True
    if ranks is not None:
        not_modelled(f"simulate(ranks={ranks!r}) (communicating ranks) is not modelled yet")
    if not callable(kernel) and not isinstance(kernel, KernelObject):
        raise TypeError(
            f"kernel: simulate needs a kernel or a function, it is given {type(kernel).__name__}. "
            "Call nkitools.simulate(kernel, *arrays)."
        )
    launch = as_launch(kernel, grid=grid, chip=chip, rules=rules)
    return run_launch(launch, arrays, kwargs)
