"""Device prints of JAX become records and are still printed."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pl = pytest.importorskip("jax.experimental.pallas")
pltpu = pytest.importorskip("jax.experimental.pallas.tpu")

from jax._src import debugging  # noqa: E402  (a JAX without it must fail here, not skip)

from nkitools.pallas import run  # noqa: E402  (JAX decides whether this file is collected)
from nkitools.record.run_listeners import collect_runs  # noqa: E402
from nkitools.rules.finding import NotModelled  # noqa: E402
from tests.pallas.kernels import in_blocks, ramp  # noqa: E402

JAXS_OWN = debugging._format_print_callback


@pytest.fixture(autouse=True)
def _hook_is_put_back() -> Any:
    """No test of this file leaves JAX with our function in the place of its own."""
    yield
    assert debugging._format_print_callback is JAXS_OWN


def printing(print_values: Any) -> Any:
    """A function whose Pallas kernel calls ``print_values`` on each block of 8 rows."""

    def block(x_ref: Any, out_ref: Any) -> None:
        print_values(x_ref)
        out_ref[...] = x_ref[...]

    return lambda x: in_blocks(block, x)


def labels_and_values(prints: list[Any]) -> list[tuple[str, Any]]:
    return [(one.prefix, one.value.tolist()) for one in prints]


def test_the_private_hook_is_as_known() -> None:
    """nkitools stands on a private function of JAX; a JAX that moves or changes it must fail here first."""
    assert list(inspect.signature(JAXS_OWN).parameters) == [
        "fmt",
        "np_printoptions",
        "has_placeholders",
        "logging_record",
        "args",
        "kwargs",
    ]


def test_a_print_is_a_record_and_still_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    """Prefix, value, shape, dtype, grid point and line of every block's print, in the order of the grid."""
    done = run(printing(lambda x: jax.debug.print("first row {}", x[0, :3])), ramp(16))
    assert labels_and_values(done.prints) == [("first row", [0.0, 1.0, 2.0]), ("first row", [1024.0, 1025.0, 1026.0])]
    first, second = done.prints
    line = test_a_print_is_a_record_and_still_on_stdout.__code__.co_firstlineno + 2
    assert (first.shape, first.dtype, first.program, first.file, first.line) == ((3,), "float32", (0,), __file__, line)
    assert second.program == (1,)
    assert capsys.readouterr().out == "first row [0. 1. 2.]\nfirst row [1024. 1025. 1026.]\n"


@pytest.mark.parametrize(
    ("print_values", "expected"),
    [
        (lambda x: jax.debug.print("m {} n {}", x[0, 1], x[0, 2]), [("m", 1.0), ("n", 2.0)]),
        (lambda x: jax.debug.print("m={}, n={:.2f}", x[0, 1], x[0, 2]), [("m=", 1.0), ("n=", 2.0)]),
        (lambda x: jax.debug.print("{1} after {0}", x[0, 1], x[0, 2]), [("", 2.0), ("after", 1.0)]),
        (lambda x: jax.debug.print("x={x} {y.dtype}", x=x[0, 1], y=x[0, 2]), [("x=", 1.0), ("", 2.0)]),
        (lambda x: jax.debug.print("v {} {{kept}} {}", x[0, 1], x[0, 2]), [("v", 1.0), ("{kept}", 2.0)]),
        (lambda x: pl.debug_print("row {}", x[0, :2]), [("row", [0.0, 1.0])]),
        (lambda x: pl.debug_print("of two:", x[0, 1], x[0, 2]), [("of two:", 1.0), ("of two:", 2.0)]),
        (lambda x: pl.debug_print("here"), [("here", [])]),
    ],
)
def test_every_value_is_labelled_by_the_text_before_it(print_values: Any, expected: Any) -> None:
    """Placeholders by position, number, keyword and attribute, and Pallas' values that follow the text."""
    assert labels_and_values(run(printing(print_values), ramp(8)).prints) == expected


def test_two_runs_do_not_hear_each_other() -> None:
    """Prints belong to the run in which they happen: the inner run's to the inner one."""
    inner = printing(lambda x: jax.debug.print("inner {}", x[0, 0]))

    def outer(x: Any) -> Any:
        run(inner, x)
        jax.debug.print("outer {}", x[0, 1])
        return inner(x)

    with collect_runs() as runs:
        run(outer, ramp(8))
    assert [labels_and_values(one.prints) for one in runs] == [[("outer", 1.0), ("inner", 0.0)], [("inner", 0.0)]]


def test_prints_of_a_program_compiled_before_the_run_are_caught(capsys: pytest.CaptureFixture[str]) -> None:
    """JAX keeps compiled programs with their printing; a run does not use those of outside, nor the other way round."""
    fn = jax.jit(printing(lambda x: jax.debug.print("v {}", x[0, 1])))
    for _ in range(2):
        with pltpu.force_tpu_interpret_mode(True):
            jax.block_until_ready(fn(ramp(8)))
            jax.effects_barrier()
        assert labels_and_values(run(fn, ramp(8)).prints) == [("v", 1.0)]
    assert capsys.readouterr().out == "v 1.0\n" * 4


def test_records_keep_their_values() -> None:
    """A record's array is its own, and may be changed."""
    done = run(printing(lambda x: jax.debug.print("v {}", x[0, :2])), ramp(16))
    done.prints[0].value[...] = -1
    assert done.prints[1].value.tolist() == [1024.0, 1025.0]


def test_what_was_printed_before_an_error_is_kept() -> None:
    """The prints of a failed run are in it, and JAX has its own function back."""
    fn = printing(lambda x: jax.debug.print("v {}", x[0, 1]))

    def failing(x: Any) -> Any:
        fn(x)
        raise ArithmeticError("after the kernel")

    with collect_runs() as runs, pytest.raises(ArithmeticError, match="after the kernel"):
        run(failing, ramp(8))
    assert labels_and_values(runs[0].prints) == [("v", 1.0)]
    assert debugging._format_print_callback is JAXS_OWN


def other_form(template: str, *rest: Any, **more: Any) -> None:
    """A formatting function of some other JAX."""
    print("other jax:", template)


@pytest.mark.parametrize("form", ["missing", "changed"])
def test_another_jax_runs_without_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """The run succeeds with a warning in it; reports can count its prints, and looking one up is refused by name."""
    says_so = r"prints of JAX are not recorded under jax \d+\.\d+.*_format_print_callback"
    fn = printing(lambda x: jax.debug.print("v {}", x[0, 1])) if form == "changed" else printing(lambda x: None)
    with monkeypatch.context() as patch:
        if form == "missing":
            patch.delattr(debugging, "_format_print_callback")
        else:
            patch.setattr(debugging, "_format_print_callback", other_form)
        done = run(fn, ramp(8))
    np.testing.assert_array_equal(done.outputs, ramp(8))
    assert capsys.readouterr().out == ("other jax: v {}\n" if form == "changed" else "")
    assert [(one.rule, one.severity) for one in done.findings] == [("NK607", "warning")]
    assert (len(done.prints), list(done.prints)) == (0, [])
    for look_up in (lambda: done.prints[0], lambda: done.prints == [], lambda: None in done.prints):
        with pytest.raises(NotModelled, match=says_so):
            look_up()


def test_a_late_callback_of_an_earlier_run_still_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Our function without a listener does what JAX's own does."""
    from nkitools.pallas import prints

    prints._on_print("v {}", {}, True, None, 3)
    assert capsys.readouterr().out == "v 3\n"
