"""Pallas functions run on the CPU, as they are."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
pl = pytest.importorskip("jax.experimental.pallas")

from nkitools.pallas import run  # noqa: E402  (JAX decides whether this file is collected)
from nkitools.record.run import Run  # noqa: E402
from nkitools.record.run_listeners import attend_runs, collect_runs  # noqa: E402
from nkitools.rules.finding import NotModelled  # noqa: E402
from tests.pallas.kernels import double, double_block, in_blocks, ramp  # noqa: E402

DOUBLE_JITTED = jax.jit(double)
BUILT_AT_IMPORT = pl.pallas_call(double_block, out_shape=jax.ShapeDtypeStruct((8, 128), np.float32))


def scaled(factor: float, x: Any, *, times: int = 1) -> Any:
    for _ in range(times):
        x = double(x) * factor
    return x


def nested(x: Any) -> Any:
    return DOUBLE_JITTED(DOUBLE_JITTED(x)) + jax.jit(lambda y: double(y))(x)


def not_interpreted() -> None:
    """Fails while anything forces interpretation."""
    with pytest.raises(ValueError, match="Only interpret mode is supported on CPU"):
        DOUBLE_JITTED(ramp())


@pytest.mark.parametrize(
    ("fn", "factor"),
    [
        (double, 2),
        (DOUBLE_JITTED, 2),
        (jax.jit(DOUBLE_JITTED), 2),
        (functools.partial(scaled, 3.0, times=2), 36),
        (functools.partial(DOUBLE_JITTED), 2),
        (nested, 6),
        (lambda x: double(x), 2),
    ],
    ids=["plain", "jit", "jit of jit", "partial", "partial of jit", "nested", "lambda"],
)
def test_pallas_calls_are_interpreted(fn: Any, factor: int) -> None:
    """However the call is reached, the unchanged function runs, and afterwards JAX refuses it again."""
    np.testing.assert_array_equal(run(fn, ramp()).outputs, factor * ramp())
    not_interpreted()


def test_the_run_says_what_ran() -> None:
    """Kernel, target and chip stand in the run, which has no error and no instructions of a NeuronCore."""
    done = run(functools.partial(scaled, 1.0), ramp(), times=1)
    assert (done.kernel, done.target, done.chip, done.error) == ("scaled", "pallas-interpret", "", None)
    assert (done.prints, done.findings, len(done.instructions)) == ([], [], 0)


def test_numpy_in_gives_numpy_out_in_the_same_structure() -> None:
    """Outputs are writable NumPy arrays of the kernel's dtype, wherever they lie in what the function returns."""
    outputs = run(lambda x, *, y: {"sum": (double(x), double(y)), "name": "both"}, ramp(8), y=ramp(8)).outputs
    assert outputs["name"] == "both"
    for array in outputs["sum"]:
        assert type(array) is np.ndarray
        assert array.flags.writeable
    half = run(lambda x: double(x).astype("bfloat16"), ramp(8)).outputs
    assert (type(half), half.dtype.name) == (np.ndarray, "bfloat16")


def test_jax_in_gives_jax_out() -> None:
    """One JAX array among the arguments, also within a structure, keeps the outputs JAX arrays."""
    x = jax.numpy.asarray(ramp(8))
    assert isinstance(run(double, x).outputs, jax.Array)
    assert isinstance(run(lambda pair: double(pair["x"]), {"x": x, "y": ramp(8)}).outputs, jax.Array)


def test_a_kernels_own_exception_passes_through() -> None:
    """It is the same object, not wrapped, and JAX's state is as before."""
    mistake = LookupError("the kernel's own")

    def failing(x_ref: Any, out_ref: Any) -> None:
        raise mistake

    with collect_runs() as runs, pytest.raises(LookupError) as caught:
        run(lambda x: in_blocks(failing, x), ramp())
    assert caught.value is mistake
    assert [(one.error, one.outputs) for one in runs] == [(mistake, None)]
    not_interpreted()


def test_an_outer_interpret_mode_is_left_as_it_was() -> None:
    """Whoever forces interpretation around a run finds it still forced after it, also after an error."""
    with pltpu.force_tpu_interpret_mode(True):
        run(double, ramp())
        with pytest.raises(ZeroDivisionError):
            run(lambda x: double(x) * (1 // 0), ramp())
        np.testing.assert_array_equal(DOUBLE_JITTED(ramp()), 2 * ramp())
    not_interpreted()


def with_interpret(x: Any, interpret: Any = False) -> Any:
    return in_blocks(double_block, x, interpret=interpret)


def spied(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The modes that are forced from here on."""
    modes: list[Any] = []
    force = pltpu.force_tpu_interpret_mode

    def recording(mode: Any) -> Any:
        modes.append(mode)
        return force(mode)

    monkeypatch.setattr(pltpu, "force_tpu_interpret_mode", recording)
    return modes


@pytest.mark.parametrize("interpret", [True, False])
def test_a_plain_interpret_argument_is_taken(interpret: bool) -> None:
    """A function with an `interpret` argument of its own runs with either value."""
    np.testing.assert_array_equal(run(with_interpret, ramp(), interpret=interpret).outputs, 2 * ramp())


@pytest.mark.parametrize("by_position", [True, False])
def test_interpret_params_of_the_function_are_kept(monkeypatch: pytest.MonkeyPatch, by_position: bool) -> None:
    """TPU interpretation that the caller asks for is not replaced by the plain one."""
    modes = spied(monkeypatch)
    params = pltpu.InterpretParams(uninitialized_memory="zero")
    done = run(with_interpret, ramp(), params) if by_position else run(with_interpret, ramp(), interpret=params)
    np.testing.assert_array_equal(done.outputs, 2 * ramp())
    assert modes == [params]


def test_a_call_built_before_the_run_is_explained() -> None:
    """It cannot be reached; JAX's own error passes through with the reason and the remedy added."""
    with pytest.raises(ValueError, match="Only interpret mode is supported on CPU") as caught:
        run(lambda x: BUILT_AT_IMPORT(x), ramp(8))
    assert any("Call pl.pallas_call(...) inside the function" in note for note in caught.value.__notes__)


def test_runs_are_announced_when_they_start() -> None:
    """A run within a run comes second, and both are seen by whoever collects."""

    def outer(x: Any) -> Any:
        return run(double, x).outputs + double(x)

    with collect_runs() as runs:
        run(outer, ramp())
    assert [one.kernel for one in runs] == ["outer", "double"]
    np.testing.assert_array_equal(runs[0].outputs, 4 * ramp())


class Attendant:
    """Keeps what begins and what ends."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def begun(self, run: Run) -> None:
        """Keep a beginning."""
        self.seen.append(("begun", run.kernel))

    def ended(self, run: Run) -> None:
        """Keep an end."""
        self.seen.append(("ended", run.kernel))


def test_runs_end_for_attendants() -> None:
    """The progress line of a run, which an attendant draws, goes away when the run ends, well or not."""

    def fails(x: Any) -> Any:
        raise ArithmeticError("on purpose")

    attendant = Attendant()
    with attend_runs(attendant):
        run(double, ramp())
        with pytest.raises(ArithmeticError):
            run(fails, ramp())
    assert attendant.seen == [(what, name) for name in ("double", "fails") for what in ("begun", "ended")]


@pytest.mark.parametrize("thing", [3, None, "kernel", ramp()])
def test_what_cannot_be_called_is_refused(thing: Any) -> None:
    """The message names what was given."""
    with pytest.raises(TypeError, match=f"takes a JAX function and its arguments, not a {type(thing).__name__}"):
        run(thing, ramp())


def test_a_numpy_function_is_refused() -> None:
    """A function in which no Pallas kernel ran is not reported as one that did."""

    def add_one(x: Any) -> Any:
        return np.add(x, 1)

    with collect_runs() as runs, pytest.raises(TypeError, match="`add_one` returned no JAX array"):
        run(add_one, ramp())
    assert isinstance(runs[0].error, TypeError)


def test_a_wrapper_that_returns_numpy_is_accepted() -> None:
    """Who converts the result in their own function still runs a Pallas kernel."""
    np.testing.assert_array_equal(run(lambda x: np.asarray(double(x)), ramp()).outputs, 2 * ramp())


def test_without_jax_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal stands at the author's line and says what to install."""
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(NotModelled, match=r"pip install 'nkitools\[pallas\]'") as caught:
        run(double, ramp())
    assert (caught.value.finding.rule, caught.value.finding.file) == ("NK607", __file__)
