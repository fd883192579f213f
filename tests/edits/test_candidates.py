"""Single edits of a kernel: what each kind makes, and where they are made."""

from __future__ import annotations

import pytest

from nkitools.edits.candidates import KINDS, candidates_in, candidates_of
from nkitools.edits.source import Source

MADE = {
    "alias-buffers": ("a = nl.zeros((2, 1))\n    b = nl.zeros((2, 1))", "    b = nl.zeros((2, 1))\n    b = a\n"),
    "change-axis": ("nl.sum(x, axis=1)", "nl.sum(x, axis=0)"),
    "change-buffer": ("y = nl.ndarray((1, 2), buffer=nl.psum)", "buffer=nl.sbuf)"),
    "change-comparison": ("y = x[i] < 3", "x[i] <= 3"),
    "change-constant": ("y = f(3)", "f(4)"),
    "change-dtype": ("y = nl.load(x, dtype=nl.float32)", "dtype=nl.bfloat16"),
    "change-engine": ("nisa.tensor_copy(dst=x, src=y)", "src=y, engine=nisa.engine.gpsimd)"),
    "change-operator": ("nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)", "op=nl.subtract)"),
    "drop-assignment": ("x = x + 1", "    pass\n"),
    "drop-barrier": ("nisa.core_barrier(data=x, cores=(0, 1))", "    pass\n"),
    "drop-copy": ("nisa.dma_copy(dst=x, src=y)", "    pass\n"),
    "drop-instruction": ("nisa.nc_matmul(dst=x, stationary=y, moving=y)", "    pass\n"),
    "drop-keyword": ("nisa.tensor_reduce(dst=x, data=y, negate=True)", "data=y)"),
    "drop-mask": ("y = nl.load(x[i], mask=i < 3)", "nl.load(x[i])"),
    "drop-memset": ("y = nl.zeros((2, 1), dtype=x.dtype)", "y = nl.ndarray((2, 1), dtype=x.dtype, buffer=nl.sbuf)"),
    "drop-minimum": ("y = min(128, x)", "y = 128\n"),
    "drop-wrapper": ("y = nl.exp(x)", "y = x\n"),
    "floor-division": ("y = (x + 128 - 1) // 128", "y = (x) // 128\n"),
    "forget-accumulate": ("x[i] += y", "x[i] = y"),
    "forget-return": ("return x", "    pass\n"),
    "ignore-condition": ("y = 1 if x else 2", "y = 2\n"),
    "lengthen-loop": ("for i in range(0, x, 128):\n        f(i)", "range(0, x + 128, 128)"),
    "narrow-slice": ("y = x[:, i : i + 5]", "x[:, i:i + 5 - 1]"),
    "shift-slice": ("y = x[:, nl.ds(i, 5)]", "nl.ds(i + 1, 5)"),
    "shorten-loop": ("for i in nl.affine_range(x):\n        f(i)", "nl.affine_range(x - 1)"),
    "start-late": ("for i in range(x):\n        f(i)", "range(1, x)"),
    "swap-indices": ("y = x[a, b]", "x[b, a]"),
    "swap-operands": ("y = a - b", "(b) - (a)"),
    "swap-results": ("return a, b", "return b, a"),
    "swap-stationary": ("nisa.nc_matmul(dst=x, stationary=a, moving=b)", "stationary=b, moving=a)"),
    "swap-targets": ("a, b = f()", "b, a = f()"),
    "widen-slice": ("y = x[:, nl.ds(i, 5)]", "nl.ds(i, 6)"),
    "wrong-accumulate": ("nisa.nc_matmul(dst=x, stationary=a, moving=b)", "moving=b, accumulate=True)"),
    "wrong-counter": ("for i in f():\n        for j in f():\n            y = x[i]", "x[j]"),
    "wrong-program": ("y = nl.program_id(0)", "y = 0\n"),
    "wrong-range": ("for i in nl.sequential_range(4):\n        f(i)", "nl.affine_range(4)"),
    "wrong-tile-size": ("y = nl.tile_size.pmax", "(2 * nl.tile_size.pmax)"),
}


def source(body: str) -> Source:
    """A module of one function."""
    return Source(f"def kernel(x):\n    {body}\n", "one")


def test_every_kind_is_tried() -> None:
    """The table below speaks of all of them."""
    assert MADE.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", MADE)
def test_a_kind_makes_its_mistake(kind: str) -> None:
    """One of its edits has the new text, and every one of them parses and names the line."""
    body, wrong = MADE[kind]
    found = [each for each in candidates_of(source(body)) if each.kind == kind]
    assert any(wrong in each.text for each in found)
    assert all(each.code in source(body).text for each in found)


def test_what_is_no_computation_is_left_alone() -> None:
    """Assertions, docstrings and device prints have no edits; constants of assertions alone have none."""
    text = 'LIMIT = 5\n\n\ndef kernel(x):\n    "A 3."\n    assert x < LIMIT\n    nl.device_print("x", x[0:3])\n'
    assert list(candidates_of(Source(text, "one"))) == []


REACHING = """import nki.language as nl

BLOCK = 64
OTHER = 3


def width(x, start):
    return min(BLOCK, x.shape[1] - start)


def unused(x):
    return min(OTHER, x)


def doubled(x):
    return nl.add(x[:, 0 : width(x, 0)], x)
"""


def test_edits_are_made_where_the_kernel_reaches() -> None:
    """In its own functions and constants, and not in others of the file; unknown kernels and kinds are refused."""
    file, lines = Source(REACHING, "doubled"), REACHING.splitlines()
    found = {lines[each.line - 1] for each in candidates_in(file, "doubled", tuple(KINDS))}
    assert "    return min(BLOCK, x.shape[1] - start)" in found
    assert "BLOCK = 64" in found
    assert not found & {"OTHER = 3", "    return min(OTHER, x)"}
    with pytest.raises(ValueError, match=r"doubled\.py has no kernel tripled"):
        candidates_in(file, "tripled", tuple(KINDS))
    with pytest.raises(ValueError, match="there is no kind typo; choose of "):
        candidates_in(file, "doubled", ("typo",))


def test_an_edit_says_what_it_changes() -> None:
    """Kind, line, old and new text, and the line that a patch has, which leaves the rest of the file alone."""
    (found,) = candidates_in(Source(REACHING, "doubled"), "doubled", ["drop-minimum"])[:1]
    assert (found.kind, found.function, found.line) == ("drop-minimum", "width", 8)
    assert (found.old, found.edit.text) == ("min(BLOCK, x.shape[1] - start)", "BLOCK")
    assert found.patch("a.py", REACHING).splitlines() == [
        "--- a.py",
        "+++ a.py",
        "@@ -8 +8 @@",
        "-    return min(BLOCK, x.shape[1] - start)",
        "+    return BLOCK",
    ]
    assert found.text.splitlines() == [*REACHING.splitlines()[:7], "    return BLOCK", *REACHING.splitlines()[8:]]
