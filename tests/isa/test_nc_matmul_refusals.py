"""What nisa.nc_matmul refuses, and what each generation added."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Tile, bank, empty, issue, placed, refusal, tile
from tests.isa.oracles import float64, small_integers

DOUBLE_ROW = nisa.matmul_perf_mode.double_row


# --- refusals --------------------------------------------------------------------------------------------------------


def f32(*shape: int) -> Tile:
    """A float32 tile of ones in SBUF."""
    return tile(np.ones(shape, np.float32))


def f8(*shape: int, dtype: Any = nl.float8_e4m3) -> Tile:
    """A float8 tile of ones in SBUF."""
    return tile(np.ones(shape, dtype.dtype))


BF16 = tile(np.ones((32, 8), nl.bfloat16.dtype))
DOUBLE = {"perf_mode": DOUBLE_ROW}
REFUSED: dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]] = {
    "contraction": ("NK103", "`stationary`", (bank((8, 8)), f32(256, 8), f32(256, 8)), {}),
    "contraction of a tile": (
        "NK103",
        "`stationary`",
        (bank((8, 8)), f32(64, 8), f32(64, 8)),
        {"tile_position": (32, 0), "tile_size": (32, 128)},
    ),
    "columns": ("NK104", "`stationary`", (bank((128, 8)), f32(32, 256), f32(32, 8)), {}),
    "columns that fit": ("NK104", "`stationary`", (bank((256, 8)), f32(32, 256), f32(32, 8)), {}),
    "columns of a tile": (
        "NK104",
        "`stationary`",
        (bank((65, 8)), f32(32, 65), f32(32, 8)),
        {"tile_position": (0, 64), "tile_size": (128, 64)},
    ),
    "moving": ("NK105", "`moving`", (bank((8, 513)), f32(32, 8), f32(32, 513)), {}),
    "moving that does not fit": ("NK105", "`moving`", (bank((8, 512)), f32(32, 8), f32(32, 1024)), {}),
    "bank": (
        "NK106",
        "`dst`",
        (Tile((8, 1024), None, nl.float32, "psum", lambda t: t[:, 256:768]), f32(32, 8), f32(32, 512)),
        {},
    ),
    "strided bank": (
        "NK106",
        "`dst`",
        (Tile((8, 1024), None, nl.float32, "psum", lambda t: t[:, ::2]), f32(32, 8), f32(32, 512)),
        {},
    ),
    "start": (
        "NK108",
        "`moving`",
        (bank((8, 8)), f32(32, 8), Tile((64, 8), f32(64, 8).values, nl.float32, "sbuf", lambda t: t[5:37])),
        {},
    ),
    "different contraction": ("NK102", "`moving`", (bank((8, 8)), f32(32, 8), f32(16, 8)), {}),
    "destination": ("NK109", "`dst`", (bank((8, 9)), f32(32, 8), f32(32, 8)), {}),
    "destination the other way": ("NK109", "`dst`", (bank((4, 8)), f32(32, 8), f32(32, 4)), {}),
    "no second row": ("NK109", "`moving`", (bank((8, 8)), f8(32, 2, 8), f8(32, 16)), DOUBLE),
    "destination in SBUF": ("NK201", "`dst`", (empty((8, 8)), f32(32, 8), f32(32, 8)), {}),
    "stationary in PSUM": (
        "NK201",
        "`stationary`",
        (bank((8, 8)), tile(np.ones((32, 8), np.float32), "psum"), f32(32, 8)),
        {},
    ),
    "moving in HBM": ("NK201", "`moving`", (bank((8, 8)), f32(32, 8), tile(np.ones((32, 8), np.float32), "hbm")), {}),
    "integers": ("NK301", "`stationary`", (bank((8, 8)), tile(np.ones((32, 8), np.int8)), BF16), {}),
    "double row of bfloat16": (
        "NK301",
        "`stationary`",
        (bank((4, 4)), *[tile(np.ones((32, 2, 4), nl.bfloat16.dtype))] * 2),
        DOUBLE,
    ),
    "mixed widths": ("NK302", "`moving`", (bank((8, 8)), f32(32, 8), BF16), {}),
    "bfloat16 result": ("NK303", "`dst`", (bank((8, 8), nl.bfloat16), BF16, BF16), {}),
    "mixed widths into bfloat16": ("NK302", "`moving`", (bank((8, 8), nl.bfloat16), f32(32, 8), BF16), {}),
    "size without position": (
        "NK609",
        "`tile_position`",
        (bank((8, 8)), f32(32, 8), f32(32, 8)),
        {"tile_size": (32, 128)},
    ),
    "position off its size": (
        "NK609",
        "`tile_position`",
        (bank((8, 8)), f32(32, 8), f32(32, 8)),
        {"tile_position": (32, 0), "tile_size": (64, 128)},
    ),
    "position outside": (
        "NK609",
        "`tile_position`",
        (bank((8, 8)), f32(32, 8), f32(32, 8)),
        {"tile_position": (0, 128), "tile_size": (64, 64)},
    ),
    "odd size": (
        "NK609",
        "`tile_size`",
        (bank((8, 8)), f32(32, 8), f32(32, 8)),
        {"tile_position": (0, 0), "tile_size": (48, 128)},
    ),
    "size of text": (
        "NK609",
        "`tile_size`",
        (bank((8, 8)), f32(32, 8), f32(32, 8)),
        {"tile_position": (0, 0), "tile_size": ("a", 1)},
    ),
    "double row in columns": (
        "NK609",
        "`perf_mode`",
        (bank((4, 4)), f8(32, 2, 4), f8(32, 2, 4)),
        {**DOUBLE, "tile_position": (0, 0), "tile_size": (128, 64)},
    ),
    "double row transposed": (
        "NK609",
        "`perf_mode`",
        (bank((4, 4)), f8(32, 2, 4), f8(32, 2, 4)),
        {**DOUBLE, "is_transpose": True},
    ),
    "mode of text": ("NK609", "`perf_mode`", (bank((8, 8)), f32(32, 8), f32(32, 8)), {"perf_mode": "double_rows"}),
    "accumulate of a number": ("NK609", "`accumulate`", (bank((8, 8)), f32(32, 8), f32(32, 8)), {"accumulate": 1}),
    "no tensor": ("NK609", "`moving`", (bank((8, 8)), f32(32, 8), 1.0), {}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = REFUSED[case]
    finding = refusal(nisa.nc_matmul, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message


def test_256_rows_are_reported_once_and_computed() -> None:
    """Under rules="report": NK103, and not NK101 as well when the tile is used again."""
    x = small_integers((256, 8), 1)

    def body() -> np.ndarray:
        dst, data = placed(bank((8, 8))), placed(tile(x))
        nisa.nc_matmul(dst, data, data, accumulate=False)
        nisa.activation(data, nl.copy, data)
        return np.array(dst.array)

    results: list[np.ndarray] = []
    run = nkitools.simulate(lambda: results.append(body()), rules="report")
    np.testing.assert_array_equal(results[0], float64(x).T @ float64(x))
    assert [finding.rule for finding in run.findings] == ["NK103"]


# --- generations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chip", "n", "dtype", "rule"),
    [
        ("trn1", 512, nl.float32, None),
        ("trn1", 513, nl.float32, "NK105"),
        ("trn2", 513, nl.float32, "NK105"),
        ("trn3", 513, nl.float32, None),
        ("trn3", 4096, nl.float32, None),
        ("trn3", 4097, nl.float32, "NK105"),
        ("trn3", 8192, nl.bfloat16, None),
        ("trn3", 8193, nl.bfloat16, "NK105"),
    ],
)
def test_the_moving_size_grows_with_the_generations(chip: str, n: int, dtype: Any, rule: str | None) -> None:
    """One bank of float32, on NeuronCore-v4 all of PSUM."""
    args = (bank((4, n), dtype), f32(8, 4), f32(8, n))
    if rule is None:
        assert (issue(nisa.nc_matmul, *args, chip=chip).dst.astype(np.float32) == 8).all()
    else:
        assert refusal(nisa.nc_matmul, *args, chip=chip).rule == rule


@pytest.mark.parametrize(
    ("args", "kwargs", "chips", "rule", "named"),
    [
        ((bank((4, 4)), f8(32, 2, 4), f8(32, 2, 4)), DOUBLE, ("trn2", "trn3"), "NK606", "`perf_mode`"),
        (
            (bank((4, 4)), f32(32, 4), f32(32, 4)),
            {"tile_position": (32, 0), "tile_size": (32, 128)},
            ("trn2", "trn3"),
            "NK606",
            "`tile_size`",
        ),
        (
            (bank((4, 4)), f8(32, 4, dtype=nl.float8_e4m3fn), BF16.seen(lambda t: t[:, 0:4])),
            {},
            ("trn3",),
            "NK606",
            "`stationary`",
        ),
        ((bank((8, 8), nl.bfloat16), BF16, BF16), {}, ("trn3",), "NK303", "`dst`"),
    ],
    ids=["double_row", "tile of 32 rows", "float8_e4m3fn", "bfloat16 PSUM"],
)
def test_what_came_later(args: Any, kwargs: Any, chips: tuple[str, ...], rule: str, named: str) -> None:
    """Refused on the generations before, computed from then on."""
    for chip in ("trn1", "trn2", "trn3"):
        if chip in chips:
            assert issue(nisa.nc_matmul, *args, **kwargs, chip=chip).rules == []
        else:
            finding = refusal(nisa.nc_matmul, *args, **kwargs, chip=chip)
            assert finding.rule == rule
            assert named in finding.message


def test_the_remedy_of_a_mode_that_the_chip_lacks() -> None:
    """Another chip is no remedy for one keyword that may be left out."""
    finding = refusal(nisa.nc_matmul, bank((8, 8)), f8(32, 2, 8), f8(32, 2, 8), perf_mode=DOUBLE_ROW, chip="trn1")
    assert (finding.rule, finding.remedy) == ("NK606", "Leave perf_mode out on this chip.")


def test_the_two_float8_e4m3_do_not_mix() -> None:
    """float8_e4m3 with float8_e4m3fn, on the generation that has both."""
    args = (bank((4, 4)), f8(32, 4), f8(32, 4, dtype=nl.float8_e4m3fn))
    finding = refusal(nisa.nc_matmul, *args, chip="trn3")
    assert finding.rule == "NK302"
    assert "`moving`" in finding.message
