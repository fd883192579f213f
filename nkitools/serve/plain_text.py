"""Texts as the protocol can send them: a lone surrogate has no form in UTF-8."""

from __future__ import annotations

import os
import re
import threading
from typing import Any

# An escape of JSON: a pair of surrogates, a lone one (the group), or any other, a backslash among them.
_ESCAPES = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)
_REPLACEMENT = rb"\ufffd"
_PIECE = 1 << 16


def sendable(value: Any) -> Any:
    r"""Return plain data with each lone surrogate of its texts spelled out, as ``\ud800``."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {sendable(name): sendable(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [sendable(each) for each in value]
    return value


def readable(line: bytes) -> bytes:
    """Return a line of JSON with U+FFFD for each lone surrogate: the protocol's parser drops such a line unanswered."""
    if rb"\u" not in line:
        return line
    return _ESCAPES.sub(lambda found: _REPLACEMENT if found[1] else found[0], line)


def make_stdin_readable() -> None:
    """Let this process read each line of its stdin through `readable`."""
    source = os.dup(0)
    reads, writes = os.pipe()
    os.dup2(reads, 0)
    os.close(reads)
    threading.Thread(target=_hand_on, args=(source, writes), daemon=True).start()


def _hand_on(source: int, writes: int) -> None:
    """Copy readable lines until the source ends. System calls do it: a stream has a lock that can block an exit."""
    rest: list[bytes] = []
    with open(writes, "wb", buffering=0) as sink:
        while piece := os.read(source, _PIECE):
            *lines, last = piece.split(b"\n")
            for line in lines:
                _write(sink.fileno(), readable(b"".join([*rest, line])) + b"\n")
                rest.clear()
            rest.append(last)
        _write(sink.fileno(), readable(b"".join(rest)))


def _write(file: int, text: bytes) -> None:
    while text:
        text = text[os.write(file, text) :]
