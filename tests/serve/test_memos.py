"""Processes that live long give back what they keep for kernels: at the end of a file, and where it is much."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nkitools.facts import kept
from nkitools.facts.kept import Kept
from nkitools.pytest_plugin.worker import Worker


@pytest.fixture
def memo(monkeypatch: pytest.MonkeyPatch) -> Kept[int, int]:
    """A memo of three entries, and no others; three are more than may be."""
    monkeypatch.setattr(kept.forget_many, "__defaults__", (2,))
    made = Kept[int, int]("numbers", 9, "a test")
    monkeypatch.setattr(kept, "all_kept", lambda: [made])
    for number in range(3):
        made[number] = number
    return made


def test_many_entries_are_forgotten_and_few_are_kept(memo: Kept[int, int]) -> None:
    """Of all memos together."""
    assert (kept.forget_many(3), len(memo)) == (False, 3)
    assert (kept.forget_many(2), len(memo)) == (True, 0)


def test_a_closed_document_leaves_nothing(memo: Kept[int, int], tmp_path: Path) -> None:
    """The language server keeps nothing for a file that the editor has closed."""
    pytest.importorskip("pygls", reason="pip install 'nkitools[lsp]'")
    from lsprotocol import types

    from nkitools.serve.language_server import make_server

    server = make_server()
    closed: Any = server.protocol.fm.features[types.TEXT_DOCUMENT_DID_CLOSE]
    server.text_document_publish_diagnostics = lambda _: None  # type: ignore[method-assign]
    closed(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier((tmp_path / "a.py").as_uri())))
    assert len(memo) == 0


@pytest.mark.parametrize("fails", [False, True])
def test_an_answer_to_an_agent_leaves_few(fails: bool, memo: Kept[int, int]) -> None:
    """Also one that is a refusal."""
    pytest.importorskip("mcp", reason="pip install 'nkitools[mcp]'")
    from nkitools.serve.agent_tools import Refused, _answered

    def find() -> dict[str, Any]:
        if fails:
            raise Refused("no such rule")
        return {"found": 1}

    assert _answered(find).is_error is fails
    assert len(memo) == 0


def test_a_hardware_test_leaves_few(memo: Kept[int, int]) -> None:
    """In the process that runs one after the other."""
    sent: list[str] = []
    worker = Worker(SimpleNamespace(send_bytes=lambda _: sent.append("message")))  # type: ignore[arg-type]
    hook = SimpleNamespace(pytest_runtest_protocol=lambda item, nextitem: None)
    worker._config = SimpleNamespace(hook=hook, stash={})  # type: ignore[assignment]
    worker._run(None, None)  # type: ignore[arg-type]
    assert (len(memo), sent) == (0, ["message", "message"])
