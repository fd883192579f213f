"""The modules as an author sees them: names, ranges, constants."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np
import pytest

import nkitools
from tests.dialects.legacy.running import outputs, random, refusal

MODULES = [
    "nki",
    "nki.isa",
    "nki.isa.constants",
    "nki.language",
    "nki.language.constants",
    "nki.typing",
    "nki.compiler",
]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_shows_its_names_and_refuses_others(name: str) -> None:
    """Its names are there; an unknown one is an AttributeError with NK607."""
    module: Any = import_module(f"neuronxcc.{name}")
    assert all(hasattr(module, each) for each in module.__all__)
    assert not hasattr(module, "no_such_name")
    with pytest.raises(AttributeError, match="no_such_name") as caught:
        module.no_such_name  # noqa: B018 - asking is the test
    assert caught.value.finding.rule == "NK607"  # type: ignore[attr-defined]


def test_the_dtypes_are_numpys() -> None:
    """nl.float32 is np.float32; the dtypes that NumPy lacks are those of ml_dtypes."""
    for name in ("float32", "float16", "int8", "int16", "int32", "uint8", "uint16", "uint32", "bool_"):
        assert getattr(nl, name) is getattr(np, name)
    for name in ("bfloat16", "float8_e4m3", "float8_e5m2"):
        assert getattr(nl, name) == np.dtype(getattr(ml_dtypes, name))
    assert nl.tfloat32 == np.dtype("V4")
    assert nl.fp32.min == np.finfo(np.float32).min
    assert nl.finfo(nl.bfloat16).bits == 16


def test_tiles_of_tfloat32() -> None:
    """A dtype that NumPy has no name for is still asked for, rounds, and compares."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x, dtype=nl.tfloat32)
        assert tile.dtype == nl.tfloat32
        result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(result, tile)
        return result

    x = np.full((4, 4), 1 + 2**-12, np.float32)
    np.testing.assert_array_equal(outputs(kernel, x), np.ones((4, 4), np.float32))


@pytest.mark.parametrize("kind", ["affine_range", "sequential_range", "static_range"])
def test_ranges_count_as_pythons_does(kind: str) -> None:
    """One to three integers; the keywords that public kernels pass are taken, others refused."""
    make = getattr(nl, kind)
    assert list(make(3)) == [0, 1, 2]
    assert list(make(2, 9, 3)) == [2, 5, 8]
    for args in ((), (1, 2, 3, 4), (1.5,), (nl.arange(3),)):
        with pytest.raises(nkitools.KernelError):
            make(*args)


def test_keywords_of_ranges() -> None:
    """Hints to the compiler's scheduler change nothing."""
    assert list(nl.affine_range(2, precise_schedule=True)) == [0, 1]
    assert list(nl.sequential_range(2, directives=None)) == [0, 1]
    with pytest.raises(nkitools.KernelError):
        nl.affine_range(2, schedule=True)


def test_tile_sizes_are_the_chips() -> None:
    """nl.tile_size inside a kernel speaks of the chip that runs."""

    def kernel(x: Any) -> Any:
        sizes = nl.tile_size
        assert (sizes.pmax, sizes.psum_fmax, sizes.gemm_stationary_fmax, sizes.gemm_moving_fmax) == (128, 512, 128, 512)
        return x

    outputs(kernel, random(2, 2), chip="trn2")


def test_an_error_names_the_author_s_tensor_and_line() -> None:
    """Findings inside of loops carry counters, names, file and line of the kernel."""

    def kernel(x: Any) -> Any:
        for m in nl.affine_range(4):
            tile = nl.load(x[nl.ds(m * 4, 4), :])
            tile[:, 0:9] = m
        return x

    finding = refusal(kernel, random(16, 8))
    assert finding.loops == {"m": 0}
    assert Path(finding.file).name == "test_language.py"
    assert "`tile`" in finding.message
    assert nki.__name__ == "neuronxcc.nki"


def test_grids_of_matrix_products() -> None:
    """The indices of a product's result, and of its stationary operand."""

    def kernel(x: Any) -> Any:
        assert [index.shape for index in (*nl.gemm_grid(), *nl.gemm_stationary_grid())] == [
            (128, 512),
            (128, 512),
            (128, 128),
            (128, 128),
        ]
        result = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
        grid = nl.gemm_grid()
        nl.store(result[grid.p, grid.x], nl.load(x[grid.p, grid.x]))
        return result

    x = random(128, 512)
    np.testing.assert_array_equal(outputs(kernel, x), x)


def test_bytes_of_a_dtype() -> None:
    """nki.language.constants.sizeinbytes, which public kernels import."""
    sizeinbytes = import_module("neuronxcc.nki.language.constants").sizeinbytes
    assert [sizeinbytes(each) for each in (nl.float32, nl.bfloat16, nl.int8, nl.tfloat32, "float16")] == [4, 2, 1, 4, 2]


def test_a_while_loop_on_a_scalar() -> None:
    """The reference's do-while form: entered once, then as long as the comparison holds."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((1, 1), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        cond = nt.scalar(True)
        while cond:
            tile[...] = nl.add(tile, 3.0)
            cond = nt.scalar(tile) < 10
        nl.store(result, tile)
        return result

    for start, end in ((0.5, 12.5), (20.0, 23.0)):
        np.testing.assert_array_equal(outputs(kernel, np.full((1, 1), start, np.float32)), [[end]])


@pytest.mark.parametrize(
    ("use", "rule"),
    [
        (lambda t: nt.scalar(t), "NK609"),
        (lambda t: nt.scalar("x"), "NK609"),
        (lambda t: nt.scalar(nl.ndarray((1, 1), dtype=nl.int32)), "NK401"),
        (lambda t: nl.exp(t, mask=nt.scalar(t[0:1, 0:1]) > 2), "NK604"),
    ],
)
def test_what_is_no_scalar(use: Any, rule: str) -> None:
    """Tiles of several elements, other things, what was never written; and a scalar in a mask."""

    def kernel(x: Any) -> Any:
        use(nl.load(x))
        return x

    assert refusal(kernel, random(4, 4)).rule == rule


def test_keywords_beyond_the_reference() -> None:
    """What public kernels pass is taken where its meaning is known; anything else is refused by name."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((32, 16), dtype=nl.float32, buffer=nl.shared_hbm, name="result")
        tile = nl.load(x, mode=nisa.oob_mode.error, name="x")
        zeros = nl.zeros((32, 16), dtype=nl.float32, lazy_initialization=True)
        total = nisa.tensor_tensor(tile, zeros, op=np.add, buffer=nl.psum, name="sum")
        assert total.buffer is nl.psum
        assert nisa.memset((4, 4), 1.0, nl.float32, buffer=nl.psum).buffer is nl.psum
        nl.store(result, nl.exp(total, name="exp"), mode=nisa.oob_mode.skip)
        return result

    x = random(32, 16)
    np.testing.assert_allclose(outputs(kernel, x), np.exp(x), rtol=1e-5)
    for call in (
        lambda t: nl.matmul(t, t, transpose_y=True),
        lambda t: nl.exp(t, dytpe=nl.float32),
        lambda t: nisa.max8(src=t, dst=t),
        lambda t: nl.affine_range(4, name="i"),
    ):
        finding = refusal(lambda x, call=call: call(nl.load(x)), x)
        assert finding.rule == "NK609"
        assert "does not know the keyword argument" in finding.message
    assert refusal(lambda x: nisa.nc_matmul(nl.load(x), nl.load(x), perf_mode="fast"), x).rule == "NK607"


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda _x, _tile: nl.shared_identity_matrix((2, 3)), "NK609"),  # type: ignore[arg-type]
        (lambda _x, _tile: nl.shared_constant(np.zeros((0, 3), np.float32)), "NK609"),
        (lambda _x, tile: nl.broadcast_to(tile, shape=16), "NK109"),
        (lambda _x, tile: nl.expand_dims(tile, 1.0), "NK609"),
        (lambda _x, tile: nisa.nc_matmul(tile, tile, tile_position=3, tile_size=3), "NK609"),
        (lambda _x, _tile: nl.static_cast("2", nl.int32), "NK609"),
        (lambda _x, _tile: nl.finfo(nl.int32), "NK301"),
        (lambda x, _tile: x[nl.ds(1.5, 2)], "NK609"),
    ],
)
def test_arguments_of_a_wrong_kind_are_refused_by_name(call: Any, rule: str) -> None:
    """What is no shape, axis, number, array or position is a finding, not an error of Python's."""

    def kernel(x: Any) -> Any:
        call(x, nl.load(x))
        return x

    assert refusal(kernel, random(16, 8)).rule == rule
