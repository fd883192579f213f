"""What an operator breaks is its own: crashes, loops and hunger for memory end with the call, and are told."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.customop import Operator, process
from tests import processes

from .conftest import Builder, places

SHAPE = "torch::Tensor shape(torch::Tensor t_in) { return torch::zeros(t_in.sizes(), torch::kFloat); }\n"
BODY = """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::zeros(t_in.sizes(), torch::kFloat);
  float* buffer = (float*)torch::neuron::tcm_malloc(4000);
  if (!buffer) return t_out;
  @
  torch::neuron::tcm_free(buffer);
  return t_out;
}
"""
BODIES = {
    "fine": "buffer[999] = 1;",
    "null": "*(volatile float*)nullptr = 1;",
    "wild": "*(volatile float*)0x123456789000 = 1;",
    "past": "for (int i = 0; i <= 1000; i++) buffer[i] = i;",
    "freed": "torch::neuron::tcm_free(buffer); buffer[0] = 1;",
    "before": "buffer[-1] = 1;",
    "divides": "volatile int zero = 0; buffer[0] = 7 / zero;",
    "aborts": "abort();",
    "asserts": "assert(t_in.numel() == 1);",
    "throws": 'throw std::string("x").at(5);',
    "hungry": "std::vector<float> all(1ul << 40); buffer[0] = all[5]; keep(&all);",
    "loops": "for (volatile int i = 0;; i = i + 1) { }",
    "sleeps": "sigset_t all; sigfillset(&all); sigprocmask(SIG_SETMASK, &all, nullptr); while (true) keep(&all);",
    "exits": "_exit(3);",
    "terminated": "kill(getpid(), SIGTERM);",
    "gives_up": "if (t_in.numel() > 1) exit(4);",
    "escapes": r'int own = fork(); if (own == 0) { setsid(); sleep(100); _exit(0); } printf("%d\n", own);',
    "multiplies": "for (;;) fork();",
    "forks_on": "for (int i = 0; i < 300; i++) { int own = fork(); if (own == 0) _exit(0); waitpid(own, nullptr, 0); }",
    "shares": "for (int i = 0; i < 4; i++) if (!fork()) { std::vector<char> all(20 << 20, 'x'); keep(&all); pause(); }"
    "pause();",
    "prints": r'printf("n=%d ", 3); printf("m=%.1f\n", 2.5); puts("done"); write(1, "raw\n", 4);',
    "converts": r"""printf("a %d, b %u; c %ld d %#llx e %.1f\n", -1, ~0u, -(1l << 40), 255ull, 0.1);
  printf("f %.1f g %+5zd\n", 0.1f, static_cast<ssize_t>(5));
  printf("100%% of %c %s text: %03d end\n", 'x', "s", 7); printf("stars %*d here\n", 4, 3);""",
}
# `keep`: what the compiler must not leave out.
FORKS = """\
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
static void keep(void* p) { asm volatile("" : : "r"(p)); }
"""


@pytest.fixture(scope="module")
def operators(build_operators: Builder) -> dict[str, Operator]:
    sources = {name: BODY.replace("@", body) + SHAPE for name, body in BODIES.items()}
    return build_operators(sources, headers=FORKS)


VALUES = np.ones(1000, np.float32)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("null", "through a null pointer"),
        ("wild", "address 0x123456789000"),
        ("past", "just past the end of the TCM block of 4000 bytes (line 3)"),
        ("freed", "the TCM block of 4000 bytes (line 3) after its tcm_free (line 5)"),
        ("divides", "an arithmetic fault"),
        ("aborts", "abort()"),
        ("gives_up", "the kernel calls exit(4)"),
        ("asserts", "assertion failed: t_in.numel() == 1"),
    ],
)
def test_a_crash_names_its_line_and_what_was_hit(operators: dict[str, Operator], name: str, words: str) -> None:
    """The line is the author's, the block is named with the lines that made and freed it."""
    run = operators[name].run(VALUES)
    assert places(run) == [("CO103", 5)]
    assert words in run.findings[0].message
    assert run.outputs is None
    assert run.cores[0].status == "crashed"


def test_an_exception_ends_a_kernel(operators: dict[str, Operator]) -> None:
    """What it says is in the finding."""
    run = operators["throws"].run(VALUES)
    assert [finding.rule for finding in run.findings] == ["CO103"]
    assert "basic_string::at" in run.findings[0].message
    with pytest.raises(nkitools.KernelError, match="CO103"):
        operators["throws"](VALUES)


def test_memory_is_limited(operators: dict[str, Operator]) -> None:
    """A kernel that wants more gets std::bad_alloc, and so does an output that is too large."""
    run = operators["hungry"].run(VALUES, memory_limit=1 << 30)
    assert "there is no memory left" in run.findings[0].message
    run = operators["fine"].run(VALUES, memory_limit=1000)
    assert "the limit is 1000" in run.findings[0].message
    assert run.outputs is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("multiplies", "more than 64 processes at a time|forks? more than 256 times"),
        ("forks_on", "the kernel forks more than 256 times"),
        ("shares", "the processes of the kernel have more than 33554432 bytes of memory together"),
    ],
)
def test_processes_are_limited(operators: dict[str, Operator], name: str, words: str) -> None:
    """Their number, that of forks in a call, and the memory of all together; none is left."""
    operators["fine"].run(VALUES)  # the worker that serves all calls is there
    before = set(os.listdir("/proc"))
    run = operators[name].run(VALUES, memory_limit=32 << 20)
    assert [finding.rule for finding in run.findings] == ["CO103"]
    assert re.search(words, run.findings[0].message)
    deadline = time.monotonic() + 20  # a process that was killed takes a moment on a busy machine
    while (left := _left_of(operators[name], before)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []
    assert operators["fine"].run(VALUES).findings == []


@pytest.mark.parametrize("excess", ["processes", "memory"])
def test_one_ending_is_told_once(operators: dict[str, Operator], monkeypatch: pytest.MonkeyPatch, excess: str) -> None:
    """A kernel that forks too often may be ended for its processes at the same moment: its own line is what counts."""
    ask = process.Worker.call
    monkeypatch.setattr(process.Worker, "call", lambda *given, **named: ask(*given, **named) | {"killed": excess})
    assert [finding.message for finding in operators["forks_on"].run(VALUES).findings] == [
        "the kernel forks more than 256 times"
    ]


def _left_of(operator: Operator, before: set[str]) -> list[str]:
    """Return the processes of an operator that were not there before, its worker aside."""
    return [each for each in set(os.listdir("/proc")) - before if each.isdecimal() and _is_of(operator, each)]


def _is_of(operator: Operator, process: str) -> bool:
    """Return whether a process has an operator's library."""
    try:
        is_worker = f"\nPPid:\t{os.getpid()}\n" in Path(f"/proc/{process}/status").read_text()
        return not is_worker and operator.library.built.compute in Path(f"/proc/{process}/maps").read_text()
    except OSError:
        return False


@pytest.mark.parametrize(("name", "line"), [("loops", 5), ("sleeps", 1)])
def test_a_loop_ends_at_its_timeout(operators: dict[str, Operator], name: str, line: int) -> None:
    """The line that was running is named, unless the kernel does not hear its alarm; then it is killed all the same."""
    run = operators[name].run(VALUES, timeout=0.3)
    assert places(run) == [("CO103", line)]
    assert "still" in run.findings[0].message


def test_a_write_before_a_block_is_found_at_its_line(operators: dict[str, Operator]) -> None:
    """The fence shows it as the block is freed; a second run, with a guard page on that side, at which line."""
    run = operators["before"].run(VALUES)
    assert places(run) == [("CO104", 5)]
    assert "4 bytes before the beginning of the TCM block of 4000 bytes (line 3)" in run.findings[0].message


def test_a_kernel_that_leaves_is_reported(operators: dict[str, Operator]) -> None:
    """_exit() takes the child with it, and nothing else."""
    run = operators["exits"].run(VALUES)
    assert places(run) == [("CO103", 5)]
    assert "calls _exit(3)" in run.findings[0].message
    assert operators["fine"].run(VALUES).findings == []


def test_a_signal_that_is_no_crash_is_called_by_its_name(operators: dict[str, Operator]) -> None:
    """SIGTERM says nothing of memory, and debug=True would find no line."""
    (finding,) = operators["terminated"].run(VALUES).findings
    assert "SIGTERM" in finding.message
    assert "memory" not in finding.message


def test_calls_after_any_of_these_find_everything_as_it_was(operators: dict[str, Operator]) -> None:
    """One process serves them all, and nothing of a call is left to the next."""
    fine = operators["fine"].run(VALUES)
    worker = process.worker_for(*_halves(operators["fine"]))
    for name in ("null", "past", "aborts", "exits"):
        operators[name].run(VALUES)
    again = operators["fine"].run(VALUES)
    assert np.array_equal(fine.outputs, again.outputs)
    assert again.findings == []
    assert process.worker_for(*_halves(operators["fine"])) is worker


def _halves(operator: Operator) -> tuple[str, str]:
    return operator.library.built.shape, operator.library.built.compute


def test_prints_are_records_with_their_line(operators: dict[str, Operator]) -> None:
    """A record a number, with the text before it; what does not come by printf is there too, without a place."""
    prints = operators["prints"].run(VALUES).prints
    assert [(one.prefix, one.value.tolist(), one.dtype, one.program, one.line) for one in prints] == [
        ("n=", 3, "int32", (0,), 5),
        ("m=", 2.5, "float32", (0,), 5),
        ("done", [], "float64", (0,), 5),
        ("raw", [], "float64", (0,), 0),
    ]


def test_every_conversion_of_printf_is_a_number_or_text(operators: dict[str, Operator]) -> None:
    """Numbers keep their bits, whatever digits are shown; what is no number belongs to the text."""
    prints = operators["converts"].run(VALUES).prints
    assert [(one.prefix, one.value.tolist(), one.dtype) for one in prints] == [
        ("a", -1, "int32"),
        ("b", 2**32 - 1, "uint32"),
        ("c", -(2**40), "int64"),
        ("d", 255, "uint64"),
        ("e", 0.1, "float64"),
        ("f", np.float32(0.1).item(), "float32"),
        ("g", 5, "int64"),
        ("100% of x s text:", 7, "int32"),
        ("end", [], "float64"),
        ("stars    3 here", [], "float64"),
    ]


def test_a_lost_worker_is_reported_and_replaced(operators: dict[str, Operator]) -> None:
    """Somebody kills the process: the call says so, the next one works."""
    operators["fine"].run(VALUES)
    worker = process.worker_for(*_halves(operators["fine"]))
    os.kill(worker._process.pid, signal.SIGKILL)
    worker._process.wait()
    assert operators["fine"].run(VALUES).findings == []


def test_idle_workers_end_with_the_file_that_called_them(operators: dict[str, Operator]) -> None:
    """Those of the tests: between two tests of a file they stay, and a later call starts others."""
    operators["fine"].run(VALUES)
    worker = process.worker_for(*_halves(operators["fine"]))
    item: Any = SimpleNamespace(get_closest_marker=lambda _: True, nodeid="", path=Path("test_a.py"))
    other: Any = SimpleNamespace(path=Path("test_b.py"))
    for following, is_kept in ((item, True), (other, False), (None, False)):
        worker = process.worker_for(*_halves(operators["fine"]))
        protocol = processes.pytest_runtest_protocol(item, following)
        next(protocol)
        assert list(protocol) == []
        assert (worker._process.poll() is None) == is_kept
        assert operators["fine"].run(VALUES).findings == []


def test_an_interrupt_leaves_nothing_running(
    operators: dict[str, Operator], ctrl_c: None, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C during a call ends the call and its process at once, and the process says nothing of it."""
    operators["loops"].run(VALUES, timeout=0.01)
    worker = process.worker_for(*_halves(operators["loops"]))
    signal.setitimer(signal.ITIMER_REAL, 0)
    previous = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            operators["loops"].run(VALUES, timeout=60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert time.monotonic() - began < 10
    assert worker._process.poll() is not None
    assert capfd.readouterr().err == ""
    assert operators["fine"].run(VALUES).findings == []


def test_a_program_that_ends_leaves_no_process_behind(operators: dict[str, Operator], tmp_path: Path) -> None:
    """The worker ends with whoever started it, even by a kill."""
    shape, compute = _halves(operators["fine"])
    program = tmp_path / "program.py"
    program.write_text(
        "import os, signal\nfrom nkitools.customop import process\n"
        f"worker = process.worker_for({shape!r}, {compute!r})\n"
        "print(worker._process.pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and Path(f"/proc/{pid}/stat").exists():
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.02)
    else:
        assert not Path(f"/proc/{pid}").exists()


def test_in_this_process_on_request(operators: dict[str, Operator]) -> None:
    """isolation="none": the same results, findings and prints, without another process."""
    for name in ("fine", "asserts"):
        assert places(operators[name].run(VALUES, isolation="none")) == places(operators[name].run(VALUES))
    assert places(operators["before"].run(VALUES, isolation="none")) == [("CO104", 6)]
    assert [one.prefix for one in operators["prints"].run(VALUES, isolation="none").prints] == ["n=", "m=", "done"]


def test_a_child_in_a_session_of_its_own_ends_with_the_call(operators: dict[str, Operator]) -> None:
    """The call is right and over when the kernel is, and nothing that it started goes on."""
    run = operators["escapes"].run(VALUES, timeout=20)
    assert (run.findings, run.outputs.any()) == ([], False)
    (shown,) = run.prints
    assert not Path(f"/proc/{int(shown.value)}").exists()
