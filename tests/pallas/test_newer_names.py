"""Names that JAX has since 0.11 or 0.12: each runs, or is left out by its name; and those that it gave up."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from nkitools.pallas import check, precision_split, run  # noqa: E402
from nkitools.pallas.compiler import why_not  # noqa: E402
from nkitools.rules.finding import NotModelled  # noqa: E402
from tests.pallas.kernels import kernel_over, like, mesh_of_cores, ramp, whole  # noqa: E402

X = ramp()
BYTES = np.arange(32 * 128).astype(np.int8).reshape(32, 128)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
WHOLE = pl.BlockSpec(memory_space=pl.ANY)
DMA = pltpu.SemaphoreType.DMA


def since(version: str, *names: str) -> Any:
    """Skip a test where ``pltpu`` lacks one of the names that it has since a version."""
    missing = [name for name in names if not hasattr(pltpu, name)]
    return pytest.mark.skipif(bool(missing), reason=f"pltpu.{', '.join(missing)}: since jax {version}")


def case(fn: Callable[..., Any], version: str, *names: str) -> Any:
    return pytest.param(fn, id=fn.__name__, marks=since(version, *names))


# ---------------------------------------------------------------------- what runs


def annotated_input(x: Any) -> Any:
    return whole(lambda x_ref, out: _double(pltpu.annotate(x_ref, no_bank_conflict=True), out))(x)


def annotated_scratch(x: Any) -> Any:
    def kernel(x_ref: Any, out: Any, rows: Any) -> None:
        quick = pltpu.annotate(rows, no_hazard=True)
        quick[...] = x_ref[...] * 2
        out[...] = quick.at[pl.ds(0, 16)][...]

    return pl.pallas_call(kernel, out_shape=like(x), scratch_shapes=[pltpu.VMEM(x.shape, x.dtype)])(x)


def _double(x_ref: Any, out: Any) -> None:
    out[...] = x_ref[...] * 2


def a_pipeline(x: Any, body: Any = _double, **options: Any) -> Any:
    """Run a pipeline within the kernel; since 0.12 it is an operation of its own."""

    def kernel(x_ref: Any, out: Any) -> None:
        grid = (x.shape[0] // 8,)
        pltpu.emit_pipeline(body, grid=grid, in_specs=[ROWS], out_specs=[ROWS], **options)(x_ref, out)

    return pl.pallas_call(kernel, out_shape=like(x), in_specs=[WHOLE], out_specs=WHOLE)(x)


def a_step_of_a_pipeline(x: Any) -> Any:
    """Double by a factor that comes out of the step, `pltpu.PipelineStep`."""

    def body(step: Any, x_ref: Any, out: Any) -> None:
        assert isinstance(step, pltpu.PipelineStep)
        out[...] = x_ref[...] * (2 + 0 * step.index[0])

    return a_pipeline(x, body, _explicit_indices=True)


def a_pipeline_that_could_be_prefetched(x: Any) -> Any:
    mesh = pltpu.TensorCoreMesh(axis_name="core", num_cores=1)
    pipeline, _ = pltpu.emit_pipeline_with_async_prefetch(
        _double, grid=(2,), in_specs=[ROWS], out_specs=[ROWS], mesh=mesh
    )
    return kernel_over(mesh, like(x))(pipeline)(x)


def two_cores(x: Any) -> Any:
    mesh = pltpu.TensorCoreMesh(axis_name="core", num_cores=2)

    def kernel(x_ref: Any, out: Any, rows: Any) -> None:
        own = pl.ds(jax.lax.axis_index("core") * 8, 8)
        pltpu.sync_copy(x_ref.at[own], rows)
        rows[...] = rows[...] * 2
        pltpu.sync_copy(rows, out.at[own])

    return kernel_over(mesh, like(x), pltpu.VMEM((8, 128), x.dtype))(kernel)(x)


def a_copy_to_the_other_core(x: Any) -> Any:
    """Double rows and hand them to the other core, which gets its own back by a second copy."""

    def kernel(x_ref: Any, out: Any, mine: Any, yours: Any, sent: Any, received: Any) -> None:
        core = jax.lax.axis_index("core")
        pltpu.sync_copy(x_ref.at[pl.ds(core * 8, 8)], mine)
        mine[...] = mine[...] * 2
        copy = pltpu.make_async_remote_copy(mine, yours, sent, received, device_id={"core": 1 - core})
        copy.start()
        copy.wait()
        pltpu.sync_copy(yours, out.at[pl.ds((1 - core) * 8, 8)])

    rows = pltpu.VMEM((8, 128), x.dtype)
    return kernel_over(mesh_of_cores("core", 2), like(x), rows, rows, DMA, DMA)(kernel)(x)


def a_reciprocal(x: Any) -> Any:
    return whole(lambda x_ref, out: _double(1 / pltpu.reciprocal(x_ref[...] + 1) - 1, out))(x)


def a_value_in_the_trace(x: Any) -> Any:
    def kernel(x_ref: Any, out: Any) -> None:
        pltpu.trace_value("first", x_ref[0, 0])
        out[...] = x_ref[...] * 2

    return whole(kernel)(x)


@pytest.mark.parametrize(
    "fn",
    [
        case(annotated_input, "0.11", "annotate"),
        case(annotated_scratch, "0.11", "annotate"),
        case(a_pipeline, "0.10"),
        case(a_step_of_a_pipeline, "0.11", "PipelineStep"),
        case(a_pipeline_that_could_be_prefetched, "0.11", "emit_pipeline_with_async_prefetch"),
        case(two_cores, "0.11", "TensorCoreMesh"),
        case(a_copy_to_the_other_core, "0.12", "has_memory_space"),
        case(a_reciprocal, "0.11", "reciprocal"),
        case(a_value_in_the_trace, "0.12", "has_memory_space"),
    ],
)
def test_it_runs(fn: Any) -> None:
    """TPU interpretation computes twice the argument, finds nothing, and the compiler takes the kernel."""
    run = check(fn, X)
    assert "tpu_interpret" not in run.left_out
    np.testing.assert_allclose(run.outputs, 2 * X, rtol=1e-6)
    assert run.findings == []
    assert run.compiled["v5e"].accepted is (None if why_not() else True)


def test_a_run_takes_a_pipeline_and_a_split_refuses_it() -> None:
    """It asks for the chip that it runs on, and there is none here. What has no shadow in float32 is named."""
    np.testing.assert_array_equal(run(a_pipeline, X).outputs, 2 * X)
    with pytest.raises(NotModelled, match="`run_scoped` has no shadow in float32"):
        precision_split(a_pipeline, X.astype(np.float16))


def test_a_pipeline_that_writes_nothing_is_found() -> None:
    """What a pipeline leaves out is PL205, whether it is traced into the kernel or is an operation."""

    def reads(x_ref: Any, out: Any) -> None:
        x_ref[...]

    (finding,) = check(lambda x: a_pipeline(x, reads), X, modes="tpu_interpret").findings
    assert (finding.rule, finding.file) == ("PL205", __file__)


def bits_apart_and_together(x: Any) -> Any:
    def kernel(x_ref: Any, out: Any) -> None:
        (low,) = pltpu.split_bits(x_ref[...], (4,))
        out[...] = pltpu.join_bits(four_bits=low)

    return pl.pallas_call(kernel, out_shape=like(x))(x)


@since("0.12", "split_bits", "join_bits")
def test_bits_apart_and_together() -> None:
    """The lower four bits of each byte, zeros above."""
    run = check(bits_apart_and_together, BYTES, chips="tpu7x")
    np.testing.assert_array_equal(run.outputs, BYTES & 15)
    assert (run.findings, "tpu_interpret" in run.left_out) == ([], False)


def out_of_host_memory(x: Any) -> Any:
    def kernel(x_ref: Any, out: Any, semaphore: Any) -> None:
        copy = pltpu.make_async_copy(x_ref, out, semaphore)
        copy.start()
        copy.wait()

    host = pl.BlockSpec(memory_space=pl.HOST)
    return pl.pallas_call(kernel, out_shape=like(x), in_specs=[host], out_specs=WHOLE, scratch_shapes=[DMA])(x)


def test_host_memory_is_interpreted() -> None:
    """A copy out of it is that of any memory, and one that is not waited for is found; before 0.11 it is left out."""
    run = check(out_of_host_memory, X, modes="tpu_interpret")
    if type(pl.HOST) is type(pl.ANY):
        assert run.left_out["tpu_interpret"] == "JAX has no interpretation of HOST memory"
        assert (run.outputs, [each.rule for each in run.findings]) == (None, ["NK607"])
        return
    np.testing.assert_array_equal(run.outputs, X)
    assert (run.findings, run.left_out) == ([], {})

    def kernel(x_ref: Any, out: Any, semaphore: Any) -> None:
        pltpu.make_async_copy(x_ref, out, semaphore).start()

    def waits_for_nothing(x: Any) -> Any:
        host = pl.BlockSpec(memory_space=pl.HOST)
        return pl.pallas_call(kernel, out_shape=like(x), in_specs=[host], out_specs=WHOLE, scratch_shapes=[DMA])(x)

    assert "PL204" in {each.rule for each in check(waits_for_nothing, X, modes="tpu_interpret").findings}


# ---------------------------------------------------------------------- what only a TPU has


def a_convolution(x: Any, weights: Any) -> Any:
    def kernel(x_ref: Any, weights_ref: Any, out: Any) -> None:
        numbers = ("NHWC", "HWIO", "NHWC")
        out[...] = pltpu.conv(x_ref[...], weights_ref[...], dimension_numbers=numbers, padding="SAME")

    return pl.pallas_call(kernel, out_shape=like(x))(x, weights)


def six_bits(x: Any) -> Any:
    def kernel(x_ref: Any, out: Any) -> None:
        out[...] = pltpu.unpack_fp6(*pltpu.pack_fp6(x_ref[...]))

    return pl.pallas_call(kernel, out_shape=like(x))(x)


def _pushed(weights_ref: Any) -> None:
    pltpu.matmul_push_rhs(weights_ref[...].astype(jnp.bfloat16), staging_register=0, mxu_index=0)


def a_queue_of_products(x: Any, weights: Any) -> Any:
    def kernel(x_ref: Any, weights_ref: Any, out: Any) -> None:
        _pushed(weights_ref)
        pltpu.matmul_lhs_fifo(x_ref[...].astype(jnp.bfloat16), 0, load_staged_rhs=0)
        out[...] = pltpu.matmul_pop_fifo(x.shape, jnp.float32, 0)

    return pl.pallas_call(kernel, out_shape=like(x))(x, weights)


def an_accumulator(x: Any, weights: Any) -> Any:
    def kernel(x_ref: Any, weights_ref: Any, out: Any) -> None:
        def summed(sums: Any) -> None:
            _pushed(weights_ref)
            pltpu.matmul_acc_lhs(sums, x_ref[...].astype(jnp.bfloat16), load_staged_rhs=0)
            out[...] = pltpu.matmul_pop(sums)

        pl.run_scoped(summed, pltpu.ACC(0)(x.shape, jnp.float32))

    return pl.pallas_call(kernel, out_shape=like(x))(x, weights)


def where_a_reference_lies(x: Any) -> Any:
    def kernel(x_ref: Any, out: Any) -> None:
        pl.when(pltpu.has_memory_space(x_ref, pltpu.HBM))(lambda: pltpu.sync_copy(x_ref, out))

    return pl.pallas_call(kernel, out_shape=like(x), in_specs=[WHOLE], out_specs=WHOLE)(x)


def square(size: int, rows: int | None = None) -> Any:
    return np.ones((rows or size, size), np.float32)


IMAGE, FILTER = np.ones((1, 8, 8, 128), np.float32), np.ones((3, 3, 128, 128), np.float32)

# The function, its arguments, the chip, and the words for what is not interpreted.
OF_TPUS = [
    pytest.param(a_convolution, (IMAGE, FILTER), "v5e", "`conv`", id="conv", marks=since("0.11", "conv")),
    pytest.param(six_bits, (BYTES,), "tpu7x", "`unpack_elementwise`", id="fp6", marks=since("0.12", "pack_fp6")),
    pytest.param(
        a_queue_of_products,
        (square(128, 16), square(128)),
        "v5e",
        "`matmul_push_rhs`",
        id="fifo",
        marks=since("0.11", "matmul_lhs_fifo", "matmul_pop_fifo"),
    ),
    pytest.param(
        an_accumulator,
        (square(256, 16), square(256)),
        "tpu7x",
        "accumulators (pltpu.ACC(0))",
        id="ACC",
        marks=since("0.11", "ACC"),
    ),
    pytest.param(
        where_a_reference_lies,
        (X,),
        "v5e",
        "`has_memory_space`",
        id="has_memory_space",
        marks=since("0.12", "has_memory_space"),
    ),
]


@pytest.mark.parametrize(("fn", "arguments", "chip", "words"), OF_TPUS)
def test_it_is_left_out_by_name(fn: Any, arguments: Any, chip: str, words: str) -> None:
    """Neither mode runs it, the reason names it in a sentence, and the compiler takes it."""
    run = check(fn, *arguments, chips=chip)
    assert run.left_out["tpu_interpret"] == f"JAX has no interpretation of {words}"
    assert run.left_out["interpret"].startswith("JAX has no interpretation of `")
    assert [(each.rule, each.severity) for each in run.findings] == [("NK607", "hint")]
    assert words in run.findings[0].message
    assert (run.outputs, run.compiled[chip].accepted) == (None, None if why_not() else True)


@since("0.11", "ACC")
def test_a_chip_without_accumulators_is_named() -> None:
    """Another chip takes its place, and the result says which."""
    arguments = square(256, 16), square(256)
    run = check(an_accumulator, *arguments)
    assert run.compiled["v5e"].left_out == "v5e has no accumulators (pltpu.ACC); tpu7x was taken in their place"
    assert run.compiled["tpu7x"].accepted is (None if why_not() else True)
    run = check(an_accumulator, *arguments, chips="v6e,tpu7x")
    assert run.compiled["v6e"].left_out == "v6e has no accumulators (pltpu.ACC)"


# ---------------------------------------------------------------------- what JAX gave up


@pytest.mark.parametrize("name", ["semaphore_signal", "semaphore_wait", "semaphore_read"])
def test_a_name_that_is_gone_is_the_functions_own_error(name: str) -> None:
    """With JAX's words, as without a check."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        if hasattr(pltpu, name):
            pytest.skip(f"pltpu.{name} is gone since jax 0.11")
    with pytest.raises(AttributeError, match=name):
        check(lambda x: whole(lambda x_ref, out: getattr(pltpu, name))(x), X)


@pytest.mark.parametrize("name", ["core_map", "reciprocal", "DeviceIdType"])
def test_a_deprecated_name_warns_as_the_authors_and_the_check_goes_on(name: str) -> None:
    """At his line; where warnings are errors it is his error."""
    if name in vars(pl):
        pytest.skip(f"pl.{name} is deprecated since jax 0.12")

    def with_the_name() -> Any:
        def kernel(x_ref: Any, out: Any) -> None:
            getattr(pl, name)
            out[...] = x_ref[...] * 2

        pl.__getattr__.cache_clear()  # JAX warns once in a process
        return whole(kernel)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run = check(with_the_name(), X)
    np.testing.assert_array_equal(run.outputs, 2 * X)
    assert run.findings == []
    assert {(each.category, each.filename) for each in seen} == {(DeprecationWarning, __file__)}
    with pytest.raises(DeprecationWarning, match=name):
        check(with_the_name(), X)
