import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec


def pass_on(x_ref, o_ref, sent, received):
    after = jax.lax.rem(jax.lax.axis_index("x") + 1, jax.lax.axis_size("x"))
    before = jax.lax.rem(jax.lax.axis_index("x") + jax.lax.axis_size("x") - 1, jax.lax.axis_size("x"))
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, 1, device_id=(before,))
    pl.semaphore_wait(barrier, 1)
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id=(after,))
    copy.start()
    copy.wait()


def kernel(x):
    call = pl.pallas_call(
        pass_on,
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
        compiler_params=pltpu.CompilerParams(collective_id=0),
    )
    rows, mesh = PartitionSpec("x"), jax.sharding.Mesh(jax.devices(), "x")
    return jax.jit(jax.shard_map(call, mesh=mesh, in_specs=rows, out_specs=rows, check_vma=False))(x)


inputs = (jnp.ones((8 * len(jax.devices()), 128), jnp.float32),)
