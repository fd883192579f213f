"""What production kernels rely on: indexing, access patterns, views, memories, addresses, accumulation, copies."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl

X = np.arange(96, dtype=np.float32).reshape(8, 12)


def in_kernel(body: Any, *arrays: Any, **keywords: Any) -> Any:
    """What ``body`` returns when it runs as a kernel."""
    found: list[Any] = []
    nkitools.simulate(lambda *tensors: found.append(body(*tensors)), *arrays, **keywords)
    return found[0]


def copied(view: Any, shape: Any = None) -> Any:
    """The elements of a view in HBM, to be returned."""
    out = nl.ndarray(shape or view.shape, dtype=view.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=view)
    return out


class TestIndexing:
    """Point 7."""

    @pytest.mark.parametrize(
        ("index", "hbm", "sbuf"),
        [
            (np.s_[0], (6, 4), (1, 6, 4)),
            (np.s_[0, 0, 3], (1,), (1, 1)),
            (np.s_[:, 0], (8, 4), (8, 4)),
            (np.s_[:, 0, 1], (8,), (8, 1)),
            (np.s_[..., 1], (8, 6), (8, 6)),
            (np.s_[0, ...], (6, 4), (1, 6, 4)),
            (np.s_[2:6, 1:6:2, -1], (4, 3), (4, 3)),
            (np.s_[...], (8, 6, 4), (8, 6, 4)),
            (np.s_[-2:], (2, 6, 4), (2, 6, 4)),
        ],
    )
    def test_an_integer_drops_its_dimension_but_never_the_partitions(self, index: Any, hbm: Any, sbuf: Any) -> None:
        """On chip a tensor keeps its partition dimension and is at least 2-D; in HBM at least 1-D."""
        x = np.arange(8 * 6 * 4, dtype=np.float32).reshape(8, 6, 4)

        @nki.jit
        def kernel(x: Any) -> Any:
            tile = nl.load(x)
            assert (x[index].shape, tile[index].shape) == (hbm, sbuf)
            return copied(x[index]), copied(tile[index])

        for result in kernel(x):
            np.testing.assert_array_equal(result.reshape(-1), x[index].reshape(-1))

    def test_dynamic_slices_are_slices(self) -> None:
        """nl.ds(start, size), 460 times in public kernels."""
        result = nkitools.simulate(lambda x: copied(nl.load(x)[nl.ds(2, 4), nl.ds(1, 6)]), X).outputs
        np.testing.assert_array_equal(result, X[2:6, 1:7])

    @pytest.mark.parametrize("index", [np.s_[0:9], np.s_[8], np.s_[:, 12], np.s_[:, 6:13], np.s_[:, -13]])
    def test_what_lies_outside_is_refused(self, index: Any) -> None:
        """NK402, never clamped: kernels bound their last tile with min()."""
        with pytest.raises(nkitools.KernelError) as raised:
            in_kernel(lambda x: x[index], X)
        assert raised.value.finding.rule == "NK402"

    def test_lists_of_tensors_are_lists(self) -> None:
        """`tiles[i][...]`, with None where there is none."""

        @nki.jit
        def kernel(x: Any) -> Any:
            tiles: list[Any] = [None, nl.load(x[0:4, :]), nl.load(x[4:8, :])]
            return copied(tiles[2][0:2, :]) if tiles[0] is None else x

        np.testing.assert_array_equal(kernel(X), X[4:6])

    @pytest.mark.parametrize(("shape", "source"), [((1, 12), (12,)), ((8, 3, 4), (8, 12)), ((8, 12), (8, 2, 6))])
    def test_copies_go_between_shapes_of_equal_sizes(self, shape: Any, source: Any) -> None:
        """dma_copy(dst=sb(1, 1), src=hbm[0]), and (128, a, b) against (128, a * b)."""
        values = np.arange(np.prod(source), dtype=np.float32).reshape(source)

        @nki.jit
        def kernel(x: Any) -> Any:
            tile = nl.ndarray(shape, x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x)
            return copied(tile)

        np.testing.assert_array_equal(kernel(values), values.reshape(shape))


class TestAccessPatterns:
    """Point 8: .ap."""

    @pytest.mark.parametrize("kind", [list, tuple])
    def test_strides_and_offset_count_elements(self, kind: Any) -> None:
        """Pairs may be lists or tuples, and be passed by position; stride 0 repeats an element."""
        pattern = kind([kind([12, 4]), kind([0, 2]), kind([3, 3])])
        result = nkitools.simulate(lambda x: copied(x.ap(pattern, 13)), X).outputs
        assert result.shape == (4, 2, 3)
        np.testing.assert_array_equal(result, np.repeat(X[1:5, None, 1:10:3], 2, axis=1))

    def test_a_dtype_makes_them_elements_of_that_dtype(self) -> None:
        """The storage's bytes are read as it."""

        def kernel(x: Any) -> Any:
            return copied(x.ap(pattern=[[24, 8], [2, 12]], offset=1, dtype=nl.uint16))

        upper = X.view(np.uint16).reshape(8, 12, 2)[..., 1]
        np.testing.assert_array_equal(nkitools.simulate(kernel, X).outputs, upper)

    @pytest.mark.parametrize("view", [lambda t: t, lambda t: t[:4, :5], lambda t: t.reshape((8, 3, 4))])
    def test_it_addresses_the_storage(self, view: Any) -> None:
        """Not the shape and strides of the view that it is called on: of a slice and of a reshape it is the same."""

        def kernel(x: Any) -> Any:
            tile = nl.load(x)
            on_chip = view(tile).ap(pattern=[[12, 2], [1, 3]], offset=12 * 4 + 5)
            return copied(on_chip), copied(view(x).ap(pattern=[[24, 4], [5, 2]], offset=2))

        on_chip, in_hbm = nkitools.simulate(kernel, X).outputs
        np.testing.assert_array_equal(on_chip, X[4:6, 5:8])
        np.testing.assert_array_equal(in_hbm, X.reshape(-1)[2 + 24 * np.arange(4)[:, None] + 5 * np.arange(2)])

    @pytest.mark.parametrize(("offset", "first"), [(None, 2), (0, 2), (5, 7)])
    def test_a_view_hands_its_offset_on(self, offset: Any, first: int) -> None:
        """An offset is added to that of the view (reference of .ap; the language guide has it override)."""
        kernel = lambda x: copied(x[3:, 2:].ap([[12, 2], [1, 4]], offset))  # noqa: E731
        np.testing.assert_array_equal(nkitools.simulate(kernel, X).outputs, X[3:5, first : first + 4])

    @pytest.mark.parametrize("from_register", [True, False])
    def test_a_scalar_offset_moves_along_a_dimension_of_the_tensor(self, from_register: bool) -> None:
        """By its value times the stride of indirect_dim in the tensor's own shape, from a register or a (1, 1) tile."""
        row = np.array([[5]], np.int32)

        @nki.jit
        def kernel(x: Any, row: Any) -> Any:
            offset = nl.load(row)
            if from_register:
                offset = nisa.register_alloc(offset)
            return copied(x.ap(pattern=[[12, 2], [1, 12]], scalar_offset=offset, indirect_dim=0))

        np.testing.assert_array_equal(kernel(X, row), X[5:7])

    def test_a_vector_offset_picks_a_row_for_each_partition(self) -> None:
        """The offsets may be an .ap view; -1 as uint32 is out of range, and skipped rows stay as they were."""
        rows = np.array([[6, 99], [0, 99], [0xFFFFFFFF, 99], [3, 99]], np.uint32)

        @nki.jit
        def kernel(x: Any, rows: Any) -> Any:
            offsets = nl.load(rows).ap(pattern=[[2, 4], [1, 1]])
            tile = nl.full((4, 12), -1.0, nl.float32, buffer=nl.sbuf)
            source = x.ap(pattern=[[12, 4], [1, 12]], vector_offset=offsets, indirect_dim=0)
            nisa.dma_copy(dst=tile, src=source, oob_mode=nisa.oob_mode.skip)
            return copied(tile)

        expected = np.stack([X[6], X[0], np.full(12, -1), X[3]])
        np.testing.assert_array_equal(kernel(X, rows), expected)

    def test_it_scatters(self) -> None:
        """As a destination."""
        rows = np.array([[3], [1]], np.int32)

        @nki.jit
        def kernel(x: Any, rows: Any) -> Any:
            out = nl.zeros((4, 12), nl.float32, buffer=nl.shared_hbm)
            tile, offsets = nl.load(x[0:2, :]), nl.load(rows)
            nisa.dma_copy(dst=out.ap([[12, 2], [1, 12]], vector_offset=offsets, indirect_dim=0), src=tile)
            return out

        expected = np.zeros((4, 12), np.float32)
        expected[[3, 1]] = X[:2]
        np.testing.assert_array_equal(kernel(X, rows), expected)


class TestViews:
    """Point 9: reshape and view."""

    def test_hbm_reshapes_freely_and_a_tile_keeps_its_partitions(self) -> None:
        """In HBM any shape of as many elements; on chip dimension 0 stays (else NK109)."""
        result = nkitools.simulate(lambda x: copied(x.reshape((3, 32))), X).outputs
        np.testing.assert_array_equal(result, X.reshape(3, 32))
        assert in_kernel(lambda x: nl.load(x).reshape((8, 2, 6)).shape, X) == (8, 2, 6)
        with pytest.raises(nkitools.KernelError):
            in_kernel(lambda x: nl.load(x).reshape((4, 24)), X)

    @pytest.mark.parametrize(
        ("stored", "seen"),
        [
            (np.uint8, "float8_e4m3"),
            (np.uint16, "bfloat16"),
            (np.uint8, "float8_e5m2_x4"),
            (np.uint16, "float4_e2m1fn_x4"),
            (np.float32, "uint8"),
        ],
    )
    def test_a_view_has_the_bits_of_another_dtype(self, stored: Any, seen: str) -> None:
        """The last dimension grows and shrinks with the size of an element."""
        raw = np.random.default_rng(0).integers(0, 255, 8 * 16, np.uint8)
        weights = raw.view(stored).reshape(8, -1)
        dtype = getattr(nl, seen)

        @nki.jit
        def kernel(x: Any) -> Any:
            view = x.view(dtype)
            assert view.shape == (8, 16 // np.dtype(dtype).itemsize)
            assert nl.load(x).view(dtype).shape == view.shape
            return copied(view)

        assert kernel(weights).tobytes() == raw.tobytes()


class TestMemories:
    """Points 12 and 13: buffers and addresses."""

    def test_buffers_compare(self) -> None:
        """With == and in; an input lies in HBM, and the default is SBUF."""

        def kernel(x: Any) -> Any:
            tile, bank = nl.ndarray((8, 4), nl.float32), nl.ndarray((8, 4), nl.float32, buffer=nl.psum)
            assert x.buffer in (nl.hbm, nl.shared_hbm, nl.private_hbm)
            assert (tile.buffer == nl.sbuf, tile.buffer != nl.psum, bank.buffer == nl.psum) == (True, True, True)
            assert {nl.sbuf: "s", nl.psum: "p"}[bank.buffer] == "p"
            return nl.ndarray((8, 4), nl.float32, buffer=nl.private_hbm).buffer == nl.hbm

        assert in_kernel(kernel, X)

    def test_names_may_repeat_and_be_none(self) -> None:
        """They are labels."""

        def kernel() -> list[str]:
            return [nl.ndarray((8, 4), nl.float32, name=name).name for name in ("a", "a", None)]

        assert in_kernel(kernel)[:2] == ["a", "a"]

    def test_addresses_place_tensors(self) -> None:
        """(partition, byte) on SBUF and PSUM, or None; what lies on the same bytes takes them over, on purpose."""

        @nki.jit
        def kernel(x: Any) -> Any:
            first = nl.ndarray((8, 12), nl.float32, buffer=nl.sbuf, address=(0, 1024))
            nisa.dma_copy(dst=first, src=x)
            bank = nl.ndarray((8, 12), nl.float32, buffer=nl.psum, address=(0, 2 * nl.tile_size.psum_fmax * 4))
            nisa.tensor_copy(dst=bank, src=first)
            second = nl.ndarray((8, 12), nl.float32, buffer=nl.sbuf, address=(0, 1024))
            nisa.tensor_scalar(dst=second, data=bank, op0=nl.multiply, operand0=2.0)
            lower = nl.ndarray((8, 12), nl.float32, buffer=nl.sbuf, address=(32, 0))
            nisa.tensor_copy(dst=lower, src=second)
            none = nl.ndarray((8, 12), nl.float32, buffer=nl.sbuf, address=None)
            nisa.tensor_copy(dst=none, src=lower)
            return copied(none)

        np.testing.assert_array_equal(kernel(X), 2 * X)

    @pytest.mark.parametrize(("chip", "partition"), [("trn1", 192), ("trn2", 224), ("trn3", 256)])
    def test_tile_sizes_are_integers(self, chip: str, partition: int) -> None:
        """Pools are cut from them: the SBUF of a partition (in KiB), less what is reserved."""
        names = ("pmax", "psum_fmax", "gemm_moving_fmax", "gemm_stationary_fmax", "total_available_sbuf_size")
        sizes = in_kernel(lambda: [getattr(nl.tile_size, name) for name in names], chip=chip)
        assert [type(size) for size in sizes] == [int] * 5
        assert sizes[:4] == [128, 512, 512, 128]
        assert 0.9 < sizes[4] / (partition * 1024) <= 1


class TestAccumulation:
    """Point 18: nc_matmul into PSUM."""

    @pytest.mark.parametrize("accumulate", [None, True])
    def test_the_first_matmul_overwrites_and_the_others_add(self, accumulate: Any) -> None:
        """Kernels issue several into a fresh tile that nothing has cleared."""
        rng = np.random.default_rng(1)
        a, b = (rng.standard_normal((256, size)).astype(np.float32) for size in (64, 32))

        @nki.jit
        def kernel(a: Any, b: Any) -> Any:
            total = nl.ndarray((64, 32), nl.float32, buffer=nl.psum)
            for k in range(2):
                rows = nl.ds(128 * k, 128)
                nisa.nc_matmul(total, nl.load(a[rows, :]), nl.load(b[rows, :]), accumulate=accumulate if k else None)
            result = nl.ndarray((64, 32), nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(result, total)
            return copied(result)

        np.testing.assert_allclose(kernel(a, b), a.T @ b, rtol=1e-5, atol=1e-5)


class TestCopies:
    """Point 19."""

    def test_a_copy_onto_itself_is_a_fence(self) -> None:
        """It changes nothing, in HBM and on chip."""

        @nki.jit
        def kernel(x: Any) -> Any:
            nisa.dma_copy(dst=x, src=x)
            tile = nl.load(x)
            nisa.dma_copy(dst=tile, src=tile)
            return copied(tile), x

        before = X.copy()
        result, same = kernel(before)
        np.testing.assert_array_equal(result, X)
        assert same is before
        np.testing.assert_array_equal(before, X)

    @pytest.mark.parametrize(("dtype", "seen"), [(nl.bfloat16, ml_dtypes.bfloat16), (nl.int32, np.int32)])
    def test_a_dma_copy_casts(self, dtype: Any, seen: Any) -> None:
        """To the destination's dtype."""

        @nki.jit
        def kernel(x: Any) -> Any:
            tile = nl.ndarray(x.shape, dtype, buffer=nl.sbuf)
            nisa.dma_copy(tile, x)
            return copied(tile)

        np.testing.assert_array_equal(kernel(X), X.astype(seen))

    def test_calls_are_positional_as_public_kernels_write_them(self) -> None:
        """dst first, then the sources, then the operator."""

        @nki.jit
        def kernel(x: Any) -> Any:
            tile, other, total = (nl.ndarray(x.shape, x.dtype, nl.sbuf) for _ in range(3))
            nisa.dma_copy(tile, x)
            nisa.memset(other, 2.0)
            nisa.memset(total, value=0.0)
            nisa.tensor_tensor(total, tile, other, nl.multiply)
            nisa.tensor_scalar(total, total, nl.add, 1.0, False, nl.multiply, 3.0, False)
            nisa.activation(other, nl.square, total)
            nisa.tensor_copy(tile, other)
            row = nl.ndarray((8, 1), x.dtype, nl.sbuf)
            nisa.tensor_reduce(row, nl.add, tile, 1)
            nisa.reciprocal(row, row)
            return copied(row)

        expected = 1 / ((X * 2 + 1) * 3).__pow__(2).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(kernel(X), expected, rtol=1e-6)
