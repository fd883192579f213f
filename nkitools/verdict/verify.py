"""``nkitools.verify``: one verdict for one kernel, and how sure it is."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nkitools.chip.argument_types import Argument, Grid, Kernel
from nkitools.comparison.form import NothingCompared, must_be_another
from nkitools.comparison.rule import stated_rule
from nkitools.facts.case_space import Space
from nkitools.kernel_file import BadRequest
from nkitools.launch.kernel import grid_of
from nkitools.launch.ranks import arguments_by_rank
from nkitools.platforms import IS_MACOS
from nkitools.processes import checked_seconds
from nkitools.sweeps.sweep import chips_of
from nkitools.verdict.bench import Bench, JudgedRun
from nkitools.verdict.checks import of_first_run, rows_of
from nkitools.verdict.child import Gone, Raised
from nkitools.verdict.rows import FAIL, Row, Verdict
from nkitools.verdict.subject import OfProcess, Subject
from nkitools.verdict.sureness import how_sure
from nkitools.verdict.trial import Asked, Trial

SECONDS = 60.0
_OF_MUTANTS = 0.2  # of the time, at most
_MOST_OF_MUTANTS = 5.0  # seconds


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a verdict, as `verify` has them."""

    chips: tuple[str, ...] = ()
    mutates: tuple[str, ...] = ()
    rtol: float | None = None
    atol: float | None = None
    max_traffic: float | None = None
    seconds: float = SECONDS
    seed: int = 0
    fail_fast: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a ``max_traffic`` that no kernel can meet or miss, and for a seed that draws nothing."""
        most: Any = self.max_traffic
        seed: Any = self.seed
        if most is not None and not (isinstance(most, (int, float, np.number)) and 0 < most < math.inf):
            raise ValueError(f"max_traffic: must be a finite number above 0, it is {most!r}")
        if not isinstance(seed, (int, np.integer)) or seed < 0:
            raise ValueError(f"seed: must be an integer of at least 0, it is {seed!r}")


def verify(
    kernel: Kernel,
    /,
    *arrays: Argument,
    reference: Argument,
    inputs: Callable[..., Any] | None = None,
    space: Space | None = None,
    chips: str | Sequence[str] = (),
    grid: Grid | None = None,
    ranks: int | None = None,
    mutates: str | Sequence[str] = (),
    rtol: float | None = None,
    atol: float | None = None,
    max_traffic: float | None = None,
    seconds: float = SECONDS,
    seed: int = 0,
    fail_fast: bool = False,
    **kwargs: Argument,
) -> Verdict:
    """Return one verdict on a kernel: rows of pass, fail and unknown, and how sure they are.

    ``reference``: a function of the kernel's arguments that returns the right outputs; or the right outputs as arrays,
    with which rows that try other arguments are unknown. ``inputs(rng)`` draws other arguments of the same shapes; its
    parameters with names of ``space`` get the values of a case. Without ``inputs`` the given floats change places and
    shrink by up to 10 %. ``seed``: of all that is drawn. ``chips``: the kernel runs on the first one (default: that of
    `nkitools.simulate`; for Pallas v5e), and once on each other one for its rules. ``grid`` and ``ranks``: those of
    `nkitools.simulate`; other keywords go to the kernel. ``mutates``: the parameters whose arrays the kernel may
    change. ``rtol`` and ``atol``: as of `run_kernel`. ``max_traffic``: the row ``traffic`` fails if more than so many
    times the least bytes move from and to HBM; None: it does not fail. ``seconds``: the time for all rows (at most a
    day); rows that are left then are unknown. ``fail_fast``: whether the first row that fails is the last one. Kernel
    and reference run in a process each; on macOS, or with JAX imported, they run in this one if they cannot be imported
    by name.

    An exception of the kernel is a row that fails. ValueError or TypeError for options that mean nothing; ValueError if
    the reference raises for the given arguments, and if the kernel cannot be tried at all.
    """
    __tracebackhide__ = True
    must_be_another(kernel, reference)
    if inputs is not None and not callable(inputs):
        raise TypeError(f"inputs: must be a function that draws arguments, it is {inputs!r}")
    grid_of(grid)
    if ranks is not None:
        arguments_by_rank(ranks, arrays)
    names = (mutates,) if isinstance(mutates, str) else tuple(mutates)
    subject = OfProcess(kernel, (arrays, kwargs), reference, inputs, space, names)
    asked = Options(
        chips=(chips,) if isinstance(chips, str) else tuple(chips),
        mutates=names, rtol=rtol, atol=atol, max_traffic=max_traffic, seconds=seconds, seed=seed, fail_fast=fail_fast,
    )  # fmt: skip
    found = verdict_of(subject, asked, {"grid": grid, "ranks": ranks})
    if found.stopped:
        raise ValueError(found.stopped)
    return found


def verdict_of(
    subject: Subject,
    asked: Options,
    launch: dict[str, Any],
    on_row: Callable[[Row], None] = lambda row: None,
    *,
    is_here: bool = False,
) -> Verdict:
    """Return the verdict on a kernel; call ``on_row`` with each row as soon as it is known.

    ``is_here``: whether kernel and reference run in this process, as they do if no other one can load them.
    """
    began = time.monotonic()
    checked_seconds(asked.seconds)
    rule = stated_rule(asked.rtol, asked.atol)
    said = {name: value for name, value in launch.items() if value is not None}
    said |= {"chip": asked.chips[0], "chips": asked.chips[:1]} if asked.chips else {}
    is_fork = not (IS_MACOS or "jax" in sys.modules)
    is_here = is_here or (isinstance(subject, OfProcess) and not is_fork and not subject.is_named())
    bench = Bench(subject, said, rule, began + asked.seconds, asked.mutates, is_here=is_here)
    rows: list[Row] = []
    name, sure, stopped = "", dict[str, Any](), ""
    try:
        described, _ = bench.open()
        name = described.name
        asked = replace(asked, chips=chips_of(described.kind, asked.chips))
        sure = _tried(bench, asked, rows, on_row)
    except (BadRequest, Gone, Raised, NothingCompared) as error:
        stopped = str(error)
    finally:
        bench.close()
    return Verdict(name, asked.chips, tuple(rows), sure, stopped, asked.seed, round(time.monotonic() - began, 3))


def _tried(bench: Bench, asked: Options, rows: list[Row], on_row: Callable[[Row], None]) -> dict[str, Any]:
    """Add the rows to ``rows``, and return how sure they are."""
    began = time.monotonic()
    ran = bench.run(bench.known.given)
    seconds = time.monotonic() - began
    trial = Trial(bench, Asked(asked.chips, asked.seed, asked.max_traffic), JudgedRun(bench.known.given, ran), seconds)

    def is_over(row: Row) -> bool:
        rows.append(row)
        on_row(row)
        return asked.fail_fast and row.outcome == FAIL

    if any(is_over(row) for row in of_first_run(trial)) or ran.half is None:
        return {}
    if any(is_over(row) for row in rows_of(trial)):
        return {}
    right = [each for each in (trial.first, *trial.right) if each.outcome == "pass"]
    most = min(_MOST_OF_MUTANTS, _OF_MUTANTS * asked.seconds, max(bench.left, 0.0))
    return how_sure(bench, _few(right), asked.seed, seconds, time.monotonic() + most) if right else {}


def _few(right: list[Any]) -> list[Any]:
    """Return the runs that a mistake is tried on: the first two and the last of ``right``."""
    return right if len(right) <= 3 else [right[0], right[1], right[-1]]
