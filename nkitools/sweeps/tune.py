"""``nkitools.tune``: the variants of a kernel by their estimates, and those to measure on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nkitools.chip.argument_types import Argument, Grid, Kernel
from nkitools.facts.case_space import Space, points_of
from nkitools.kernel_settings import constants_set, with_keywords
from nkitools.launch.simulate import simulate
from nkitools.precision.runs import copied
from nkitools.record.run_listeners import collect_runs
from nkitools.record.time_estimate import Estimate

PROPOSED = 5  # variants to measure on a device
# Of two measured settings whose estimates are closer than this, the order was right in half of the pairs (470 of 990);
# of those up to 10 % apart in 88 %, and of others in all 197 (docs/explanation/time.md).
DISTINGUISHED = 0.05


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One variant of a kernel: its values, and its estimate or the reason why it does not run (``refused``)."""

    values: dict[str, Any]  # by the names of the space
    estimate: Estimate | None  # None where the variant does not run
    refused: str = ""  # why it does not run

    @property
    def latency_us(self) -> float:
        """Return the estimated latency in microseconds, infinite if the variant does not run."""
        return float("inf") if self.estimate is None else self.estimate.latency_us


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The variants of a kernel, those with the least estimates first and those that do not run last."""

    kernel: str
    variants: tuple[Variant, ...]

    @property
    def best(self) -> Variant:
        """Return the variant with the least estimate."""
        return self.variants[0]

    @property
    def proposed(self) -> tuple[Variant, ...]:
        """Return the variants to measure on a device: up to five that run, those with the least estimates."""
        return tuple(each for each in self.variants[:PROPOSED] if each.estimate is not None)

    @property
    def margin(self) -> float | None:
        """Return how much slower the second variant is than the best, 0.1 for 10 %; None if no other variant runs."""
        others = [each for each in self.variants[1:] if each.estimate is not None]
        return others[0].latency_us / self.best.latency_us - 1 if others else None

    @property
    def alike(self) -> tuple[Variant, ...]:
        """Return the best variant and those whose estimates are at most 5 % above its own, too close to rank."""
        most = self.best.latency_us * (1 + DISTINGUISHED)
        return tuple(each for each in self.variants if each.latency_us <= most)

    def __str__(self) -> str:
        lines = [_line(each, "*" if each in self.proposed else " ") for each in self.variants]
        if self.margin is not None:
            lines.append(f"chosen: {_values(self.best)}, {self.margin:.1%} before the next one")
        if len(self.alike) > 1:
            lines.append(
                f"the first {len(self.alike)} cannot be distinguished: their estimates lie within {DISTINGUISHED:.0%}"
            )
        return "\n".join(lines)


def tune(
    kernel: Kernel,
    args: Sequence[Argument],
    *,
    space: Space,
    objective: str = "estimate",
    chip: str | None = None,
    grid: Grid | None = None,
    **kwargs: Argument,
) -> Tuning:
    """Simulate every variant of an NKI kernel, and return them ranked by their estimated latency, without a device.

    ``args``: the kernel's arguments; each variant gets copies. ``space``: the values of each name (a list or a range),
    as a dictionary or a TOML file; all combinations are variants. A name is a keyword of the kernel or a constant of
    its module; values may be of any kind. ``chip``, ``grid`` and other keywords are those of `nkitools.simulate`, or
    arguments of the kernel; ``rules`` is ``"error"`` and cannot be given. Variants that break a rule or raise an error
    come last, with the reason. ValueError if no variant runs, for a space that does not fit, for a name that the kernel
    does not have, and for another ``objective`` than ``"estimate"``; TypeError for ``rules``.
    """
    if "rules" in kwargs:
        raise TypeError(
            "tune takes no rules=: a variant that breaks a rule comes last, with the first one. Call "
            'nkitools.simulate(kernel, ..., rules="report") for all that it breaks.'
        )
    if objective != "estimate":
        raise ValueError(f"objective={objective!r}: there is 'estimate' alone")
    variants = []
    for values in points_of(space):
        own, named = copied((tuple(args), kwargs))
        with constants_set(kernel, values):
            variants.append(_variant(kernel, values, own, {**named, "chip": chip, "grid": grid}))
    ranked = tuple(sorted(variants, key=lambda each: each.latency_us))
    if ranked[0].estimate is None:
        raise ValueError(f"no variant runs; the first one: {variants[0].refused}")
    return Tuning(kernel=ranked[0].estimate.kernel, variants=ranked)


def _variant(kernel: Kernel, values: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Variant:
    with collect_runs() as runs:
        try:
            # Recorded steps of another variant are not this one's: constants of a module are no arguments.
            args, kwargs = with_keywords(kernel, args, kwargs, values)
            run = simulate(kernel, *args, **kwargs, rules="error")
            return Variant(values=values, estimate=run.estimate())
        except Exception as error:  # whatever a variant raises is its own: others may run
            for each in runs:
                each.expected += each.findings  # this is their answer: no code of a test has caught them
            return Variant(values=values, estimate=None, refused=f"{type(error).__name__}: {error}")


def _line(variant: Variant, mark: str) -> str:
    if variant.estimate is None:
        return f"{mark} {_values(variant)}: {variant.refused.splitlines()[0]}"
    return f"{mark} {_values(variant)}: {variant.latency_us:.4g} us"


def _values(variant: Variant) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in variant.values.items())
