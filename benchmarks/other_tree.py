"""Rounds of another checkout's package, in a process of its own that takes turns with this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import HERE, InThisProcess

_BOOT = """
import sys
sys.path.insert(0, {tree!r})
import nkitools
sys.path[0] = {here!r}
from benchmarks.other_tree import serve
serve({rules!r})
"""


class InAnotherProcess:
    """The rounds of `InThisProcess`, with the package of the checkout at ``tree``."""

    def __init__(self, tree: Path, rules: str) -> None:
        boot = _BOOT.format(tree=str(tree.resolve()), here=str(HERE), rules=rules)
        self._process = subprocess.Popen(
            [sys.executable, "-c", boot], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/"
        )

    def prepare(self, name: str) -> None:
        """Make the calls of a workload, or of the single actions, and run each once."""
        self._ask({"prepare": name})

    def round(self) -> dict[str, float]:
        """Run each call once, and return the processor's time of each."""
        times: dict[str, float] = self._ask({})
        return times

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _ask(self, request: dict[str, str]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(request)}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit("the process of the other checkout has ended; its error is above")
        return json.loads(answer)


def serve(rules: str) -> None:
    """Answer the requests on standard input, a line each; what else is printed goes to standard error."""
    import nkitools

    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        nkitools.install_stand_in(prefer="builtin")
        rounds = InThisProcess(rules)
        for line in sys.stdin:
            request = json.loads(line)
            done = rounds.prepare(request["prepare"]) if request else rounds.round()
            answers.write(f"{json.dumps(done)}\n")
            answers.flush()
