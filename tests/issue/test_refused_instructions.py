"""A refused instruction in a run that goes on: its outputs are undefined, and nobody hears of that a second time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import neuronxcc.nki as legacy
import neuronxcc.nki.isa as legacy_isa
import neuronxcc.nki.language as legacy_nl
import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.nki_versions import SINCE_0_7, WITH_REMOVED_NAMES

X = np.linspace(1, 2, 128 * 64, dtype=np.float32).reshape(128, 64)


def told(kernel: Callable[..., Any], *arrays: Any) -> list[str]:
    """The rules of a run's findings, in their order, each as often as it was broken."""
    found = nkitools.simulate(kernel, *arrays, rules="report").findings
    return [finding.rule for finding in found for _ in range(finding.count)]


def new(shape: tuple[int, ...] = (128, 64), dtype: Any = nl.float32, buffer: Any = nl.sbuf) -> Any:
    """A tensor of the kernel that runs."""
    return nl.ndarray(shape, dtype, buffer=buffer)


def refused(dst: Any, data: Any) -> None:
    """An instruction that is refused (NK609): an operator by its name."""
    nisa.tensor_tensor(dst=dst, data1=data, data2=data, op="add")


# --- values ----------------------------------------------------------------------------------------------------------


def numbers_in_float32(x: Any) -> Any:
    """NaN stands for them."""
    data = nl.load(x)
    refused(data, data)
    nisa.activation(dst=data, op=nl.log, data=data)
    return data


def numbers_cast(x: Any) -> Any:
    """A NaN becomes 0 in integers."""
    data, whole = nl.load(x), new(dtype=nl.int8)
    refused(data, data)
    nisa.tensor_copy(dst=whole, src=data)
    nisa.tensor_scalar(dst=data, data=whole, op0=nl.rsqrt, operand0=None)
    return data


def integers(x: Any) -> Any:
    """Each 4 is a number to NumPy, and none of the kernel's: 1 / sqrt(4 - 4), 400 * 4 in int8, sin(4)."""
    data, whole, small = nl.load(x), new(dtype=nl.int32), new(dtype=nl.int8)
    refused(whole, data)
    nisa.tensor_scalar(dst=data, data=whole, op0=nl.subtract, operand0=4.0, op1=nl.rsqrt, operand1=None)
    nisa.tensor_scalar(dst=small, data=whole, op0=nl.multiply, operand0=400.0)
    nisa.activation(dst=data, op=nl.sin, data=whole)
    return data


@pytest.mark.parametrize("kernel", [numbers_in_float32, numbers_cast, integers])
def test_rules_about_values_keep_silent(kernel: Callable[[Any], Any]) -> None:
    """About all that comes of undefined outputs, at every step."""

    def stored(x: Any) -> Any:
        out = new(buffer=nl.shared_hbm)
        nl.store(out, kernel(x))
        return out

    assert told(stored, X) == ["NK609"]


def test_they_speak_again_of_what_has_been_overwritten() -> None:
    """Whole; as long as a part is undefined they keep silent."""

    def kernel(x: Any) -> None:
        data, whole = nl.load(x), new(dtype=nl.int32)
        refused(whole, data)
        nisa.memset(dst=whole[:, 0:32], value=0)
        nisa.activation(dst=data, op=nl.log, data=whole)
        nisa.memset(dst=whole, value=0)
        nisa.activation(dst=data, op=nl.log, data=whole)

    run = nkitools.simulate(kernel, X, rules="report")
    assert [finding.rule for finding in run.findings] == ["NK609", "NK404"]
    assert "log(0.0)" in run.findings[1].message
    assert run.findings[1].line == kernel.__code__.co_firstlineno + 6  # not where it was an integer left undone


def test_others_are_judged_as_ever() -> None:
    """What does not depend on a refused instruction has its own findings."""

    def kernel(x: Any) -> None:
        data, whole, small = nl.load(x), new(dtype=nl.int32), new(dtype=nl.int8)
        refused(whole, data)
        nisa.tensor_scalar(dst=small, data=data, op0=nl.multiply, operand0=400.0)

    assert told(kernel, X) == ["NK609", "NK304"]


# --- places ----------------------------------------------------------------------------------------------------------


def rows(tensor: Any, index: Any) -> Any:
    """The rows of a tensor that an index names."""
    return tensor.ap([[64, 128], [1, 64]], vector_offset=index, indirect_dim=0)


def test_an_undefined_index_names_no_row() -> None:
    """Neither out of bounds, nor the same one twice, nor all but the others."""

    def kernel(x: Any) -> Any:
        out, index, data = new(buffer=nl.shared_hbm), new((128, 1), nl.int32), new()
        nisa.iota(dst=index, pattern=[[1, 1]], offset="0", channel_multiplier=1)
        nisa.dma_copy(dst=data, src=rows(x, index))
        nisa.dma_copy(dst=rows(out, index), src=data)
        return out

    for array in (X, X[:3]):
        run = nkitools.simulate(kernel, array, rules="report")
        assert [finding.rule for finding in run.findings] == ["NK609"]
        assert np.isnan(run.outputs).all()


def test_undefined_indices_of_elements() -> None:
    """Those that nisa.nc_n_gather takes as data."""

    def kernel(x: Any) -> None:
        data, largest, places = nl.load(x), new((128, 8)), new((128, 8), nl.uint32)
        nisa.max8(dst=largest, src=data[:, 0:4])
        nisa.nc_find_index8(dst=places, data=data, vals=largest)
        nisa.nc_n_gather(dst=largest, data=data, indices=places)

    assert told(kernel, X) == ["NK107"]


@pytest.mark.parametrize("rules", ["report", "off"])
def test_places_that_were_never_written(rules: str) -> None:
    """NK401 alone: what lies in such memory is no index out of bounds, and no segment's number that is not whole."""

    def gathered(x: Any) -> None:
        nisa.nc_n_gather(dst=new((128, 4)), data=nl.load(x), indices=new((128, 4), nl.uint32))

    def bounded(x: Any) -> None:
        nisa.sequence_bounds(dst=new((1, 2, 8)), segment_ids=new((1, 8)))

    for kernel in (gathered, bounded):
        found = nkitools.simulate(kernel, X, rules=rules).findings
        assert [each.rule for each in found] == (["NK401"] if rules == "report" else [])


def test_rows_out_of_bounds_are_reported_once() -> None:
    """At the gather; what they left out is not also unwritten, and the rest of it is computed."""

    def kernel(x: Any, index: Any) -> Any:
        out, data = new(buffer=nl.shared_hbm), new()
        nisa.dma_copy(dst=data, src=rows(x, nl.load(index)))
        nisa.activation(dst=data, op=nl.log, data=data)
        nl.store(out, data)
        return out

    index = np.arange(128, dtype=np.int32)[:, None] + 2
    run = nkitools.simulate(kernel, X, index, rules="report")
    assert [finding.rule for finding in run.findings] == ["NK402"]
    np.testing.assert_allclose(run.outputs[:126], np.log(X[2:]), rtol=1e-6)
    assert np.isnan(run.outputs[126:]).all()


def test_a_scatter_out_of_bounds_leaves_no_output_unwritten() -> None:
    """Where it should have gone nobody knows."""

    def kernel(x: Any, index: Any) -> Any:
        out = new(buffer=nl.shared_hbm)
        nisa.dma_copy(dst=rows(out, nl.load(index)), src=nl.load(x))
        return out

    run = nkitools.simulate(kernel, X, np.arange(128, dtype=np.int32)[:, None] + 2, rules="report")
    assert [finding.rule for finding in run.findings] == ["NK402"]
    np.testing.assert_array_equal(run.outputs[2:], X[:126])


def test_a_row_out_of_bounds_leaves_out_its_elements_of_other_rows() -> None:
    """A copy between an index of 128 rows and one of 64, or none: elements are taken in order."""

    def kernel(x: Any, index: Any, half: Any) -> tuple[Any, Any]:
        scattered, copied = new((64, 128), buffer=nl.shared_hbm), new((64, 128), buffer=nl.shared_hbm)
        wide = scattered.ap([[128, 64], [1, 128]], vector_offset=nl.load(half), indirect_dim=0)
        nisa.dma_copy(dst=copied, src=rows(x, nl.load(index)))
        nisa.dma_copy(dst=wide, src=rows(x, nl.load(index)))
        return copied, scattered

    index, half = np.arange(128, dtype=np.int32)[:, None], np.arange(64, dtype=np.int32)[:, None]
    index[7] = 128
    run = nkitools.simulate(kernel, X, index, half, rules="report")
    assert [(finding.rule, finding.facts["first_index"]) for finding in run.findings] == [("NK402", 128)] * 2
    expected = X.reshape(64, 128).copy()
    expected[3, 64:] = np.nan
    for output in run.outputs:
        np.testing.assert_array_equal(output, expected)


def test_run_time_offsets_out_of_bounds_do_not_end_the_run() -> None:
    """Each is told of, in the first turn and in those whose plan is known."""

    def kernel(x: Any) -> Any:
        out, register, row = new(buffer=nl.shared_hbm), nisa.register_alloc(0), new((1, 64))
        nl.store(out, nl.load(x))
        for place in (128, 0, 200, 127, 129):
            nisa.register_move(register, place)
            nisa.dma_copy(dst=row, src=x.ap([[64, 1], [1, 64]], scalar_offset=register, indirect_dim=0))
        return out

    run = nkitools.simulate(kernel, X, rules="report")
    assert [(finding.rule, place.loops) for finding in run.findings for place in finding.places] == [
        ("NK402", {"place": 128}),
        ("NK402", {"place": 200}),
        ("NK402", {"place": 129}),
    ]
    np.testing.assert_array_equal(run.outputs, X)


# --- functions of several instructions --------------------------------------------------------------------------------


REDUCING: dict[str, Callable[[Any, Any], Any]] = {
    name: (lambda x, axis, name=name: getattr(nl, name)(x, axis=axis))
    for name in ("sum", "max", "min", "prod", "all", "mean", "var", "softmax")
} | {
    "mean, keepdims": lambda x, axis: nl.mean(x, axis=axis, keepdims=True),
    "rms_norm": lambda x, axis: nl.rms_norm(x, new((128, 64)), axis=axis, n=64),
}


@SINCE_0_7
@pytest.mark.parametrize("axis", [0, (0, 1), 2])
@pytest.mark.parametrize("name", REDUCING)
def test_an_axis_that_is_not_reduced_is_one_cause(name: str, axis: Any) -> None:
    """NK112, whatever shapes the next steps would have had; the run goes on."""

    def kernel(x: Any) -> Any:
        out, tile = new(buffer=nl.shared_hbm), nl.load(x)
        REDUCING[name](tile, axis)
        nl.store(out, tile)
        return out

    run = nkitools.simulate(kernel, X, rules="report")
    assert [each.rule for each in run.findings if each.severity == "error"] == ["NK112"]
    np.testing.assert_array_equal(run.outputs, X)
    with pytest.raises(nkitools.KernelError, match="NK112"):
        nkitools.simulate(kernel, X)


# --- where the run ends ----------------------------------------------------------------------------------------------


@WITH_REMOVED_NAMES
def test_a_loop_whose_condition_is_undefined_ends_the_run() -> None:
    """It would never end."""

    def kernel(count: Any) -> None:
        left, register = nl.load(count), nisa.register_alloc(5)
        while register:
            nisa.tensor_scalar(dst=left, data=left, op0="subtract", operand0=1)
            nisa.register_load(register, left)

    run = nkitools.simulate(kernel, np.full((1, 1), 5, np.int32), rules="report")
    assert [finding.rule for finding in run.findings if finding.severity == "error"] == ["NK609"]
    assert run.outputs is None


# --- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", [0, 1, 3])
def test_a_refused_matmul_breaks_its_sum_only(turn: int) -> None:
    """Neither what is added to it before or after, nor its copy, is spoken of."""

    def kernel(x: Any) -> Any:
        out, data, total = new((64, 64), buffer=nl.shared_hbm), nl.load(x), new((64, 64), buffer=nl.psum)
        for number in range(4):
            moving = data[0:64] if number == turn else data
            nisa.nc_matmul(dst=total, stationary=data, moving=moving, accumulate=number > 0)
        copied = new((64, 64))
        nisa.tensor_copy(dst=copied, src=total)
        nl.store(out, copied)
        return out

    run = nkitools.simulate(kernel, X, rules="report")
    assert [finding.rule for finding in run.findings] == ["NK102"]
    assert np.isnan(run.outputs).all()


def test_sums_that_a_refused_instruction_would_have_read_are_not_lost() -> None:
    """No NK506, though the next matmul overwrites them."""

    def kernel(x: Any) -> None:
        data, total, copied = nl.load(x), new((64, 64), buffer=nl.psum), new((64, 64))
        for _ in range(2):
            nisa.nc_matmul(dst=total, stationary=data, moving=data, accumulate=False)
            refused(copied, total)

    assert told(kernel, X) == ["NK609", "NK609"]


@pytest.mark.parametrize("writable", [True, False])
def test_an_input_in_place(writable: bool) -> None:
    """The caller's array stays as it is; what was returned of it is undefined, where it could be written."""

    def kernel(x: Any) -> Any:
        nisa.dma_copy(dst=x, src=x[0:64])
        return x

    array = X.copy()
    array.flags.writeable = writable
    run = nkitools.simulate(kernel, array, rules="report")
    assert [each.rule for each in run.findings] == ["NK109"]
    np.testing.assert_array_equal(array, X)
    assert np.isnan(run.outputs).all() == writable


def test_a_loop_of_refusals_is_kept_short() -> None:
    """One finding stands for all of them."""

    def kernel(x: Any) -> None:
        data = nl.load(x)
        for _ in range(3000):
            refused(data, data)

    run = nkitools.simulate(kernel, X, rules="report")
    assert [each.count for each in run.findings] == [3000]


# --- the legacy dialect ----------------------------------------------------------------------------------------------


def test_legacy_calls_return_tiles_all_the_same() -> None:
    """Undefined ones, of which nothing more is said at a store, in a cast or under a mask."""

    @legacy.jit
    def kernel(x: Any) -> Any:
        out = legacy_nl.ndarray((128, 64), dtype=np.int32, buffer=legacy_nl.shared_hbm)
        rows, columns = legacy_nl.mgrid[0:128, 0:64]
        tile = legacy_nl.load(x[rows, columns], mask=rows < 100)
        total = legacy_isa.tensor_tensor(tile, tile, op="add", mask=rows < 100)
        whole = legacy_isa.tensor_copy(legacy_nl.log(total), dtype=np.int32)
        legacy_nl.store(out[rows, columns], whole, mask=rows < 100)
        legacy_nl.store(out[rows, columns], legacy_nl.zeros((128, 64), dtype=np.int32), mask=rows >= 100)
        return out

    assert told(kernel, X) == ["NK609"]


def test_legacy_sums_in_psum() -> None:
    """Each refused product is told of, and the sum of them is not."""

    @legacy.jit
    def kernel(x: Any, y: Any) -> Any:
        out = legacy_nl.ndarray((64, 64), dtype=np.float32, buffer=legacy_nl.shared_hbm)
        total = legacy_nl.zeros((64, 64), dtype=np.float32, buffer=legacy_nl.psum)
        for _ in legacy_nl.affine_range(2):
            total += legacy_isa.nc_matmul(legacy_nl.load(x), legacy_nl.load(y))
        legacy_nl.store(out, legacy_nl.copy(total))
        return out

    assert told(kernel, X, X[:64]) == ["NK102", "NK102"]
