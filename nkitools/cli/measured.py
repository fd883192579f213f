"""``nkitools estimate --measured``: a profile of the same kernel beside its estimate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import click

from nkitools.chip.generations import GENERATIONS, generation_of
from nkitools.report.estimate_text import us
from nkitools.timing.calibration import CalibrationRow, join
from nkitools.timing.profile import Profile, ProfileError, read_profile

if TYPE_CHECKING:
    from nkitools.record.run import Run
    from nkitools.record.time_estimate import Estimate


def profile_of(folder: Path) -> Profile:
    """Return the profile of a folder; UsageError where it cannot be read."""
    try:
        return read_profile(folder)
    except (ProfileError, ModuleNotFoundError) as error:
        raise click.UsageError(str(error)) from None


def chip_of(profile: Profile, chips: list[str]) -> str | None:
    """Return the chip to estimate for: that of the profile, else the one that was asked for, None for neither.

    UsageError for several chips, and for another one than that of the profile.
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
    file: Path, run: Run, estimate: Estimate, profile: Profile, settings: Mapping[str, object], folder: Path
) -> str:
    """Write the measured latency into a calibration file, and return a sentence about the file's rows.

    UsageError for a simulated profile, and for a file that is no calibration file or cannot be written.
    """
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
