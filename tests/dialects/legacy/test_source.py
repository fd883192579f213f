"""What the source of a kernel shows, and of the functions that it calls."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from nkitools.dialects.legacy.kernels.kernel_source import functions_of
from nkitools.lint.legacy_scopes import Scopes, SourceFinding
from tests.dialects.legacy.errors import marked_line, run
from tests.dialects.legacy.running import random
from tests.loading import loaded

X = random(8, 16)
HEAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from neuronxcc.nki import isa, typing as nt
from neuronxcc.nki.language import affine_range, load as fetch
"""


def findings_in(source: str) -> list[SourceFinding]:
    """What the functions of a source text show."""
    functions = functions_of(source).values()
    return [each for _, scope in functions for each in Scopes(scope).function()]


def told(body: str) -> list[tuple[str, int]]:
    """Rule and line (from the function's first) of the findings in a kernel of that body."""
    source = HEAD + "\n\ndef kernel(x, y, flag=None, tiles=()):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    return [(each.rule, each.line - 7) for each in findings_in(source)]


WRONG = {
    "a name of an import": "for i in affine_range(2):\n    t = fetch(x)\nnl.store(y, t)",
    "a computed tile": "for i in range(2):\n    a = nl.load(x)\n    b = a + 1\n    d = -b[0:4]\nnl.store(y, d)",
    "a method's result": "for i in range(2):\n    a = nl.load(x).astype(nl.float32)\nnl.store(y, a)",
    "another branch": "i = nl.program_id(0)\nif i > 0:\n    t = nl.load(x)\nelse:\n    pass\nnl.store(y, t)",
    "a derived counter": "for i in range(4):\n    k = i % 2\n    if k:\n        t = nl.load(x)\n    nl.store(y, t)",
    "a loop of loops": "for i in range(2):\n    for j in range(2):\n        t = nl.load(x)\n    nl.store(y, t)",
    "a while loop": "n = nt.scalar(nl.load(x))\nwhile n < 3:\n    n = nt.scalar(nl.load(x))",
    "a direct test": "while nt.scalar(nl.load(x)) < 3:\n    pass",
}
LINES = {"a computed tile": 5, "a loop of loops": 4, "a derived counter": 5, "a while loop": 2, "a direct test": 1}

RIGHT = [
    "for i in nl.static_range(2):\n    t = nl.load(x)\nnl.store(y, t)",
    "for t in tiles:\n    u = nl.load(t)\nnl.store(y, u)",
    "if flag is None:\n    t = nl.load(x)\nelse:\n    t = nl.load(y)\nnl.store(y, t)",
    "for i in range(2):\n    t = nl.load(x)\n    nl.store(y, t)\nt = nl.load(x)\nnl.store(y, t)",
    "for i in range(2):\n    k = nl.arange(4)\n    n = i * 2\n    s = nl.ds(n, 2)\nprint(k, n, s)",
    "t = nl.load(x)\nfor i in range(2):\n    t[...] = t + 1\n    t += 1\nnl.store(y, t)",
    "for i in range(2):\n    t = nl.load(x)\nu = [t for t in tiles]\nv = (lambda t: t)(0)",
    "k = 0\nwhile k < 4:\n    t = nl.load(x)\n    k += 1\nnl.store(y, t)",
    "go = nt.scalar(True)\nwhile go:\n    go = nt.scalar(nl.load(x)) < 3",
    "for i in range(2):\n    t = nl.load(x)\n\n    def inner():\n        return t\nnl.store(y, nl.load(x))",
    "for i in range(2):\n    a, b = nl.load(x), nl.load(y)\nnl.store(y, a)",  # unpacked: nothing is known of them
]


@pytest.mark.parametrize("name", WRONG)
def test_tensors_outside_of_their_block_and_loops_that_test_first(name: str) -> None:
    """Whatever the imports call NKI, and however the tile was computed."""
    lines = len(WRONG[name].splitlines())
    rule = "NK601" if "while" in WRONG[name] else "NK605"
    assert told(WRONG[name]) == [(rule, LINES.get(name, lines))]


@pytest.mark.parametrize("body", RIGHT)
def test_what_the_compiler_decides_itself_is_no_scope(body: str) -> None:
    """Unrolled loops, flags, names bound again, and names that hold no tile."""
    assert told(body) == []


def test_files_without_the_dialect_or_that_do_not_parse_say_nothing() -> None:
    """Modern kernels have other rules."""
    body = "def kernel(x):\n    for i in range(2):\n        t = nl.load(x)\n    return nl.exp(t)\n"
    assert findings_in("import nki.language as nl\n" + body) == []
    assert findings_in("import neuronxcc.nki.language as nl\n" + body) != []
    assert findings_in("import neuronxcc.nki.language as nl\ndef kernel(:\n") == []


def _helper(x: Any) -> Any:
    for _ in nl.sequential_range(2):
        tile = nl.load(x)
    return tile  # here


def test_functions_that_the_kernel_calls_are_read_too() -> None:
    """Those it names, those that these name, and those of its closure, once each."""

    def outer(x: Any) -> Any:
        return _helper(x)

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, outer(x))
        nl.store(out, _helper(x))
        return out

    findings = run(kernel, (X,)).findings
    assert [(each.rule, each.line, each.function) for each in findings] == [("NK605", marked_line(_helper), "_helper")]
    assert findings[0].column == 12


def test_without_source_nothing_is_said() -> None:
    """A kernel typed into a session without history runs as it is."""
    source = (
        "def kernel(x):\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    for i in nl.sequential_range(1):\n"
        "        tile = nl.load(x)\n"
        "    nl.store(out, tile)\n"
        "    return out\n"
    )
    names: dict[str, Any] = {"nl": nl}
    exec(source, names)
    done = run(nki.jit(names["kernel"]), (X,))
    assert done.findings == []
    np.testing.assert_array_equal(done.outputs, X)


def test_a_helper_that_takes_another_one_s_place_is_looked_at(tmp_path: Path) -> None:
    """After warm launches without findings, and no longer when the first helper is back."""
    file = tmp_path / "helpers.py"
    file.write_text(
        HEAD
        + textwrap.dedent("""
        def right(x):
            return nl.load(x)


        def wrong(x):
            for i in nl.sequential_range(1):
                tile = nl.load(x)
            return tile


        helper = right


        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            nl.store(out, helper(x))
            return out
        """)
    )
    module = loaded(file)
    for helper, rules in ((module.right, []), (module.wrong, ["NK605"]), (module.right, [])):
        module.helper = helper
        for _ in range(3):
            done = run(module.kernel, (X,))
            assert [(each.rule, each.function) for each in done.findings] == [(rule, "wrong") for rule in rules]
