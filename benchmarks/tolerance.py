"""``python -m benchmarks.tolerance``: what ``tolerance="auto"`` says of the example kernels, right and with mistakes.

The set is fixed: every NKI kernel of the gallery without ranks on 20 seeds of its arguments, and of each kernel six
mutants of `nkitools mutate`, drawn with seed 0. Each mutant runs with its rules off, first in float64 (the judge, no
rounding), then as it is, where only its numbers are compared. It is equivalent where its float64 run gives what the
kernel's gives; it counts where that run is off by more than ten times the bound of the output's dtype; it dies where
the comparison does not pass. A mutant without values in float64 only raises: it is counted apart, as no tolerance has
a part in it. ``--list FILE`` writes a line a mutant.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from kernels import gallery
from nkitools.comparison.bounds import bound_of
from nkitools.comparison.compared_arrays import compared
from nkitools.comparison.rule import Rule
from nkitools.edits.candidates import candidates_in
from nkitools.edits.source import Source
from nkitools.launch.kernel import as_launch
from nkitools.launch.simulate import simulate
from nkitools.precision.judgement import judged
from nkitools.precision.runs import Values, copied, run_half
from nkitools.precision.tied_choices import TiedChoices
from nkitools.record.saved.encoding import leaves
from nkitools.sweeps.mutate import USUAL
from nkitools.sweeps.tests_of_author import module_of_text
from nkitools.targets.imports import stand_in

SEEDS, MUTANTS, TIMES = 20, 6, 10.0
EQUIVALENT = Rule(1e-12, 1e-300)


@dataclass(frozen=True)
class Judgement:
    """A mutant: its place, the distance of its float64 run from the kernel's in bounds, and what is said of it."""

    kernel: str
    line: int
    operator: str
    change: str
    distance: float  # inf: another shape, NaN elsewhere, or no values
    kind: str  # "counts", "small", "equivalent", "raises"
    verdict: str  # of the comparison alone, or the exception
    findings: str  # the rules that speak of it
    dies: bool

    def row(self) -> str:
        """Return the fields, tabs between them."""
        change = " ".join(self.change.split())
        fields = (self.kernel, self.line, self.operator, change, f"{self.distance:.3g}", self.kind, self.verdict)
        return "\t".join(map(str, (*fields, self.findings or "-", "dies" if self.dies else "lives")))


def examples(names: Sequence[str] = ()) -> list[Any]:
    """Return the kernels of the set, or those of some names."""
    found = [each for each in gallery.NKI if not each.ranks and (not names or each.name in names)]
    missing = set(names) - {each.name for each in found}
    if missing:
        raise SystemExit(f"no kernel of the gallery without ranks is called {', '.join(sorted(missing))}")
    return found


def arrays(value: Any) -> list[Any]:
    """Return the arrays of a result."""
    return [np.asarray(each) for _, each in leaves(value)]


def shaped(example: Any, actual: list[Any], *args: Any) -> list[Any]:
    """Return what is expected, in the kinds of the outputs, as the example's own comparison has it."""
    expected = arrays(example.reference(*args, **dict(example.keywords)))
    return [
        want.astype(one.dtype) if one.dtype.kind in "iu" and want.dtype.kind == "f" else want
        for one, want in zip(actual, expected, strict=True)
    ]


def verdict(example: Any, kernel: Any, seed: int, rules: str = "report") -> tuple[str, str]:
    """Return the outcome of a run beside its reference, ``finding`` or an exception, and the rules that it breaks."""
    args = example.arguments(np.random.default_rng(seed))
    try:
        run = simulate(kernel, *copied(args), chip=example.chips[-1], rules=rules, **dict(example.keywords))
        broken = sorted({each.rule for each in run.findings if each.severity == "error"})
        if broken or run.outputs is None:
            return "finding", " ".join(broken)
        actual = arrays(run.outputs)
        expected = shaped(example, actual, *copied(args))
    except Exception as error:  # a mutant may raise anything
        return type(error).__name__, ""
    explained = cache(partial(tolerances, run))
    ties = TiedChoices(partial(shaped, example, actual), args, {})
    outcomes = {
        judged("output", one, want, Rule(), partial(of_output, explained, place), "", partial(ties.of, place)).outcome
        for place, (one, want) in enumerate(zip(actual, expected, strict=True))
    }
    return next((each for each in ("wrong", "undecided") if each in outcomes), "pass"), ""


def tolerances(run: Any) -> tuple[Any, ...]:
    """Return what a run explains of each output."""
    try:
        return tuple(run.tolerance().outputs)
    except ValueError:
        return ()


def of_output(explained: Callable[[], tuple[Any, ...]], place: int) -> Any:
    """Return what a run explains of one output."""
    return explained()[place] if place < len(explained()) else None


def in_float64(example: Any, kernel: Any) -> list[Values]:
    """Return the outputs of a kernel without rounding and without rules, on the first seed."""
    args = example.arguments(np.random.default_rng(0))
    launch = replace(as_launch(kernel, chip=example.chips[-1]), rules="off")
    return list(run_half(launch, "float64", args, dict(example.keywords)).outputs.values())


def distance(right: list[Values], wrong: list[Values]) -> float:
    """Return how many times the bound of its dtype the worst element of any output is off; 0 for the same values."""
    if [each.array.shape for each in right] != [each.array.shape for each in wrong]:
        return np.inf
    return max((_distance(one, other) for one, other in zip(right, wrong, strict=True)), default=0.0)


def _distance(right: Values, wrong: Values) -> float:
    found = compared(wrong.array, right.array, EQUIVALENT)
    if found.agree:
        return 0.0
    bound = bound_of(right.array, right.array, right.dtype)
    with np.errstate(all="ignore"):
        limit = (bound.atol or 0.0) + (bound.rtol or 0.0) * np.abs(right.array)
        off = np.where(found.wrong, np.abs(wrong.array - right.array) / limit, 0)
    return float(np.nan_to_num(off, nan=np.inf, posinf=np.inf).max(initial=0.0))


def judgement(example: Any, mutant: Any, kernel: Any, right: list[Values]) -> Judgement:
    """Return what its float64 run, the comparison and the rules say of a mutant."""
    place = example.name, mutant.line, mutant.kind, mutant.change
    _, findings = verdict(example, kernel, 0)
    try:
        far = distance(right, in_float64(example, kernel))
    except Exception as error:  # a mutant may raise anything
        return Judgement(*place, np.inf, "raises", type(error).__name__, findings, dies=True)
    outcome, _ = verdict(example, kernel, 0, rules="off")
    kind = "counts" if far > TIMES else "small" if far else "equivalent"
    return Judgement(*place, far, kind, outcome, findings, dies=outcome != "pass")


def mutants(example: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the mutants of the set, each with its kernel."""
    function = example.place.partition(":")[2]
    file = str(Path(gallery.__file__).parent.joinpath(*example.place.partition(":")[0].split(".")).with_suffix(".py"))
    try:
        every = candidates_in(Source(Path(file).read_text(encoding="utf-8"), Path(file).stem), function, USUAL)
    except ValueError:
        return
    chosen = np.random.default_rng(0).permutation(len(every))[:MUTANTS]
    for number in sorted(chosen.tolist()):
        try:
            found = getattr(module_of_text(file, every[number].text), function)
        except Exception:
            continue
        yield every[number], found[example.programs] if example.programs else found


def of_right_kernels(example: Any, seeds: int) -> Counter[str]:
    """Show and count the outcomes of a right kernel."""
    outcomes = Counter(verdict(example, example.kernel, seed)[0] for seed in range(seeds))
    print(f"{example.name:20} {dict(outcomes)}", flush=True)
    failing = any(each not in ("pass", "undecided") for each in outcomes)
    return Counter({"right kernels that fail": failing, "right kernels undecided": "undecided" in outcomes})


def of_mutants(found: list[Judgement]) -> dict[str, int]:
    """Return how many mutants there are of each kind, and how many of those that count die."""
    kinds = Counter(each.kind for each in found)
    far = [each for each in found if each.kind == "counts"]
    return {
        "mutants": len(found),
        "mutants that only raise": kinds["raises"],
        "mutants that are equivalent": kinds["equivalent"],
        "mutants below ten bounds": kinds["small"],
        "mutants that count": len(far),
        "of these die by numbers": sum(each.dies for each in far),
        "of these undecided": sum(each.verdict == "undecided" for each in far),
        "of these die by numbers or a finding": sum(each.dies or bool(each.findings) for each in far),
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tolerance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kernels", nargs="*", help="kernels of the gallery by name (default: all)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"seeds of each right kernel (default {SEEDS})")
    parser.add_argument("--list", type=Path, metavar="FILE", help="write a line a mutant, tabs between its fields")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and show."""
    options = _options(arguments)
    counts: Counter[str] = Counter({"right kernels": 0})
    found: list[Judgement] = []
    for example in examples(options.kernels):
        counts["right kernels"] += 1
        counts.update(of_right_kernels(example, options.seeds))
        right = in_float64(example, example.kernel)
        found += [judgement(example, mutant, kernel, right) for mutant, kernel in mutants(example)]
    if options.list is not None:
        options.list.write_text("".join(f"{each.row()}\n" for each in found), encoding="utf-8")
    print("\n".join(each.row() for each in found if each.kind == "counts" and not each.dies))
    print(json.dumps(counts | of_mutants(found), indent=1))
    return 0


if __name__ == "__main__":
    with stand_in("always"):
        sys.exit(main())
