"""Messages about operators are whole sentences, and ranges in them boxes in the tensor's own indices."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from nkitools.customop import symbols
from nkitools.customop.abi import OUTPUT, Event
from nkitools.customop.event_context import Context
from nkitools.customop.events import _SENTENCES, findings_of
from nkitools.customop.symbols import Place, Symbols

VERB = re.compile(
    r"\b(is|are|has|have|calls?|ends|failed|forks|freed|goes|overflows|reads?|returned|runs|says|throws|uses|was|writes?|wrote)\b"
)
CLAUSE = re.compile(r", which [^,:;]*|: .*|\([^)]*\)|(between|past|of|for) argument 0 `x`")


def context() -> Context:
    return Context(
        "op",
        {0: "argument 0 `x` (float32 [8, 20])", OUTPUT: "the output (float32 [8, 20])"},
        Symbols("/nothing", []),
        Place("op.cpp", 3),
        shapes={0: ("x", (8, 20)), OUTPUT: ("output", (8, 20))},
    )


def messages(kind: int) -> set[str]:
    """Return what is said of events of a kind, with numbers that make it say other things."""
    said = set()
    for a, b, c, repeats in product((-1, 0, 1, 3, 10), (-1, 5, 200), range(7), (1, 3)):
        if kind == 11 and a not in (0, 1, 2):
            continue  # no accessor has that number
        event = Event(kind=kind, a=a, b=b, c=c, d=160, count=5, repeats=repeats, tensor=0, text=b"add")
        said.update(finding.message for finding in findings_of(context(), [event]))
    return said


@pytest.mark.parametrize("kind", sorted(set(_SENTENCES) - {29}))  # the text of 29 is the runtime's own
def test_every_message_is_a_whole_sentence(kind: int) -> None:
    """With a verb of its own, not only in a clause: `printf on a core other than core 0` was none."""
    for said in messages(kind):
        assert VERB.search(CLAUSE.sub("", said)), said


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            {"kind": 1, "a": 10, "b": 169, "count": 10},
            "a copy reads x[0:8, 10:20], x[1:8, 0:10] of argument 0 `x` (float32 [8, 20]), and 10 elements past its "
            "end",
        ),
        (
            {"kind": 2, "a": 140, "b": 160, "count": 1, "tensor": OUTPUT},
            "a copy writes output[7, 0:20] of the output (float32 [8, 20]), and 1 element past its end",
        ),
        (
            {"kind": 1, "a": 160, "b": 160, "count": 1},
            "a copy reads 1 element past the end of argument 0 `x` (float32 [8, 20]), from offset 160 on",
        ),
        (
            {"kind": 1, "a": 40, "b": 170, "count": 14, "repeats": 3},
            "3 copies read 14 elements past the end of argument 0 `x` (float32 [8, 20])",
        ),
        (
            {"kind": 33, "a": 21, "b": 45, "tensor": OUTPUT},
            "the core reads elements from output[1, 1] to output[2, 5] of the output (float32 [8, 20]) that another "
            "core writes; nothing orders the two",
        ),
        (
            {"kind": 3, "a": 20, "b": 20, "c": 1},
            "index 20 is past the end of dimension 1 of argument 0 `x` (float32 [8, 20]), which has 20 elements",
        ),
    ],
)
def test_ranges_are_boxes(event: dict[str, int], said: str) -> None:
    """Elements past the end have no index; those before it are what the author counts."""
    (finding,) = findings_of(context(), [Event(**({"d": 160, "repeats": 1, "count": 1} | event))])
    assert finding.message == said


def test_addr2line_is_found_beside_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path of links may hold the compiler alone; the compiler's package brings addr2line into the same folder."""
    real, links = tmp_path / "real", tmp_path / "links"
    real.mkdir()
    links.mkdir()
    for name in ("g++", "addr2line"):
        (real / name).write_text("#!/bin/sh\necho 1.0\n")
        (real / name).chmod(0o755)
    (links / "g++").symlink_to(real / "g++")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(links))
    assert symbols._reader_of_debug_information() == str(real / "addr2line")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert symbols._reader_of_debug_information() is None
