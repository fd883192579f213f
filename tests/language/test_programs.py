"""Program ids, ranges, device prints and tile sizes."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.legacy.language as legacy
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.core import current_core
from nkitools.facts import options
from nkitools.launch.launch import Launch
from nkitools.launch.programs import run_launch
from tests.isa.issued import empty, inside, placed, tile

RANGES = (nl.affine_range, nl.sequential_range, nl.static_range)


# --- programs --------------------------------------------------------------------------------------------------------


def launched(kernel: Any, grid: tuple[int, ...]) -> None:
    """Run a kernel in a grid of any size, as the legacy dialect launches it."""
    run_launch(Launch(kernel, "kernel", grid=grid), (), {})


def test_each_program_knows_its_place_in_the_grid() -> None:
    """Ids, counts and the number of dimensions, along every axis, in row-major order."""
    seen: list[Any] = []

    def kernel() -> None:
        seen.append(
            (
                nl.program_id(0),
                nl.program_id(axis=1),
                nl.num_programs(),
                nl.num_programs(axes=1),
                nl.num_programs((0, 1)),
                nl.num_programs(None),
                nl.program_ndim(),
            )
        )

    launched(kernel, (2, 3))
    assert seen == [(i, j, 2, 3, 6, 6, 2) for i in range(2) for j in range(3)]


def test_without_a_grid_there_is_one_program() -> None:
    """Number 0 of 1, along whichever axis; of no dimension."""

    def body() -> None:
        assert (nl.program_id(), nl.program_id(1), nl.program_ndim()) == (0, 0, 0)
        assert (nl.num_programs(), nl.num_programs(axes=None), nl.num_programs([0, 1])) == (1, 1, 1)

    inside(body)


@pytest.mark.parametrize("axis", [2, -1, "0", 0.0, None, True])
def test_an_axis_that_there_is_not(axis: Any) -> None:
    """NK609 names the function."""
    with pytest.raises(nkitools.KernelError) as caught:
        launched(lambda: nl.program_id(axis), (2, 3))
    assert caught.value.finding.rule == "NK609"
    assert "nl.program_id" in caught.value.finding.message


def test_programs_exist_inside_of_a_kernel_only() -> None:
    """NK611 elsewhere."""
    for function in (nl.program_id, nl.num_programs, nl.program_ndim):
        with pytest.raises(nkitools.KernelError, match="NK611"):
            function()


# --- ranges ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", RANGES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("args", [(5,), (2, 7), (0, 10, 3), (5, 0, -2), (0,), (np.int64(3),)], ids=str)
def test_a_range_is_pythons_range(make: Any, args: tuple[int, ...]) -> None:
    """Its numbers, length, indices, slices, membership and order, inside of a kernel and outside."""
    numbers = range(*args)

    def check() -> None:
        found = make(*args)
        assert list(found) == list(numbers)
        assert all(type(number) is int for number in found)
        assert len(found) == len(numbers)
        assert list(reversed(found)) == list(reversed(numbers))
        assert (found.start, found.stop, found.step) == (numbers.start, numbers.stop, numbers.step)
        assert found == numbers
        assert hash(found) == hash(numbers)
        assert found == make(*args)
        assert list(found[1:]) == list(numbers[1:])
        assert [value in found for value in range(-1, 12)] == [value in numbers for value in range(-1, 12)]
        assert bool(found) == bool(numbers)
        if numbers:
            assert (found[0], found[-1]) == (numbers[0], numbers[-1])
            assert found.index(numbers[-1]) == len(numbers) - 1

    check()
    inside(check)
    assert f"nl.{make.__name__}(" in repr(make(*args))


@pytest.mark.parametrize("make", RANGES, ids=lambda make: make.__name__)
def test_a_step_counts_without_a_start(make: Any) -> None:
    """From 0 on, as `nl.dynamic_range` takes it."""
    assert list(make(8, step=3)) == [0, 3, 6]


@pytest.mark.parametrize("args", [("3",), (2.0,), (0, 4, 0), (None,)], ids=str)
def test_a_range_of_what_does_not_count_is_refused(args: tuple[Any, ...]) -> None:
    """NK609 names the function."""
    with pytest.raises(nkitools.KernelError) as caught:
        inside(lambda: nl.affine_range(*args))
    assert caught.value.finding.rule == "NK609"
    assert "nl.affine_range" in caught.value.finding.message


def counters_of(kernel: Any) -> list[dict[str, int]]:
    """The loop counters of each instruction of a run."""
    return [each.loops for each in nkitools.simulate(kernel).instructions]


def test_the_record_knows_the_counters() -> None:
    """Of nested ranges, around and after them."""

    def kernel() -> None:
        x = nl.ndarray((4, 4), nl.float32)
        nisa.memset(x, 0)
        for i in nl.affine_range(2):
            nisa.memset(x, i)
            for j in nl.sequential_range(1, 3):
                nisa.memset(x, j)
        nisa.memset(x, 3)

    assert counters_of(kernel) == [
        {},
        {"i": 0},
        {"i": 0, "j": 1},
        {"i": 0, "j": 2},
        {"i": 1},
        {"i": 1, "j": 1},
        {"i": 1, "j": 2},
        {},
    ]


def test_leaving_a_loop_early_leaves_its_counters_behind() -> None:
    """By break, continue, return and an exception that the kernel catches."""

    def returning(x: Any) -> None:
        for _ in nl.affine_range(3):
            nisa.memset(x, 0)
            return

    def raising() -> None:
        for _ in nl.affine_range(3):
            raise KeyError

    def kernel() -> None:
        x = nl.ndarray((4, 4), nl.float32)
        state = current_core("a test").record
        for i in nl.affine_range(5):
            for j in nl.affine_range(5):
                if j == 1:
                    break
            if i == 0:
                continue
            nisa.memset(x, 0)
            assert j == 1
            break
        assert state.loop == -1
        returning(x)
        with contextlib.suppress(KeyError):
            raising()
        assert state.loop == -1
        nisa.memset(x, 0)

    assert counters_of(kernel) == [{"i": 1}, {"_": 0}, {}]


# --- device prints ---------------------------------------------------------------------------------------------------


def test_a_print_is_a_copy_of_what_was_there() -> None:
    """Later writes do not change it; place, counters, program and memory come with it."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    def kernel(data: Any) -> None:
        loaded = nl.load(data)
        for step in range(2):
            for column in nl.affine_range(2):
                nl.device_print("part", loaded[:, column : column + 1])
            nisa.memset(loaded, step)
        nl.device_print(print_prefix="input", tensor=data)

    run = nkitools.simulate(kernel, x, grid=2)
    assert [(each.prefix, each.program, each.loops, each.shape) for each in run.prints] == [
        row
        for program in range(2)
        for row in [
            ("part", (program,), {"step": 0, "column": 0}, (2, 1)),
            ("part", (program,), {"step": 0, "column": 1}, (2, 1)),
            ("part", (program,), {"step": 1, "column": 0}, (2, 1)),
            ("part", (program,), {"step": 1, "column": 1}, (2, 1)),
            ("input", (program,), {}, (2, 3)),
        ]
    ]
    np.testing.assert_array_equal(run.prints[0].value, x[:, 0:1])
    np.testing.assert_array_equal(run.prints[1].value, x[:, 1:2])
    np.testing.assert_array_equal(run.prints[2].value, np.zeros((2, 1)))
    np.testing.assert_array_equal(run.prints[4].value, x)
    assert {each.dtype for each in run.prints} == {"float32"}
    assert {each.file for each in run.prints} == {__file__}
    assert run.prints[0].memory == "SBUF"
    assert len({each.line for each in run.prints}) == 2


@pytest.mark.parametrize("memory", ["sbuf", "psum", "hbm", "shared_hbm"])
@pytest.mark.parametrize("dtype", [nl.bfloat16, nl.int8, nl.bool_, nl.float8_e5m2_x4], ids=str)
def test_any_tensor_can_be_printed(memory: str, dtype: Any) -> None:
    """Of every memory and dtype, with its own values."""
    values = np.ones((2, 4), np.uint32).view(dtype.dtype) if dtype.kind == "packed" else np.ones((2, 4), dtype.dtype)

    def kernel() -> None:
        nl.device_print("x", placed(tile(values, memory, dtype=dtype)))

    (printed,) = nkitools.simulate(kernel).prints
    np.testing.assert_array_equal(printed.value, values)
    assert printed.dtype == str(dtype)
    assert "x" in printed.text()


@pytest.mark.parametrize(("dtype", "sentinel"), [(nl.float32, np.nan), (nl.int16, 4)], ids=str)
def test_what_was_never_written_prints_as_the_sentinel(dtype: Any, sentinel: float) -> None:
    """NaN or 4, as AWS's simulator shows it; a print is not a use."""

    def kernel() -> None:
        x = placed(empty((4, 4), dtype))
        nisa.memset(x[:, 0:2], 1)
        nl.device_print("x", x)

    run = nkitools.simulate(kernel)
    np.testing.assert_array_equal(run.prints[0].value.astype(np.float64), [[1, 1, sentinel, sentinel]] * 4)
    assert run.findings == []


@pytest.mark.parametrize(("prefix", "tensor"), [(1, "tile"), ("x", 1.0), ("x", np.ones(3))], ids=str)
def test_what_cannot_be_printed(prefix: Any, tensor: Any) -> None:
    """A prefix that is no string, a value that is no tensor."""

    def body() -> None:
        nl.device_print(prefix, placed(tile(np.ones((2, 2), np.float32))) if isinstance(tensor, str) else tensor)

    with pytest.raises(nkitools.KernelError) as caught:
        inside(body)
    assert caught.value.finding.rule == "NK609"


# --- tile sizes ------------------------------------------------------------------------------------------------------

KIB = 1024
SIZES: dict[str, dict[str, int]] = {
    "pmax": {"trn1": 128, "trn2": 128, "trn3": 128},
    "psum_fmax": {"trn1": 512, "trn2": 512, "trn3": 512},
    "psum_bank_fmax": {"trn1": 512, "trn2": 512, "trn3": 512},
    "psum_bank_fmax_bytes": {"trn1": 2048, "trn2": 2048, "trn3": 2048},
    "psum_num_banks": {"trn1": 8, "trn2": 8, "trn3": 8},
    "gemm_stationary_fmax": {"trn1": 128, "trn2": 128, "trn3": 128},
    "gemm_moving_fmax": {"trn1": 512, "trn2": 512, "trn3": 512},
    "bn_stats_fmax": {"trn1": 512, "trn2": 512, "trn3": 512},
    "sbuf_size_bytes": {"trn1": 128 * 192 * KIB, "trn2": 128 * 224 * KIB, "trn3": 128 * 256 * KIB},
    "sbuf_fmax_bytes": {"trn1": 176 * KIB, "trn2": 208 * KIB, "trn3": 240 * KIB},
    "sbuf_fmax": {"trn1": 44 * KIB, "trn2": 52 * KIB, "trn3": 60 * KIB},
    "total_available_sbuf_size": {"trn1": 176 * KIB, "trn2": 208 * KIB, "trn3": 240 * KIB},
}


@pytest.mark.parametrize("name", SIZES)
def test_tile_sizes_are_those_of_the_chip_that_runs(name: str) -> None:
    """Plain integers, inside of a kernel and, for the default chip, outside."""
    for chip, size in SIZES[name].items():
        found = inside(lambda: getattr(nl.tile_size, name), chip=chip)
        assert type(found) is int
        assert found == size
    assert type(getattr(nl.tile_size, name)) is int


@pytest.mark.parametrize(("said", "banks"), [("true", [8, 7, 7]), ("false", [8, 8, 8]), ("", [8, 8, 8])])
def test_a_psum_bank_is_kept_for_transposes(monkeypatch: pytest.MonkeyPatch, said: str, banks: list[int]) -> None:
    """Where AWS's compiler is told to transpose on the Tensor Engine instead of by DMA, which it does from trn2 on."""
    monkeypatch.setenv("NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE", said)
    assert [inside(lambda: nl.tile_size.psum_num_banks, chip=chip) for chip in ("trn1", "trn2", "trn3")] == banks


@pytest.mark.parametrize("version", ["0.6", "0.7", "auto"])
@pytest.mark.parametrize(
    "name", ["sbuf_fmax", "sbuf_fmax_bytes", "sbuf_size_bytes", "total_available_sbuf_size", "psum_num_banks"]
)
def test_sizes_that_differ_by_chip_are_read_in_kernels_alone_in_0_6(name: str, version: str) -> None:
    """NK611 outside of one: they are properties of AWS's class, which asks its running backend."""
    with options.override(nki_version=version):
        in_kernel = inside(lambda: getattr(nl.tile_size, name))
        if version == "0.6":
            with pytest.raises(nkitools.KernelError, match=rf"tile_size.{name} is read outside.*NKI 0.6") as caught:
                getattr(nl.tile_size, name)
            assert caught.value.finding.rule == "NK611"
        else:
            assert getattr(nl.tile_size, name) == in_kernel
        assert getattr(legacy.tile_size, name) == in_kernel


def test_the_other_sizes_are_read_anywhere() -> None:
    """AWS's library has them at the top of its files."""
    with options.override(nki_version="0.6"):
        sizes = nl.tile_size
        assert (sizes.pmax, sizes.psum_fmax, sizes.psum_bank_fmax, sizes.psum_bank_fmax_bytes) == (128, 512, 512, 2048)
        assert (sizes.gemm_stationary_fmax, sizes.gemm_moving_fmax, sizes.bn_stats_fmax) == (128, 512, 512)


@pytest.mark.parametrize("name", ["psum_min_align", "sbuf_min_align"])
def test_values_that_are_not_published_are_refused(name: str) -> None:
    """No document gives the alignments, so that no number is made up (NK607)."""
    with pytest.raises(nkitools.NotModelled, match=name):
        getattr(nl.tile_size, name)
