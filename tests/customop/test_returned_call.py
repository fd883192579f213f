"""A worker is not trusted: whatever an operator writes into the shared memory, and however it leaves, is a finding."""

from __future__ import annotations

import ctypes
import random
import struct

import numpy as np
import pytest

import nkitools
from nkitools.customop import Operator, process, register_with_torch
from nkitools.customop.abi import MAX_EVENTS, PRINT_BYTES, Call
from nkitools.customop.arguments import take
from nkitools.customop.compiled_operator import Settings
from nkitools.customop.errors import DamagedCall
from nkitools.customop.operator_call import CallResult, OperatorCall
from nkitools.customop.returned_call import ASKED, check_returned
from tests.cases import cases

from .conftest import Builder

SHAPE = "torch::Tensor shape(torch::Tensor t_in) { return torch::zeros(t_in.sizes(), torch::kFloat); }\n"
LEAVES = "torch::Tensor shape(torch::Tensor t_in) { _exit(0); return torch::zeros(t_in.sizes(), torch::kFloat); }\n"
BODY = """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::zeros(t_in.sizes(), torch::kFloat);
  auto in = t_in.accessor<float, 1>();
  auto out = t_out.accessor<float, 1>();
  for (int i = 0; i < t_in.numel(); i++) out[i] = in[i] + 1;
  @
  return t_out;
}
"""
BODIES = {
    "right": "",
    "prints": r'printf("n=%d m=%.1f\n", 3, 2.5); out[0] = in[t_in.numel()];',
    "backwards": "float* p = const_cast<float*>(&in[0]); for (long i = 1; i < 640000; i++) p[-i] = 1.0f;",
    "exits": "_exit(0);",
    "quick_exits": "quick_exit(0);",
    "executes": 'execl("/bin/true", "true", nullptr);',
    "handler": "signal(SIGSEGV, [](int) { _exit(0); }); *(volatile int*)nullptr = 1;",
    "writes": "static char page[1 << 20]; for (int i = 0; i < 96; i++) if (write(1, page, 1 << 20) < 0) abort();",
    "cuts": "for (int fd = 3; fd < 64; fd++) if (ftruncate(fd, 0)) continue;",
}
HEADERS = "#include <signal.h>\n#include <stdexcept>\n#include <stdlib.h>\n#include <unistd.h>\n"
X = np.arange(256, dtype=np.float32)


@pytest.fixture(scope="module")
def operators(build_operators: Builder) -> dict[str, Operator]:
    sources = {name: BODY.replace("@", body) + SHAPE for name, body in BODIES.items()}
    return build_operators(sources | {"shape_exits": BODY.replace("@", "") + LEAVES}, headers=HEADERS)


@pytest.mark.parametrize("name", ["exits", "quick_exits", "executes", "handler"])
def test_a_kernel_that_leaves_with_status_0_is_a_crash(operators: dict[str, Operator], name: str) -> None:
    """It was green: no output, and no finding."""
    run = operators[name].run(X)
    assert [finding.rule for finding in run.findings] == ["CO103"]
    said = {
        "exits": "the kernel calls _exit(0), which ends its process; nothing is returned",
        "quick_exits": "the kernel calls quick_exit(0), which ends its process; nothing is returned",
        "handler": "the kernel calls _exit(0), which ends its process; nothing is returned",
        "executes": "the kernel of operator `executes` ends its process, with exit status 0, and never returns",
    }
    assert run.findings[0].message == said[name]
    assert run.outputs is None
    np.testing.assert_array_equal(operators["right"].run(X).outputs, X + 1)


def test_a_shape_function_that_leaves_is_a_crash(operators: dict[str, Operator]) -> None:
    """As a kernel that does."""
    run = operators["shape_exits"].run(X)
    assert [finding.rule for finding in run.findings] == ["CO103"]
    assert run.findings[0].message.startswith("the shape function calls _exit(0), which ends its process")


SHAPES = {
    "crashes": ("*(volatile int*)nullptr = 1;", "CO103", "through a null pointer"),
    "leaves": ("_exit(5);", "CO103", "calls _exit"),
    "throws": ('throw std::runtime_error("no");', "CO103", "the shape function throws an exception"),
    "loops": ("for (volatile int i = 0;; i = i) {}", "CO103", "still running"),
}


@pytest.fixture(scope="module")
def shapes(build_operators: Builder) -> dict[str, Operator]:
    kernel = BODY.replace("@", "")
    sources = {name: kernel + LEAVES.replace("_exit(0);", text) for name, (text, *_) in SHAPES.items()}
    return build_operators(sources, headers=HEADERS)


@pytest.mark.parametrize("name", SHAPES)
def test_debug_survives_every_shape_function(shapes: dict[str, Operator], name: str) -> None:
    """It ran in the session, which ended or stood still with it; the plain run's finding is the one that is told."""
    run = shapes[name].run(X, debug=True, timeout=1)
    assert [finding.rule for finding in run.findings] == [SHAPES[name][1]]
    assert SHAPES[name][2] in run.findings[0].message


@pytest.mark.parametrize("name", ["crashes", "leaves", "throws"])
def test_torchs_meta_device_survives_every_shape_function(shapes: dict[str, Operator], name: str) -> None:
    """As `torch.export` asks for shapes: the answer is the finding."""
    torch = pytest.importorskip("torch")
    _, rule, words = SHAPES[name]
    operator = shapes[name]
    with (
        register_with_torch(operator.library) as registered,
        pytest.raises(nkitools.KernelError, match=words) as caught,
    ):
        getattr(getattr(torch.ops, operator.library.name), name)(torch.empty(256, device="meta"))
    assert registered is not None
    assert caught.value.finding.rule == rule


def test_a_core_of_eight_that_leaves_is_a_crash(build_operators: Builder) -> None:
    """The other cores have written their parts."""
    body = """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = get_dst_tensor();
  if (get_cpu_id() == 3) _exit(0);
  return t_out;
}
"""
    run = build_operators({"core": body + SHAPE}, headers=HEADERS, multicore=True)["core"].run(X)
    assert "calls _exit(0)" in run.findings[0].message


def test_a_write_through_the_shared_memory_is_a_finding(operators: dict[str, Operator]) -> None:
    """Backwards from an input's first element lies the description of the call: it ended Python with a SIGSEGV."""
    run = operators["backwards"].run(X)
    assert [finding.rule for finding in run.findings] == ["CO103"]
    assert "has overwritten the description of its own call" in run.findings[0].message
    assert run.outputs is None
    np.testing.assert_array_equal(operators["right"].run(X).outputs, X + 1)


def test_an_operator_cannot_cut_the_shared_memory_off(operators: dict[str, Operator]) -> None:
    """A page that is no longer there would end the session."""
    assert "CO103" in {finding.rule for finding in operators["cuts"].run(X).findings}
    np.testing.assert_array_equal(operators["right"].run(X).outputs, X + 1)


def test_what_is_written_to_stdout_is_capped_and_said(operators: dict[str, Operator]) -> None:
    """Of 96 MiB one is kept, nothing of the rest stays in memory, and the last print says how much is left out."""
    operator = operators["writes"]
    run = operator.run(X)
    assert run.prints[-1].prefix == "... 99,614,720 more bytes of stdout and stderr are left out"
    built = operator.library.built
    worker = process.worker_for(built.shape, built.compute)
    assert len(worker.text()) == process.MOST_TEXT
    np.testing.assert_array_equal(run.outputs, X + 1)


def made(operator: Operator) -> tuple[OperatorCall, CallResult]:
    """Return a call and what its process left."""
    call = OperatorCall(operator, take(operator.name, operator.signature, [X], operator.parameters), Settings(), [0])
    built = operator.library.built
    with process.worker_held(built.shape, built.compute) as worker:
        return call, call._ask(worker, 0xFF)


WORDS = (0, 1, -1, 2**31 - 1, -(2**31), 0x3F800000, 1000, 77)


@pytest.mark.soak
def test_no_word_of_the_shared_memory_hurts_the_session(operators: dict[str, Operator]) -> None:
    """20,000 states: each word of the head in turn, then random ones. A call is judged or refused, never an error."""
    call, right = made(operators["prints"])
    kept = bytes(right.memory[: ctypes.sizeof(Call)])
    rest = bytes(right.memory[ctypes.sizeof(Call) :])
    asked, end = kept[:ASKED], right.call.args[0].tensor.offset + 65536
    check_returned(right.call, asked, end, len(right.memory))
    used = Call.prints.offset + right.call.prints_used
    head = list(range(0, Call.events.offset, 4))
    draw = random.Random(26)
    refused = 0
    for number in range(cases(20_000)):
        places = [draw.randrange(0, used, 4) for _ in range(draw.choice([1, 1, 3]))]
        if draw.random() < 0.5:
            places = [head[number % len(head)]]
        memory = bytearray(kept + rest)
        for place in places:
            struct.pack_into("i", memory, place, draw.choice(WORDS))
        state = CallResult(Call.from_buffer(memory), memory)
        try:
            check_returned(state.call, asked, end, len(memory))
        except DamagedCall as error:
            state.damage = str(error)
        judged = call._judge_all(lambda _, state=state: state)  # type: ignore[misc]
        refused += bool(state.damage)
        if min(places) < ASKED and memory[:ASKED] != asked:
            assert [finding.rule for finding in judged.findings] == ["CO103"], places
    assert refused > 0


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("prints_used", PRINT_BYTES + 1, f"prints_used is {PRINT_BYTES + 1}"),
        ("prints_used", -1, "prints_used is -1"),
        ("events_used", MAX_EVENTS + 1, f"events_used is {MAX_EVENTS + 1}"),
        ("stage", 4, "stage is 4"),
        ("shadow", 8, "its output is in another place than before the call"),
        ("unwritten", 257, "unwritten is 257"),
        ("arguments", 2, "its arguments are others than before the call"),
    ],
)
def test_every_count_has_its_limits(operators: dict[str, Operator], name: str, value: int, said: str) -> None:
    """One word that is another is named."""
    _, right = made(operators["right"])
    call = Call.from_buffer_copy(right.call)
    asked, end = bytes(call)[:ASKED], call.args[0].tensor.offset + 65536
    check_returned(call, asked, end, len(right.memory))
    setattr(call, name, value)
    with pytest.raises(DamagedCall) as error:
        check_returned(call, asked, end, len(right.memory))
    assert str(error.value) == said
