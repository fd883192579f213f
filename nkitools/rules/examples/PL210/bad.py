import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec


def add_up(x_ref, o_ref, parts, sent, received):
    step, devices = pl.program_id(0), jax.lax.axis_size("x")
    after = jax.lax.rem(jax.lax.axis_index("x") + 1, devices)

    @pl.when(step == 0)
    def first():
        parts[0] = x_ref[...]
        o_ref[...] = jnp.zeros_like(o_ref)

    now, later = jax.lax.rem(step, 2), jax.lax.rem(step + 1, 2)
    o_ref[...] += parts[now]

    @pl.when(step < pl.num_programs(0) - 1)
    def pass_on():
        copy = pltpu.make_async_remote_copy(parts.at[now], parts.at[later], sent, received, device_id=(after,))
        copy.start()  # PL210
        copy.wait()


def kernel(x):
    mesh = jax.sharding.Mesh(jax.devices(), "x")
    call = pl.pallas_call(
        add_up,
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
        grid=(len(jax.devices()),),
        in_specs=[pl.BlockSpec((8, 128), lambda step: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda step: (0, 0)),
        scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
    )
    rows, whole = PartitionSpec("x"), PartitionSpec(None)
    return jax.jit(jax.shard_map(call, mesh=mesh, in_specs=rows, out_specs=whole, check_vma=False))(x)


inputs = (jnp.ones((8 * len(jax.devices()), 128), jnp.float32),)
