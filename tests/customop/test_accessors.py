"""Streams, TCM and element accessors: what the guide leaves undefined is told with its line."""

from __future__ import annotations

import numpy as np
import pytest

from nkitools.customop import Operator

from .conftest import Builder, places

SHAPE = "torch::Tensor shape(torch::Tensor t_in) { return torch::zeros(t_in.sizes(), torch::kFloat); }\n"
BODY = """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::zeros(t_in.sizes(), torch::kFloat);
  @
  return t_out;
}
"""
# Each name: the body, and the rule, severity and words that line 3 must get; None where it is right.
CASES: dict[str, tuple[str, tuple[str, str, str] | None]] = {
    "two_readers": (
        "auto a = t_in.read_stream_accessor<float>(); auto b = t_in.read_stream_accessor<float>(); a.read(); b.read();",
        None,
    ),
    "closed_then_elements": (
        "auto s = t_out.write_stream_accessor<float>(); s.write(1); s.close(); t_out.accessor<float, 1>()[0] = 2;",
        None,
    ),
    "scope_closes": (
        "{ auto s = t_out.write_stream_accessor<float>(); s.write(1); } auto r = t_out.read_stream_accessor<float>();",
        None,
    ),
    "reads_while_writing": (
        "auto w = t_out.write_stream_accessor<float>(); auto r = t_out.read_stream_accessor<float>();",
        ("CO113", "error", "beside another"),
    ),
    "elements_beside_a_stream": (
        "auto e = t_out.accessor<float, 1>(); auto w = t_out.write_stream_accessor<float>(); e[0] = 1;",
        ("CO113", "error", "while a stream is open"),
    ),
    "says_so": (
        "t_out.set_accessor_coherence_policy(torch::CoherencyEnforcer::INCOHERENT_QUIET);"
        "auto w = t_out.write_stream_accessor<float>(); auto r = t_out.read_stream_accessor<float>();",
        None,
    ),
    "wants_to_hear": (
        "t_out.set_accessor_coherence_policy(torch::CoherencyEnforcer::INCOHERENT_VERBOSE);"
        "auto w = t_out.write_stream_accessor<float>(); auto r = t_out.read_stream_accessor<float>();",
        ("CO113", "warning", "beside another"),
    ),
    "after_close": (
        "auto r = t_in.read_stream_accessor<float>(); r.close(); t_out.fill_(r.read());",
        ("CO113", "error", "read after its close()"),
    ),
    "writes_past_the_end": (
        "auto w = t_out.write_stream_accessor<float>(); for (int i = 0; i < 103; i++) w.write(i);",
        ("CO113", "error", "writes 3 elements past the end"),
    ),
    "five_streams": (
        "auto a = t_in.read_stream_accessor<float>(); auto b = t_in.read_stream_accessor<float>();"
        "auto c = t_in.read_stream_accessor<float>(); auto d = t_in.read_stream_accessor<float>();"
        "auto e = t_in.read_stream_accessor<float>();",
        ("CO113", "warning", "5 streams are open"),
    ),
    "streams_take_the_pool": (
        "auto a = t_in.read_stream_accessor<float>(); void* most = torch::neuron::tcm_malloc(12288);"
        "void* more = torch::neuron::tcm_malloc(1); t_out.fill_(most != nullptr && more == nullptr);"
        "torch::neuron::tcm_free(most);",
        None,
    ),
    "bad_index": (
        "auto e = t_in.accessor<float, 1>(); t_out.fill_(e[-1] + e[100]);",
        ("CO104", "error", "index -1 is before the beginning of dimension 0"),
    ),
    "slack": (
        "char* b = (char*)torch::neuron::tcm_malloc(9); b[9] = 1; torch::neuron::tcm_free(b);",
        ("CO104", "error", "past the end of the TCM block of 9 bytes"),
    ),
    "too_much": (
        "float* b = (float*)torch::neuron::tcm_malloc(40); t_in.tcm_accessor().tensor_to_tcm<float>(b + 2, 0, 9);"
        "torch::neuron::tcm_free(b);",
        ("CO104", "error", "a copy of 36 bytes between argument 0 (float32 [100]) and TCM goes past"),
    ),
    "used_when_free": (
        "float* b = (float*)torch::neuron::tcm_malloc(40); torch::neuron::tcm_free(b);"
        "t_in.tcm_accessor().tensor_to_tcm<float>(b, 0, 9);",
        ("CO104", "error", "after its tcm_free (line 3)"),
    ),
    "not_tcm": (
        "float b[10]; t_in.tcm_accessor().tensor_to_tcm<float>(b, 0, 9);",
        ("CO104", "warning", "no block of tcm_malloc"),
    ),
    "huge_offset": (
        "float* b = (float*)torch::neuron::tcm_malloc(40); t_in.tcm_accessor().tensor_to_tcm<float>(b, -1, 9);"
        "torch::neuron::tcm_free(b);",
        ("CO104", "error", "at offset -1: nothing is before its beginning"),
    ),
    "other_type": (
        "int32_t* b = (int32_t*)torch::neuron::tcm_malloc(40); t_in.tcm_accessor().tensor_to_tcm<int32_t>(b, 0, 9);"
        "torch::neuron::tcm_free(b);",
        ("CO110", "error", "an accessor of int32 is opened for argument 0"),
    ),
    "inner_pointer": (
        "char* b = (char*)torch::neuron::tcm_malloc(40); torch::neuron::tcm_free(b + 4); torch::neuron::tcm_free(b);",
        ("CO116", "error", "which is not its beginning"),
    ),
    "foreign_pointer": ("torch::neuron::tcm_free(&t_out);", ("CO116", "error", "that no tcm_malloc has returned")),
    "null_pointer": ("torch::neuron::tcm_free(nullptr);", ("CO116", "warning", "no tcm_malloc has returned one")),
    "null_of_malloc": ("torch::neuron::tcm_free(torch::neuron::tcm_malloc(20000));", None),
    "many_blocks": ("for (int i = 0; i < 1000; i++) torch::neuron::tcm_free(torch::neuron::tcm_malloc(16384));", None),
    "leaks_in_a_loop": (
        "for (int i = 0; i < 5; i++) torch::neuron::tcm_malloc(64);",
        ("CO102", "warning", "320 bytes of TCM are allocated here by 5 calls and never freed"),
    ),
}


@pytest.fixture(scope="module")
def operators(build_operators: Builder) -> dict[str, Operator]:
    return build_operators({name: BODY.replace("@", body) + SHAPE for name, (body, _) in CASES.items()})


@pytest.mark.parametrize("name", CASES)
def test_what_is_undefined_is_reported_and_nothing_else(operators: dict[str, Operator], name: str) -> None:
    """One finding at the line for what is wrong, none for what is right."""
    run = operators[name].run(np.arange(100, dtype=np.float32))
    expected = CASES[name][1]
    if expected is None:
        assert run.findings == []
        return
    rule, severity, words = expected
    assert places(run) == [(rule, 3)]
    assert run.findings[0].severity == severity
    assert words in run.findings[0].message


def test_streams_and_blocks_count_together(operators: dict[str, Operator]) -> None:
    """16384 bytes: three quarters in a block, one quarter in a stream."""
    run = operators["streams_take_the_pool"].run(np.zeros(10, np.float32))
    assert run.cores[0].tcm_peak == 16384
    assert (run.outputs == 1).all()
