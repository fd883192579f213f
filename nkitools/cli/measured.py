"""``nkitools estimate --measured``: a profile of the same kernel beside its estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import click

from nkitools.facts.generations import GENERATIONS, generation_of
from nkitools.report.estimate_text import beside_text, us
from nkitools.timing.benchmark_file import TimedCall, timed_calls
from nkitools.timing.calibration import CalibrationRow, join
from nkitools.timing.profile import Profile, ProfileError, read_profile

if TYPE_CHECKING:
    from nkitools.record.run import Run
    from nkitools.record.time_estimate import Estimate


def profile_of(folder: Path) -> Profile:
    """Return the profile of a folder. UsageError if it cannot be read."""
    try:
        return read_profile(folder)
    except (ProfileError, ModuleNotFoundError) as error:
        raise click.UsageError(str(error)) from None


def calls_of(file: Path, kernel: str, chips: Sequence[str]) -> tuple[list[TimedCall], str]:
    """Return the measurements of a kernel in a benchmark's file, and their chip: the one asked for, else the file's.

    UsageError if the file has none.
    """
    if len(chips) > 1:
        raise click.UsageError("--measured is of one chip: name one, or none to take the file's")
    try:
        found = timed_calls(file, kernel)
    except (OSError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    here = list(dict.fromkeys(each.chip for each in found))
    chip = chips[0] if chips else here[0] if len(here) == 1 else ""
    if not chip or generation_of(chip) not in map(generation_of, here):
        raise click.UsageError(
            f"{file} has measurements of {kernel} on {', '.join(here) or 'no chip'}: name one, --chip"
        )
    return [each for each in found if generation_of(each.chip) == generation_of(chip)], chip


def call_of(run: Run, calls: list[TimedCall]) -> TimedCall:
    """Return the last measurement with the arguments of a run. UsageError if there is none."""
    arrays = [each for record in run.all_records for each in record.storages.values() if each.is_given]
    here = ", ".join(f"{each.dtype}[{','.join(map(str, each.shape))}]" for each in arrays)
    fitting = [each for each in calls if each.arguments == here]
    if not fitting:
        there = "; ".join(dict.fromkeys(each.arguments for each in calls))
        raise click.UsageError(f"the arguments are {here} here, and were {there} where the kernel was measured")
    return fitting[-1]


def call_text(call: TimedCall, estimate: Estimate) -> str:
    """Return the measured latency beside the estimate; if only the host's rounds were measured, a sentence on them."""
    if call.latency_us is None:
        return (
            f"{call.test}: the time of the device was {call.how}.\n  A round trip of the host took "
            f"{us(call.round_trip_us)} and more, which says nothing of the kernel."
        )
    is_within = estimate.lower_us <= call.latency_us <= estimate.upper_us
    lines = (
        f"{call.how} on {call.chip} ({call.test}), beside the estimate:",
        f"  {'':34}{'measured':>14}{'estimated':>14}",
        beside_text(call.beside(estimate.latency_us)),
        f"  the latency lies {'inside' if is_within else 'outside'} the band of the estimate",
    )
    return "\n".join(lines)


def chip_of(profile: Profile, chips: Sequence[str]) -> str | None:
    """Return the chip to estimate for: the profile's, else the one asked for; None for neither.

    UsageError for several chips, and for another one than the profile's.
    """
    if len(chips) > 1:
        raise click.UsageError("--measured is of one chip: name one, or none to take the profile's")
    asked = chips[0] if chips else None
    own = _chip_of_instance(profile.instance)
    if asked and own and generation_of(asked) != generation_of(own):
        raise click.UsageError(f"the profile is of {profile.instance}, not of {asked}")
    return asked or own


def _chip_of_instance(instance: str) -> str | None:
    """Return the chip of a type of instance, as in ``trn1n.32xlarge`` and ``inf2.xlarge``; None for an unknown one."""
    return next((chip for chip in GENERATIONS if instance.startswith(chip)), None)


def joined(
    file: Path, run: Run, estimate: Estimate, profile: Profile | TimedCall, settings: Mapping[str, object], folder: Path
) -> str:
    """Write the measured latency into a calibration file, and return a sentence about the file's rows.

    UsageError for a simulated profile, and for a file that is no calibration file or cannot be written.
    """
    if profile.latency_us is None:
        raise click.UsageError("the time of the device was not measured: a round trip does not join a calibration")
    if profile.is_simulated:
        raise click.UsageError("the profile is a simulation of the compiler: it does not join a calibration")
    arrays = [each for record in run.all_records for each in record.storages.values() if each.is_given]
    shapes = " ".join(str(list(each.shape)) for each in arrays)
    named = ",".join(f"{name}={value}" for name, value in settings.items())
    row = CalibrationRow(
        id=f"local/{run.kernel}/{run.chip}/{shapes}/{named}",
        family=run.kernel,
        chip=run.chip,
        shape=shapes,
        dtype=" ".join(dict.fromkeys(each.dtype for each in arrays)),
        source=str(folder),
        published_us=profile.latency_us,
        estimate_us=estimate.latency_us,
        left_out_us=estimate.latency_us,  # no fit has seen the row
        counts=True,
        variants_of=f"{run.kernel} {run.chip} {shapes}",
    )
    try:
        rows = join(file, row)
    except (OSError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    off = median(abs(each.error) for each in rows)
    return f"  {file} has {len(rows)} measured latencies, {us(profile.latency_us)} with them: median error {off:.0%}"
