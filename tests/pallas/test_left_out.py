"""Modes that cannot run a right kernel: they are left out, and what another mode computed comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from nkitools.pallas import check  # noqa: E402
from nkitools.pallas.chips import CHIPS  # noqa: E402
from nkitools.pallas.compiler import why_not  # noqa: E402
from tests.pallas import collectives  # noqa: E402
from tests.pallas.collectives import DMA, WHOLE  # noqa: E402
from tests.pallas.kernels import double, kernel_over, like, mesh_of_cores, on_cores, ramp  # noqa: E402

RUNNING = ("interpret", "tpu_interpret")
ACCEPTED = None if why_not() else True
with_compiler = pytest.mark.skipif(bool(why_not()), reason=why_not())


def copied(copy: Any) -> None:
    """Start a copy and wait for it."""
    copy.start()
    copy.wait()


def with_length(kernel: Callable[..., Any], x: Any, *scratch: Any, out: Any = WHOLE, **options: Any) -> Any:
    """Return the result of ``kernel(length, x, out, *scratch, semaphore)``, whose first operand is a scalar: 8 rows."""
    specs = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[WHOLE], out_specs=out, scratch_shapes=[*scratch, DMA]
    )
    call = pl.pallas_call(kernel, grid_spec=specs, out_shape=like(x), **options)
    return call(jnp.array([8], jnp.int32), x)


BLOCK = pl.BlockSpec((16, 128), lambda i, length: (0, 0))


def copies_in_two(x: Any) -> Any:
    """Copy so many rows as a scalar says, and then the others."""

    def kernel(length: Any, x_ref: Any, out_ref: Any, semaphore: Any) -> None:
        first, rest = pl.ds(0, length[0]), pl.ds(length[0], 16 - length[0])
        copied(pltpu.make_async_copy(x_ref.at[first], out_ref.at[first], semaphore))
        copied(pltpu.make_async_copy(x_ref.at[rest], out_ref.at[rest], semaphore))

    return with_length(kernel, x)


def updates_a_cache(x: Any) -> Any:
    """Write new rows over the first of a cache, which is input and output in one."""

    def kernel(length: Any, x_ref: Any, old_ref: Any, out_ref: Any, semaphore: Any) -> None:
        rows = pl.ds(0, length[0])
        copied(pltpu.make_async_copy(x_ref.at[rows], out_ref.at[rows], semaphore))

    specs = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[WHOLE, WHOLE], out_specs=WHOLE, scratch_shapes=[DMA]
    )
    call = pl.pallas_call(kernel, grid_spec=specs, out_shape=like(x), input_output_aliases={2: 0})
    return call(jnp.array([8], jnp.int32), x, jnp.zeros_like(x))


def unpacks(x: Any) -> Any:
    """Read the upper halves of 32-bit words as bfloat16, with an operation that only a TPU has."""

    def kernel(length: Any, x_ref: Any, out_ref: Any, words: Any, semaphore: Any) -> None:
        rows = pl.ds(0, length[0])
        copied(pltpu.make_async_copy(x_ref.at[rows], words.at[rows], semaphore))
        bits = jax.lax.bitcast_convert_type(words[...], jnp.uint32)
        out_ref[...] = pltpu.unpack_elementwise(bits, index=1, packed_dtype=jnp.bfloat16, unpacked_dtype=jnp.float32)

    return with_length(kernel, x, pltpu.VMEM((16, 128), jnp.float32), out=BLOCK)


def reshapes(x: Any) -> Any:
    """Read scratch memory under another shape."""

    def kernel(length: Any, x_ref: Any, out_ref: Any, rows: Any, semaphore: Any) -> None:
        rows[...] = jnp.zeros_like(rows)
        copied(pltpu.make_async_copy(x_ref.at[pl.ds(0, length[0])], rows.at[pl.ds(0, length[0])], semaphore))
        out_ref[...] = rows.reshape(16, 1, 128)[:, 0, :]

    return with_length(kernel, x, pltpu.VMEM((16, 128), jnp.float32), out=BLOCK)


def reshapes_where_it_is_written(x: Any) -> Any:
    """Write scratch memory under another shape."""

    def kernel(length: Any, x_ref: Any, out_ref: Any, rows: Any, semaphore: Any) -> None:
        copied(pltpu.make_async_copy(x_ref.at[pl.ds(0, length[0])], rows.at[pl.ds(0, length[0])], semaphore))
        rows.reshape(2, 8, 128)[1] = jnp.zeros((8, 128), jnp.float32)
        out_ref[...] = rows[...]

    return with_length(kernel, x, pltpu.VMEM((16, 128), jnp.float32), out=BLOCK)


def reshapes_an_argument(x: Any) -> Any:
    """Copy out of an argument under another shape, as paged caches are."""

    def kernel(length: Any, x_ref: Any, out_ref: Any, semaphore: Any) -> None:
        pages = x_ref.reshape(2, 8, 128)
        rows = pl.ds(0, length[0])
        copied(pltpu.make_async_copy(pages.at[0].at[rows], out_ref.at[rows], semaphore))
        copied(pltpu.make_async_copy(pages.at[1].at[rows], out_ref.at[pl.ds(8, length[0])], semaphore))

    return with_length(kernel, x)


def doubles_on_two_cores(x: Any) -> Any:
    """``pl.core_map`` over two cores, each of which takes half of the rows."""

    def doubled(refs: Any) -> None:
        @on_cores(mesh_of_cores("core", 2))
        def _() -> None:
            rows = pl.ds(jax.lax.axis_index("core") * 8, 8)

            def alone(part: Any) -> None:
                pltpu.sync_copy(refs[0].at[rows], part)
                part[...] = part[...] * 2
                pltpu.sync_copy(part, refs[1].at[rows])

            pl.run_scoped(alone, pltpu.VMEM((8, 128), jnp.float32))

    return jax.jit(lambda x: pl.run_state(doubled)((x, jnp.zeros_like(x)))[1])(x)


X, PARTS = ramp(), ramp(32)
HALF = np.concatenate([X[:8], np.zeros_like(X[:8])])
SUM = PARTS.reshape(4, 8, 128).sum(0)
BY_TWOS = np.repeat(2 * PARTS.sum(1, keepdims=True), 128, axis=1)

# The function, its argument, and its result where TPU interpretation can compute it.
PUBLIC = [
    (collectives.permute, PARTS, np.roll(PARTS, 8, axis=0)),
    (collectives.gather, PARTS, PARTS),
    (collectives.reduce, PARTS, SUM),
    (collectives.gather_at_once, PARTS, PARTS),
    (collectives.gather_and_multiply, PARTS, BY_TWOS),
    (copies_in_two, X, X),
    (updates_a_cache, X, HALF),
    (unpacks, X, None),
    (reshapes, X, HALF),
    (reshapes_where_it_is_written, X, HALF),
    (reshapes_an_argument, X, X),
    (doubles_on_two_cores, X, 2 * X),
]


@pytest.mark.parametrize(("fn", "x", "expected"), PUBLIC, ids=[each[0].__name__ for each in PUBLIC])
def test_a_mode_that_cannot_run_is_left_out(fn: Any, x: Any, expected: Any) -> None:
    """Plain interpretation has its reason in ``left_out``; the outputs are those of TPU interpretation, if it can."""
    if fn.__module__ == collectives.__name__ and len(jax.devices()) < collectives.DEVICES:
        pytest.skip("XLA_FLAGS asks for fewer devices")
    run = check(fn, x)
    assert run.left_out["interpret"]
    if fn.__module__ == collectives.__name__:
        assert run.left_out["interpret"] == "JAX has no plain interpretation of copies to other devices"
    assert run.compiled["v5e"].accepted is ACCEPTED
    if expected is None:
        assert run.outputs is None
        assert run.left_out["tpu_interpret"]
        assert [(each.rule, each.severity) for each in run.findings] == [("NK607", "hint")]
    else:
        assert "tpu_interpret" not in run.left_out
        assert run.findings == []
        np.testing.assert_array_equal(run.outputs, expected)


def refusing(x: Any) -> Any:
    """Refuse the argument before any kernel."""
    raise ValueError("rows must be a multiple of 8")


def refusing_within(x: Any) -> Any:
    """Refuse the argument in the kernel."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        if x_ref.shape[0] % 32:
            raise LookupError("no plan for 16 rows")

    return pl.pallas_call(kernel, out_shape=like(x))(x)


def refusing_afterwards(x: Any) -> Any:
    """Look at the values of the outputs, which tracing cannot."""
    if float(np.asarray(double(x))[0, 1]) != 3.0:
        raise ArithmeticError("2 is not 3")
    return x


def refusing_while_it_runs(x: Any) -> Any:
    """Look at the values in a callback, whose error comes through XLA."""

    def look(values: Any) -> None:
        raise ArithmeticError("2 is not 3")

    jax.debug.callback(look, x)
    return double(x)


MODES = [None, "interpret", "tpu_interpret", RUNNING, ("tpu_interpret", "lower", "aot")]


@pytest.mark.parametrize("modes", MODES)
@pytest.mark.parametrize(
    ("fn", "error", "said"),
    [
        (refusing, ValueError, "^rows must be a multiple of 8$"),
        (refusing_within, LookupError, "no plan for 16 rows"),
        (refusing_afterwards, ArithmeticError, "^2 is not 3$"),
        (refusing_while_it_runs, Exception, "2 is not 3"),
    ],
)
def test_the_functions_own_error_passes_through(modes: Any, fn: Any, error: type[Exception], said: str) -> None:
    """In every set of modes it is raised as it is, and nothing says that a mode was left out."""
    with pytest.raises(error, match=said):
        check(fn, X, modes=modes)


def test_without_running_a_refusal_passes_through() -> None:
    """Lowering alone traces the function, which is where it refuses."""
    with pytest.raises(ValueError, match=r"^rows must be a multiple of 8$"):
        check(refusing, X, modes="lower")


@pytest.mark.parametrize("level", ["report", "error"])
def test_tracebacks_are_as_they_were(level: str) -> None:
    """What JAX leaves out of tracebacks is the author's choice again after a check, and after one that raises."""
    before = jax.config.jax_traceback_filtering
    check(copies_in_two, X, rules=level)
    assert jax.config.jax_traceback_filtering == before
    with pytest.raises(ValueError, match="rows"):
        check(refusing, X, rules=level)
    assert jax.config.jax_traceback_filtering == before


def copies_on_sparse_cores(x: Any) -> Any:
    """Copy one row on each vector subcore of the SparseCores."""
    from jax.experimental.pallas import tpu_sc

    mesh = tpu_sc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore")

    @kernel_over(mesh, like(x), pltpu.VMEM((1, 128), x.dtype))
    def kernel(x_ref: Any, out_ref: Any, row: Any) -> None:
        own = pl.ds(jax.lax.axis_index("core") * 16 + jax.lax.axis_index("subcore"), 1)
        pltpu.sync_copy(x_ref.at[own], row)
        pltpu.sync_copy(row, out_ref.at[own])

    return kernel(x)


def test_sparse_cores_are_interpreted_by_no_mode() -> None:
    """JAX would run one subcore and report what the others write as never written: each mode is left out by name."""
    run = check(copies_on_sparse_cores, PARTS, chips="v6e")
    for mode in RUNNING:
        assert run.left_out[mode].startswith("JAX interprets no SparseCores (VectorSubcoreMesh)")
    assert (run.outputs, [(each.rule, each.severity) for each in run.findings]) == (None, [("NK607", "hint")])
    assert (run.compiled["v6e"].accepted, [each.name for each in run.compiled["v6e"].kernels]) == (ACCEPTED, ["kernel"])


def test_a_chip_without_sparse_cores_is_named() -> None:
    """Another chip takes its place, and the result says which."""
    run = check(copies_on_sparse_cores, PARTS)
    assert run.compiled["v5e"].left_out == "v5e has no SparseCores; v6e was taken in their place"
    assert run.compiled["v6e"].accepted is ACCEPTED
    run = check(copies_on_sparse_cores, PARTS, chips="v4,v5p")
    assert run.compiled["v4"].left_out == "v4 has no SparseCores"
    assert "v6e" not in run.compiled


def test_a_mesh_of_cores_is_lowered() -> None:
    """What no TPU can do is found at its line, in kernels over TensorCores too."""

    def sorts(x: Any) -> Any:
        @kernel_over(mesh_of_cores("core", 1), like(x), pltpu.VMEM(x.shape, x.dtype))
        def kernel(x_ref: Any, out_ref: Any, rows: Any) -> None:
            pltpu.sync_copy(x_ref, rows)
            rows[...] = jnp.sort(rows[...], axis=0)
            pltpu.sync_copy(rows, out_ref)

        return kernel(x)

    (finding,) = check(sorts, X, modes="lower").findings
    assert (finding.rule, finding.severity, finding.file) == ("PL104", "error", __file__)


@with_compiler
@pytest.mark.parametrize("chip", ["v4", "v5e", "v5p", "v6e", "tpu7x"])
def test_a_ring_is_compiled_for_every_chip(chip: str) -> None:
    """In a topology with as many devices as the function is spread over."""
    if len(jax.devices()) < collectives.DEVICES:
        pytest.skip("XLA_FLAGS asks for fewer devices")
    run = check(collectives.permute, PARTS, modes="aot", chips=chip)
    assert (run.findings, run.compiled[chip].accepted) == ([], True)


@pytest.mark.parametrize(
    ("chip", "devices", "topology"),
    [
        ("v5e", 1, "v5e:1x1"),
        ("v5e", 2, "v5e:2x2"),
        ("v6e", 8, "v6e:2x4"),
        ("v5p", 2, "v5p:2x1x1"),
        ("v4", 5, "v4:2x2x2"),
    ],
)
def test_a_topology_has_as_many_chips(chip: str, devices: int, topology: str) -> None:
    """The smallest that the compiler has, in a plane or in a cube as the chip is wired."""
    assert CHIPS[chip].topology_of(devices) == topology


def _through(placed: Any) -> Any:
    def moved(x: Any) -> Any:
        host, device = jax.memory.Space.Host, jax.memory.Space.Device
        return double(jax.device_put(jax.device_put(x, host), device))

    return jax.jit(moved) if placed == "in a compiled function" else moved


@pytest.mark.parametrize("placed", ["beside the kernel", "in a compiled function"])
def test_arrays_in_host_memory(placed: str) -> None:
    """A function that moves arrays there and back is watched where JAX can; else the reason is a sentence."""
    run = check(_through(placed), X, modes=RUNNING)
    np.testing.assert_array_equal(run.outputs, 2 * X)
    reason = "JAX has no interpretation of a kernel together with arrays in host memory (jax.device_put)"
    assert run.left_out in ({}, {"tpu_interpret": reason})
    assert (run.left_out == {}) is (placed == "beside the kernel")


@pytest.mark.parametrize("memory", [pltpu.SMEM, pltpu.VMEM, pltpu.HBM])
def test_operands_placed_in_a_memory_are_interpreted(memory: Any) -> None:
    """An operand that its author has placed in a memory lies beside all others in TPU interpretation."""

    def scaled(x_ref: Any, factor_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref[...] * factor_ref[0]

    @jax.jit
    def call(x: Any, factor: Any) -> Any:
        specs = [pl.BlockSpec(memory_space=pltpu.VMEM), pl.BlockSpec(memory_space=pltpu.SMEM)]
        placed = pltpu.with_memory_space_constraint(factor, memory)
        return pl.pallas_call(scaled, out_shape=like(x), in_specs=specs)(x, placed)

    x = np.arange(1024, dtype=np.float32).reshape(8, 128)
    run = check(call, x, np.array([3], np.float32), modes="tpu_interpret")
    assert run.left_out == {}
    np.testing.assert_array_equal(run.outputs, 3 * x)


@pytest.mark.parametrize("rows", [0, 8])
def test_copies_of_no_rows(rows: int) -> None:
    """A copy of so many rows as a scalar says, none perhaps, beside one of a fixed size: both are waited for."""

    def kernel(length: Any, x_ref: Any, out_ref: Any, semaphore: Any) -> None:
        some, eight = pl.ds(0, length[0]), pl.ds(8, 8)
        first = pltpu.make_async_copy(x_ref.at[some], out_ref.at[some], semaphore)
        second = pltpu.make_async_copy(x_ref.at[eight], out_ref.at[eight], semaphore)
        out_ref[pl.ds(0, 8)] = jnp.zeros((8, 128), jnp.float32)
        first.start()
        first.wait()
        first.start()
        second.start()
        second.wait()
        first.wait()

    specs = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[WHOLE], out_specs=BLOCK, scratch_shapes=[DMA]
    )
    x = ramp(16)

    def call(length: Any, x: Any) -> Any:
        return pl.pallas_call(kernel, grid_spec=specs, out_shape=like(x))(length, x)

    run = check(call, np.array([rows], np.int32), x, modes="tpu_interpret")
    expected = x.copy()
    expected[rows:8] = 0
    assert (run.left_out, run.findings) == ({}, [])
    np.testing.assert_array_equal(run.outputs, expected)
