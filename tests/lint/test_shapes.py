"""NK101, NK103, NK104, NK112, NK609: sizes and axes that are written as numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from nkitools.facts import options
from tests.lint.linted import LEGACY, MODERN, findings, marked, places, written

BOTH = {
    "a tile of 256 partitions": "tile = nl.zeros((256, 64), dtype=nl.float32, buffer=nl.sbuf)  # NK101 8",
    "by default in SBUF": "tile = nl.ndarray((256, 64), dtype=nl.float32)  # NK101 8",
    "twice the partitions": "n = 2 * nl.tile_size.pmax\ntile = nl.ndarray((n, 64), dtype=nl.float32)  # NK101 8",
    "in HBM": "out = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)",
    "just enough": "tile = nl.zeros((nl.tile_size.pmax, 64), dtype=nl.float32, buffer=nl.psum)",
    "not known": "tile = nl.ndarray(x.shape, dtype=nl.float32)",
    "rows that are loaded": "tile = nl.load(x[0:256])  # NK101 8",
    "rows of a flattened input": "flat = x.reshape((4096,))\ntile = nl.load(flat[0:512])  # NK101 8",
    "rows from a counter": "for i in nl.affine_range(4):\n    tile = nl.load(x[i * 256 : (i + 1) * 256])  # NK101 12",
    "rows from an offset": "tile = nl.load(x[x.ndim : x.ndim + 256, :])  # NK101 8",
    "ds": "for i in nl.affine_range(4):\n    tile = nl.load(x[nl.ds(i * 256, 256), :])  # NK101 12",
    "128 rows": "for i in nl.affine_range(4):\n    tile = nl.load(x[i * 128 : (i + 1) * 128, 0:512])",
    "rows that are not known": "for i in nl.affine_range(4):\n    tile = nl.load(x[i * x.ndim : (i + 1) * x.ndim])",
    "one row": "for i in nl.affine_range(4):\n    tile = nl.load(x[i, 0:512])",
    "a sum over partitions": "total = nl.sum(nl.load(x[0:4]), axis=0)  # NK112 9",
    "in a list": "total = nl.max(nl.load(x[0:4]), axis=[0, 1])  # NK112 9",
    "over the free dimension": "total = nl.sum(nl.load(x[0:4]), axis=1)",
    "over the last": "total = nl.sum(nl.load(x[0:4]), axis=-1)",
    "not known which": "total = nl.sum(nl.load(x[0:4]), axis=x.ndim)",
}
MODERN_ONLY = {
    "tensor_reduce": "t = nl.load(x)\nnisa.tensor_reduce(dst=t, op=nl.add, data=t, axis=0)  # NK112 1",
    "a wide stationary tile": (
        "w = nl.ndarray((128, 256), dtype=nl.bfloat16)\n"
        "p = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)\n"
        "nisa.nc_matmul(p, w, x)  # NK104 1"
    ),
    "a contraction of 512": (
        "w = nl.ndarray((512, 128), dtype=nl.bfloat16)  # NK101 5\n"
        "p = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)\n"
        "nisa.nc_matmul(p, stationary=w, moving=nl.load(x))"
    ),
    "a contraction of 128 in a tile of 64 rows": (
        "w = nl.ndarray((128, 64), dtype=nl.bfloat16)\n"
        "p = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.psum)\n"
        "nisa.nc_matmul(p, stationary=w, moving=nl.load(x), tile_position=(0, 0), tile_size=(64, 64))  # NK103 1"
    ),
    "one of 64": (
        "w = nl.ndarray((64, 64), dtype=nl.bfloat16)\n"
        "p = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.psum)\n"
        "nisa.nc_matmul(p, stationary=w, moving=nl.load(x), tile_position=(0, 0), tile_size=(64, 64))"
    ),
    "its part": (
        "w = nl.ndarray((128, 256), dtype=nl.bfloat16)\n"
        "p = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)\n"
        "nisa.nc_matmul(p, w[:, 0:128], x)"
    ),
}
LEGACY_ONLY = {
    "tensor_reduce": "total = nisa.tensor_reduce(nl.add, nl.load(x), axis=0)  # NK112 9",
    "a wide stationary tile": "w = nl.zeros((128, 256), dtype=nl.bfloat16)\np = nisa.nc_matmul(w, x)  # NK104 5",
    "blocks": "tiles = nl.zeros((512, nl.par_dim(128), 64), dtype=nl.float32)",
    "too many partitions all the same": "tile = nl.zeros((nl.par_dim(256), 64), dtype=nl.float32)  # NK101 8",
    "par_dim as a trip count": "for i in nl.affine_range(nl.par_dim(4)):  # NK609 10\n    pass",
}


@pytest.mark.parametrize("head", [MODERN, LEGACY], ids=["modern", "legacy"])
@pytest.mark.parametrize("body", BOTH.values(), ids=BOTH)
def test_sizes_in_both_dialects(tmp_path: Path, body: str, head: str) -> None:
    """What is marked is found, and nothing else; NKI 0.6 announces no end of nl.affine_range."""
    with options.override(nki_version="0.6"):
        marked(tmp_path, body, head)


@pytest.mark.parametrize("body", MODERN_ONLY.values(), ids=MODERN_ONLY)
def test_sizes_in_the_modern_dialect(tmp_path: Path, body: str) -> None:
    """As above."""
    marked(tmp_path, body)


@pytest.mark.parametrize("body", LEGACY_ONLY.values(), ids=LEGACY_ONLY)
def test_sizes_in_the_legacy_dialect(tmp_path: Path, body: str) -> None:
    """As above."""
    marked(tmp_path, body, LEGACY)


def test_constants_of_the_file_are_known(tmp_path: Path) -> None:
    """Also those that are made of others; not those that a function binds anew."""
    files = written(
        tmp_path,
        {
            "kernels.py": """\
            import nki
            import nki.language as nl

            TILE = nl.tile_size.pmax
            ROWS = TILE * 2
            other = 256


            def change():
                global other
                other = 1


            @nki.jit
            def kernel(x):
                nl.load(x[0:ROWS])
                nl.load(x[0:other])
            """
        },
    )
    assert [each for each in places(findings(files["kernels.py"])) if each[0] == "NK101"] == [("NK101", 16, 5)]
