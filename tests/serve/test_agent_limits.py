"""The agent server answers odd requests with a sentence, holds its calls to limits, and leaves nothing when it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="pip install 'nkitools[mcp]'")

from nkitools.rules.catalogue import RULES
from nkitools.serve.plain_text import readable, sendable
from tests.cases import each
from tests.children import has_ended, started

LINUX = sys.platform == "linux"
GOOD = RULES["NK103"].examples[0].good
ODD = """
import os, subprocess, time
def spin(x):
    print(os.getpid())
    with open(__file__ + ".numbers", "w") as file: file.write(str(os.getpid()))
    while True: pass
def hostile(x): raise ValueError("\\ud800 \\x00")
def no_text(x):
    class Own(Exception):
        def __str__(self): raise RuntimeError
    raise Own
def allocate(x): bytearray(20 << 30)
def write(x):
    with open(__file__ + ".written", "wb") as file:
        for _ in range(300): file.write(bytes(1 << 20))
def leave_one(x): subprocess.Popen(["sleep", "61"], start_new_session=True)
def long_text(x): raise ValueError("x" * 1_000_000)
inputs = (1,)
"""


class Client:
    """A client that sends what it is given: real ones send no odd requests."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._count = 0
        self._rest = b""
        self.request(
            "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"}
        )
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return what a tool answers."""
        answer: dict[str, Any] = self.request("tools/call", name=tool, arguments=arguments)["structuredContent"]
        return answer

    def request(self, method: str, **params: Any) -> Any:
        """Send a request, and return its result."""
        number = self.send(method, **params)
        while (message := json.loads(self._line())).get("id") != number:
            pass
        return message["result"]

    def send(self, method: str, **params: Any) -> int:
        """Send a request, and return its number."""
        self._count += 1
        self._write({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        return self._count

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def _line(self) -> bytes:
        assert self.process.stdout is not None
        until = time.monotonic() + 120
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            assert piece, "no answer"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line


@contextmanager
def served(root: Path, **environment: str) -> Iterator[Client]:
    command = [sys.executable, "-m", "nkitools", "mcp", "--root", str(root)]
    said = {"stdin": subprocess.PIPE, "env": {**os.environ, **environment}}
    with started(command, **said) as process:
        yield Client(process)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of one server for the requests of this file."""
    root = tmp_path_factory.mktemp("root")
    (root / "odd.py").write_text(ODD)
    (root / "kernel.py").write_text(GOOD)
    (root / "loop.py").symlink_to("loop.py")
    (root / "long.py").write_text("def f(x):\n" + "    x = x + 1\n" * 40_000)
    with served(root) as found:
        yield found


def odd(kernel: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "simulate", {"path": "odd.py", "kernel": kernel, **more}


def array(**form: Any) -> tuple[str, dict[str, Any]]:
    return "simulate", {"path": "kernel.py", "kernel": "kernel", "arguments": {"lhs_t": form}}


@pytest.mark.process
@each(
    "request_, words",
    [
        (("lint", {"path": "loop.py"}), "loop.py names no file: "),
        (("simulate", {"path": "loop.py", "kernel": "k"}), "loop.py names no file: "),
        (("simulate", {"path": "a\0.py", "kernel": "k"}), "a\0.py names no file: "),
        (("lint", {"path": "x" * 5000 + ".py"}), "x" * 5000),
        (("explain", {"rule": "\ud800"}), "no rule is called '\ufffd'"),
        (("lint", {"path": "\udfff.py"}), "\ufffd.py is no Python file below the root"),
        (odd("\ud800"), "has no kernel \ufffd"),
        (odd("hostile"), "\\ud800 \0"),
        (odd("no_text"), "Own: (its text raises an error of its own)"),
        (odd("spin", nki_version="x"), "nki_version: must be one of auto, "),
        (odd("spin", seconds=float("nan")), "seconds is nan: it must be more than 0 and at most 86400"),
        (odd("spin", seconds=float("inf")), "seconds is inf: it must be more than 0 and at most 86400"),
        (odd("spin", seconds=1e308), "seconds is 1e+308: it must be more than 0 and at most 86400"),
        (odd("spin", seconds=-1), "seconds is -1: it must be more than 0 and at most 86400"),
        (("lint", {"path": "kernel.py", "seconds": 0}), "seconds is 0: it must be more than 0 and at most 86400"),
        (array(shape=[4.7, 8]), "argument lhs_t: shape is [4.7, 8]; it must be a list of whole numbers from 0 on"),
        (array(shape=[True, 8]), "argument lhs_t: shape is [True, 8]; it must be a list of whole numbers from 0 on"),
        (array(shape="ab"), "argument lhs_t: shape is 'ab'; it must be a list of whole numbers from 0 on"),
        (array(shape=[4], dtype="x"), "argument lhs_t: dtype is 'x'; it must be the name of one, float32 or bfloat16"),
        (array(shape=[4], dtype="object"), "argument lhs_t: dtype is 'object'; it must be the name of one"),
        (array(shape=[4], dtype=4), "argument lhs_t: dtype is 4; it must be the name of one"),
        (array(shape=[4], fill=True), "argument lhs_t: fill is True; it must be a number, 'random' or 'arange'"),
        (array(shape=[4], fill=[1]), "argument lhs_t: fill is [1]; it must be a number, 'random' or 'arange'"),
        (array(shape=[4], seed=-1), "argument lhs_t: seed is -1; it must be a whole number from 0 on"),
    ],
)
def test_an_odd_request_gets_a_sentence(client: Client, request_: tuple[str, dict[str, Any]], words: str) -> None:
    """Each kind, by each door: paths, texts without a form in UTF-8, versions, time limits, arrays."""
    tool, arguments = request_
    answer = client.call(tool, **arguments)
    assert (answer["ok"], words in answer["error"]) == (False, True), answer["error"][:300]


@pytest.mark.process
def test_an_error_of_a_million_characters_is_cut(client: Client) -> None:
    """As other texts of an answer are: an answer has 4,000 characters."""
    _, arguments = odd("long_text")
    answer = client.call("simulate", **arguments)
    assert 1_000 < len(answer["error"]) <= 4_000


@pytest.mark.process
@pytest.mark.skipif(not LINUX, reason="macOS limits no memory")
def test_a_call_that_takes_too_much(client: Client) -> None:
    """20 GiB, an array of 12 GB in a request, and a file of 300 MiB: each is refused, and the server answers on."""
    limit = "it needs more memory than a call may have (8 GiB)"
    assert limit in client.call("simulate", path="odd.py", kernel="allocate")["error"]
    tool, arguments = array(shape=[1048576, 3000])
    assert limit in client.call(tool, **arguments)["error"]
    assert "File too large" in client.call("simulate", path="odd.py", kernel="write")["error"]
    assert client.call("simulate", path="kernel.py", kernel="kernel")["ok"]


@pytest.mark.process
def test_lint_has_a_time_limit(client: Client) -> None:
    """A file of 40,000 statements takes longer than half a second."""
    assert client.call("lint", path="long.py", seconds=0.5)["error"] == "it did not end within 0.5 s"
    assert client.call("lint", path="kernel.py")["result"] == {"findings": []}


@pytest.mark.process
@each("name", ["SIGINT", "SIGTERM", "SIGKILL"])
@each("is_busy", [False, True])
def test_a_signal_ends_the_server_and_all_that_it_has_started(name: str, is_busy: bool, tmp_path: Path) -> None:
    """Idle, or with a kernel that hangs: no process goes on, and no folder is left."""
    root, scratch = (Path(tempfile.mkdtemp(dir=tmp_path)) for _ in range(2))
    (root / "odd.py").write_text(ODD)
    numbers = root / "odd.py.numbers"
    with served(root, TMPDIR=str(scratch)) as client:
        if is_busy:
            client.send("tools/call", name="simulate", arguments={"path": "odd.py", "kernel": "spin"})
            until = time.monotonic() + 60
            while not numbers.exists() or not numbers.read_text():
                assert time.monotonic() < until
                time.sleep(0.02)
        client.process.send_signal(getattr(signal, name))
        assert client.process.wait(20) == -getattr(signal, name)
        if is_busy:
            assert has_ended(int(numbers.read_text()))
    assert list(scratch.iterdir()) == []


@each(
    "line, found",
    [
        (rb'{"a": "\ud800"}', rb'{"a": "\ufffd"}'),
        (rb'{"a": "\uDFFFx\uD83D\uDE00"}', rb'{"a": "\ufffdx\uD83D\uDE00"}'),
        (rb'{"a": "\\ud800"}', rb'{"a": "\\ud800"}'),
        (rb'{"a": "\\\ud800"}', rb'{"a": "\\\ufffd"}'),
        (rb'{"a": "\ud83d\ud83d\ude00"}', rb'{"a": "\ufffd\ud83d\ude00"}'),
        (rb'{"a": "\u00e4\n"}', rb'{"a": "\u00e4\n"}'),
    ],
)
def test_only_lone_surrogates_of_a_line_are_replaced(line: bytes, found: bytes) -> None:
    """A pair stays, and a backslash that is no escape; what is replaced can be sent as UTF-8."""
    assert readable(line) == found
    json.dumps(json.loads(found), ensure_ascii=False).encode()


def test_only_lone_surrogates_of_an_answer_are_spelled_out() -> None:
    """In texts and names of all depths; other values stay as they are."""
    found = sendable({"\udc00": ["\ud800", {"x": ("\U0001f600", 1, None, 2.5)}]})
    assert found == {"\\udc00": ["\\ud800", {"x": ["\U0001f600", 1, None, 2.5]}]}
