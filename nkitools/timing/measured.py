"""A measured execution beside the estimate of its kernel: latency, engines, HBM traffic and the author's lines."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nkitools.facts.generations import generation_of
from nkitools.timing.durations import ENGINES, LEFT_OUT
from nkitools.timing.knobs import knobs_of
from nkitools.timing.timeline import Timeline, timeline_of

if TYPE_CHECKING:
    from nkitools.record.run import Run
    from nkitools.record.time_estimate import Estimate
    from nkitools.timing.profile import Profile


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A figure, measured and estimated; None where one of the two has none."""

    name: str  # "latency", an engine, a kind of traffic, or a line with its engine
    unit: str  # "us" or "bytes"
    measured: float | None
    estimated: float | None

    @property
    def error(self) -> float | None:
        """Return how far the estimate is off, as a share of the measured figure."""
        return None if not self.measured or self.estimated is None else self.estimated / self.measured - 1


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A profile beside an estimate."""

    schema: str  # the version of the profile's schema
    instance: str  # the type of the instance, '' where the profile has none
    is_simulated: bool  # whether the compiler simulated it, so that nothing was measured
    latency: Beside
    engines: tuple[Beside, ...]  # that work in either of the two
    traffic: tuple[Beside, ...]  # read from HBM, and written to it
    lines: tuple[Beside, ...]  # the author's lines, each engine apart, the longest first
    is_within_band: bool  # whether the measured latency lies between the bounds of the estimate

    def as_plain(self) -> dict[str, Any]:
        """Return the figures as dictionaries, lists, texts and numbers."""
        return asdict(self)


def beside(run: Run, estimate: Estimate, profile: Profile) -> Measured:
    """Return the figures of a profile beside those of the estimate of a run."""
    chip = generation_of(run.chip)
    measured, estimated = profile.engines, {(use.core, use.engine): use.busy_us for use in estimate.engines}
    cores = max(core for core, _ in [*measured, *estimated]) > 0
    engines = [
        Beside(name=f"core {key[0]} {key[1]}" if cores else key[1], unit="us", measured=measured.get(key), estimated=us)
        for key, us in ({**dict.fromkeys(measured), **estimated}).items()
        if us or measured.get(key)
    ]
    lines = _by_line(timeline_of(run, chip, knobs_of(chip)))
    both = [
        Beside(name=f"{key[0]}:{key[1]} {key[2]}", unit="us", measured=profile.lines.get(key), estimated=lines.get(key))
        for key in {**profile.lines, **lines}
    ]
    read, written = (sum(getattr(each, name) for each in estimate.traffic) for name in ("read_bytes", "written_bytes"))
    return Measured(
        schema=profile.schema,
        instance=profile.instance,
        is_simulated=profile.is_simulated,
        latency=Beside(name="latency", unit="us", measured=profile.latency_us, estimated=estimate.latency_us),
        engines=tuple(engines),
        traffic=(
            Beside(name="HBM read", unit="bytes", measured=profile.hbm_read_bytes, estimated=read),
            Beside(name="HBM written", unit="bytes", measured=profile.hbm_written_bytes, estimated=written),
        ),
        lines=tuple(sorted(both, key=lambda each: (-max(each.measured or 0, each.estimated or 0), each.name))),
        is_within_band=estimate.lower_us <= profile.latency_us <= estimate.upper_us,
    )


def _by_line(timeline: Timeline) -> dict[tuple[str, int, str], float]:
    """Return how long the instructions of each line occupy each engine, by the file's name; transfers their duration.

    A profile has the time of a transfer from its start to its end, and transfers run beside each other.
    """
    found: dict[tuple[str, int, str], float] = defaultdict(float)
    start = 0
    for columns in timeline.columns:
        record, sites = columns.record, columns.sites
        end = start + record.count
        engines = timeline.kinds[start:end]
        times = np.where(
            engines == ENGINES.index("dma"), timeline.work.durations[start:end], timeline.schedule.occupied[start:end]
        )
        keys, which = np.unique(sites * len(ENGINES) + engines, return_inverse=True)
        sums = np.bincount(which.reshape(-1), times, minlength=keys.size)
        for key, nanoseconds in zip(keys.tolist(), sums.tolist(), strict=True):
            site, kind = record.sites[key // len(ENGINES)], key % len(ENGINES)
            if kind != LEFT_OUT and key >= 0:  # instructions without a site have -1
                found[Path(site.file).name, site.line, ENGINES[kind]] += nanoseconds / 1e3
        start = end
    return dict(found)
