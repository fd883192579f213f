"""nl.shared_constant and nl.shared_identity_matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.core import current_core
from tests.isa.issued import inside, placed, tile
from tests.isa.oracles import FLOATS, INTEGERS, float64, sample, small_integers, words
from tests.language.tiles import computed, refused

CONSTANT = sample((7, 3, 5), seed=4)
SUPPORTED = (
    *(nl.float32, nl.float16, nl.bfloat16, nl.float8_e4m3fn, nl.float8_e5m2, nl.float8_e8m0fnu),
    *INTEGERS,
    *(nl.float8_e4m3fn_x4, nl.float8_e5m2_x4, nl.float4_e2m1fn_x4),
)


def refusal(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The finding of a refused call without tiles."""
    return refused(lambda: function(*args, **kwargs))


# --- shared_constant -------------------------------------------------------------------------------------------------


def test_a_constant_is_there_before_the_kernel_runs() -> None:
    """In shared HBM, of the array's shape and dtype, without an instruction; the kernel may return it."""
    run = nkitools.simulate(lambda: nl.shared_constant(CONSTANT))
    np.testing.assert_array_equal(run.outputs, CONSTANT)
    assert len(run.instructions) == 0

    def body() -> tuple[Any, ...]:
        constant = nl.shared_constant(CONSTANT)
        return constant.shape, constant.dtype, constant.buffer

    assert inside(body) == ((7, 3, 5), nl.float32, nl.shared_hbm)


def test_a_constant_is_what_it_was_when_it_was_made() -> None:
    """Whatever becomes of the array; its elements are read as those of any other tensor."""
    array = np.asfortranarray(sample((8, 4)))
    before = array.copy()

    def body() -> tuple[np.ndarray, np.ndarray]:
        constant = nl.shared_constant(array)
        array[...] = 0
        return np.array(nl.load(constant).array), np.array(nl.load(constant[2:4, 1:]).array)

    whole, part = inside(body)
    np.testing.assert_array_equal(whole, before)
    np.testing.assert_array_equal(part, before[2:4, 1:])


def test_a_constant_out_of_a_file(tmp_path: Path) -> None:
    """By its path, as text or as a Path; also where the kernel gets it as an argument."""
    path = tmp_path / "constant.npy"
    np.save(path, CONSTANT)

    def kernel(name: str) -> Any:
        return nl.shared_constant(name)

    for name in (path, str(path)):
        np.testing.assert_array_equal(nkitools.simulate(kernel, name).outputs, CONSTANT)


@pytest.mark.parametrize("dtype", SUPPORTED, ids=str)
def test_the_dtypes_of_constants(dtype: Any) -> None:
    """Those that are listed, packed ones too."""
    bits = words((4, 8), nl.uint8).repeat(dtype.itemsize, axis=1).view(dtype.dtype)
    found = inside(lambda: np.array(nl.shared_constant(bits).array))
    assert found.dtype == dtype.dtype
    assert found.tobytes() == bits.tobytes()


@pytest.mark.parametrize(
    "dtype", [np.float64, np.int64, np.bool_, np.complex64, ml_dtypes.float8_e4m3, ml_dtypes.float8_e4m3b11fnuz, "U1"]
)
def test_other_dtypes_are_refused(dtype: Any) -> None:
    """NK301, with the list."""
    finding = refusal(nl.shared_constant, np.zeros((4, 4), dtype))
    assert (finding.rule, "float32, float16, bfloat16" in finding.remedy) == ("NK301", True)


def test_a_file_that_has_lost_its_dtype(tmp_path: Path) -> None:
    """NumPy saves bfloat16 as two bytes of anything; the remedy gives them their name again."""
    path = tmp_path / "lost.npy"
    array = sample((4, 4), nl.bfloat16)
    np.save(path, array)
    finding = refusal(nl.shared_constant, path)
    assert (finding.rule, ".view(dtype)" in finding.remedy) == ("NK301", True)
    restored = inside(lambda: np.array(nl.shared_constant(np.load(path).view(nl.bfloat16.dtype)).array))
    np.testing.assert_array_equal(restored, array)


def test_files_that_are_none(tmp_path: Path) -> None:
    """Missing, no array, several arrays, objects: NK609 with the path."""
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    np.savez(tmp_path / "several.npz", a=np.ones(2), b=np.ones(2))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "several.npz").read_bytes()[:100])
    for name in ("missing.npy", "text.npy", "objects.npy", "several.npz", "cut.npz", ""):
        finding = refusal(nl.shared_constant, tmp_path / name)
        assert finding.rule == "NK609", name


def test_programs_share_their_constants() -> None:
    """The k-th of each is one tensor, apart from the k-th of their own tensors in shared HBM."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, nl.float32, nl.shared_hbm)
        if nl.program_id(0) == 0:
            nl.shared_identity_matrix(4, nl.float32)
        constant = nl.shared_constant(np.full((2, 4), 3, np.float32))
        rows = nl.ds(nl.program_id(0) * 2, 2)
        nl.store(out[rows, :], nl.add(nl.load(x[rows, :]), nl.load(constant)))
        return out

    x = sample((4, 4))
    np.testing.assert_array_equal(nkitools.simulate(kernel, x, grid=2).outputs, x + np.float32(3))


@pytest.mark.parametrize("other", [np.full((2, 4), 2, np.float32), np.ones((4, 2), np.float32), np.ones((2, 4), "i4")])
def test_programs_that_differ_in_a_constant_are_refused(other: np.ndarray) -> None:
    """In its values, its shape or its dtype."""

    def kernel() -> None:
        nl.shared_constant(other if nl.program_id(0) else np.ones((2, 4), np.float32))

    with pytest.raises(nkitools.KernelError, match=r"constant 0 of this program.*NK208"):
        nkitools.simulate(kernel, grid=2)


# --- shared_identity_matrix ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chip", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("n", [1, 5, 128])
def test_the_identity_is_a_tile(n: int, chip: str) -> None:
    """Of uint8 unless it is said otherwise."""
    result, dtype = computed(lambda: nl.shared_identity_matrix(n), chip=chip)
    assert dtype is nl.uint8
    np.testing.assert_array_equal(result, np.eye(n))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, nl.bool_], ids=str)
def test_the_dtypes_of_identities(dtype: Any) -> None:
    """Every one that holds 0 and 1."""
    result, kind = computed(lambda: nl.shared_identity_matrix(n=16, dtype=dtype))
    assert kind is dtype
    np.testing.assert_array_equal(float64(result), np.eye(16))


def test_the_identity_serves_the_tensor_engine() -> None:
    """As an operand of nisa.nc_matmul, moving or stationary: ``x.T @ 1`` is the transpose."""
    x = small_integers((16, 8), 1)

    def body() -> tuple[np.ndarray, np.ndarray]:
        identity = nl.shared_identity_matrix(16, nl.float32)
        turned, same = nl.ndarray((8, 16), nl.float32, nl.psum), nl.ndarray((16, 8), nl.float32, nl.psum)
        nisa.nc_matmul(turned, placed(tile(x)), identity)
        nisa.nc_matmul(same, identity, placed(tile(x)))
        return np.array(turned.array), np.array(same.array)

    turned, same = inside(body)
    np.testing.assert_array_equal(turned, x.T)
    np.testing.assert_array_equal(same, x)


def test_the_identity_is_loaded_and_its_constant_is_reused() -> None:
    """One DMA each; a loop does not fill the HBM with identities."""
    made: list[int] = []

    def kernel() -> None:
        for dtype in (nl.bfloat16, nl.bfloat16, nl.float32):
            nl.shared_identity_matrix(8, dtype)
        made.append(len(current_core("a test").shared.constants))

    run = nkitools.simulate(kernel)
    assert [each.name for each in run.instructions] == ["dma_copy"] * 3
    assert made == [2]


def test_an_identity_into_a_given_tile() -> None:
    """Which has a dtype of its own and is what is returned."""

    def body() -> np.ndarray:
        tile = nl.ndarray((8, 8), nl.float32)
        assert nl.shared_identity_matrix(8, dst=tile) is tile
        return np.array(tile.array)

    np.testing.assert_array_equal(inside(body), np.eye(8))


def test_what_an_identity_is_not() -> None:
    """Too tall, packed, without a zero; into a tile of another size or memory."""
    assert refusal(nl.shared_identity_matrix, 129).rule == "NK101"
    assert refusal(nl.shared_identity_matrix, 8, nl.float8_e4m3fn_x4).rule == "NK301"
    assert refusal(nl.shared_identity_matrix, 8, nl.float8_e8m0fnu).rule == "NK301"
    for dtype in (nl.float8_e4m3fn_x4, nl.float8_e8m0fnu):
        finding = refused(lambda dtype=dtype: nl.shared_identity_matrix(8, dst=nl.ndarray((8, 8), dtype)))
        assert finding.rule == "NK301"
    for shape, memory, rule in (((8, 4), nl.sbuf, "NK109"), ((8, 8), nl.psum, "NK201"), ((8, 8), nl.hbm, "NK201")):
        finding = refused(
            lambda shape=shape, memory=memory: nl.shared_identity_matrix(8, dst=nl.ndarray(shape, nl.uint8, memory))
        )
        assert finding.rule == rule
