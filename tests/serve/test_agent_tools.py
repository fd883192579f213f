"""The tools answer a real client of the protocol over stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

mcp = pytest.importorskip("mcp", reason="pip install 'nkitools[mcp]'")

from nkitools.rules.catalogue import RULES  # noqa: E402
from tests import cases  # noqa: E402

pytestmark = pytest.mark.process
GOOD = RULES["NK103"].examples[0].good
BAD = RULES["NK103"].examples[0].bad
REQUESTS = 1000 if cases.FULL else 100
HANGING = "import nki\n\n\n@nki.jit\ndef kernel(x):\n    while True:\n        pass\n\n\ninputs = (1.0,)\n"
REFERENCE = (
    "\n\ndef reference(a, b):\n    return a.T @ b\n\n\ndef wrong(a, b):\n    return a.T @ b + (np.arange(512) == 17)\n"
)


def talk(root: Path, conversation: Callable[[Any], Awaitable[None]]) -> None:
    """Start a server of a folder and hold a conversation with it."""

    async def held() -> None:
        server = mcp.StdioServerParameters(command=sys.executable, args=["-m", "nkitools", "mcp", "--root", str(root)])
        async with mcp.Client(server) as client:
            await conversation(client)

    asyncio.run(asyncio.wait_for(held(), 600 if cases.FULL else 60))


async def ask(client: Any, tool: str, **arguments: Any) -> Any:
    """Return what a tool found, after a look at whether it could answer."""
    answer = (await client.call_tool(tool, arguments)).structured_content
    assert answer["ok"], answer["error"]
    return answer["result"]


async def refusal(client: Any, tool: str, **arguments: Any) -> str:
    """Return why a tool could not answer."""
    told = await client.call_tool(tool, arguments)
    assert told.is_error
    assert not told.structured_content["ok"]
    return str(told.structured_content["error"])


OF_FILES = """import json
import numpy as np
import nki, nki.isa as nisa, nki.language as nl
from helper_of_this_test import FACTOR

with open(__file__.replace("kernel.py", "bias.json")) as file:
    BIAS = json.load(file)


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=FACTOR, op1=nl.add, operand1=BIAS)
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((4, 8), np.float32),)
"""


def test_a_kept_run_knows_the_files_that_it_has_read(tmp_path: Path) -> None:
    """Of a helper and of a file of numbers: after a change `why` is refused with its name; restored, it answers."""
    (tmp_path / "kernel.py").write_text(OF_FILES)
    files = {"helper_of_this_test.py": ("FACTOR = 2.0\n", "FACTOR = 7.0\n"), "bias.json": ("1.0", "3.0")}
    for name, (text, _) in files.items():
        (tmp_path / name).write_text(text)

    async def conversation(client: Any) -> None:
        asked = {"path": "kernel.py", "kernel": "kernel"}
        run = await ask(client, "simulate", **asked)
        assert (run["outputs"][0]["max"], "files" in run) == (3.0, False)
        for name, (text, changed) in files.items():
            (tmp_path / name).write_text(changed)
            said = await refusal(client, "why", run=run["run"], index=[0, 0])
            assert f"{name} has changed since; simulate it again" in said
            assert (await ask(client, "simulate", **asked))["run"] != run["run"]
            (tmp_path / name).write_text(text)
            said = (await ask(client, "why", run=run["run"], index=[0, 0]))["text"]
            assert said.startswith("out[0, 0] = 3")
        assert (await ask(client, "simulate", **asked))["run"] == run["run"]

    talk(tmp_path, conversation)


def test_settings_are_those_of_the_command_line(tmp_path: Path) -> None:
    """A constant and a parameter of ``inputs``, for this call alone; a name that means nothing is refused."""
    (tmp_path / "helper_of_this_test.py").write_text("FACTOR = 2.0\n")
    (tmp_path / "bias.json").write_text("1.0")
    inputs = "def inputs(rows=4):\n    return np.ones((rows, 8), np.float32),\n"
    said = OF_FILES.replace("inputs = (np.ones((4, 8), np.float32),)", inputs)
    (tmp_path / "kernel.py").write_text(f"{said}def reference(x):\n    return 5 * x + 1\n")

    async def conversation(client: Any) -> None:
        asked = {"path": "kernel.py", "kernel": "kernel"}
        run = await ask(client, "simulate", **asked, settings={"FACTOR": 5.0, "rows": 6})
        assert (run["outputs"][0]["max"], run["outputs"][0]["shape"]) == (6.0, [6, 8])
        assert (await ask(client, "why", run=run["run"], index=[5, 0]))["text"].startswith("out[5, 0] = 6")
        assert (await ask(client, "simulate", **asked))["outputs"][0]["max"] == 3.0
        right = {**asked, "against": "reference"}
        assert (await ask(client, "compare", **right, settings={"FACTOR": 5.0}))["agrees"]
        assert not (await ask(client, "compare", **right, chip="trn1"))["agrees"]
        few, many = [await ask(client, "estimate", **asked, settings={"rows": each}) for each in (4, 128)]
        assert few["estimates"] != many["estimates"]
        refused = await refusal(client, "simulate", **asked, settings={"FACTORS": 1})
        assert "FACTORS is no parameter of the kernel or of `inputs`" in refused

    talk(tmp_path, conversation)


def test_an_agent_mends_a_kernel_and_asks_about_it(tmp_path: Path) -> None:
    """The suggested edits have a clean run; equal requests have equal ids and answers; a changed file is refused."""
    (tmp_path / "kernel.py").write_text(BAD)

    async def conversation(client: Any) -> None:
        (found,) = (await ask(client, "lint", path="kernel.py"))["findings"]
        assert (found["rule"], found["suggestions"][0]["title"]) == ("NK103", "Contract 64 rows in each turn of a loop")
        run = await ask(client, "simulate", path="kernel.py", kernel="kernel")
        assert [each["rule"] for each in run["findings"]] == ["NK103"]

        (tmp_path / "kernel.py").write_text(GOOD + REFERENCE)
        assert "has changed since" in await refusal(client, "why", run=run["run"], index=[0, 0])
        run = await ask(client, "simulate", path="kernel.py", kernel="kernel")
        assert run == await ask(client, "simulate", path="kernel.py", kernel="kernel")
        assert run["findings"] == []
        assert run["outputs"] == [
            {"name": "outputs", "shape": [64, 512], "dtype": "float32", "min": 128, "max": 128, "nan": 0}
        ]
        said = await ask(client, "why", run=run["run"], index=[3, 17])
        assert said["text"].startswith("out[3, 17] = 128\n")
        arguments = {"lhs_t": {"shape": [128, 64], "fill": "arange"}, "rhs": {"shape": [128, 512], "fill": 2}}
        other = await ask(client, "simulate", path="kernel.py", kernel="kernel", arguments=arguments)
        assert other["outputs"][0]["max"] == 2.0 * sum(range(63, 128 * 64, 64))

        same = await ask(client, "compare", path="kernel.py", kernel="kernel", against="reference")
        assert same["agrees"]
        apart = await ask(client, "compare", path="kernel.py", kernel="kernel", against="wrong", rtol=1e-6)
        assert not apart["agrees"]
        assert apart["outputs"] == [
            {
                "agrees": False,
                "outcome": "wrong",
                "max_error": 1,
                "wrong": 64,
                "first": [0, 17],
                "is": 128,
                "should_be": 129,
            }
        ]
        times = await ask(client, "estimate", path="kernel.py", kernel="kernel", chips=["trn2", "trn3"])
        assert [each["chip"] for each in times["estimates"]] == ["trn2", "trn3"]
        answer = await client.call_tool("instructions", {"query": "nc_matmul"})
        functions = answer.structured_content["result"]["functions"]
        assert functions[0]["name"] == "nki.isa.nc_matmul"
        assert json.loads(answer.content[0].text) == answer.structured_content
        assert len(answer.content[0].text) < 4096
        assert not answer.is_error
        assert "128 rows" in (await ask(client, "explain", rule="NK103"))["text"]

    talk(tmp_path, conversation)


def test_what_is_wrong_or_hangs_ends_no_session(tmp_path: Path) -> None:
    """Files outside of the root, links out of it, no Python, unknown names, a kernel that hangs and one that leaves."""
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret.py").write_text("secret = 1\n")
    (root / "link.py").symlink_to(tmp_path / "secret.py")
    (root / "hang.py").write_text(HANGING)
    (root / "leave.py").write_text(HANGING.replace("    while True:\n        pass", "    import os\n    os._exit(3)"))
    (root / "loud.py").write_text("print('x' * 100_000)\n" + GOOD)
    (root / "raises.py").write_text(HANGING.replace("    while True:\n        pass", "    raise OverflowError('mine')"))
    (root / "broken.py").write_text("def kernel(:\n")
    (root / "shell.py").write_text("from os import system\n" + GOOD)

    async def conversation(client: Any) -> None:
        for path in ("../secret.py", str(tmp_path / "secret.py"), "link.py"):
            assert "outside of the root" in await refusal(client, "lint", path=path)
        assert "no Python file" in await refusal(client, "simulate", path="missing.py", kernel="kernel")
        assert "has no kernel other" in await refusal(client, "simulate", path="hang.py", kernel="other")
        for tool, names in (("simulate", {}), ("compare", {"against": "system"})):
            kernel = "kernel" if names else "system"
            command = {} if names else {"arguments": {"command": f"touch {tmp_path}/pwned"}}
            asked = {"kernel": kernel, **command, **names}
            assert "has no" in await refusal(client, tool, path="shell.py", **asked)
        assert not (tmp_path / "pwned").exists()
        assert "no such chip" in await refusal(client, "simulate", path="hang.py", kernel="kernel", chip="trn9")
        assert "no such run" in await refusal(client, "why", run="run-0", index=[0])
        assert "did not end within 1 s" in await refusal(client, "simulate", path="hang.py", kernel="kernel", seconds=1)
        assert "exit code 3" in await refusal(client, "simulate", path="leave.py", kernel="kernel")
        assert await refusal(client, "simulate", path="raises.py", kernel="kernel") == "OverflowError: mine"
        assert "broken.py:1" in await refusal(client, "simulate", path="broken.py", kernel="kernel")
        (found,) = (await ask(client, "lint", path="broken.py"))["findings"]
        assert found["rule"] == "NK601"
        malformed = await client.call_tool("simulate", {"path": 3})
        assert malformed.is_error
        loud = await ask(client, "simulate", path="loud.py", kernel="kernel")
        assert len(loud["printed"]) <= 12_000

        reports: list[float] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            reports.append(done)

        started = time.monotonic()
        work = asyncio.create_task(
            client.call_tool(
                "simulate", {"path": "hang.py", "kernel": "kernel", "seconds": 50}, progress_callback=progress
            )
        )
        while not reports:
            await asyncio.sleep(0.05)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        assert (await ask(client, "lint", path="hang.py"))["findings"] is not None
        assert time.monotonic() - started < 50

    talk(root, conversation)


def _resident(root: Path) -> int:
    """Return the memory of the server of a folder."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"mcp\0--root\0{root}\0" in (folder / "cmdline").read_text():
                return int((folder / "statm").read_text().split()[1]) * 4096
    raise AssertionError("the server is not there")


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_a_thousand_requests_leave_the_server_as_it_was(tmp_path: Path) -> None:
    """Each request is about another text; nothing of an earlier one is in a later answer."""

    async def conversation(client: Any) -> None:
        async def ask_about(number: int) -> None:
            lines = number % 7
            (tmp_path / "kernel.py").write_text("\n" * lines + f"number = {number}\n" + BAD)
            (found,) = (await ask(client, "lint", path="kernel.py"))["findings"]
            assert found["line"] == 15 + 1 + lines

        for number in range(100):
            await ask_about(number)
        before = _resident(tmp_path)
        for number in range(REQUESTS):
            await ask_about(number)
        assert _resident(tmp_path) - before < 8 << 20

    talk(tmp_path, conversation)


WRONG_SUM = """import numpy as np
import nki, nki.isa as nisa, nki.language as nl


@nki.jit
def kernel(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    total = nl.load(a)
    nisa.tensor_tensor(dst=total, data1=total, data2=total, op=nl.add)
    other = nl.load(b)
    nisa.tensor_tensor(dst=total, data1=total, data2=other, op=nl.multiply)
    nisa.dma_copy(dst=out, src=total)
    return out


def inputs():
    random = np.random.default_rng(0)
    return tuple(random.standard_normal((64, 40)).astype(np.float32) for _ in range(2))


def expected(a, b):
    return a * a * b
"""


def test_an_agent_gets_a_verified_edit(tmp_path: Path) -> None:
    """The operator of the first instruction, with the cases that it was verified on; the file stays as it is."""
    (tmp_path / "kernel.py").write_text(WRONG_SUM)

    async def conversation(client: Any) -> None:
        found = await ask(client, "repair", path="kernel.py", kernel="kernel", against="expected", seconds=50)
        assert (found["kind"], found["edit"]["line"], found["edit"]["change"]) == (
            "repaired",
            9,
            "nl.add -> nl.multiply",
        )
        assert found["edit"]["verified_on"][:2] == ["this case", "fresh values"]
        assert "no `reference`" in await refusal(client, "repair", path="kernel.py", kernel="kernel")

    talk(tmp_path, conversation)
    assert (tmp_path / "kernel.py").read_text() == WRONG_SUM
