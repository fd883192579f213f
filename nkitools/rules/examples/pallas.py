"""The examples of the Pallas rules."""

_COPY_CALL = """

def kernel(x):
    block = pl.BlockSpec({block}, lambda i: (i, 0)){mark}
    return pl.pallas_call(
        copy, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=({grid},), in_specs=[block], out_specs=block
    )(x)


inputs = (jnp.ones({shape}, jnp.{dtype}),)
"""

_COPY = """\
def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]
"""


def _copying(block: str, grid: str, shape: str, dtype: str = "float32", mark: str = "", body: str = _COPY) -> str:
    return body + _COPY_CALL.format(block=block, grid=grid, shape=shape, dtype=dtype, mark=mark)


PL101_BAD = _copying("(4, 128)", "4", "(16, 128)", mark="  # PL101")
PL101_GOOD = _copying("(8, 128)", "2", "(16, 128)")

PL102_BAD = _copying("(8, 128)", "16", "(128, 128)", "int8", mark="  # PL102")
PL102_GOOD = _copying("(32, 128)", "4", "(128, 128)", "int8")

PL103_BAD = """\
def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def kernel(x):
    block = pl.BlockSpec((2048, 1024), lambda i: (i, 0))
    call = pl.pallas_call(
        double, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(2,), in_specs=[block], out_specs=block
    )
    return call(x)  # PL103


inputs = (jnp.ones((4096, 1024), jnp.float32),)
"""

PL103_GOOD = """\
def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def kernel(x):
    block = pl.BlockSpec((512, 1024), lambda i: (i, 0))
    call = pl.pallas_call(
        double, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(8,), in_specs=[block], out_specs=block
    )
    return call(x)


inputs = (jnp.ones((4096, 1024), jnp.float32),)
"""

_ROWWISE = """\
def rowwise(x_ref, o_ref):
    {statement}
"""

PL104_BAD = _copying(
    "(8, 128)",
    "2",
    "(16, 128)",
    body=_ROWWISE.format(statement="o_ref[...] = jnp.sort(x_ref[...], axis=1)  # PL104"),
).replace("        copy,", "        rowwise,")
PL104_GOOD = _copying(
    "(8, 128)",
    "2",
    "(16, 128)",
    body=_ROWWISE.format(
        statement="o_ref[...] = jnp.broadcast_to(jnp.max(x_ref[...], axis=1, keepdims=True), o_ref.shape)"
    ),
).replace("        copy,", "        rowwise,")

PL105_BAD = _copying("(16, 128)", "2", "(32, 128)", "float16", body=_COPY.replace("[...]\n", "[...]  # PL105\n"))
PL105_GOOD = _copying("(16, 128)", "2", "(32, 128)", "bfloat16")

PL201_BAD = """\
def shifted(x_ref, o_ref):
    i = pl.program_id(0)
    o_ref[...] = x_ref[pl.ds(i * 8 + 8, 8), :]  # PL201


def kernel(x):
    return pl.pallas_call(
        shifted,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // 8,),
        in_specs=[pl.BlockSpec(x.shape, lambda i: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
    )(x)


inputs = (jnp.ones((32, 128), jnp.float32),)
"""

PL201_GOOD = PL201_BAD.replace("pl.ds(i * 8 + 8, 8), :]  # PL201", "pl.ds(i * 8, 8), :]")

PL202_BAD = """\
def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def kernel(x):
    return pl.pallas_call(
        copy,
        out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype),
        grid=(2, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (2 * i + j, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (j, 0)),  # PL202
    )(x)


inputs = (jnp.ones((32, 128), jnp.float32),)
"""

PL202_GOOD = PL202_BAD.replace("lambda i, j: (j, 0)),  # PL202", "lambda i, j: (i, 0)),")

PL203_BAD = """\
def prefetch(x_hbm, o_ref, buffer, semaphore):
    copy = pltpu.make_async_copy(x_hbm, buffer, semaphore)
    copy.start()
    o_ref[...] = buffer[...]  # PL203
    copy.wait()


def kernel(x):
    return pl.pallas_call(
        prefetch,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x)


inputs = (jnp.ones((8, 128), jnp.float32),)
"""

PL203_GOOD = """\
def prefetch(x_hbm, o_ref, buffer, semaphore):
    copy = pltpu.make_async_copy(x_hbm, buffer, semaphore)
    copy.start()
    copy.wait()
    o_ref[...] = buffer[...]


def kernel(x):
    return pl.pallas_call(
        prefetch,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x)


inputs = (jnp.ones((8, 128), jnp.float32),)
"""

PL204_BAD = """\
def prefetch(x_ref, x_hbm, o_ref, buffer, semaphore):
    pltpu.make_async_copy(x_hbm, buffer, semaphore).start()  # PL204
    o_ref[...] = x_ref[...]


def kernel(x):
    return pl.pallas_call(
        prefetch,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[pl.BlockSpec(), pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x, x)


inputs = (jnp.ones((8, 128), jnp.float32),)
"""

PL204_GOOD = """\
def prefetch(x_ref, x_hbm, o_ref, buffer, semaphore):
    copy = pltpu.make_async_copy(x_hbm, buffer, semaphore)
    copy.start()
    copy.wait()
    o_ref[...] = x_ref[...] + buffer[...]


def kernel(x):
    return pl.pallas_call(
        prefetch,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[pl.BlockSpec(), pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x, x)


inputs = (jnp.ones((8, 128), jnp.float32),)
"""

PL205_BAD = """\
def even_blocks(x_ref, o_ref):  # PL205
    @pl.when(pl.program_id(0) % 2 == 0)
    def _():
        o_ref[...] = x_ref[...]


def kernel(x):
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        even_blocks, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(4,), in_specs=[block], out_specs=block
    )(x)


inputs = (jnp.ones((32, 128), jnp.float32),)
"""

PL205_GOOD = """\
def even_blocks(x_ref, o_ref):
    is_even = pl.program_id(0) % 2 == 0
    o_ref[...] = jnp.where(is_even, x_ref[...], 0.0)


def kernel(x):
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        even_blocks, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(4,), in_specs=[block], out_specs=block
    )(x)


inputs = (jnp.ones((32, 128), jnp.float32),)
"""

PL206_BAD = """\
def add_up(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]  # PL206


def kernel(x):
    return pl.pallas_call(
        add_up,
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x)


inputs = (jnp.ones((32, 128), jnp.float32),)
"""

PL206_GOOD = PL206_BAD.replace("  # PL206", "").replace('("parallel",)', '("arbitrary",)')

PL207_BAD = """\
def add_up(x_ref, o_ref, total):
    total[...] += x_ref[...]  # PL207
    o_ref[...] = total[...]


def kernel(x):
    return pl.pallas_call(
        add_up,
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.int32)],
    )(x)


inputs = (jnp.ones((32, 128), jnp.int32),)
"""

PL207_GOOD = PL207_BAD.replace(
    "    total[...] += x_ref[...]  # PL207",
    "    @pl.when(pl.program_id(0) == 0)\n    def _():\n        total[...] = jnp.zeros_like(total)\n\n"
    "    total[...] += x_ref[...]",
)

PL208_BAD = """\
def prefetch(x_hbm, o_ref, semaphores):
    pltpu.make_async_copy(x_hbm, o_ref, semaphores.at[0]).start()
    pltpu.make_async_copy(x_hbm, o_ref, semaphores.at[0]).wait()
    pltpu.make_async_copy(x_hbm, o_ref, semaphores.at[1]).wait()  # PL208


def kernel(x):
    return pl.pallas_call(
        prefetch,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[pltpu.SemaphoreType.DMA((2,))],
    )(x)


inputs = (jnp.ones((8, 128), jnp.float32),)
"""

PL208_GOOD = """\
def prefetch(x_hbm, o_ref, semaphores):
    copy = pltpu.make_async_copy(x_hbm, o_ref, semaphores.at[0])
    copy.start()
    copy.wait()


def kernel(x):
    return pl.pallas_call(
        prefetch,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[pltpu.SemaphoreType.DMA((2,))],
    )(x)


inputs = (jnp.ones((8, 128), jnp.float32),)
"""

PL301_BAD = """\
def scale(factors_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...] * factors_ref[...]  # PL301


def kernel(factors, x):
    return pl.pallas_call(
        scale,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec()],
    )(factors, x)


inputs = (jnp.ones((8, 128), jnp.float32), jnp.ones((8, 128), jnp.float32))
"""

PL301_GOOD = PL301_BAD.replace("  # PL301", "").replace("pl.BlockSpec(memory_space=pltpu.SMEM)", "pl.BlockSpec()")

PL302_BAD = _copying(
    "(8, 128)",
    "2",
    "(16, 128)",
    body=(
        'def copy(x_ref, o_ref):\n    pl.debug_print("first {:.2f}", x_ref[0, 0])  # PL302\n'
        "    o_ref[...] = x_ref[...]\n"
    ),
)
PL302_GOOD = _copying(
    "(8, 128)",
    "2",
    "(16, 128)",
    body=(
        'def copy(x_ref, o_ref):\n    pl.debug_print("block {}", pl.program_id(0))\n'
        '    pl.debug_print("first", x_ref[0, 0])\n    o_ref[...] = x_ref[...]\n'
    ),
)
