"""An estimate of the time that a run would take on its chip, and what bounds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation, generation_of
from nkitools.history.spills import Spilled, spills_of
from nkitools.record.time_estimate import EngineUse, Estimate
from nkitools.timing.advice import advice
from nkitools.timing.bounds import gaps, named_bounds
from nkitools.timing.calibration import family_band, outside, quality
from nkitools.timing.critical_path import critical_path
from nkitools.timing.durations import ENGINES, LEFT_OUT
from nkitools.timing.knobs import is_calibrated, knobs_of
from nkitools.timing.likeness import family_of, likeness
from nkitools.timing.spilling import spilled_traffic, time_with_spills
from nkitools.timing.timeline import Timeline, is_legacy, timeline_of
from nkitools.timing.traffic import bytes_of_loads, matmul_flops, roofline, traffic

if TYPE_CHECKING:
    from nkitools.record.run import Run

ASSUMED = (
    "where the kernel names no engine, tensor_copy, tensor_scalar and reciprocal go to the Vector or the Scalar "
    "Engine, to the one with less to do"
)


def estimate(run: Run, *, advises: bool = True, as_written: bool = False) -> Estimate:
    """Return the estimate of a run, with priced hints where ``advises``.

    ``as_written``: each load of the kernel counts, those that its compiler is assumed to leave out, too.

    ValueError for a run without instructions (what ran elsewhere than in nkitools).
    """
    return estimated(run, advises=advises, as_written=as_written)[0]


def estimated(run: Run, *, advises: bool = True, as_written: bool = False) -> tuple[Estimate, Timeline]:
    """Return the estimate of a run, and the timeline that it was made from.

    ValueError for a run without instructions (what ran elsewhere than in nkitools).
    """
    generation = _generation(run)
    timeline = _timeline(run, generation, as_written=as_written)
    records, knobs, busy = run.all_records, knobs_of(generation), timeline.busy_ns() / 1e3
    columns = timeline.columns
    latency, spilled = _latency(run, timeline, generation)
    without_spills = timeline.span_ns / 1e3 + knobs.launch_us
    unlike = outside(likeness(timeline, without_spills))
    family = family_of(columns, is_legacy=is_legacy(run), spills=any(spilled))
    lower, upper, of_family = family_band(generation, family, len(unlike))
    flow = (*traffic(columns), *spilled_traffic(records, spilled))
    uses = _uses(busy, latency)
    roof = roofline(matmul_flops(columns), flow, latency, generation, timeline.cores)
    path = critical_path(timeline, latency)
    bounds = named_bounds(uses, flow, roof, knobs.launch_us, generation, timeline.cores)
    loaded, left_out = bytes_of_loads(timeline.operations, timeline.left_out)
    found = Estimate(
        kernel=run.kernel,
        chip=run.chip,
        latency_us=latency,
        lower_us=latency * lower,
        upper_us=latency * upper,
        busiest_us=float(busy.max()),
        serial_us=float(timeline.work.durations.sum()) / 1e3,
        named_bounds=bounds,
        gaps=gaps(bounds, uses, path, latency, latency - without_spills),
        loaded_bytes=loaded,
        left_out_bytes=left_out,
        spill_us=latency - without_spills,
        launch_us=knobs.launch_us,
        instructions=timeline.work.engines.size,
        engines=uses,
        traffic=tuple(sorted(flow, key=lambda each: -(each.read_bytes + each.written_bytes))),
        roofline=roof,
        critical_path=path,
        advice=advice(timeline, run.dependences.flow, generation, latency) if advises else (),
        is_calibrated=is_calibrated(generation),
        how_good=_how_good(generation, unlike, of_family),
        assumed=ASSUMED,
    )
    return found, timeline


def latency_of(run: Run) -> float:
    """Return the estimated microseconds of a run alone, in half of the time of an `Estimate`; errors as there."""
    generation = _generation(run)
    return _latency(run, _timeline(run, generation), generation)[0]


def _generation(run: Run) -> Generation:
    if not any(record.count for record in run.all_records):
        raise ValueError(f"the run of {run.kernel} on {run.target} has no instructions whose time could be estimated")
    return generation_of(run.chip)


def _timeline(run: Run, generation: Generation, *, as_written: bool = False) -> Timeline:
    return timeline_of(run, generation, knobs_of(generation), as_written=as_written)


def _latency(run: Run, timeline: Timeline, generation: Generation) -> tuple[float, list[list[Spilled]]]:
    """Return the estimated microseconds of a run, and the tensors of each record that spill."""
    spilled = [[] if is_legacy(run) else spills_of(each.record, each, generation) for each in timeline.columns]
    spent = max(
        timeline.span_ns / 1e3, time_with_spills(run.all_records, spilled, timeline.busy_ns() / 1e3, generation)
    )
    return spent + knobs_of(generation).launch_us, spilled


def _uses(busy: Array, latency: float) -> tuple[EngineUse, ...]:
    return tuple(
        EngineUse(core=core, engine=name, busy_us=float(of_core[at]), share=float(of_core[at]) / latency)
        for core, of_core in enumerate(busy)
        for at, name in enumerate(ENGINES)
        if at != LEFT_OUT
    )


def _how_good(chip: Generation, unlike: tuple[str, ...], of_family: str) -> str:
    good = quality()
    fitted = (
        f"fitted on {good.rows} published latencies of NeuronCore-v2 and v3: median error {good.median:.0%}, nine of "
        f"ten within {good.p90:.0%}; of kinds of kernels that were left out of the fit {good.left_out_median:.0%}"
    )
    if of_family:
        fitted += f"; {of_family}"
    if unlike:
        fitted += f"; the band is wider for what was not calibrated: {', '.join(unlike)}"
    if is_calibrated(chip):
        return fitted
    return f"not calibrated: no latency of {chip.name} is published. The model is {fitted}"
