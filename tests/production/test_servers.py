"""The servers of editors and agents over their protocols, in a repository as people have it in production."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="pip install 'nkitools[mcp]'")
pytest.importorskip("pygls", reason="pip install 'nkitools[lsp]'")

from lsprotocol import types

from tests.serve import test_agent_tools as agent
from tests.serve import test_language_server as editor

pytestmark = pytest.mark.process
REPOSITORY = Path(__file__).with_name("repository")
MOST_BYTES = 4_096  # of an answer, with what stands around it


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a copy of the repository."""
    return Path(shutil.copytree(REPOSITORY, tmp_path / "service", ignore=shutil.ignore_patterns("__pycache__")))


def test_an_agent_works_through_the_protocol(root: Path) -> None:
    """Each tool answers in compact JSON of 4 KB at most, as text and as data; wrong names are refused as such."""
    asked = {"path": "bench/rms_cases.py", "kernel": "rms_norm"}

    async def conversation(client: Any) -> None:
        async def answer(tool: str, **arguments: Any) -> Any:
            told = await client.call_tool(tool, arguments)
            (content,) = told.content
            assert len(content.text.encode()) <= MOST_BYTES, (tool, len(content.text.encode()))
            assert '", "' not in content.text[:20]
            assert told.is_error is not told.structured_content["ok"]
            return told.structured_content

        run = (await answer("simulate", **asked))["result"]
        assert [each["shape"] for each in run["outputs"]] == [[130, 64]]
        assert "rms.py:26" in (await answer("why", run=run["run"], index=[3, 4]))["result"]["text"]
        times = (await answer("estimate", **asked, chips=["trn1", "trn2", "trn3"]))["result"]
        assert [each["chip"] for each in times["estimates"]] == ["trn1", "trn2", "trn3"]
        assert times["text"].startswith("rms_norm on trn1: ")
        assert (await answer("compare", **asked, against="reference"))["result"]["agrees"]
        (found,) = (await answer("lint", path="src/ranker/scores/summed.py"))["result"]["findings"]
        assert (found["rule"], found["line"]) == ("NK601", 16)
        (wide,) = (await answer("simulate", path="bench/wide_cases.py", kernel="wide_scores"))["result"]["findings"]
        assert (wide["rule"], Path(wide["file"]).name, wide["line"]) == ("NK101", "wide.py", 12)

        takes = "rms_norm takes x, weight, epsilon, and is given y: missing a required argument: 'x'"
        for tool in ("simulate", "estimate", "verify", "repair"):
            said = await answer(tool, **asked, arguments={"y": 3})
            assert (said["ok"], said["error"]) == (False, takes), tool
        said = await answer("lint", path="bench/rms_cases.py", kernel="rms_norm")
        assert (said["ok"], said["error"]) == (False, "lint takes path, seconds, and is given kernel")

    agent.talk(root, conversation)


def test_an_editor_works_through_the_protocol(root: Path) -> None:
    """The finding of a file of the package is published at its line; a right one has none."""

    async def conversation(client: editor.Client) -> None:
        for name in ("scores/summed.py", "norms/rms.py"):
            path = root / "src/ranker" / name
            uri = editor.opened(client, path, path.read_text(encoding="utf-8"))
            await editor.until(lambda uri=uri: uri in client.diagnostics)  # type: ignore[misc]
            found = [(each.code, each.range.start.line + 1, each.severity) for each in client.diagnostics[uri]]
            assert found == [("NK601", 16, types.DiagnosticSeverity.Error)] * (name == "scores/summed.py")

    editor.talk(conversation)
