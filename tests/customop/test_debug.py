"""debug=True: the call runs again under the sanitizers, whose reports become findings."""

from __future__ import annotations

import os

import numpy as np
import pytest

from nkitools.customop import Operator
from nkitools.customop.sanitizers import findings_of_reports
from tests.children import running

from .conftest import Builder, places

SHAPE = "torch::Tensor shape(torch::Tensor t_in) { return torch::zeros(t_in.sizes(), torch::kFloat); }\n"
BODY = """\
torch::Tensor kernel(const torch::Tensor& t_in) {
  torch::Tensor t_out = torch::zeros(t_in.sizes(), torch::kFloat);
  float* buffer = (float*)torch::neuron::tcm_malloc(4000);
  volatile int count = 1000;
  @
  torch::neuron::tcm_free(buffer);
  return t_out;
}
"""
BODIES = {
    "right": "for (int i = 0; i < count; i++) buffer[i] = i;",
    "past": "for (int i = 0; i <= count; i++) buffer[i] = i;",
    "local": "float row[10]; for (int i = 0; i < count / 90; i++) row[i] = i; buffer[0] = row[count / 200];",
    "escapes": "for (int i = 0; i < count; i++) buffer[i] = i; if (!fork()) { setsid(); sleep(100); }",
    "floods": "static char page[1 << 20]; for (int i = 0; i < 64; i++) if (write(2, page, 1 << 20) < 0) break;"
    "buffer[count] = 1;",
    "shifts": "volatile int by = count - 960; buffer[0] = 1 << by;",
}


@pytest.fixture(scope="module")
def operators(build_operators: Builder) -> dict[str, Operator]:
    return build_operators(
        {name: BODY.replace("@", body) + SHAPE for name, body in BODIES.items()}, "#include <unistd.h>\n"
    )


@pytest.mark.parametrize(
    ("name", "rule", "words"),
    [
        ("right", None, ""),
        ("escapes", None, ""),
        (
            "floods",
            "CO104",
            "AddressSanitizer: heap-buffer-overflow: a write of 4 bytes, 0 bytes after 4000-byte region",
        ),
        ("past", "CO104", "AddressSanitizer: heap-buffer-overflow: a write of 4 bytes, 0 bytes after 4000-byte region"),
        ("local", "CO104", "AddressSanitizer: stack-buffer-overflow: a write of 4 bytes"),
        ("shifts", "CO103", "UndefinedBehaviorSanitizer: shift exponent 40"),
    ],
)
def test_the_sanitizers_speak(operators: dict[str, Operator], name: str, rule: str | None, words: str) -> None:
    """With the author's line; a crash that they explain is told once, in their words.

    What an operator writes besides is left out, and what it starts ends with the call.
    """
    run = operators[name].run(np.ones(1000, np.float32), debug=True)
    assert places(run) == ([(rule, 5)] if rule else [])
    assert all(words in finding.message for finding in run.findings)
    assert running(os.environ["NKITOOLS_CACHE_DIR"]) == []


def test_reports_of_other_code_are_not_the_authors() -> None:
    """What lies in none of the sources is no finding; lines of several reports are one each."""
    text = "/lib/x.h:3:1: runtime error: shift\n" + 2 * "/a/k.cpp:7:2: runtime error: overflow\n"
    findings = findings_of_reports(text, ["/a/k.cpp"])
    assert [(each.file, each.line, each.message) for each in findings] == [
        ("/a/k.cpp", 7, "UndefinedBehaviorSanitizer: overflow")
    ]
