"""The edits that may mend a kernel: each kind finds the right text of a wrong one."""

from __future__ import annotations

import pytest

from nkitools.edits.candidates import MODULES, edits_at
from nkitools.edits.remedies import REMEDIES
from nkitools.edits.source import Source

HEAD = "import nki.isa as nisa\nimport nki.language as nl\n\nTILE = 128\n\n\ndef kernel(x, y, weight):\n"

PALLAS = (
    "    pass\n\n\ndef call(table, x):  # of pallas\n    return pl.pallas_call(body, grid=(2, 2), in_specs=[\n"
    "        pl.BlockSpec((8, 8), lambda i, j, table: (table[i * TILE + j], 0))])(table, x)\n\n\n"
    "def body(table, x, y):\n    block, near = pl.program_id(0), pl.program_id(1)\n"
)
CASES = {
    "other-number": ("    a = nl.multiply(x, 0.44715)", "    a = nl.multiply(x, 0.044715)"),
    "other-operand": (
        "    a, b = nl.load(x), nl.load(y)\n    nisa.tensor_tensor(dst=a, data1=a, data2=a, op=nl.add)",
        "    a, b = nl.load(x), nl.load(y)\n    nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)",
    ),
    "other-index": (
        "    for i in range(2):\n        a = nl.load(x[0:TILE, :])\n"
        "        nl.store(y[i * TILE : (i + 1) * TILE, :], a)",
        "    for i in range(2):\n        a = nl.load(x[i * TILE : (i + 1) * TILE, :])\n"
        "        nl.store(y[i * TILE : (i + 1) * TILE, :], a)",
    ),
    "shift-back": ("    a = nl.load(x[:, n - 1 : n])", "    a = nl.load(x[:, (n - 1) + 1 : n])"),
    "other-name": (
        "    rows, columns = x.shape\n    for i in range(rows):\n        pass",
        "    rows, columns = x.shape\n    for i in range(columns):\n        pass",
    ),
    "part-of-expression": ("    a = nl.load(x[0 : TILE - 1])", "    a = nl.load(x[0 : TILE])"),
    "other-sign": ("    a = nl.maximum(x, y)", "    a = nl.add(x, y)"),
    "one-more-factor": (
        "    n = x.shape[1]\n    nisa.tensor_scalar(dst=y, data=x, op0=nl.multiply, operand0=1.0 / n)",
        "    n = x.shape[1]\n    nisa.tensor_scalar(dst=y, data=x, op0=nl.multiply, operand0=1.0 / (n - 1))",
    ),
    "other-axis": ("    a = nl.sum(x, axis=[1, 2])", "    a = nl.sum(x, axis=[1])"),
    "exchange-nested": ("    a = nl.exp(nl.sum(x, axis=1))", "    a = nl.sum(nl.exp(x), axis=1)"),
    "exchange-arguments": ("    a = nl.where(x, y, weight)", "    a = nl.where(x, weight, y)"),
    "other-flag": (
        "    nisa.nc_matmul(dst=x, stationary=y, moving=y, accumulate=True)",
        "    nisa.nc_matmul(dst=x, stationary=y, moving=y, accumulate=False)",
    ),
    "one-more-keyword": (
        "    nisa.tensor_scalar(dst=x, data=y, op0=nl.subtract, operand0=1.0)",
        "    nisa.tensor_scalar(dst=x, data=y, op0=nl.subtract, operand0=1.0, reverse0=True)",
    ),
    "other-dtype": ("    a = nl.ndarray((4, 4), dtype=nl.int32)", "    a = nl.ndarray((4, 4), dtype=nl.float32)"),
    "no-statement": ("    nisa.memset(dst=x, value=0.0)", "    pass"),
    "exchange-statements": ("    nl.store(x, y)\n    nl.store(y, x)", "    nl.store(y, x)\n    nl.store(x, y)"),
    "one-more-instruction": (
        "    b = nl.load(y)\n    nisa.tensor_copy(dst=b, src=x)",
        "    b = nl.load(y)\n    nisa.tensor_copy(dst=b, src=x)\n"
        "    nisa.tensor_tensor(dst=b, data1=b, data2=weight, op=nl.multiply)",
    ),
    "other-instruction": (
        "    nisa.tensor_copy(dst=x, src=y)",
        "    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)",
    ),
    "move-statement": (
        "    for i in range(4):\n        nisa.memset(dst=x, value=0.0)\n        nl.store(y, x)",
        "    nisa.memset(dst=x, value=0.0)\n    for i in range(4):\n        nl.store(y, x)",
    ),
    "solved-number": ("    a = nl.multiply(x, 0.44715)", "    a = nl.multiply(x, ?)"),
    "other-brackets": ("    a = nl.load(x) / (y + 0.5)", "    a = (nl.load(x) / y) + 0.5"),
    "out-of-brackets": ("    a = nl.rsqrt(x + 0.5)", "    a = (nl.rsqrt(x) + 0.5)"),
    "other-quotient": ("    n = x.shape[0]\n    a = n % 4", "    n = x.shape[0]\n    a = n // (TILE // 4)"),
    "other-turn": (
        "    for i in range(4):\n        if i == 0:\n            pass",
        "    for i in range(4):\n        if i == 4 - 1:\n            pass",
    ),
    "other-end": ("    a = nl.copy(x[:, 0:1])", "    a = nl.copy(x[:, TILE - 1 : TILE])"),
    "other-bound": (
        "    n, m = x.shape\n    a = nl.load(x, mask=m < TILE)",
        "    n, m = x.shape\n    a = nl.load(x, mask=n < m)",
    ),
    "swap-names": (
        "    i, j, k = x.shape\n    a = nl.load(x[i + k, j * 2])",
        "    i, j, k = x.shape\n    a = nl.load(x[j + k, i * 2])",
    ),
    "one-more-function": ("    a = nl.sum(x, axis=1)", "    a = nl.sum(nl.exp(x), axis=1)"),
    "keyword-of-another": (
        "    a = nl.load(x, mask=weight < 4)\n    nl.store(y, a)",
        "    a = nl.load(x, mask=weight < 4)\n    nl.store(y, a, mask=weight < 4)",
    ),
    "one-more-condition": (
        "    i, j = weight\n    a = nl.load(x, mask=i < 4)\n    b = nl.load(y, mask=j < 8)",
        "    i, j = weight\n    a = nl.load(x, mask=(i < 4) & (j < 8))\n    b = nl.load(y, mask=j < 8)",
    ),
    "one-more-bound": (
        "    rows = x.shape[0]\n    for i in range(0, rows, TILE):\n        height = TILE",
        "    rows = x.shape[0]\n    for i in range(0, rows, TILE):\n        height = min(TILE, rows - i)",
    ),
    "one-more-program": (
        "    i = 0\n    n = nl.num_programs(0)",
        "    i = nl.program_id(0)\n    n = nl.num_programs(0)",
    ),
    "other-counter": ("    n, m = x.shape\n    a = y[n]", "    n, m = x.shape\n    a = y[n * TILE + m]"),
    "one-step-less": (
        "    nisa.tensor_scalar(dst=x, data=y, op0=nl.add, operand0=1.0, op1=nl.multiply, operand1=2.0)",
        "    nisa.tensor_scalar(dst=x, data=y, op0=nl.add, operand0=1.0)",
    ),
    "no-method": ("    a = x.astype(nl.bfloat16).sum()", "    a = x.sum()"),
    "other-transposition": ("    a = x @ y", "    a = x @ y.T"),
    "first-value": ("    nisa.memset(dst=x, value=0.0)", "    nisa.memset(dst=x, value=-1e30)"),
    "one-more-operand": (
        "    b = nl.load(y)\n    nl.store(x, b)",
        "    b = nl.load(y)\n    nl.store(x, nl.multiply(b, weight))",
    ),
    "place-of-block": (
        f"{PALLAS}    place = near\n    a = x[place]",
        f"{PALLAS}    place = table[block * TILE + near]\n    a = x[place]",
    ),
    "other-condition": (
        f"{PALLAS}    @pl.when(near == 0)\n    def _():\n        pass",
        f"{PALLAS}    @pl.when((near == 0) & (pl.program_id(0) == 0))\n    def _():\n        pass",
    ),
    "other-constant": ("    pass\n\n\nEPSILON = 0.25", "    pass\n\n\nEPSILON = 2.5"),
    "other-value": (
        f"{PALLAS}    a = x[...]\n    b = x[0]\n    c = a * 2\n    y[...] = c",
        f"{PALLAS}    a = x[...]\n    b = x[0]\n    c = a * 2\n    y[...] = b * a",
    ),
    "clear-before": (
        "    b = nl.load(y)\n    for i in range(4):\n        nisa.tensor_tensor(dst=b, data1=b, data2=x, op=nl.add)",
        "    b = nl.load(y)\n    for i in range(4):\n        nisa.memset(dst=b, value=0.0)\n"
        "        nisa.tensor_tensor(dst=b, data1=b, data2=x, op=nl.add)",
    ),
}


@pytest.mark.parametrize("kind", REMEDIES)
def test_each_kind_finds_what_should_stand_there(kind: str) -> None:
    """The right text is among the edits of its kind, and nothing else of the file changes."""
    assert MODULES
    wrong, right = (f"{HEAD}{each}\n" for each in CASES[kind])
    source = Source(wrong, "author")
    lines = range(1, len(source.lines) + 1)
    texts = [source.edited([edit]) for name, edit in edits_at(source, lines) if name == kind]
    assert right in texts


def test_a_tile_is_made_anew_in_each_turn() -> None:
    """Each statement in front of a loop that makes a tile of it may become its first; comments stay where they are."""
    text = (
        f"{HEAD}    a = nl.zeros((4, 4), nl.float32)\n    b = nl.ndarray((4, 4), nl.float32)\n"
        "    c = nl.zeros((4, 4), nl.float32)  # unused\n    for i in range(4):  # turns\n        # a sum\n"
        "        a += nl.load(x)\n        nl.store(b, a)\n"
    )
    source = Source(text, "author")
    texts = [source.edited([edit]) for name, edit in edits_at(source, range(1, 40)) if name == "move-statement"]
    first, second, third = ("".join(text.splitlines(keepends=True)[number]) for number in (7, 8, 9))
    moved = text.replace(first, "")
    head = "    for i in range(4):  # turns\n        # a sum\n"
    assert [each for each in texts if each == moved.replace(head, f"{head}    {first}")]
    assert [each for each in texts if each == text.replace(second, "").replace(head, f"{head}    {second}")]
    assert not [each for each in texts if third not in each]


def test_what_is_written_alike_comes_once() -> None:
    """No two edits give one text, and none gives the text as it was."""
    bodies = [each for each, _ in CASES.values() if "\n\n" not in each]
    source = Source(HEAD + "\n".join(bodies) + "\n", "author")
    texts = [source.edited([edit]).replace(" ", "") for _, edit in edits_at(source, range(1, len(source.lines) + 1))]
    assert source.text.replace(" ", "") not in texts
    assert len(texts) > 500
    assert len(set(texts)) > 0.97 * len(texts)  # brackets apart


def test_other_names_of_the_modules() -> None:
    """An inserted instruction is called by the names that the file has for the modules."""
    text = HEAD.replace("as nisa", "as isa").replace("as nl", "as lang") + CASES["one-more-instruction"][0] + "\n"
    source = Source(text.replace("nisa.", "isa."), "author")
    added = [edit.text for name, edit in edits_at(source, range(1, 40)) if name == "one-more-instruction"]
    assert added
    assert all("nisa." not in each and "nl." not in each for each in added)
