"""``run.tolerance()``: the error of each output that the dtypes, sums and functions of a run explain.

The run is shadowed in float64 without casts, once as it is, and some times with errors drawn at random: each cast errs
by a rounding of its dtype, each sum by what float32 loses in so many terms, each function by a few steps of float32.
How far these errors spread, cancel and grow is then what the instructions make of them, element by element.
"""

from __future__ import annotations

from contextvars import Context
from dataclasses import replace

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.chip.rounding_noise import with_noise
from nkitools.comparison.bounds import bound_of, most_relative
from nkitools.comparison.dtype_table import limits_of
from nkitools.facts import options
from nkitools.launch.second_run import Again
from nkitools.precision.runs import Half, Values, arrays_in, run_half
from nkitools.record.columns import Columns
from nkitools.record.explained_errors import ExplainedError, ExplainedErrors
from nkitools.record.run import Run

_TIMES = 3  # runs with errors at random
_SAFETY = 2.0  # times the largest error that was seen
_MOST = 0.9  # of the elements, whose error is taken for relative


def explained_errors(run: Run) -> ExplainedErrors:
    """Return the errors that a run of this process explains.

    ValueError for a run that cannot be repeated: of ranks, out of a file or of a device, ended by an error, or with
    other arguments by now.
    No collector and no watch of the caller looks at the runs that are made here.
    """
    return Context().run(_apart, run)


def _apart(run: Run) -> ExplainedErrors:
    with options.override(watch=None, schedule_seed=None):
        return _explained_errors(run)


def _explained_errors(run: Run) -> ExplainedErrors:
    again = run.again
    if not isinstance(again, Again) or run.records or run.error is not None:
        raise ValueError(
            f"{run.kernel}: a tolerance is known of runs that this process has simulated to their end, without ranks"
        )
    args, kwargs = again.arguments() or again.arguments_now()
    launch = replace(again.launch, chip=run.chip, rules="off")
    half = run_half(launch, "precise", args, kwargs)
    given = _arrays(half)
    if not _is_repeated(run, half):
        raise ValueError(f"{run.kernel}: the arguments have changed since, so that its tolerance is not known")
    right = _arrays(run_half(launch, "float64", args, kwargs))
    drawn = []
    for seed in range(_TIMES):
        with with_noise(seed):
            drawn.append(_arrays(run_half(launch, "float64", args, kwargs)))
    through = _coarsest(half.run)
    return ExplainedErrors(
        tuple(
            _through(
                through,
                _explained(
                    name, values.dtype, right[name].array, [values.array, *(each[name].array for each in drawn)]
                ),
            )
            for name, values in given.items()
            if name in right and right[name].array.shape == values.array.shape
        )
    )


def _arrays(half: Half) -> dict[str, Values]:
    """Return the outputs of a run, and the arguments that it has written, by name."""
    written = sorted(half.changed - half.returned)
    return {**half.outputs, **{name: half.arguments[name] for name in written}}


def _is_repeated(run: Run, half: Half) -> bool:
    """Compare the results of a run with those of its repetition, bit by bit."""
    first = [array for _, (_, array) in arrays_in("output", run.outputs)]
    second = [array for _, (_, array) in arrays_in("output", half.run.outputs)]
    return len(first) == len(second) and all(
        one.tobytes() == other.tobytes() for one, other in zip(first, second, strict=True)
    )


def _coarsest(run: Run) -> str:
    """Return the coarsest dtype of floating-point numbers of the tensors that instructions wrote; '' of none."""
    dtypes = {
        record.storages[each].dtype
        for record in run.all_records
        for each in Columns(record).written_storages
        if each in record.storages
    }
    return max(sorted(dtypes), key=most_relative, default="")


def _through(dtype: str, error: ExplainedError) -> ExplainedError:
    """Return the error of an output with the dtype that its values passed through, if that is coarser than its own."""
    coarser = most_relative(dtype) > most_relative(error.dtype) > 0
    return replace(error, through=dtype) if coarser else error


def _explained(name: str, dtype: str, right: Array, others: list[Array]) -> ExplainedError:
    with np.errstate(all="ignore"):
        errors = [np.abs(each - right) for each in others]
        seen = np.maximum.reduce([np.where(np.isfinite(each), each, 0) for each in errors])
        relative = seen / np.abs(right)
    # Below the smallest normal number the steps of a dtype shrink no further: errors there are absolute ones.
    step, least = _step(dtype)
    with np.errstate(all="ignore"):
        known = relative[np.isfinite(relative) & (np.abs(right) >= least) & (right != 0)]
    rtol = max(step, _SAFETY * float(np.quantile(known, _MOST))) if known.size and step else 0.0
    with np.errstate(all="ignore"):
        beyond = _SAFETY * seen - np.where(np.isfinite(right), rtol * np.abs(right), 0)
    atol = max(0.0, float(beyond.max(initial=0.0)))
    index = np.unravel_index(int(seen.argmax()), seen.shape) if seen.size else ()
    largest = float(seen.max(initial=0.0))
    at = tuple(int(axis) for axis in index)
    bound = bound_of(right, right, dtype)
    most = bound.rtol or 0.0, bound.atol or 0.0
    beyond = (rtol, atol) if rtol > most[0] or atol > most[1] else None
    return ExplainedError(name, dtype, min(rtol, most[0]), min(atol, most[1]), largest, at, right, seen, beyond)


def _step(dtype: str) -> tuple[float, float]:
    """Return the step of a dtype of floating-point numbers above 1, and its smallest normal number; 0 for others."""
    limits = limits_of(dtype)
    return (0.0, 0.0) if limits is None else (float(limits.eps), float(limits.smallest_normal))
