"""A check: its modes, outputs, prints and gaps, and the state that it leaves behind, which is none."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

import nkitools  # noqa: E402
from nkitools.facts import options  # noqa: E402
from nkitools.pallas import check, check_as_asked, jax_internals  # noqa: E402
from nkitools.pallas.compiler import why_not  # noqa: E402
from nkitools.pallas.imports import jax_module  # noqa: E402
from nkitools.rules.finding import NotModelled  # noqa: E402
from tests.pallas.kernels import double, forgetful, in_blocks, like, ramp  # noqa: E402

RUNNING = ("interpret", "tpu_interpret")


def printing(x: Any) -> Any:
    """Prints within a condition too."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        pl.debug_print("block {}", pl.program_id(0))

        @pl.when(pl.program_id(0) == 1)
        def _() -> None:
            pl.debug_print("last", x_ref[0, 1])

        out_ref[...] = x_ref[...]

    return in_blocks(kernel, x)


def state_of_jax() -> list[Any]:
    """Everything of JAX that a check replaces or sets."""
    interpreter = jax_module(jax_internals.INTERPRETER)
    memory = jax_module(jax_internals.SHARED_MEMORY)
    debugging = jax_module(jax_internals.DEBUGGING)
    return [
        interpreter.interpret_pallas_call,
        interpreter.RaceDetectionState,
        interpreter._check_for_revisiting,
        interpreter._shared_memory,
        interpreter.races,
        memory.SharedMemory,
        memory.Semaphore,
        debugging._format_print_callback,
        vars(debugging.debug_print_p).get("bind"),
        jax.sharding.get_abstract_mesh(),
        jax.config.jax_pallas_tpu_interpret_mode_context_manager
        if hasattr(jax.config, "jax_pallas_tpu_interpret_mode_context_manager")
        else None,
    ]


# --------------------------------------------------------------------------- modes


@pytest.mark.parametrize("modes", [None, "interpret", "tpu_interpret", ("tpu_interpret", "interpret")])
def test_the_outputs_are_the_functions(modes: Any) -> None:
    """Whatever runs it, in the kind of array that it was given."""
    run = check(double, ramp(), modes=modes)
    np.testing.assert_array_equal(run.outputs, 2 * ramp())
    assert isinstance(run.outputs, np.ndarray)
    assert isinstance(check(double, jnp.asarray(ramp()), modes="interpret").outputs, jax.Array)
    assert (run.kernel, run.target, run.chip, run.findings) == ("double", "pallas-interpret", "v5e", [])


def test_modes_that_run_nothing_have_no_outputs() -> None:
    """Lowering takes shapes for arrays."""
    run = check(double, jax.ShapeDtypeStruct((16, 128), jnp.float32), modes="lower")
    assert (run.outputs, run.findings, run.left_out) == (None, [], {})


def test_the_device_is_left_out_where_there_is_none() -> None:
    """This machine has no TPU, and the run says so."""
    run = check(double, ramp(), modes="interpret,device")
    np.testing.assert_array_equal(run.outputs, 2 * ramp())
    assert run.left_out["device"].startswith("no TPU: jax.devices() has cpu")


@pytest.mark.parametrize("modes", ["device", "lower,device"])
def test_a_device_that_is_not_there_runs_nothing(modes: str) -> None:
    """A check whose findings raise raises NK607; another says in the run that there is no TPU."""
    run = check(double, ramp(), modes=modes)
    assert (run.outputs, list(run.left_out)) == (None, ["device"])
    for rules in ("error", "strict"):
        with pytest.raises(NotModelled, match="nothing has run `double`: no TPU") as caught:
            check(double, ramp(), modes=modes, rules=rules)
        assert caught.value.finding.file == __file__


@pytest.mark.parametrize("modes", ["lower", "lower,aot"])
def test_a_reference_is_for_modes_that_run_the_function(modes: str) -> None:
    """Else nothing would be compared, and no finding would look like a right result."""
    with pytest.raises(ValueError, match=r"modes=lower.* run no function"):
        check(double, ramp(), modes=modes, reference=2 * ramp())


def test_several_chips_are_compiled_for() -> None:
    """Each has its verdict, and one finding stands for all that say the same."""
    run = check(double, ramp(), modes="aot", chips="v4,v5e,v5p,v6e,tpu7x")
    assert list(run.compiled) == ["v4", "v5e", "v5p", "v6e", "tpu7x"]
    assert {each.accepted for each in run.compiled.values()} == {None if why_not() else True}
    bad = check(lambda x: in_blocks_of(4, x), ramp(), modes="lower", chips="v4,v5e")
    assert [each.rule for each in bad.findings] == ["PL101"]


def in_blocks_of(rows: int, x: Any) -> Any:
    block = pl.BlockSpec((rows, 128), lambda i: (i, 0))

    def kernel(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref[...]

    grid = (x.shape[0] // rows,)
    return pl.pallas_call(kernel, out_shape=like(x), grid=grid, in_specs=[block], out_specs=block)(x)


def test_a_function_that_cannot_be_traced_as_a_whole() -> None:
    """Its Pallas calls are found while they run, and lowered all the same."""

    def through_numpy(x: Any) -> Any:
        return double(np.asarray(double(x)) + 1.0)

    run = check(through_numpy, ramp())
    np.testing.assert_array_equal(run.outputs, 4 * ramp() + 2)
    assert run.findings == []
    assert run.left_out == ({"aot": why_not()} if why_not() else {})
    assert run.compiled["v5e"].accepted is (None if why_not() else True)

    def wrong(x: Any) -> Any:
        return in_blocks_of(4, np.asarray(in_blocks_of(4, x)))

    assert [each.rule for each in check(wrong, ramp()).findings] == ["PL101"]


def test_code_that_asks_for_the_chip_gets_the_chosen_one() -> None:
    """A function that looks at the TPU it runs on sees the one it is checked for."""

    def asking(x: Any) -> Any:
        return double(x) * pltpu.get_tpu_info().mxu_column_size

    assert check(asking, ramp(), chips="v5e").outputs[0, 1] == 2 * 128
    assert check(asking, ramp(), chips="v6e").outputs[0, 1] == 2 * 256


# --------------------------------------------------------------------------- prints


def test_prints_come_once_with_their_grid_point_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    """However many modes run the kernel."""
    run = check(printing, ramp(), modes=RUNNING)
    first = printing.__code__.co_firstlineno
    assert [(one.prefix, one.value.tolist(), one.program, one.line) for one in run.prints] == [
        ("block", 0, (0,), first + 4),
        ("block", 1, (1,), first + 4),
        ("last", 1025.0, (1,), first + 8),
    ]
    assert {one.file for one in run.prints} == {__file__}
    assert sorted(capsys.readouterr().out.split("\n")) == ["", "block 0", "block 1", "last 1025.0"]


def test_plain_interpretation_has_the_points_outside_of_conditions() -> None:
    """What is printed within pl.when has neither point nor line there."""
    run = check(printing, ramp(), modes="interpret")
    assert [(one.prefix, one.program, bool(one.line)) for one in run.prints] == [
        ("block", (0,), True),
        ("block", (1,), True),
        ("last", (), False),
    ]


# --------------------------------------------------------------------------- state


@pytest.mark.parametrize("fn", [double, forgetful, printing], ids=lambda fn: fn.__name__)
def test_no_state_outlives_a_check(fn: Any) -> None:
    """Nor a check that raises."""
    before = state_of_jax()
    check(fn, ramp(), cores=2, modes=RUNNING)
    assert state_of_jax() == before
    if fn is forgetful:
        with pytest.raises(nkitools.KernelError):
            check(fn, ramp(), modes=RUNNING, rules="error")
        assert state_of_jax() == before
    with pytest.raises(ZeroDivisionError):
        check(lambda x: fn(x) * (1 // 0), ramp(), modes=RUNNING)
    assert state_of_jax() == before


def test_a_checks_programs_are_its_own() -> None:
    """JAX keeps compiled programs: none of a check is used outside, and none of outside in a check."""
    jitted = jax.jit(forgetful)
    with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams()):
        jax.block_until_ready(jitted(ramp()))
    for _ in range(2):
        assert [each.rule for each in check(jitted, ramp(), modes=RUNNING[1]).findings] == ["PL205"]
    with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams()):
        outside = jitted(ramp())  # JAX stores the block before once more
    np.testing.assert_array_equal(outside[8:], ramp()[:8])


# --------------------------------------------------------------------------- wrong use


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"chips": "v7"}, r"chips has 'v7'; choose of v4, v5e, v5p, v6e, tpu7x"),
        ({"chips": "v3-8"}, r"libtpu compiles for v4 and newer: check for v4"),
        ({"chips": ()}, r"chips has none; choose of v4"),
        ({"modes": ("interpret", "hardware")}, r"modes has 'hardware'; choose of interpret, tpu_interpret, lower, aot"),
        ({"cores": 3}, r"cores is 3; a TPU's device has 1 or 2"),
        ({"rules": "loud"}, r"rules is 'loud'; choose one of error, strict, report, off"),
    ],
)
def test_what_there_is_not_is_named(how: dict[str, Any], said: str) -> None:
    """The name, what was found, and what there is."""
    with pytest.raises(ValueError, match=said):
        check(double, ramp(), **how)


def test_what_is_no_jax_function_is_refused() -> None:
    """Neither a number nor a NumPy function."""
    with pytest.raises(TypeError, match="takes a JAX function and its arguments, not a int"):
        check(3, ramp())
    with pytest.raises(TypeError, match="`add_one` returned no JAX array"):
        check(add_one, ramp())


def add_one(x: Any) -> Any:
    return np.add(x, 1)


def test_an_untested_jax_is_no_reason_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary of a session names it; a check runs as far as JAX has what it needs."""
    monkeypatch.setattr(jax, "__version__", "0.9.2")
    assert check(double, ramp()).findings == []


def test_without_jax_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a run."""
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(NotModelled, match=r"pip install 'nkitools\[pallas\]'"):
        check(double, ramp())


def test_shapes_that_do_not_divide_are_jaxs_own_error() -> None:
    """A function that refuses its arguments is heard unchanged."""

    def refusing(x: Any) -> Any:
        raise ValueError("rows must be a multiple of 8")

    with pytest.raises(ValueError, match="rows must be a multiple of 8"):
        check(refusing, ramp())


# --------------------------------------------------------------------------- as tests ask


def test_options_decide_what_run_kernel_does() -> None:
    """Modes, chips and level; what the call says comes first."""
    with options.override(pallas_modes="interpret,lower", pallas_chips="v6e,tpu7x", rules="report"):
        run = check_as_asked(forgetful, ramp())
        assert (run.settings["modes"], run.chip, run.findings) == (["interpret", "lower"], "v6e tpu7x", [])
        assert [each.rule for each in check_as_asked(forgetful, ramp(), modes=RUNNING).findings] == ["PL205"]
    with options.override(rules="error"), pytest.raises(nkitools.KernelError):
        check_as_asked(forgetful, ramp())


def test_long_grids_are_not_watched_in_tests_unless_asked_for() -> None:
    """A test must be quick."""
    long = ramp(8 * 257)
    run = check_as_asked(double, long)
    assert run.left_out["tpu_interpret"].startswith("257 grid points would take long")
    np.testing.assert_array_equal(run.outputs, 2 * long)
