"""Estimated times of kernels: the compiler's cycles, the traffic of blocks, and what has no estimate."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from nkitools.pallas import check, compiler, estimate, one_check, sweep, time_estimate  # noqa: E402
from nkitools.pallas.block_sweep import what_differs  # noqa: E402
from nkitools.pallas.calls import Call, compiling_for, pallas_calls  # noqa: E402
from nkitools.pallas.chips import CHIPS  # noqa: E402
from nkitools.pallas.compiler import Crashed, why_not  # noqa: E402
from nkitools.pallas.measuring import Profile  # noqa: E402
from nkitools.pallas.time_estimate import KernelEstimate, shrunk, traffic  # noqa: E402
from nkitools.pytest_plugin.benchmarks import estimated  # noqa: E402
from nkitools.rules.finding import NotModelled  # noqa: E402

with_compiler = pytest.mark.skipif(bool(why_not()), reason=why_not())


def product(rows: int, inner: int, columns: int) -> Callable[[Any, Any], Any]:
    """Return a bfloat16 matrix product with those blocks."""

    def kernel(x_ref: Any, y_ref: Any, out_ref: Any, total: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
        out_ref[...] = total[...].astype(out_ref.dtype)

    def multiplied(x: Any, y: Any) -> Any:
        (m, k), n = x.shape, y.shape[1]
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
            grid=(m // rows, n // columns, k // inner),
            in_specs=[
                pl.BlockSpec((rows, inner), lambda i, j, k: (i, k)),
                pl.BlockSpec((inner, columns), lambda i, j, k: (k, j)),
            ],
            out_specs=pl.BlockSpec((rows, columns), lambda i, j, k: (i, j)),
            scratch_shapes=[pltpu.VMEM((rows, columns), jnp.float32)],
        )(x, y)

    return multiplied


def square(size: int) -> Any:
    return jax.ShapeDtypeStruct((size, size), jnp.bfloat16)


def call_of(fn: Callable[..., Any], *args: Any) -> Call:
    with compiling_for(CHIPS["v5e"]):
        (call,) = pallas_calls(jax.make_jaxpr(fn)(*args))
    return call


def test_the_traffic_is_that_of_the_blocks() -> None:
    """A factor is loaded once for each block of the other; an output's block is stored when its sum is complete."""
    call = call_of(product(256, 128, 512), square(1024), square(1024))
    factors = 2 * 1024 * 1024 * (1024 // 512) + 2 * 1024 * 1024 * (1024 // 256)
    assert traffic(call) == factors + 2 * 1024 * 1024


def test_a_block_that_stays_is_loaded_once() -> None:
    """With one block of inner columns, the first factor's block stays while the others' columns go by."""
    call = call_of(product(256, 1024, 512), square(1024), square(1024))
    assert traffic(call) == 2 * 1024 * 1024 * (1 + 1024 // 256 + 1)


@pytest.mark.parametrize(
    ("blocks", "size", "grid"),
    [((128, 128, 128), 1024, (1, 4, 8)), ((128, 128, 128), 8192, (1, 1, 32)), ((512, 512, 512), 1024, (2, 2, 2))],
)
def test_large_grids_are_shrunk_from_outside(blocks: Any, size: int, grid: tuple[int, ...]) -> None:
    """The inner dimensions stay whole as long as they fit."""
    assert shrunk(call_of(product(*blocks), square(size), square(size))).grid == grid


@with_compiler
def test_small_blocks_are_slower() -> None:
    """JAX's documentation measures 297.7 us for the small ones on a v5e; no blocks are faster than the peak, 11 us."""
    small = estimate(product(128, 128, 128), square(1024), square(1024))
    large = estimate(product(512, 512, 512), square(1024), square(1024))
    (kernel,) = small.kernels
    assert (kernel.steps, kernel.profiled_steps, kernel.bound) == (512, 32, "compute")
    assert 200 < small.latency_us("v5e") < 400
    assert 11 < large.latency_us("v5e") < small.latency_us("v5e")
    assert "32 of 512 grid points profiled" in str(small)
    (kernel,) = large.kernels
    # Two buffers of three blocks of 512 KiB, a sum of 1 MiB, and what the compiler spills.
    assert kernel.vmem_bytes == 4 * 1024**2 + kernel.spilled_bytes
    assert 0 < kernel.units["MXU"] <= 1
    assert (kernel.spills > 0) is (kernel.spilled_bytes > 0)
    assert " of their slots: MXU " in str(large)


@with_compiler
def test_a_kernel_that_computes_little_is_bound_by_memory() -> None:
    """16 MiB in and out at 820 GB/s take 40.9 us, whatever the compiler counts."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref[...] + 1

    x = jax.ShapeDtypeStruct((2048, 2048), jnp.float32)
    block = pl.BlockSpec((256, 2048), lambda i: (i, 0))
    fn = pl.pallas_call(kernel, out_shape=x, grid=(8,), in_specs=[block], out_specs=block)
    (found,) = estimate(fn, x).kernels
    assert (found.bound, found.hbm_bytes) == ("memory", 2 << 24)
    assert found.latency_us == pytest.approx(40.92, abs=0.01)


@with_compiler
def test_a_chip_without_a_profile_has_no_estimate() -> None:
    """The reason stands in its place, and the other chips have theirs."""
    found = estimate(product(512, 512, 512), square(1024), square(1024), chips="v4,v6e")
    assert found.latency_us("v4") is None
    assert found.latency_us("v6e") > 0
    assert str(found).startswith("kernel on v4: no estimate, the compiler has no profile for v4")


def test_a_compiler_that_ends_gives_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is raised: the reason is what the compiler said last."""

    def ends(*_: Any) -> int:
        raise Crashed("the compiler ended its process (signal SIGABRT)")

    monkeypatch.setattr(time_estimate, "why_not", lambda: "")
    monkeypatch.setattr(time_estimate, "profiler", lambda: SimpleNamespace(profile=ends))
    found = estimate(product(512, 512, 512), square(1024), square(1024))
    assert found.kernels[0].left_out == "the compiler ended its process (signal SIGABRT)"
    assert found.latency_us("v5e") is None


def test_without_a_compiler_there_is_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, with the package that has it."""
    monkeypatch.setattr(compiler, "_has_libtpu", lambda: False)
    monkeypatch.delenv("TPU_LIBRARY_PATH", raising=False)
    with pytest.raises(NotModelled, match="libtpu, which has the TPU compiler, is not installed"):
        estimate(product(512, 512, 512), square(1024), square(1024))


def profiled(monkeypatch: pytest.MonkeyPatch, cycles: int) -> None:
    """Let the compiler be there, and say so many cycles of every kernel."""
    monkeypatch.setattr(compiler, "_has_libtpu", lambda: True)
    for module in (time_estimate, one_check):
        monkeypatch.setattr(module, "why_not", lambda: "")
    monkeypatch.setattr(time_estimate, "profiler", lambda: SimpleNamespace(profile=lambda *_: Profile(cycles)))


def test_a_check_has_the_estimate_of_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is asked for, or at once, so that the page has it; a run that traced nothing has none."""
    profiled(monkeypatch, 1_503_000)
    x = np.zeros((128, 128), jnp.bfloat16)
    run = check(product(128, 128, 128), x, x, modes="lower")
    assert "estimates" not in run.settings
    assert run.estimate().latency_us("v5e") == pytest.approx(1000)
    assert run.estimate() is run.estimate()
    run = check(product(128, 128, 128), x, x, modes="lower", chips="v5e,v4", estimates=True)
    assert [(each["chip"], each["latency_us"]) for each in run.settings["estimates"]] == [("v5e", 1000), ("v4", None)]
    with pytest.raises(ValueError, match="no Pallas call of the check was traced"):
        check(jnp.sin, x, modes="lower").estimate()


def test_a_check_without_a_compiler_says_why_it_has_no_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a mode that is left out."""
    monkeypatch.setattr(compiler, "_has_libtpu", lambda: False)
    monkeypatch.delenv("TPU_LIBRARY_PATH", raising=False)
    x = np.zeros((128, 128), jnp.bfloat16)
    run = check(product(128, 128, 128), x, x, modes="lower", estimates=True)
    assert run.left_out["estimates"].startswith("libtpu, which has the TPU compiler, is not installed")


def test_what_differs_between_ranked_blocks() -> None:
    """Only what differs by more than a twentieth: the bound, compute by grid points, traffic, units, spills."""
    known = {"kernel": "k", "chip": "v5e", "profiled_steps": 8, "cycles": 1.0}
    large = KernelEstimate(
        **known, steps=8, compute_us=15.0, hbm_bytes=10 << 20, memory_us=12.8, units={"MXU": 0.78}, spills=89
    )
    small = KernelEstimate(
        **known, steps=64, compute_us=30.0, hbm_bytes=40 << 20, memory_us=51.2, units={"MXU": 0.33}, spills=0
    )
    assert what_differs([small], [large], "512") == (
        "3.41 times the time of 512: bound by memory, not compute; compute 30 us against 15 (64 grid points against 8, "
        "0.25 times the cycles of one); HBM traffic 40 MiB against 10; MXU in 33% of its slots against 78%; "
        "0 bundles that spill against 89"
    )
    assert what_differs([replace(large, compute_us=15.1)], [large], "512") == "1.01 times the time of 512"


@with_compiler
def test_a_sweep_ranks_blocks_by_their_estimate() -> None:
    """The table has the times in place of the verdict, and a block that is refused has none."""
    tried = sweep(
        lambda rows: product(rows, 512, 512),
        square(1024),
        square(1024),
        blocks=[128, 12, 512],
        chips="v5e",
        estimates=True,
    )
    assert tried.ranked("v5e") == [512, 128]
    assert [each.estimate_us is None for each in tried] == [False, True, False]
    assert f"about {tried[2].estimate_us:.4g} us" in str(tried)
    (line,) = tried.differences("v5e")
    assert re.match(r"128: \d\.?\d* times the time of 512: compute .* \(32 grid points against 8, ", line)
    assert f"v5e: {line}" in str(tried)


def test_a_sweep_without_estimates_ranks_nothing() -> None:
    """They are asked for, since they take a second compilation."""
    tried = sweep(lambda rows: product(rows, 512, 512), square(1024), square(1024), blocks=[128], chips="v5e")
    assert (tried.ranked("v5e"), tried[0].estimate_us) == ([], None)


def test_the_reason_of_a_benchmark_without_a_tpu_has_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says whose it is: nothing was measured. 1.503 million cycles of a v5e are a millisecond."""
    monkeypatch.setattr(time_estimate, "why_not", lambda: "")
    monkeypatch.setattr(time_estimate, "profiler", lambda: SimpleNamespace(profile=lambda *_: Profile(1_503_000)))
    arrays = (square(1024), square(1024))
    text = estimated(product(512, 512, 512), arrays, {})
    assert text == "estimated 1 ms on v5e by the TPU compiler's static profile (Pallas calls alone)"
    assert estimated(product(12, 512, 512), arrays, {}).startswith("it could not be estimated: kernel `kernel`")
    assert estimated(lambda x: jnp.add(x, x), arrays[:1], {}).endswith("the function makes no Pallas call")


def test_json_has_the_fields_and_what_follows_from_them() -> None:
    """Latency and bound stand beside kernel, chip and the rest, as they do in the page's table."""
    times = {"steps": 4, "profiled_steps": 4, "cycles": 30.0, "compute_us": 2.0, "hbm_bytes": 64, "memory_us": 3.0}
    plain = KernelEstimate(kernel="product", chip="v5e", units={"MXU": 0.5}, **times).as_plain()
    assert {"kernel": "product", "chip": "v5e", "latency_us": 3.0, "bound": "memory"}.items() <= plain.items()
    assert {**times, "units": {"MXU": 0.5}, "left_out": ""}.items() <= plain.items()
    assert json.dumps(plain)
