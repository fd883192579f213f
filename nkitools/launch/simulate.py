"""``nkitools.simulate``: run a kernel on the builtin simulator and return what happened."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from nkitools.chip.argument_types import Argument, Grid, Kernel
from nkitools.facts import options
from nkitools.launch.kept_arguments import Keeping, must_have_parameters, severity_of_changes
from nkitools.launch.kernel import as_launch
from nkitools.launch.programs import run_launch
from nkitools.launch.tracebacks import AuthorsTraceback
from nkitools.record.run import Run

if TYPE_CHECKING:
    from nkitools.record.watch.probes import Watch


def simulate(
    kernel: Kernel,
    /,
    *arrays: Argument,
    grid: Grid | None = None,
    chip: str | None = None,
    nki_version: str | None = None,
    ranks: int | None = None,
    rules: str | None = None,
    sum_order: str | None = None,
    watch: Watch | None = None,
    replay: str | None = None,
    mutates: str | Sequence[str] = (),
    **kwargs: Argument,
) -> Run:
    """Run ``kernel`` (a kernel object of either dialect, or a plain function of the modern dialect) on CPU.

    - ``grid``: the launch grid, an int or ints; for a modern kernel the LNC degree, 1 or 2 (default: that of
      ``kernel[grid]``, else of ``NEURON_LOGICAL_NC_CONFIG`` under NKI 0.7, else one program without a grid).
    - ``chip``: such as ``trn1`` or ``gen2`` (default: the option, else AWS's environment variables, else trn2).
    - ``nki_version``: the NKI version that the kernel is checked for (default: the option, else ``auto``, the newest).
    - ``rules``: ``"error"`` raises `KernelError` at the first finding that is an error, ``"strict"`` also at a warning;
      ``"report"`` collects findings and goes on (the result of a refused instruction is undefined; outputs are None if
      the run cannot go on); ``"off"`` raises only for a call that cannot be computed (default: the option, else
      ``error``). `NotModelled` is raised at every level.
    - ``sum_order``: ``"chip"`` adds float32 along free axes in the order of elements, as a chip does; ``"fast"``
      pairwise, as NumPy does (default: the option, else ``fast``).
    - ``mutates``: a name, or names, of parameters whose arrays the kernel may change. Other arrays keep their values
      (but for those that a legacy kernel may change); a modern kernel that changes one and does not return it breaks
      NK409.
    - ``watch``: the name of a tensor (``*`` and ``?`` are wildcards), a line (``"giou.py:57"``), several of them in a
      list or with commas, or a mapping of them to ``"*"`` (every write), loop counters ``{"m": 3}`` or a function of
      the `Print` that returns whether to keep it. Every such write
      becomes a device print of the run, with the name or the line as prefix. After the run each watch that recorded
      nothing gives a `WatchWarning`.

    Other keywords go to the kernel; pass a kernel's parameter with one of these names by position. Arrays are NumPy's,
    torch's (on CPU) or jax's, and the results are of the same kind. Exceptions of the kernel pass through. TypeError if
    ``kernel`` cannot be called, TypeError or ValueError for a wrong setting, `KernelError` for arguments that do not
    fit the kernel (NK609) and for another LNC degree (NK613).

    ``replay`` does nothing, and the next version refuses it: every run runs the kernel's Python.

    ``ranks=N``: N communicating ranks (``nki.collectives``) run the kernel, each on as many cores as the grid has. Pass
    one tuple or list of arguments for each rank, ``simulate(kernel, (x0, w), (x1, w), ranks=2)``; keywords go to every
    rank. The outputs are a tuple with those of each rank. An array given to several ranks may only be read. TypeError
    or ValueError for other forms.
    """
    __tracebackhide__ = True
    with AuthorsTraceback():
        if replay is not None:
            options.check_replay(replay)
        given: object = kernel  # whatever its type says
        if not callable(given):
            raise TypeError(
                f"kernel: simulate needs a kernel or a function, it is given {type(kernel).__name__}. "
                "Call nkitools.simulate(kernel, *arrays)."
            )
        names = (mutates,) if isinstance(mutates, str) else tuple(mutates)
        keeping = _kept_but_for(names, severity_of_changes())
        launch = as_launch(
            kernel, grid=grid, chip=chip, nki_version=nki_version, rules=rules, sum_order=sum_order, keeping=keeping
        )
        if names:
            must_have_parameters(launch.name, launch.function, names)
        if ranks is not None:
            from nkitools.launch.ranks import arguments_by_rank, run_ranks

            started = partial(run_ranks, launch, arguments_by_rank(ranks, arrays), kwargs)
        else:
            started = partial(run_launch, launch, arrays, kwargs)
        if watch is None:
            return started()
        from nkitools.record.watch.probes import WatchWarning, probing

        with probing(watch) as probes:
            run = started()
    for complaint in probes.complaints():
        warnings.warn(complaint, WatchWarning, stacklevel=2)
    return run


@lru_cache(64)
def _kept_but_for(names: tuple[str, ...], severity: str) -> Keeping:
    return Keeping(frozenset(names), severity)
