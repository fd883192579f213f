"""What newcomers write is diagnosed as a whole: every defect, by lint and a run together, and nothing beside them.

The kernels make the mistakes that course work and forums show. A line that is wrong ends in the rules that speak of it.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from nkitools.lint.engine import lint
from nkitools.suggestions.lint_interface import Dialects

IMPORTS = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\nimport numpy as np\n\n\n"
OF_LEGACY = IMPORTS.replace("import nki", "import neuronxcc.nki as nki", 1).replace(
    "import nki.", "import neuronxcc.nki."
)

LEGACY = {
    "a trip count, indices, a mask and an axis": """
        @nki.jit
        def kernel(x):
            out = nl.ndarray((2, 512), dtype=x.dtype, buffer=nl.shared_hbm)
            height, width = x.shape
            i_p = nl.arange(128)
            i_f = nl.arange(512)[None, :]
            for i in nl.affine_range(nl.par_dim(2)):  # NK609
                tile = nl.load(x[i * 128 + i_p, i_f], mask=(height, width))  # NK603, NK604
                total = nl.sum(tile, axis=0)  # NK112
                nl.store(out[i, i_p], total)  # NK603
            return out


        inputs = (np.ones((256, 512), np.float32),)
        """,
    "a contraction of 512": """
        @nki.jit
        def kernel(a, b):
            out = nl.ndarray((512, 512), dtype=a.dtype, buffer=nl.shared_hbm)
            for k in nl.affine_range(2):
                lhs = nl.load(a[k * 512 : (k + 1) * 512, 0:512])  # NK101
                rhs = nl.load(b[k * 512 : (k + 1) * 512, 0:512])  # NK101
                acc = nl.zeros((512, 512), dtype=nl.float32, buffer=nl.psum)  # NK101
                acc += nl.matmul(lhs, rhs, transpose_x=True)  # NK103
            nl.store(out, acc)  # NK605
            return out


        inputs = (np.ones((1024, 512), np.float32), np.ones((1024, 512), np.float32))
        """,
    "keywords and orders of arguments": """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            tile = nl.load(x, masks=None)  # NK609
            powers = nisa.activation(tile, nl.exp)  # NK609
            total = nl.sum(powers, dim=1)  # NK609
            shares = nisa.tensor_scalar(powers, "multiply", total)  # NK609
            nl.store(out, shares)
            return out


        inputs = (np.ones((128, 64), np.float32),)
        """,
    "a flattened tensor": """
        @nki.jit
        def kernel(x):
            size = x.shape[0] * x.shape[1]
            flat = x.reshape((size,))
            out = nl.ndarray((size,), dtype=x.dtype, buffer=nl.shared_hbm)
            for i in nl.affine_range(2):
                tile = nl.load(flat[i * 512 : (i + 1) * 512])  # NK101
                if tile > 0:  # NK602
                    nl.store(out[i * 512 : (i + 1) * 512], tile * 2)
            return out


        inputs = (np.ones((32, 32), np.float32),)
        """,
    "what a mask left out, and rows beyond the end": """
        @nki.jit
        def kernel(x):
            out = nl.ndarray((256, 64), dtype=x.dtype, buffer=nl.shared_hbm)
            rows, columns = x.shape
            i_p = nl.arange(128)[:, None]
            i_f = nl.arange(64)[None, :]
            for i in nl.affine_range(2):
                tile = nl.load(x[i * 128 + i_p, i_f], mask=i * 128 + i_p < rows)
                nl.store(out[i * 128 + i_p, i_f], nl.exp(tile))  # NK405
            last = nl.load(x[128 + i_p, i_f])  # NK402
            nl.store(out[128 + i_p, i_f], last)
            return out


        inputs = (np.ones((200, 64), np.float32),)
        """,
}
MODERN = {
    "the legacy dialect, by heart": """
        @nki.jit
        def kernel(x):
            out = nl.ndarray((1, 512), dtype=x.dtype, buffer=nl.shared_hbm)
            height, width = x.shape
            i_p = nl.arange(128)  # NK608
            i_f = nl.arange(512)  # NK608
            for i in nl.affine_range(nl.par_dim(2)):  # NK608
                tile = nl.load(x[i * 128 + i_p, i_f], mask=(height, width))  # NK608
                total = nl.sum(tile, axis=0)  # NK112
                nl.store(out, total)
            return out


        inputs = (np.ones((256, 512), np.float32),)
        """,
    "a contraction of 512": """
        @nki.jit
        def kernel(a, b):
            out = nl.ndarray((512, 512), dtype=a.dtype, buffer=nl.shared_hbm)
            acc = nl.zeros((512, 512), dtype=nl.float32, buffer=nl.psum)  # NK101
            for k in nl.affine_range(2):
                lhs = nl.load(a[k * 512 : (k + 1) * 512, 0:512])  # NK101
                rhs = nl.load(b[k * 512 : (k + 1) * 512, 0:512])  # NK101
                nisa.nc_matmul(acc, lhs, rhs)  # NK103
            nl.store(out, acc)  # NK201
            return out


        inputs = (np.ones((1024, 512), np.float32), np.ones((1024, 512), np.float32))
        """,
    "keywords, operators and orders of arguments": """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            tile = nl.load(x)
            powers = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.activation(powers, tile, nl.exp)  # NK609
            total = nl.sum(powers, dim=1)  # NK609
            nisa.tensor_scalar(dst=powers, data=powers, op0="multiply", operand0=total)  # NK609
            shares = powers * total  # NK601
            nl.store(shares, out)
            return out


        inputs = (np.ones((128, 64), np.float32),)
        """,
    "Python and NumPy on tensors": """
        @nki.jit
        def kernel(x, row):
            out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
            tile = nl.load(x)
            flat = nl.load(row)  # NK101
            for i in range(4):
                if tile[0, i] == 0:  # NK602
                    break
            clipped = np.maximum(tile, 0)  # NK601
            tile[0:64, :] = 0.0  # NK607
            soft = nl.softmax(tile, axis=0)  # NK112
            nl.store(out, soft)
            return out


        inputs = (np.ones((128, 512), np.float32), np.ones(512, np.float32))
        """,
    "a row for all, a product left in PSUM, and a part that nobody wrote": """
        @nki.jit
        def kernel(x, bias):
            out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)  # NK403
            tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile[0:100, :], src=x)
            row = nl.load(bias)
            nisa.tensor_tensor(dst=tile[0:100, :], data1=tile[0:100, :], data2=row, op=nl.add)  # NK111
            roots = nl.sqrt(tile)
            nisa.dma_copy(dst=out[0:100, :], src=roots[0:100, :])
            total = nl.sum(tile, axis=1, keepdims=True)  # NK401
            nisa.dma_copy(dst=out[100:101, 0:1], src=total[100:101, :])
            return out


        inputs = (np.ones((100, 64), np.float32), np.ones((1, 64), np.float32))
        """,
}


def _marks(source: str) -> set[tuple[int, str]]:
    found = set()
    for number, line in enumerate(source.splitlines(), start=1):
        _, sign, rules = line.partition("  # NK")
        found |= {(number, rule) for rule in f"NK{rules}".split(", ") if sign}
    return found


@pytest.mark.parametrize(
    "source",
    [
        *(
            pytest.param(OF_LEGACY + textwrap.dedent(text).lstrip(), id=f"legacy: {name}")
            for name, text in LEGACY.items()
        ),
        *(
            pytest.param(IMPORTS + textwrap.dedent(text).lstrip(), id=f"modern: {name}")
            for name, text in MODERN.items()
        ),
    ],
)
def test_every_defect_is_reported(source: str, play_example: Any) -> None:
    """Errors and warnings of both: their lines are the marked ones, and all of those."""
    ran = play_example(source, "report")
    read = lint([Path(ran.path)], interface=Dialects()).findings
    told = {(each.line, each.rule) for each in (*ran.findings, *read) if each.severity != "hint"}
    assert told == _marks(source)
