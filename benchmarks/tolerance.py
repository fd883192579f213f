"""``python -m benchmarks.tolerance``: what ``tolerance="auto"`` says of the example kernels, right and with mistakes.

The set is fixed: every NKI kernel of the gallery without ranks on 20 seeds of its arguments, and of each kernel six
mutants of `nkitools mutate`, drawn with seed 0. A mutant is equivalent where its results in float64 are those of the
kernel. It counts where it changes an output by more than ten times the bound of its dtype. It dies where a case is not
passed. ``before``: what the explained error alone, without bounds, says of the same.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from kernels import gallery
from nkitools.comparison.bounds import bound_of
from nkitools.comparison.compared_arrays import compared
from nkitools.comparison.rule import Rule
from nkitools.launch.kernel import as_launch
from nkitools.launch.simulate import simulate
from nkitools.precision.judgement import judged
from nkitools.precision.runs import copied, run_half
from nkitools.record.saved.encoding import leaves
from nkitools.sweeps.mutants.mutate import mutants_in
from nkitools.sweeps.mutants.tests_of_author import module_of_text
from nkitools.targets.imports import stand_in

SEEDS, MUTANTS = 20, 6


def examples() -> list[Any]:
    """Return the kernels of the set."""
    return [each for each in gallery.NKI if not each.ranks]


def arrays(value: Any) -> list[Any]:
    """Return the arrays of a result."""
    return [np.asarray(each) for _, each in leaves(value)]


def shaped(example: Any, args: Any, actual: list[Any]) -> list[Any]:
    """Return what is expected, in the shapes and kinds of what came out, as the example's own comparison has it."""
    expected = arrays(example.reference(*copied(args), **dict(example.keywords)))
    return [
        want.astype(one.dtype) if one.dtype.kind in "iu" and want.dtype.kind == "f" else want
        for one, want in zip(actual, expected, strict=True)
    ]


def verdict(example: Any, kernel: Any, seed: int) -> tuple[str, str, float, str]:
    """Return the outcome, the one before, how many times the bound the worst element is off, and what is derived."""
    args = example.arguments(np.random.default_rng(seed))
    chip, keywords = example.chips[-1], dict(example.keywords)
    try:
        run = simulate(kernel, *copied(args), chip=chip, rules="report", **keywords)
        if any(each.severity == "error" for each in run.findings) or run.outputs is None:
            return "finding", "finding", np.inf, ""
        actual = arrays(run.outputs)
        expected = shaped(example, args, actual)
    except Exception as error:  # a mutant may raise anything
        return type(error).__name__, type(error).__name__, np.inf, ""
    explained = cache(partial(tolerances, run))
    outcomes, before, times, derived = set[str](), set[str](), 0.0, []
    for place, (one, want) in enumerate(zip(actual, expected, strict=True)):
        found = judged("output", one, want, Rule(), partial(of_output, explained, place))
        outcomes.add(found.outcome)
        before.add("pass" if as_before(one, want, explained, place) else "wrong")
        if not found.elements.message:
            bound = bound_of(one, want)
            wide = np.asarray(want, np.float64)
            limit = (bound.atol or 0.0) + (bound.rtol or 0.0) * np.abs(wide)
            with np.errstate(all="ignore"):
                off = np.where(found.elements.distance > 0, found.elements.distance / limit, 0)
            times = max(times, float(np.nan_to_num(off, nan=np.inf).max(initial=0.0)))
        each = of_output(explained, place) if not found.elements.agree or "--derive" in sys.argv else None
        derived.append("" if each is None else f"{each.dtype} rtol={each.rtol:.2g} atol={each.atol:.2g}")
    worst = next((each for each in ("wrong", "undecided") if each in outcomes), "pass")
    return worst, "wrong" if "wrong" in before else "pass", times, "; ".join(filter(None, derived))


def alternatives(example: Any, args: Any, place: int) -> Any:
    """Return the reference's other values of an output, under choices that rounding may flip."""
    return ()


def tolerances(run: Any) -> tuple[Any, ...]:
    """Return what a run explains of each output."""
    try:
        return tuple(run.tolerance().outputs)
    except ValueError:
        return ()


def of_output(explained: Any, place: int) -> Any:
    """Return what a run explains of one output."""
    return explained()[place] if place < len(explained()) else None


def as_before(one: Any, want: Any, explained: Any, place: int) -> bool:
    """Return whether the explained error alone, whatever its size, takes an output for right."""
    if one.shape != want.shape:
        return False
    if compared(one, want).agree:
        return True
    each = of_output(explained, place)
    return each is not None and compared(one, want, Rule(each.rtol, each.atol)).agree


def is_equivalent(example: Any, right: Any, wrong: Any) -> bool:
    """Return whether two kernels give the same in float64."""
    args = example.arguments(np.random.default_rng(0))
    halves = []
    for kernel in (right, wrong):
        launch = replace(as_launch(kernel, chip=example.chips[-1]), rules="off")
        halves.append(run_half(launch, "float64", args, dict(example.keywords)))
    first, second = (list(half.outputs.values()) for half in halves)
    return len(first) == len(second) and all(
        one.array.shape == other.array.shape and compared(one.array, other.array, Rule(1e-12, 1e-300)).agree
        for one, other in zip(first, second, strict=True)
    )


def mutants(example: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the mutants of the set, each with its kernel."""
    function = example.place.partition(":")[2]
    file = str(Path(gallery.__file__).parent.joinpath(*example.place.partition(":")[0].split(".")).with_suffix(".py"))
    try:
        every = mutants_in(file, function)
    except ValueError:
        return
    chosen = np.random.default_rng(0).permutation(len(every))[:MUTANTS]
    for number in sorted(chosen.tolist()):
        try:
            found = getattr(module_of_text(file, every[number].text), function)
        except Exception:
            continue
        yield every[number], found[example.programs] if example.programs else found


def main() -> int:
    """Measure and show."""
    counts: Counter[str] = Counter()
    said = []
    for example in examples():
        right = [verdict(example, example.kernel, seed) for seed in range(SEEDS)]
        outcomes, before = Counter(each[0] for each in right), Counter(each[1] for each in right)
        derived = next((each[3] for each in right if each[3]), "")
        print(f"{example.name:20} {dict(outcomes)}; before {dict(before)} {derived}", flush=True)
        for outcome, name in ((outcomes, "now"), (before, "before")):
            counts[f"right kernels that fail {name}"] += any(each not in ("pass", "undecided") for each in outcome)
            counts[f"right kernels undecided {name}"] += "undecided" in outcome
        for mutant, kernel in mutants(example):
            try:
                if is_equivalent(example, example.kernel, kernel):
                    counts["equivalent mutants"] += 1
                    continue
            except Exception:  # it raises, as it will below
                counts["mutants that raise"] += 1
            outcome, earlier, times, _ = verdict(example, kernel, 0)
            if times <= 10:
                counts["mutants below ten bounds"] += 1
                continue
            counts["mutants that count"] += 1
            counts["die now"] += outcome != "pass"
            counts["die before"] += earlier != "pass"
            counts["undecided mutants"] += outcome == "undecided"
            if outcome == "pass" or earlier == "pass":
                said.append(
                    f"{example.name}:{mutant.line} {mutant.operator} {mutant.change}: {outcome}, before {earlier}"
                )
    print("\n".join(said))
    print(json.dumps(counts, indent=1))
    return 0


if __name__ == "__main__":
    with stand_in("always"):
        sys.exit(main())
