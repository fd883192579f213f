"""The TPU compiler in a process of its own: warm, ended by a crash or by the clock, and started again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from nkitools.pallas import check, compiled, compiler, measuring  # noqa: E402
from nkitools.pallas.calls import compiling_for, pallas_calls  # noqa: E402
from nkitools.pallas.chips import CHIPS  # noqa: E402
from nkitools.pallas.compiler import Compiler, Crashed  # noqa: E402
from nkitools.pallas.lowering import Program, lower, place_in, rule_of  # noqa: E402
from nkitools.pallas.source_places import NOWHERE  # noqa: E402
from nkitools.processes import AnsweringChild  # noqa: E402
from tests.pallas.kernels import double, double_block, ramp  # noqa: E402

V5E = CHIPS["v5e"]
with_compiler = pytest.mark.skipif(bool(compiler.why_not()), reason=compiler.why_not())


@pytest.fixture
def own_compiler() -> Iterator[Compiler]:
    """A process that no other test uses."""
    process = Compiler()
    yield process
    process.close()


@pytest.fixture
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found out of calls before does not count."""
    monkeypatch.setattr(compiled, "_prepared", {})


def number_of(process: Compiler) -> int:
    assert process._process is not None
    return process._process.pid


def program(fn: Any, *args: Any) -> Program:
    """The one Pallas call of ``fn``, lowered for a v5e."""
    with compiling_for(V5E):
        (call,) = pallas_calls(jax.make_jaxpr(lambda: fn(*args))())
    lowered = lower(call, V5E)
    assert isinstance(lowered, Program)
    return lowered


@pytest.fixture
def aborting(own_compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """A process that aborts over the first thing that it is asked, as older compilers do of themselves at a print."""
    ask = AnsweringChild.send

    def ask_once(process: AnsweringChild, question: Any) -> None:
        monkeypatch.setattr(AnsweringChild, "send", ask)
        ask(process, question)
        os.kill(process.pid, signal.SIGABRT)

    monkeypatch.setattr(AnsweringChild, "send", ask_once)
    return own_compiler


@with_compiler
def test_a_crash_is_reported_and_the_next_question_is_answered(aborting: Compiler) -> None:
    """An abort of the compiler ends its process alone; a new one answers."""
    with pytest.raises(Crashed, match=r"the compiler ended its process \(signal SIGABRT\)"):
        aborting.compile(program(double, ramp()), V5E, 120)
    assert aborting.compile(program(double, ramp()), V5E, 120)["accepted"] is True


@with_compiler
def test_a_process_that_is_gone_is_started_again(own_compiler: Compiler) -> None:
    """Somebody else may have ended it between two questions."""
    lowered = program(double, ramp())
    own_compiler.compile(lowered, V5E, 120)
    first = number_of(own_compiler)
    os.kill(first, signal.SIGKILL)
    assert own_compiler._process is not None
    own_compiler._process.wait()
    assert own_compiler.compile(lowered, V5E, 120)["accepted"] is True
    assert number_of(own_compiler) != first


@with_compiler
def test_the_clock_ends_it(own_compiler: Compiler) -> None:
    """No answer in time is a crash, and the process does not go on."""
    with pytest.raises(Crashed, match=r"has not answered within 1e-06 s"):
        own_compiler.compile(program(double, ramp()), V5E, 1e-6)
    assert own_compiler._process is None


@with_compiler
def test_its_environment_is_its_own(own_compiler: Compiler) -> None:
    """The variables that keep libtpu quiet are set there and not here, and its warm process is kept."""
    before, numbers = dict(os.environ), set()
    for _ in range(2):
        own_compiler.compile(program(double, ramp()), V5E, 120)
        numbers.add(number_of(own_compiler))
    assert len(numbers) == 1
    assert dict(os.environ) == before


@with_compiler
def test_a_crash_in_a_check_is_a_finding(
    aborting: Compiler, monkeypatch: pytest.MonkeyPatch, nothing_known: None
) -> None:
    """A kernel that no model of ours refuses, and at which the compiler aborts, is reported at the kernel."""
    monkeypatch.setattr(compiled, "compiler", lambda: aborting)
    run = check(double, ramp(), modes="aot")
    assert [(each.rule, each.line) for each in run.findings] == [("PL301", double_block.__code__.co_firstlineno)]
    assert "signal SIGABRT" in run.findings[0].message
    assert run.compiled["v5e"].accepted is False


@with_compiler
def test_what_it_tells_on_request(nothing_known: None) -> None:
    """Two blocks of 4 KiB, each twice; bundles without a spill."""
    kernel = check(double, ramp(), modes="aot", measure_vmem=True, bundles=True).compiled["v5e"]
    assert (kernel.accepted, kernel.vmem_bytes, kernel.vmem_measured) == (True, 4 * 4096, 4 * 4096)
    assert kernel.bundles is not None
    assert kernel.bundles > 4
    assert kernel.spills == 0
    assert kernel.seconds > 0


def test_what_cannot_be_measured_is_none(monkeypatch: pytest.MonkeyPatch, nothing_known: None) -> None:
    """A call that compiles is accepted, also if the compiler ends or is too late over a measurement of it."""

    class Accepting:
        def compile(self, *_: Any) -> dict[str, Any]:
            return {"accepted": True, "seconds": 0.5, "code_bytes": 64}

    def ends(*_: Any) -> None:
        raise Crashed("the compiler ended its process")

    def is_late(*_: Any) -> None:
        raise compiler.TimedOut("the compiler has not answered within 120 s")

    for name, value in {"why_not": str, "compiler": Accepting, "least_vmem": ends, "count_bundles": is_late}.items():
        monkeypatch.setattr(compiled, name, value)
    run = check(double, ramp(), modes="aot", measure_vmem=True, bundles=True)
    kernel = run.compiled["v5e"]
    assert (kernel.accepted, kernel.seconds, run.findings) == (True, 0.5, [])
    assert (kernel.vmem_measured, kernel.bundles, kernel.spills) == (None, None, None)


def test_without_libtpu_it_is_left_out(monkeypatch: pytest.MonkeyPatch, nothing_known: None) -> None:
    """Everything else of a check is made all the same, and the run says what is missing."""
    reason = "libtpu is not here"
    monkeypatch.setattr(compiled, "why_not", lambda: reason)
    run = check(double, ramp(), chips=("v5e", "v6e"))
    np.testing.assert_array_equal(run.outputs, 2 * ramp())
    assert run.left_out == {"aot": reason}
    assert [(each.chip, each.accepted, each.left_out) for each in run.compiled.values()] == [
        ("v5e", None, reason),
        ("v6e", None, reason),
    ]
    assert run.compiled["v5e"].vmem_bytes == 4 * 4096


def test_why_not_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library elsewhere counts; without any the extra is named."""
    monkeypatch.setattr(compiler, "_has_libtpu", lambda: False)
    monkeypatch.delenv("TPU_LIBRARY_PATH", raising=False)
    assert "pip install 'nkitools[tpu-aot]'" in compiler.why_not()
    monkeypatch.setenv("TPU_LIBRARY_PATH", "/opt/libtpu.so")
    assert compiler.why_not() == ""


def test_counts_of_a_dump() -> None:
    """A row is a bundle, and spills where its column for spilling stores is not zero."""
    text = "== CAPACITY:\nMXU, VSTORE, VSTORE:SPILL, SALU\n 4 1 1 2\n== UTILIZATION:\n0 0 0 1\n0 1 1 0\n0 0 1 0\n"
    assert measuring._counted(text) == (3, 2, {"MXU": 0.0, "VSTORE": 1 / 3, "SALU": 1 / 6})
    text = "== CAPACITY:\nMATMUL, MATPUSH, VSTORE:SPILL\n 1 2 1\n== UTILIZATION:\n1 0 0\n0 1 0\n"
    assert measuring._counted(text) == (2, 0, {"MXU": 1 / 2, "MATPUSH": 1 / 4})


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("INVALID_ARGUMENT: ... E2002: CompileTimeMosaicMisalignedBlockAndTiling: Operand of shape", "PL102"),
        ("RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom: Ran out of memory in memory space vmem", "PL103"),
        ("RESOURCE_EXHAUSTED: Allocation (size=134217728) would exceed memory :: #allocation2 [space=vmem,", "PL103"),
        ("E2001: CompileTimeMosaicUnsupportedRhsType: Unsupported matmul RHS type on target", "PL105"),
        ("Not implemented: Only vector<i16> and vector<i32> are supported, but got 'i8'.", "PL105"),
        ("E2003: CompileTimeMosaicUnprovenMemoryAccessAlignment: cannot statically prove", "PL301"),
        ("Unimplemented primitive in Pallas TPU lowering for tc: sort.", "PL104"),
        ("Check failed: llo_builder.cc:244 Signedness cannot be inferred", "PL302"),
        ("something new", "PL301"),
    ],
)
def test_messages_have_their_rules(text: str, rule: str) -> None:
    """Codes decide where there are any; what is not known is a rejection."""
    assert rule_of(text) == rule


def test_the_line_of_a_message_is_the_authors() -> None:
    """Of the frames of a location the first that is not JAX's."""
    text = (
        f'at location: loc("get:"("get"(callsite("f"("{jax.jit.__code__.co_filename}":3:1 to :2) at '
        '"kernel"("/home/me/mine.py":14:13 to :34)))))'
    )
    assert place_in(text, NOWHERE)[:2] == ("/home/me/mine.py", 14)
    assert place_in("nothing of the kind", NOWHERE) is NOWHERE


@with_compiler
def test_a_compiler_that_takes_too_long_is_left_out(nothing_known: None) -> None:
    """The kernel is not at fault: the reason has the limit, and a check with more time has its answer."""
    run = check(double, ramp(), modes="aot", timeout=1e-6)
    assert (run.findings, run.compiled["v5e"].accepted) == ([], None)
    assert run.left_out["aot"] == (
        "kernel `double_block` on v5e: the compiler has not answered within 1e-06 s; timeout= gives it more time"
    )
    assert check(double, ramp(), modes="aot").compiled["v5e"].accepted is True
