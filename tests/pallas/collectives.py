"""Small Pallas kernels that talk to their neighbours in a ring of four devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec

from tests.pallas.kernels import like

DEVICES = 4
WHOLE = pl.BlockSpec(memory_space=pl.ANY)
DMA = pltpu.SemaphoreType.DMA


def ring(body: Callable[..., Any], out: PartitionSpec) -> Callable[..., Any]:
    """Return ``body`` on each of four devices, which get equal parts of the rows."""
    mesh = jax.make_mesh((DEVICES,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=PartitionSpec("x"), out_specs=out, check_vma=False))


def neighbours() -> tuple[Any, Any, Any]:
    """Return the place of this device in the ring, and of those before and after it."""
    own = jax.lax.axis_index("x")
    return own, jax.lax.rem(own + DEVICES - 1, DEVICES), jax.lax.rem(own + 1, DEVICES)


def send(source: Any, target: Any, sent: Any, received: Any, device: Any) -> None:
    """Copy to another device, and wait for what this one receives."""
    copy = pltpu.make_async_remote_copy(source, target, sent, received, device_id=(device,))
    copy.start()
    copy.wait()


def meet() -> None:
    """Wait until both neighbours have come to this point."""
    barrier = pltpu.get_barrier_semaphore()
    _, before, after = neighbours()
    for each in (before, after):
        pl.semaphore_signal(barrier, 1, device_id=(each,))
    pl.semaphore_wait(barrier, 2)


def hands_on(kernel: Callable[..., None]) -> Callable[[Any], Any]:
    """Return the function of a kernel on four devices that hands each part of the rows on."""

    def body(part: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=like(part),
            in_specs=[WHOLE],
            out_specs=WHOLE,
            scratch_shapes=[DMA, DMA],
            compiler_params=pltpu.CompilerParams(collective_id=0),
        )(part)

    return ring(body, PartitionSpec("x"))


def permute(x: Any) -> Any:
    """Hand each part of the rows to the next device."""

    def kernel(x_ref: Any, out_ref: Any, sent: Any, received: Any) -> None:
        meet()
        send(x_ref, out_ref, sent, received, neighbours()[2])

    return hands_on(kernel)(x)


def _gather(part: Any) -> Any:
    """Return the parts of all devices, in a kernel that hands them on around the ring."""

    def kernel(x_ref: Any, out_ref: Any, copied: Any, sent: Any, received: Any) -> None:
        own, _, after = neighbours()
        step = pl.program_id(0)

        @pl.when(step == 0)
        def _() -> None:
            meet()
            copy = pltpu.make_async_copy(x_ref, out_ref.at[own], copied)
            copy.start()
            copy.wait()

        which = jax.lax.rem(own - step + DEVICES, DEVICES)
        send(out_ref.at[which], out_ref.at[which], sent.at[step], received.at[step], after)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((DEVICES, *part.shape), part.dtype),
        grid=(DEVICES - 1,),
        in_specs=[WHOLE],
        out_specs=WHOLE,
        scratch_shapes=[DMA, DMA((DEVICES - 1,)), DMA((DEVICES - 1,))],
        compiler_params=pltpu.CompilerParams(collective_id=1),
    )(part)


def gather(x: Any) -> Any:
    """Return all rows on every device."""
    return ring(lambda part: _gather(part).reshape(x.shape), PartitionSpec(None))(x)


def gather_and_multiply(x: Any) -> Any:
    """Multiply all rows by a matrix of twos, in a second kernel."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        twos = jnp.full((128, 128), 2.0, jnp.float32)
        out_ref[...] = jnp.dot(x_ref[...], twos, precision=jax.lax.Precision.HIGHEST)

    def body(part: Any) -> Any:
        rows = _gather(part).reshape(x.shape)
        return pl.pallas_call(kernel, out_shape=like(rows))(rows)

    return ring(body, PartitionSpec(None))(x)


def gather_at_once(x: Any) -> Any:
    """Return all rows on every device: each sends its own to all, without a ring."""

    def kernel(x_ref: Any, out_ref: Any, sent: Any, received: Any) -> None:
        own = jax.lax.axis_index("x")
        meet_all()
        copies = [
            pltpu.make_async_remote_copy(x_ref, out_ref.at[own], sent.at[to], received, device_id=(to,))
            for to in range(DEVICES)
        ]
        for copy in copies:
            copy.start()
        for copy in copies:
            copy.wait()

    def body(part: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((DEVICES, *part.shape), part.dtype),
            in_specs=[WHOLE],
            out_specs=WHOLE,
            scratch_shapes=[DMA((DEVICES,)), DMA],
            compiler_params=pltpu.CompilerParams(collective_id=2),
        )(part).reshape(x.shape)

    return ring(body, PartitionSpec(None))(x)


def meet_all() -> None:
    """Wait until all devices have come to this point."""
    barrier = pltpu.get_barrier_semaphore()
    for each in range(DEVICES):
        pl.semaphore_signal(barrier, 1, device_id=(each,))
    pl.semaphore_wait(barrier, DEVICES)


def reduce(x: Any) -> Any:
    """Return the sum of all parts on every device: each part goes around the ring, and is added where it comes by."""

    def kernel(x_ref: Any, out_ref: Any, parts: Any, copied: Any, sent: Any, received: Any) -> None:
        step = pl.program_id(0)

        @pl.when(step == 0)
        def _() -> None:
            meet()
            copy = pltpu.make_async_copy(x_ref, parts.at[0], copied)
            copy.start()
            copy.wait()
            out_ref[...] = parts[0]

        @pl.when(step > 0)
        def _() -> None:
            send(parts.at[step - 1], parts.at[step], sent.at[step - 1], received.at[step - 1], neighbours()[2])
            out_ref[...] += parts[step]

    def body(part: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=like(part),
            grid=(DEVICES,),
            in_specs=[WHOLE],
            out_specs=pl.BlockSpec(part.shape, lambda step: (0, 0)),
            scratch_shapes=[
                pltpu.VMEM((DEVICES, *part.shape), part.dtype),
                DMA,
                DMA((DEVICES - 1,)),
                DMA((DEVICES - 1,)),
            ],
            compiler_params=pltpu.CompilerParams(collective_id=3),
        )(part)

    return ring(body, PartitionSpec(None))(x)
