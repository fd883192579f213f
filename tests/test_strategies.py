"""Strategies: what they draw is legal, edges come, failures shrink to the smallest, and runs do not leak."""

from __future__ import annotations

import subprocess
import sys
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

import nkitools
from kernels.nki.giou import giou
from nkitools.chip.dtypes import DTYPES, UnknownDType
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.strategies import arrays, awkward_values, box_pairs, boxes, dtypes, matrix_shapes, tile_shapes
from nkitools.strategies.calls import calls

quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def drawn(strategy: st.SearchStrategy[Any], number: int = 60) -> list[Any]:
    """What a strategy draws, the same each time."""
    found: list[Any] = []

    @settings(max_examples=number, database=None, derandomize=True)
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


def smallest_of(strategy: st.SearchStrategy[Any], condition: Any) -> Any:
    """What a failure for which ``condition`` holds shrinks to, the same each time."""
    return find(strategy, condition, settings=settings(max_examples=100, database=None), random=Random(7))


class TestTileShapes:
    """Legal shapes, with those at the edges."""

    @pytest.mark.parametrize("memory", ["sbuf", "psum"])
    @pytest.mark.parametrize("chip", ["trn1", "trn2", "trn3"])
    def test_the_simulator_takes_every_one(self, memory: str, chip: str) -> None:
        """As a tile that an instruction writes, in one bank of PSUM."""

        def kernel(shape: tuple[int, ...]) -> None:
            tile = nl.ndarray(shape, dtype=nl.float32, buffer=getattr(nl, memory))
            nisa.memset(tile, 1.0)

        @quick
        @given(tile_shapes(chip, memory, max_free=None))
        def legal(shape: tuple[int, ...]) -> None:
            assert nkitools.simulate(kernel, shape, chip=chip).findings == []

        legal()

    def test_the_next_shape_is_not_legal(self) -> None:
        """The counterpart: the largest that are drawn are the largest that there are."""

        def kernel(partitions: int, free: int) -> None:
            nisa.memset(nl.ndarray((partitions, free), dtype=nl.float32, buffer=nl.sbuf), 1.0)

        shapes = drawn(tile_shapes("trn2", max_free=None))
        partitions, free = (max(sizes) for sizes in zip(*shapes, strict=True))
        assert (partitions, free) == (128, (224 - 16) * 1024 // 4 - 2)  # the compiler keeps 8 bytes
        for more in ((129, 1), (1, free + 1)):
            with nkitools.expect_finding("NK101", "NK202"):
                nkitools.simulate(kernel, *more, chip="trn2")

    def test_edges_come(self) -> None:
        """1, one less than all partitions, all of them, and the sizes around a bank of PSUM."""
        partitions, free = (set(sizes) for sizes in zip(*drawn(tile_shapes(memory=nl.psum), 150), strict=True))
        assert {1, 127, 128} <= partitions
        assert {1, 511, 512} <= free
        assert max(free) == 512

    def test_limits_follow_dtype_banks_and_chip(self) -> None:
        """In elements of the dtype; of all banks; of the chip at hand."""
        assert max(free for _, free in drawn(tile_shapes(memory="psum", dtype=nl.bfloat16))) == 1024
        assert max(free for _, free in drawn(tile_shapes(memory="psum", banks=8, max_free=None))) == 4096
        assert max(free for _, free in drawn(tile_shapes("trn1", dtype="int8", max_free=None))) == 176 * 1024 - 8
        assert max(free for _, free in drawn(tile_shapes(max_free=100))) == 100

    def test_more_dimensions_share_the_free_size(self) -> None:
        """Up to five."""
        for shape in drawn(tile_shapes(memory="psum", ndim=5), 50):
            assert len(shape) == 5
            assert np.prod(shape[1:]) <= 512

    @pytest.mark.parametrize(
        ("condition", "smallest"),
        [
            (lambda shape: True, (1, 1)),
            (lambda shape: shape[0] >= 100, (100, 1)),
            (lambda shape: shape[0] == 127, (127, 1)),
            (lambda shape: shape[1] > 600, (1, 601)),
            (lambda shape: shape[0] * shape[1] > 512 and shape[1] % 512 != 0, None),
        ],
    )
    def test_a_failure_shrinks_to_the_smallest_shape(self, condition: Any, smallest: Any) -> None:
        """Also one that was found at an edge."""
        found = smallest_of(tile_shapes(), condition)
        assert found == smallest if smallest else np.prod(found) <= 1024

    def test_mistakes_are_reported(self) -> None:
        """Where they are made, not in the middle of a test."""
        for wrong in (
            {"memory": "hbm"},
            {"ndim": 6},
            {"chip": "trn9"},
            {"dtype": "float64"},
            {"max_free": 0},
            {"banks": 9},
        ):
            with pytest.raises(ValueError, match=r"memory|ndim|chip|dtype|max_free|banks"):
                tile_shapes(**wrong)  # type: ignore[arg-type]


class TestMatrixShapes:
    """Sizes that tiles do not quite fit."""

    def test_sizes_lie_around_multiples(self) -> None:
        """One less, one more, and any other, never more than so many tiles."""
        rows, columns = (set(sizes) for sizes in zip(*drawn(matrix_shapes(128, 512, max_tiles=3), 200), strict=True))
        assert {1, 127, 128, 129, 255, 256, 257, 383, 384} <= rows
        assert {511, 512, 513, 1535, 1536} <= columns
        assert (max(rows), max(columns)) == (384, 1536)
        assert len(rows) > 30

    def test_a_failure_shrinks_to_the_first_remainder(self) -> None:
        """A kernel that forgets what remains fails at one more than a tile."""
        shape = smallest_of(matrix_shapes(128, 512), lambda shape: shape[1] > 512 and shape[1] % 512 != 0)
        assert shape == (1, 513)

    def test_it_names_tiles(self) -> None:
        """None, or one of no elements, is a mistake."""
        for wrong in ((), (0,)):
            with pytest.raises(ValueError, match="name the size of a tile"):
                matrix_shapes(*wrong)


class TestDTypes:
    """What an instruction takes, by asking it."""

    def test_a_matmul_takes_floats(self) -> None:
        """As `nki.isa.nc_matmul` says; of the 8-bit ones float8_e4m3fn on NeuronCore-v4 only."""
        floats = {"float32", "bfloat16", "float16", "tfloat32", "float8_e4m3", "float8_e5m2"}
        assert {str(each) for each in drawn(dtypes("nc_matmul", chip="trn2"), 60)} == floats
        assert {str(each) for each in drawn(dtypes(nisa.nc_matmul, chip="trn3"), 60)} == floats | {"float8_e4m3fn"}

    def test_arguments_decide(self) -> None:
        """A bitwise operator takes integers (and bool) alone."""
        taken = drawn(dtypes("tensor_tensor", op=nl.bitwise_and), 60)
        assert {each.kind for each in taken} == {"signed", "unsigned", "bool"}

    def test_operands_may_be_named(self) -> None:
        """What the others are stays as it is."""
        taken = {str(each) for each in drawn(dtypes("nc_matmul", operands="dst", chip="trn2"), 50)}
        assert taken == {"float32"}

    @pytest.mark.parametrize("name", sorted(calls()))
    def test_what_is_refused_is_refused_by_the_instruction(self, name: str) -> None:
        """Every call in the table is legal on some chip, and shrinks to float32 there."""
        assert str(smallest_of(dtypes(name, chip="trn3"), lambda _: True)) == "float32"

    def test_without_an_instruction_all_come(self) -> None:
        """But the packed ones, whose elements are several numbers."""
        assert {str(each) for each in drawn(dtypes(), 60)} == {
            name for name, dtype in DTYPES.items() if dtype.kind != "packed"
        }

    def test_a_trial_counts_as_no_run(self) -> None:
        """No run is collected, and the options of the session do not count."""
        with nkitools.collect_runs() as runs:
            smallest_of(dtypes("activation", chip="trn1"), lambda _: True)
        assert runs == []

    def test_mistakes_are_reported(self) -> None:
        """An unknown instruction or operand, and an instruction that the chip has not."""
        with pytest.raises(ValueError, match="'tensor_tenser' is not among"):
            dtypes("tensor_tenser")
        with pytest.raises(ValueError, match=r"nisa\.tensor_copy has dst, src; there is no data"):
            dtypes("tensor_copy", operands="data")
        for ignored in ({"operands": "src"}, {"scale": 2.0}):
            with pytest.raises(ValueError, match="belong to an instruction"):
                dtypes(**ignored)
        with pytest.raises(ValueError, match="trn9"):
            dtypes(chip="trn9")
        with pytest.raises(ValueError, match=r"nisa\.exponential takes no dtype"):
            smallest_of(dtypes("exponential", chip="trn1"), lambda _: True)


class TestArrays:
    """Patterns, and awkward values strewn in."""

    @pytest.mark.parametrize("name", [name for name, dtype in DTYPES.items() if dtype.kind != "packed"])
    def test_awkward_values_are_the_dtypes_own(self, name: str) -> None:
        """Each once by its bits; the extremes as NumPy and ml_dtypes tell them."""
        values = awkward_values(name)
        dtype = DTYPES[name]
        assert values.dtype == dtype.dtype
        bits = values.view(f"u{dtype.itemsize}")
        assert len(set(bits.tolist())) == len(values)
        if dtype.is_integer:
            assert {values.min(), values.max()} == {np.iinfo(dtype.dtype).min, np.iinfo(dtype.dtype).max}
        elif dtype.kind == "float" and name not in ("tfloat32", "float8_e8m0fnu"):
            limits = ml_dtypes.finfo(dtype.dtype)
            assert {float(limits.max), float(limits.min), float(limits.smallest_subnormal)} <= set(
                values.astype(np.float64).tolist()
            )
            assert np.signbit(values.astype(np.float64)[values.astype(np.float64) == 0]).any()

    def test_tfloat32_has_ten_bits(self) -> None:
        """Though NumPy holds it in float32."""
        assert not (awkward_values("tfloat32").view(np.uint32) & 0x1FFF).any()

    def test_ties_of_rounding_are_there(self) -> None:
        """Half-way between neighbours of bfloat16 and of float16, up and down."""
        values = awkward_values("float32")
        for narrow, places in ((ml_dtypes.bfloat16, 2**-7), (np.float16, 2**-10)):
            ties = [each for each in values if np.isfinite(each) and (float(each) / places) % 1 == 0.5 and 1 < each < 2]
            rounded = [float(np.float32(each).astype(narrow)) - float(each) for each in ties]
            assert min(rounded) < 0 < max(rounded)

    def test_awkward_values_come_and_stay_away_on_request(self) -> None:
        """NaN, infinities, negative zeros; and the counterparts."""
        many = np.concatenate([each.ravel() for each in drawn(arrays((3, 4)), 60)])
        assert np.isnan(many).any()
        assert np.isinf(many).any()
        assert (np.signbit(many) & (many == 0)).any()
        tame = np.concatenate([each.ravel() for each in drawn(arrays((3, 4), awkward=False), 60)])
        assert np.isfinite(tame).all()
        some = drawn(arrays((3, 4), allow_nan=False, allow_infinity=False), 60)
        assert np.isfinite(np.concatenate(some)).all()

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint8", "float8_e8m0fnu"])
    def test_bounds_hold(self, dtype: str) -> None:
        """For patterns and awkward values alike; NaN and infinities are asked for apart."""
        for each in drawn(arrays((2, 5), dtype, low=1, high=64, allow_nan=False, allow_infinity=False), 60):
            assert ((each.astype(np.float64) >= 1) & (each.astype(np.float64) <= 64)).all()

    def test_every_dtype_and_shape_can_be_drawn(self) -> None:
        """Shapes and dtypes may be strategies; packed ones, empty ones and numbers too."""
        for array in drawn(arrays(matrix_shapes(4, 4), st.sampled_from(list(DTYPES.values()))), 60):
            assert array.ndim == 2
        assert {each.shape for each in drawn(arrays(st.sampled_from([(), 3, (0, 4)])), 50)} == {(), (3,), (0, 4)}

    def test_failures_shrink_to_one_element(self) -> None:
        """The smallest shape, and the value that does it."""
        found = smallest_of(arrays(tile_shapes()), lambda array: bool(np.isnan(array).any()))
        assert found.shape == (1, 1)
        zeros = smallest_of(arrays(tile_shapes()), lambda array: array.shape[1] > 3)
        assert zeros.shape == (1, 4)
        assert not zeros.any()

    def test_mistakes_are_reported(self) -> None:
        """Bounds the wrong way round; a dtype that NKI has not."""
        with pytest.raises(ValueError, match="low: must not be more than high"):
            arrays((1, 1), low=2, high=1)
        with pytest.raises(UnknownDType):
            arrays((1, 1), "float64")
        with pytest.raises(UnknownDType):
            smallest_of(arrays((1, 1), st.just("float64")), lambda _: True)


class TestBoxes:
    """Boxes have a left edge and a right one."""

    @given(boxes(matrix_shapes(3, 5), extent=8.0))
    def test_edges_are_in_order(self, found: Any) -> None:
        """And finite."""
        assert found.shape[-1] == 4
        assert (found[..., :2] <= found[..., 2:]).all()
        assert np.isfinite(found).all()
        assert (np.abs(found) <= 32).all()

    def test_without_area_or_not(self) -> None:
        """Points and lines come unless they are switched off."""

        def least(found: Any) -> float:
            return float((found[..., 2:] - found[..., :2]).min())

        assert min(least(each) for each in drawn(boxes((2, 8)))) == 0
        assert min(least(each) for each in drawn(boxes((2, 8), empty=False))) > 0

    @pytest.mark.parametrize("strategy", [boxes, box_pairs])
    def test_mistakes_are_reported(self, strategy: Any) -> None:
        """An extent with which left would exceed right, and a dtype that NKI has not."""
        for wrong in (0.0, -1.0, np.nan):
            with pytest.raises(ValueError, match="extent: must be more than 0"):
                strategy((1, 2), extent=wrong)
        with pytest.raises(UnknownDType):
            strategy((1, 2), "float64")

    def test_pairs_have_equal_boxes_and_others(self) -> None:
        """And boxes that touch, that lie in one another, that lie apart."""
        pairs = drawn(box_pairs((1, 8)))
        equal = [(first == second).all(axis=-1) for first, second in pairs]
        assert any(each.any() for each in equal)
        assert any((~each).any() for each in equal)


# --- kernels under @given --------------------------------------------------------------------------------------------


def union_over_hull(preds: Any, targets: Any) -> Any:
    """GIoU in float64, by the definition."""
    p, t = preds.astype(np.float64), targets.astype(np.float64)
    overlap = np.maximum(np.minimum(p[..., 2:], t[..., 2:]) - np.maximum(p[..., :2], t[..., :2]), 0).prod(axis=-1)
    hull = (np.maximum(p[..., 2:], t[..., 2:]) - np.minimum(p[..., :2], t[..., :2])).prod(axis=-1)
    union = (p[..., 2:] - p[..., :2]).prod(axis=-1) + (t[..., 2:] - t[..., :2]).prod(axis=-1) - overlap
    return overlap / np.maximum(union, 1e-5) - (hull - union) / np.maximum(hull, 1e-5)


@given(pair=box_pairs(st.tuples(st.sampled_from([1, 2, 127, 129]), st.integers(1, 20)), extent=16.0))
@pytest.mark.sim
def test_giou_of_any_boxes(run_kernel: Any, pair: Any) -> None:
    """The example kernel against its definition: empty boxes, equal ones, any number of rows."""
    preds, targets = pair
    np.testing.assert_allclose(run_kernel(giou, preds, targets), union_over_hull(preds, targets), rtol=1e-3, atol=1e-4)


def only_whole_tiles(x: Any) -> Any:
    """Forgets what remains behind the last whole tile of 128 rows."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for m in range(max(1, x.shape[0] // 128)):
        rows = slice(m * 128, min((m + 1) * 128, x.shape[0]))
        nl.store(out[rows], nl.load(x[rows]))
    return out


def test_a_kernel_that_forgets_the_remainder_fails_at_the_smallest_shape() -> None:
    """129 rows of one column: what an author wants to see."""

    def breaks(x: Any) -> bool:
        return bool(nkitools.simulate(only_whole_tiles, x, rules="report").findings)

    found = smallest_of(arrays(matrix_shapes(128, 16)), breaks)
    assert found.shape == (129, 1)
    assert not found.any()


@given(shape=matrix_shapes(128, 4), data=st.data())
def test_fixtures_are_fresh_for_each_example(
    run_kernel: Any, device_prints: Any, expect_finding: Any, shape: Any, data: Any
) -> None:
    """No health check speaks, and no example sees another's run, prints or findings."""
    assert not device_prints
    assert not hasattr(run_kernel, "run")
    x = data.draw(arrays(shape, awkward=False))
    if shape[0] % 128 == 0 or shape[0] < 128:
        np.testing.assert_array_equal(run_kernel(only_whole_tiles, x), x)
    else:
        with expect_finding("NK403") as expected:
            run_kernel(only_whole_tiles, x)
        assert expected.findings == run_kernel.run.findings
    assert len(run_kernel.run.findings) == (shape[0] > 128 and shape[0] % 128 != 0)


@pytest.mark.process
def test_without_hypothesis_the_import_says_what_to_install() -> None:
    """nkitools does without it; its strategies do not."""
    code = "import sys; sys.modules['hypothesis'] = None; import nkitools; nkitools.strategies"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: nkitools.strategies needs Hypothesis, which is not installed: pip install hypothesis"
    )
