"""Every door gives one pair of arrays one verdict: agree, or differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import nkitools
from nkitools.cli import main
from nkitools.comparison.compared_arrays import compared
from nkitools.comparison.rule import EXACT, Rule
from nkitools.pallas import unlike_reference
from nkitools.precision.difference import Difference, exact
from nkitools.pytest_plugin.compared_arguments import compared_pairs
from nkitools.record.expected_outputs import Reference
from nkitools.record.run import Run
from nkitools.report.agreement import agreement
from nkitools.report.page import comparison as page_comparison
from nkitools.serve import simulated_file
from nkitools.sweeps import distinguishing
from nkitools.sweeps.checked_call import Case, CheckedCall
from nkitools.why.bisection import bisection_of
from nkitools.why.targets import Expected
from nkitools.why.traced_calls import Call
from tests.comparison import copying
from tests.comparison.asked_pair import PAIR
from tests.comparison.pairs import NAN, PAIRS, Pair, tile, with_one

Door = Callable[[Pair], "bool | None"]  # whether the pair agrees; None: not a pair that can come to this door


def goes_in(pair: Pair) -> bool:
    """Whether a kernel can return the first array."""
    return pair.actual.size > 0 and pair.actual.dtype not in (np.float64, np.int64) and pair.actual.ndim == 2


def rule_of(pair: Pair) -> Rule:
    return Rule(pair.rtol, pair.atol)


def room(pair: Pair) -> bool:
    return compared(pair.actual, pair.expected, rule_of(pair)).agree


def failing_assertion(pair: Pair) -> bool | None:
    """The explanation of a failed numpy.testing assertion, which names the elements that NumPy has not accepted."""
    if not pair.is_stated or pair.expected.shape != pair.actual.shape:
        return None
    rtol, atol = pair.rtol or 0.0, pair.atol or 0.0
    try:
        np.testing.assert_allclose(pair.actual, pair.expected, rtol, atol)
    except AssertionError as failure:
        found = next(compared_pairs(failure.__traceback__))
        near = np.isclose(pair.actual, pair.expected, rtol, atol, equal_nan=True)
        np.testing.assert_array_equal(compared(found.actual, found.expected, found.rule).wrong, ~near)
        return False
    return True


def two_runs(pair: Pair) -> tuple[Run, Run]:
    return Run("k", "builtin", outputs=pair.actual), Run("k", "builtin", outputs=np.asarray(pair.expected))


def runs(pair: Pair) -> bool:
    return not nkitools.compare_runs(*two_runs(pair), rtol=pair.rtol, atol=pair.atol).outputs


def targets(pair: Pair) -> bool:
    return agreement(*two_runs(pair), rtol=pair.rtol, atol=pair.atol).is_same


def saved_runs(pair: Pair, directory: Path) -> bool:
    files = [str(directory / name) for name in ("first.json", "second.json")]
    for run, file in zip(two_runs(pair), files, strict=True):
        run.save(file)
    stated = [f"--{name}={value}" for name, value in (("rtol", pair.rtol), ("atol", pair.atol)) if value is not None]
    result = CliRunner().invoke(main, ["diff", "--format=json", *stated, *files], catch_exceptions=False)
    assert json.loads(result.output)["same"] is (result.exit_code == 0)
    return result.exit_code == 0


def page_of_a_run(pair: Pair) -> bool:
    (found,) = page_comparison.compared(pair.actual, Reference(pair.expected, pair.rtol, pair.atol))
    return not found.message and not found.count


def swept(pair: Pair) -> bool | None:
    if not goes_in(pair):
        return None
    call = CheckedCall(copying.copying, "nki", copying.inputs, copying.expected, pair.rtol, pair.atol)
    return bool(call(Case({}, "trn2"))["outcome"] == "pass")


def agent(pair: Pair) -> bool | None:
    if not goes_in(pair):
        return None
    request = {"file": copying.__file__, "kernel": "copying", "against": "expected"}
    found = simulated_file.compared({**request, "rtol": pair.rtol, "atol": pair.atol})
    json.dumps(found, allow_nan=False)
    return bool(found["agrees"])


def bisected(pair: Pair) -> bool | None:
    """A statement needs a tolerance here: in float64 what is left beside the dtype's rounding is a mistake."""
    if not goes_in(pair) or not pair.is_stated or pair.expected.shape != pair.actual.shape:
        return None
    run = nkitools.simulate(copying.copying, pair.actual.copy())
    call = Call.of_run(run)
    assert call is not None
    rule = Reference(pair.expected, pair.rtol, pair.atol).rule
    return bisection_of(call, Expected(pair.expected, {}, {}, rule)).kind == "right"


def run_kernel_of(fixture: Any) -> Door:
    def door(pair: Pair) -> bool | None:
        if not goes_in(pair):
            return None
        try:
            fixture(copying.copying, pair.actual.copy(), reference=pair.expected, rtol=pair.rtol, atol=pair.atol)
        except AssertionError:
            return False
        return True

    return door


def pallas(pair: Pair) -> bool | None:
    """By dtype a Pallas call may be off by more: by what is possible for sums in its dtype."""
    if not pair.is_stated and pair.name == "float32, a thousandth":
        return None
    try:
        return not unlike_reference.judged(pair.actual, pair.expected, [], rule_of(pair), lambda call: None)
    except ValueError:
        return False


def mutant(pair: Pair) -> bool | None:
    """A mutant's results differ exactly."""
    results = (distinguishing.Results([each], []) for each in (pair.actual, pair.expected))
    return None if rule_of(pair) != EXACT else next(results).is_same(next(results))


def precision(pair: Pair) -> bool | None:
    """What low precision does is counted exactly."""
    is_exact = rule_of(pair) == EXACT or pair.actual.dtype.kind in "iub"
    if not is_exact or (pair.is_stated and rule_of(pair) != EXACT) or pair.actual.dtype == np.int64:
        return None
    return not Difference.of(exact(pair.actual), exact(pair.expected)).different


def doors(run_kernel: Any, directory: Path) -> dict[str, Door]:
    return {
        "comparison": room,
        "assertion": failing_assertion,
        "run_kernel": run_kernel_of(run_kernel),
        "compare_runs": runs,
        "compare": targets,
        "diff": lambda pair: saved_runs(pair, directory),
        "page": page_of_a_run,
        "sweep": swept,
        "agent": agent,
        "bisect": bisected,
        "pallas": pallas,
        "mutant": mutant,
        "precision": precision,
    }


def verdicts(pair: Pair, run_kernel: Any, directory: Path) -> Iterator[tuple[str, bool | None]]:
    PAIR[:] = pair.actual, pair.expected
    for name, door in doors(run_kernel, directory).items():
        yield name, door(pair)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_pair_has_one_verdict_at_all_doors(pair: Pair, run_kernel: Any, tmp_path: Path) -> None:
    """Whatever door it comes to, two arrays agree, or they differ."""
    found = {name: verdict for name, verdict in verdicts(pair, run_kernel, tmp_path) if verdict is not None}
    assert found == dict.fromkeys(found, pair.agree)
    assert len(found) >= 6


def test_the_table_is_wide_enough() -> None:
    """Forty pairs or more, of which a third agree; with NumPy's own function where it takes them."""
    assert len(PAIRS) >= 40
    assert len(PAIRS) / 3 < sum(pair.agree for pair in PAIRS) < len(PAIRS)
    for pair in PAIRS:
        if pair.is_stated and pair.actual.shape == pair.expected.shape:
            values = [each.astype(np.float64) for each in (pair.actual, pair.expected)]
            assert np.allclose(*values, pair.rtol or 0.0, pair.atol or 0.0, equal_nan=True) is pair.agree, pair.name


def test_a_torch_assertion_has_its_own_tolerance() -> None:
    """Without numbers torch's table decides, and no NaN is a NaN."""
    torch = pytest.importorskip("torch")
    with pytest.raises(AssertionError) as failure:
        torch.testing.assert_close(torch.from_numpy(with_one(NAN)), torch.from_numpy(with_one(NAN)))
    found = next(compared_pairs(failure.value.__traceback__))
    assert found.rule == Rule(1.3e-6, 1e-5, equal_nan=False)
    assert compared(found.actual, found.expected, found.rule).first == (1, 2)


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("assert np.allclose(out, want)", Rule(1e-5, 1e-8, equal_nan=False)),
        ("assert np.allclose(out, want, rtol=limit, atol=0.5, equal_nan=True)", Rule(0.25, 0.5)),
        ("assert np.isclose(out, want, atol=0).all()", Rule(1e-5, 0.0, equal_nan=False)),
        ("assert np.array_equal(out, want)", Rule(0.0, 0.0, equal_nan=False)),
        ("assert (out == want).all()", Rule(0.0, 0.0, equal_nan=False)),
        ("assert out == pytest.approx(want, abs=0.5)", Rule(1e-6, 0.5)),
        ("np.testing.assert_array_almost_equal(out, want, decimal=3)", Rule(0.0, 1.5e-3)),
        ("np.testing.assert_array_equal(out, want)", EXACT),
        ("assert compares(out, want)", Rule()),
    ],
)
def test_an_assertion_is_read_with_its_rule(statement: str, rule: Rule, tmp_path: Path) -> None:
    """A statement's own numbers, or those that its function has without any."""
    file = tmp_path / "asserting.py"
    file.write_text(f"def asserting(out, want, limit):\n    {statement}\n")
    names: dict[str, Any] = {"np": np, "pytest": pytest, "compares": lambda *_: False}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(AssertionError) as failure:
        names["asserting"](tile(1.0), tile(9.0), 0.25)
    found = [each for each in compared_pairs(failure.value.__traceback__) if each.actual.flat[0] == 1.0]
    assert found[0].rule == rule
