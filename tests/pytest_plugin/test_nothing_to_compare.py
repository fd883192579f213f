"""What ``run_kernel`` and sweeps are given to compare with is compared, or refused with a sentence."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from click.testing import CliRunner

import nkitools
from nkitools.cli import main
from nkitools.comparison.form import NothingCompared
from nkitools.serve import simulated_file
from nkitools.sweeps.checked_call import Case
from nkitools.sweeps.local_engine import InProcess
from nkitools.sweeps.sweep import checked_call, run_cases

X = np.full((4, 8), 3, np.float32)
CASE = Case({"rows": 4}, "trn2")


def stored(tile: Any) -> Any:
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def copied(x: Any) -> Any:
    """A copy."""
    return stored(nl.load(x))


@nki.jit
def with_rtol(x: Any, rtol: float, tolerance: str = "") -> Any:
    """An array times a number that has the name of a tolerance."""
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=rtol if tolerance != "none" else 1.0)
    return stored(tile)


@nki.jit
def appended(x: Any, cache: Any) -> Any:
    """A copy of an array; the cache is one more."""
    tile = nl.load(cache)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=cache, src=tile)
    return stored(nl.load(x))


def cache_twice(x: Any, cache: Any) -> Any:
    """Another cache than that of the kernel, whose output is right."""
    cache *= 2
    return x


def into_cache(x: Any, cache: Any) -> Any:
    cache += 1
    return x


@pytest.mark.parametrize("name", ["rtol", "atol", "equal_nan", "tolerance"])
def test_a_tolerance_of_nothing_is_refused(run_kernel: Any, name: str) -> None:
    """Without a reference, also beside expect=, whose tensors are compared in float64."""
    given = {name: {"equal_nan": False, "tolerance": "auto"}.get(name, 1e-3)}
    with pytest.raises(
        NothingCompared, match=rf"^{name}= has nothing to be used for: there is no reference=.*Pass refer"
    ):
        run_kernel(copied, X, **given)
    with pytest.raises(NothingCompared, match=rf"^{name}= is of outputs, and there is no reference= of them"):
        run_kernel(copied, X, expect={"out": lambda x: x}, **given)


def test_a_parameter_of_the_kernel_called_like_a_tolerance_is_the_kernels(run_kernel: Any) -> None:
    """It reaches the kernel where there is no reference."""
    np.testing.assert_array_equal(run_kernel(with_rtol, X, rtol=2.0), 2 * X)
    np.testing.assert_array_equal(run_kernel(with_rtol, X, 2.0, tolerance="none"), X)


def test_an_expectation_of_no_tensor_is_refused(run_kernel: Any) -> None:
    """With a reference and without."""
    for reference in (None, X):
        with pytest.raises(NothingCompared, match=r"expect=\{\} names no tensor: nothing is compared"):
            run_kernel(copied, X, expect={}, reference=reference)


def test_what_a_kernel_may_change_is_compared(run_kernel: Any) -> None:
    """With what a function has left; an array as reference says nothing of it."""
    cache = np.ones((4, 8), np.float32)
    run_kernel(appended, X, cache, mutates="cache", reference=into_cache)
    np.testing.assert_array_equal(cache, np.full((4, 8), 2))
    with pytest.raises(AssertionError, match=r"cache\[0, 0\] is 3.0, expected 4.0"):
        run_kernel(appended, X, cache, mutates="cache", reference=cache_twice)
    with pytest.raises(NothingCompared, match=r"nothing says what cache should hold. Let reference= be a function"):
        run_kernel(appended, X, cache, mutates="cache", reference=X)
    np.testing.assert_array_equal(run_kernel(appended, X, cache, mutates="cache"), X)


@nki.jit
def scaled(x: Any, factor: Any = 1.0, bias: Any = None) -> Any:
    """An array times a number."""
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
    return stored(tile)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("factor", "mutates: factor is no array in this call: nothing of it is compared"),
        (("x", "bias"), "mutates: bias is no array"),
        ("caché", "mutates: scaled has no parameter caché; it has x, factor, bias"),
    ],
)
def test_names_in_mutates_that_hold_no_array_are_refused(run_kernel: Any, names: Any, said: str) -> None:
    """In the fixture and in a sweep."""
    with pytest.raises(ValueError, match=said):
        run_kernel(scaled, X, 1.0, mutates=names, reference=lambda x, *_: x)
    with pytest.raises(ValueError, match=said):
        checked_call(scaled, {"rows": [4]}, lambda rows: (X, 1.0), lambda x, *_: x, mutates=names).truth(CASE, X, 1.0)


def test_arrays_of_jax_cannot_be_changed(run_kernel: Any) -> None:
    """They are the same afterwards, for the reference too."""
    jnp = pytest.importorskip("jax.numpy")
    with pytest.raises(ValueError, match="mutates: cache is an array of JAX, which nothing can change"):
        run_kernel(appended, X, jnp.ones((4, 8)), mutates="cache", reference=lambda x, cache: x)


def test_a_function_of_jax_changes_no_argument(run_kernel: Any) -> None:
    """The fixture and a sweep say so."""
    pytest.importorskip("jax")
    from kernels.pallas.running_sum import running_sum

    with pytest.raises(ValueError, match=r"mutates: a JAX function changes no argument\. Leave mutates= out"):
        run_kernel(running_sum, X, mutates="x", reference=X)
    with pytest.raises(ValueError, match="mutates: a JAX function changes no argument"):
        checked_call(running_sum, {"rows": [4]}, lambda rows: (X,), None, mutates="x")


def test_arguments_of_ranks_are_not_compared(run_kernel: Any) -> None:
    """They are refused in ``mutates`` beside a reference."""
    parts = [(X.copy(), X.copy()) for _ in range(2)]
    with pytest.raises(NothingCompared, match="mutates: of ranks no argument is compared"):
        run_kernel(appended, *parts, ranks=2, mutates="cache", reference=lambda *parts: tuple(x for x, _ in parts))
    call = checked_call(appended, {"ranks": [2]}, lambda ranks: parts, lambda *parts: parts, mutates="cache")
    (row,) = run_cases(call, [Case({"ranks": 2}, "trn2")], InProcess()).rows
    assert "the arguments of ranks are not compared" in row["error"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rtol": 1e-3}, "rtol: nothing is compared without a reference"),
        ({"atol": 1e-3}, "atol: nothing is compared without a reference"),
        ({"reference": X}, "reference: must be a function of the kernel's arguments, it is ndarray"),
    ],
)
def test_a_sweep_refuses_what_it_would_not_compare(given: Any, said: str) -> None:
    """Before anything runs."""
    with pytest.raises(ValueError, match=said):
        nkitools.sweep(copied, {"rows": [4]}, arguments=lambda rows: (X,), **given)


FILE = """
import nki.isa as nisa
import nki.language as nl
import numpy as np

def copied(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out

def swapped(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0.0)
    nisa.dma_copy(x, tile)
    nisa.dma_copy(dst=out, src=tile)
    return out

def nothing(x): pass
def zeros(x): return 0 * x
def same(x): return x

def inputs(rows=4): return (np.ones((rows, 8), np.float32),)
space = {"rows": [4]}
"""


def test_the_sweep_command_refuses_a_tolerance_of_nothing(tmp_path: Path) -> None:
    """With exit code 2."""
    file = tmp_path / "kernels.py"
    file.write_text(FILE)
    result = CliRunner().invoke(main, ["sweep", f"{file}::copied", "--rtol", "0.1"])
    assert (result.exit_code, "rtol: nothing is compared without a reference" in result.output) == (2, True)


def test_a_reference_that_returns_nothing(run_kernel: Any, tmp_path: Path) -> None:
    """It is the reference's mistake, and the sentence says so, at every door."""
    said = "returns None: let it return what the kernel should compute"
    with pytest.raises(AssertionError, match=f"the reference {said}"):
        run_kernel(copied, X, reference=lambda x: None)
    for ranks in ({}, {"ranks": 2}):
        space = {name: [value] for name, value in ranks.items()}
        arguments = (lambda ranks: [(X,), (X,)]) if ranks else (lambda: (X,))
        call = checked_call(copied, space, arguments, lambda *x: None)
        (row,) = run_cases(call, [Case(ranks, "trn2")], InProcess()).rows
        assert row["outcome"] == "error"
        assert f"the reference {said}" in row["error"]
    with pytest.raises(TypeError, match=f"the reference {said}"):
        nkitools.precision_split(copied, X, reference=lambda x: None)
    (tmp_path / "kernels.py").write_text(FILE)
    found = simulated_file.compared({"file": str(tmp_path / "kernels.py"), "kernel": "copied", "against": "nothing"})
    assert found["error"] == f"nothing {said} (has it a `return`?)"


def test_an_agent_is_told_of_a_broken_rule(tmp_path: Path) -> None:
    """Outputs that are right agree with nothing where the kernel has destroyed its argument."""
    (tmp_path / "kernels.py").write_text(FILE)
    request = {"file": str(tmp_path / "kernels.py")}
    assert simulated_file.compared({**request, "kernel": "copied", "against": "same"})["agrees"]
    found = simulated_file.compared({**request, "kernel": "swapped", "against": "zeros"})
    assert not found["agrees"]
    assert found["outputs"][0]["agrees"]
    assert found["why"].startswith("the kernel breaks a rule, NK409: the kernel changes its argument `x`")
    assert [(each["rule"], each["severity"]) for each in found["findings"]] == [("NK409", "error")]


def test_a_reported_change_is_counted(bare_author: Any) -> None:
    """With rules="report" no rule fails a test; a changed argument is among the findings of the session, as others."""
    test = (
        "import nkitools\nnkitools.install_stand_in()\n"
        + FILE
        + ("\ndef test_it(run_kernel):\n    run_kernel(swapped, np.ones((4, 8), np.float32), reference=zeros)\n")
    )
    bare_author.run(test=test).assert_outcomes(failed=1)
    result = bare_author.run("--nki-rules=report", test=test)
    result.assert_outcomes(passed=1)
    assert "NK409" in result.stdout.str()
    assert "1 kernel run, 1 finding" in result.stdout.str()


def test_a_kernel_is_no_reference_of_its_own(run_kernel: Any, tmp_path: Path) -> None:
    """It agrees with itself, whatever it computes."""
    for reference in (copied, copied.__wrapped__):
        with pytest.raises(NothingCompared, match="the reference is the kernel itself: nothing is compared"):
            run_kernel(copied, X, reference=reference)
        with pytest.raises(NothingCompared, match="the reference is the kernel itself"):
            nkitools.sweep(copied, {"rows": [4]}, arguments=lambda rows: (X,), reference=reference)
    (tmp_path / "kernels.py").write_text(FILE)
    found = simulated_file.compared({"file": str(tmp_path / "kernels.py"), "kernel": "copied", "against": "copied"})
    assert found["error"].startswith("the reference is the kernel itself")


@nki.jit
def into_named(x: Any, **caches: Any) -> Any:
    """A copy of an array, which is written to a cache, too."""
    tile = nl.load(x)
    nisa.dma_copy(dst=caches["left"], src=tile)
    return stored(tile)


def test_further_keywords_are_compared_by_their_names(run_kernel: Any) -> None:
    """The fixture and a sweep compare what a kernel takes by ``**``."""

    def right(x: Any, left: Any) -> Any:
        left[...] = x
        return x

    run_kernel(into_named, X, left=np.zeros_like(X), mutates="left", reference=right)
    with pytest.raises(AssertionError, match=r"left\[0, 0\] is 3.0, expected 0.0"):
        run_kernel(into_named, X, left=np.zeros_like(X), mutates="left", reference=lambda x, left: x)
    for reference, outcome in ((right, "pass"), (lambda x, left: x, "wrong")):
        arguments = lambda rows: {"x": X, "left": np.zeros_like(X)}  # noqa: E731
        call = checked_call(into_named, {"rows": [4]}, arguments, reference, mutates="left")
        assert [row["outcome"] for row in run_cases(call, [CASE], InProcess()).rows] == [outcome]


def test_an_agent_compares_results_by_their_names(tmp_path: Path) -> None:
    """A dictionary in another order is right; another value of one name is not."""
    (tmp_path / "kernels.py").write_text(
        FILE + "\ndef named(x):\n    return {'b': copied(x), 'a': copied(x)}\n"
        "def right(x): return {'a': x, 'b': x}\ndef wrong(x): return {'a': x, 'b': x + 1}\n"
    )
    request = {"file": str(tmp_path / "kernels.py"), "kernel": "named"}
    assert simulated_file.compared({**request, "against": "right"})["agrees"]
    found = simulated_file.compared({**request, "against": "wrong"})
    assert [each["agrees"] for each in found["outputs"]] == [False, True]


def test_a_tolerance_is_one_number(run_kernel: Any) -> None:
    """An array of numbers is refused by its name."""
    with pytest.raises(ValueError, match="rtol: must be a finite number from 0 on"):
        run_kernel(copied, X, reference=X, rtol=np.array([1e-3]))


@nki.jit
def tripled(x: Any, factor: float = 3.0) -> Any:
    """An array times 3; it should be times 2."""
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
    return stored(tile)


def by_itself(x: Any) -> Any:
    """Return what the kernel computes."""
    return nkitools.simulate(tripled, np.asarray(x, np.float32)).outputs


def refused_by_it(x: Any) -> Any:
    """Return what the kernel computes of an array that it may refuse (float64)."""
    return nkitools.simulate(tripled, x).outputs


ITSELF = "the reference runs the kernel tripled itself on the same arguments: nothing is compared"


@pytest.mark.parametrize("reference", [by_itself, refused_by_it])
def test_a_reference_that_runs_the_kernel_is_none(run_kernel: Any, reference: Any) -> None:
    """It is right whatever the kernel computes, in a test, a sweep and a split of precision."""
    with pytest.raises(NothingCompared, match=ITSELF):
        run_kernel(tripled, X, reference=reference)
    with pytest.raises(NothingCompared, match=ITSELF):
        nkitools.precision_split(tripled, X, reference=reference)
    call = checked_call(tripled, {"rows": [4]}, lambda rows: (X,), reference)
    (row,) = run_cases(call, [CASE], InProcess()).rows
    assert (row["outcome"], ITSELF in row["error"]) == ("error", True)


def times(factor: float) -> Any:
    """Make a kernel: all that are made share their code."""

    @nki.jit
    def scaled(x: Any) -> Any:
        tile = nl.load(x)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
        return stored(tile)

    return scaled


def test_a_reference_may_run_another_variant_of_the_kernel(run_kernel: Any) -> None:
    """What one function makes with another value is another kernel; with the same one it is the kernel itself."""
    run = nkitools.simulate
    kernel, other, same = times(3.0), times(6.0), times(3.0)
    run_kernel(kernel, X, reference=lambda x: run(other, np.asarray(x, np.float32)).outputs / 2)
    double, treble = (functools.partial(tripled.function, factor=each) for each in (2.0, 3.0))
    run_kernel(treble, X, reference=lambda x: run(double, np.asarray(x, np.float32)).outputs * 1.5)
    with pytest.raises(NothingCompared, match="the reference runs the kernel scaled itself"):
        run_kernel(kernel, X, reference=lambda x: run(same, np.asarray(x, np.float32)).outputs)


def test_a_reference_may_run_the_kernel_in_another_way(run_kernel: Any) -> None:
    """Other arguments, another kernel, another chip and another grid are compared with something."""
    run = nkitools.simulate
    for reference in (
        lambda x: run(tripled, 2 * x).outputs / 2,
        lambda x: 3 * run(copied, x).outputs,
        lambda x: run(tripled, x, factor=6.0).outputs / 2,
        lambda x: run(tripled, x, chip="trn1").outputs,
        lambda x: run(tripled[2], x).outputs,
    ):
        run_kernel(tripled, X, reference=reference)
    with pytest.raises(NothingCompared, match=ITSELF):
        run_kernel(tripled, X, 3.0, reference=lambda x, factor: run(tripled, x=x).outputs)
    with pytest.raises(NothingCompared, match=ITSELF):
        run_kernel(tripled[2], X, reference=lambda x: run(tripled[2], x).outputs)
