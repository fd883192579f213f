"""The ways in: jit and its modes, trace, simulate_kernel, benchmark, grids."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np
import pytest

import nkitools
from nkitools.dialects.legacy.kernels.kernel import NoDevice
from nkitools.facts import options
from tests.dialects.legacy.running import random


def doubled(x: Any) -> Any:
    """Twice ``x``."""
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(result, nl.load(x) * np.float32(2))
    return result


def doubled_into(x: Any, result: Any) -> None:
    nl.store(result, nl.load(x) * np.float32(2))


X = random(8, 6)


@pytest.mark.parametrize("mode", ["auto", "jax", "torchxla", "baremetal", "benchmark", "simulation"])
def test_every_mode_of_jit_runs_the_simulator(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a device all modes give the result."""
    np.testing.assert_array_equal(nki.jit(doubled, mode=mode)(X), 2 * X)
    np.testing.assert_array_equal(nki.jit(mode=mode)(doubled)(X), 2 * X)


def test_jit_keeps_the_function() -> None:
    """Name, doc, signature and __wrapped__ are the function's; jit composes with itself."""
    kernel = nki.jit(nki.jit(doubled), mode="simulation", platform_target="trn2")
    assert (kernel.__name__, kernel.__doc__) == ("doubled", "Twice ``x``.")
    assert inspect.signature(kernel) == inspect.signature(doubled)
    assert kernel.__wrapped__ is doubled
    assert kernel.func is doubled
    np.testing.assert_array_equal(kernel(X), 2 * X)
    assert nkitools.simulate(kernel, X).chip == "trn2"


@pytest.mark.parametrize("keywords", [{"mode": "fast"}, {"plattform_target": "trn2"}])
def test_unknown_modes_and_keywords(keywords: dict[str, Any]) -> None:
    """They are refused when the kernel is made (NK609)."""
    with pytest.raises(nkitools.KernelError) as caught:
        nki.jit(doubled, **keywords)
    assert caught.value.finding.rule == "NK609"


def test_outputs_by_reference() -> None:
    """A traced kernel, or a plain function, writes into the arrays that simulate_kernel is given."""
    for kernel in (nki.trace(doubled_into), nki.jit(mode="trace")(doubled_into), doubled_into):
        result = np.empty_like(X)
        assert nki.simulate_kernel(kernel, X, result) is None
        np.testing.assert_array_equal(result, 2 * X)
    called = np.empty_like(X)
    assert nki.trace(doubled_into)(X, called) is None
    np.testing.assert_array_equal(called, 2 * X)


def test_simulate_kernel_returns_and_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """simulate_kernel returns what the kernel returns and shows device prints as they come."""

    @nki.jit
    def kernel(x: Any) -> Any:
        nl.device_print("value of x:", nl.load(x))
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        doubled_into(x, result)
        return result

    np.testing.assert_array_equal(nki.simulate_kernel(kernel, X), 2 * X)
    assert "value of x: [program 0, test_kernel.py:" in capsys.readouterr().out
    with pytest.raises(nkitools.KernelError):
        nki.simulate_kernel(3, X)


def test_inputs_of_a_jit_kernel_are_immutable() -> None:
    """Writing to one is NK406, unless it is annotated as mutable, as an object or as a string."""

    def writes(x: Any) -> Any:
        nl.store(x, nl.load(x) + np.float32(1))
        return x

    def annotated(x: nt.mutable_tensor, y: Any) -> Any:  # type: ignore[valid-type]
        nl.store(x, nl.load(y))
        return x

    def stringly(x: nt.mutable_tensor[8, 6], y: Any) -> Any:
        nl.store(y, nl.load(x))
        return x

    with pytest.raises(nkitools.KernelError, match="err_cannot_update_immutable_parameter") as caught:
        nki.jit(writes)(X.copy())
    assert caught.value.finding.rule == "NK406"
    target = X.copy()
    assert nki.jit(annotated)(target, 2 * X) is target
    np.testing.assert_array_equal(target, 2 * X)
    with pytest.raises(nkitools.KernelError):
        nki.jit(stringly)(X.copy(), X.copy())


def added_in_parts(x: nt.mutable_tensor, y: Any, z: Any) -> Any:  # type: ignore[valid-type]
    """Write into all inputs: whole, row by row, and under a mask."""
    rows, columns = nl.mgrid[0:8, 0:6]
    nl.store(x, nl.load(x) + np.float32(1))
    for row in nl.affine_range(8):
        nl.store(y[row : row + 1], nl.load(y[row : row + 1]) + np.float32(1))
    nl.store(z[rows, columns], nl.load(z) + np.float32(1), mask=rows < 4)
    return x, y, z


def added_by_index(x: nt.mutable_tensor, y: Any, z: Any) -> Any:  # type: ignore[valid-type]
    """Write by an index, with an addition, and by a DMA."""
    chosen = nisa.iota(nl.arange(8)[:, None], dtype=np.int32), nl.arange(6)[None, :]
    nl.store(x[chosen], nl.load(x) + np.float32(1))
    nl.atomic_rmw(y[chosen], nl.load(z), np.add)
    nisa.dma_copy(dst=z, src=nl.load(z) + np.float32(1))
    return x, y, z


@pytest.mark.parametrize("rules", ["report", "off"])
@pytest.mark.parametrize("function", [added_in_parts, added_by_index])
def test_inputs_stay_as_they_are_where_the_run_goes_on(function: Any, rules: str) -> None:
    """NK406 is reported, what the kernel returns has its writes, and the caller's arrays only if they are mutable."""
    kernel = nki.jit(function)

    def called(*arrays: Any) -> Any:
        with options.override(rules=rules):
            return kernel(*arrays)

    for run in (called, lambda *arrays: nkitools.simulate(kernel, *arrays, rules=rules).outputs):
        x, y, z = (X.copy() for _ in range(3))
        returned = run(x, y, z)
        assert all((each != X).any() for each in returned)
        np.testing.assert_array_equal(x, X + 1)
        np.testing.assert_array_equal([y, z], [X, X])
    found = nkitools.simulate(kernel, X.copy(), X.copy(), X.copy(), rules="report").findings
    assert {each.rule for each in found} == {"NK406"}
    nkitools.simulate(kernel, x, y, z, rules=rules, mutates="y")
    assert (y != X).any()
    np.testing.assert_array_equal(z, X)


def test_older_decorators_take_outputs_by_reference(capsys: pytest.CaptureFixture[str]) -> None:
    """baremetal, benchmark and profile run the simulator, by reference or not, and say that there is no device."""
    for way in (nki.baremetal, nki.benchmark(warmup=2, iters=3), nki.profile(working_directory="/profiles")):
        result = np.empty_like(X)
        way(doubled_into)(X, result)
        np.testing.assert_array_equal(result, 2 * X)
        np.testing.assert_array_equal(way(nki.jit(doubled))(X), 2 * X)


def test_that_there_is_no_device_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """One line on stderr for each way in."""
    from nkitools.dialects.legacy.kernels.kernel import _say_that_there_is_no_device

    _say_that_there_is_no_device.cache_clear()
    kernel = nki.baremetal(doubled)
    kernel(X)
    kernel(X)
    assert capsys.readouterr().err.count("no Neuron device") == 1


def test_a_benchmark_without_a_device_has_no_latency() -> None:
    """No number is made up: the percentile raises, and says where there would be one."""
    kernel = nki.benchmark(doubled)
    kernel(nt.tensor[[8, 6], nl.float32])
    with pytest.raises(NoDevice, match="no Neuron device"):
        kernel.benchmark_result.nc_latency.get_latency_percentile(99)


def by_programs(x: Any) -> Any:
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    assert nl.program_ndim() == 2
    assert (nl.num_programs(0), nl.num_programs(1), nl.num_programs()) == (4, 2, 8)
    i, j = nl.program_id(0), nl.program_id(1)
    nl.store(result[i, j], nl.load(x[i, j]) * np.float32(i + 10 * j))
    return result


@pytest.mark.parametrize("grid", [(4, 2), (nl.spmd_dim(nl.nc(2), 2), 2), (nl.nc(2) * 2, 2), (2 * nl.nc(2), 2), [4, 2]])
def test_grids(grid: Any) -> None:
    """Programs of any grid run one after the other and share their outputs."""
    x = random(4, 2, 8, 3)
    expected = x * (np.arange(4)[:, None] + 10 * np.arange(2))[:, :, None, None].astype(np.float32)
    kernel = nki.jit(by_programs)
    np.testing.assert_array_equal(kernel[grid](x), expected)
    np.testing.assert_array_equal(nki.simulate_kernel(kernel[grid], x), expected)
    np.testing.assert_array_equal(nkitools.simulate(kernel, x, grid=(4, 2)).outputs, expected)


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        (-1, "sizes must be at least 1, they are [-1]"),
        ((2, -3), "sizes must be at least 1, they are [2, -3]"),
        (1.5, "must be an integer or integers, it has 1.5"),
        ("2", "must be an integer or integers, it has '2'"),
        (None, "must be an integer or integers, it has None"),
    ],
)
def test_brackets_that_are_no_grid(grid: Any, said: str) -> None:
    """NK609 at the line of the brackets, with the kernel's name."""

    @nki.jit
    def kernel(x: Any) -> Any:
        return x

    line = sys._getframe().f_lineno + 2
    with pytest.raises(nkitools.KernelError) as caught:
        kernel[grid]
    finding = caught.value.finding
    assert (finding.rule, finding.line, finding.message) == ("NK609", line, f"kernel kernel: launch grid: {said}")


@pytest.mark.parametrize(("grid", "programs"), [(0, 1), ((0,), 1), ([0, 2], 2), (np.int64(0), 1)])
def test_a_size_of_0_is_one_program(grid: Any, programs: int) -> None:
    """As a public kernel is launched that ran on a chip, with a hint at the kernel; negative sizes stay refused."""

    @nki.jit
    def count(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(result, nl.load(x) + nl.num_programs())
        return result

    x = random(8, 3)
    np.testing.assert_array_equal(count[grid](x), x + np.float32(programs))
    (found,) = [each for each in nkitools.simulate(count[grid], x).findings if each.rule == "NK621"]
    assert (found.severity, found.line) == ("hint", count.__wrapped__.__code__.co_firstlineno)
    assert "runs one program where a size is 0" in found.message
    assert not [each for each in nkitools.simulate(count[grid][1], x).findings if each.rule == "NK621"]
    with pytest.raises(ValueError, match="at least 1"):
        count[-1]


def test_kernels_call_kernels_inline() -> None:
    """A kernel or traced helper called inside runs there; with a grid of its own it is refused (NK610)."""
    helper = nki.trace(doubled_into)

    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        helper(x, result)
        return result

    np.testing.assert_array_equal(nki.jit(kernel)(X), 2 * X)

    def wrong(x: Any) -> Any:
        return nki.jit(doubled)[2](x)

    with pytest.raises(nkitools.KernelError, match="err_nested_kernel_with_spmd_grid") as caught:
        nki.jit(wrong)(X)
    assert caught.value.finding.rule == "NK610"


def test_several_results_and_parameters_that_are_no_tensors() -> None:
    """Results keep their container; numbers, tuples and defaults reach the kernel as they are."""

    def kernel(x: Any, factor: float, shape: tuple[int, int] = (8, 6), *, flag: bool = False) -> Any:
        assert shape == (8, 6)
        results = []
        for number in (factor, 2 * factor):
            result = nl.ndarray(shape, dtype=x.dtype, buffer=nl.shared_hbm)
            nl.store(result, nl.load(x) * np.float32(number if flag else 1))
            results.append(result)
        return tuple(results)

    first, second = nki.jit(kernel)(X, 3.0, flag=True)
    np.testing.assert_array_equal(first, 3 * X)
    np.testing.assert_array_equal(second, 6 * X)


def test_compiler_switches_leave_a_kernel_alone() -> None:
    """skip_middle_end_transformations and its kin change no result."""

    @ncc.skip_middle_end_transformations
    @nki.jit
    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        with ncc.no_reorder():
            doubled_into(x, result)
        return result

    np.testing.assert_array_equal(kernel(X), 2 * X)
    np.testing.assert_array_equal(ncc.enable_stack_allocator(kernel, log_level=20)(X), 2 * X)


def test_calls_outside_of_a_kernel_are_refused() -> None:
    """nl and nisa calls need a running kernel (NK611); static_cast does not."""
    with pytest.raises(nkitools.KernelError, match="outside") as caught:
        nl.zeros((8, 6), dtype=nl.float32)
    assert caught.value.finding.rule == "NK611"
    assert nl.static_cast(3.7, nl.int32) == 3
    assert nl.static_cast(np.ones(3), nl.bfloat16).dtype == nl.bfloat16


def test_annotations() -> None:
    """nt.tensor annotates shapes, and stands for an input where only its shape matters."""
    annotation: Any = nt.tensor[128, 512]
    assert repr(annotation) == "nki.typing.tensor[128, 512]"
    fake: Any = nt.tensor[[4, 5], nl.bfloat16]
    assert fake.shape == (4, 5)
    assert fake.array().dtype == nl.bfloat16
