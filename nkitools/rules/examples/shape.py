"""The examples of the shape rules."""

NK101_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)  # NK101
    nl.store(out, tile)
    return out


inputs = (np.ones((256, 64), np.float32),)
"""

NK101_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        rows = nl.ds(i * nl.tile_size.pmax, nl.tile_size.pmax)
        tile = nl.load(x[rows, :])
        nl.store(out[rows, :], tile)
    return out


inputs = (np.ones((256, 64), np.float32),)
"""

NK102_BAD = """\
@nki.jit
def kernel(x, half):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    half_tile = nl.load(half)
    total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=x_tile, data2=half_tile, op=nl.add)  # NK102
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((64, 64), np.float32))
"""

NK102_GOOD = """\
@nki.jit
def kernel(x, half):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    both_halves = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=both_halves[0:64, :], src=half)
    nisa.dma_copy(dst=both_halves[64:128, :], src=half)
    total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=x_tile, data2=both_halves, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((64, 64), np.float32))
"""

NK107_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    turned = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.nc_transpose(dst=turned, data=tile, engine=nisa.engine.vector)  # NK107
    nisa.dma_copy(dst=out, src=turned)
    return out


inputs = (np.ones((32, 64), np.float32),)
"""

NK107_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for i in range(2):
        columns = nl.ds(i * 32, 32)
        turned = nl.ndarray((32, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.nc_transpose(dst=turned, data=tile[:, columns], engine=nisa.engine.vector)
        nisa.dma_copy(dst=out[columns, :], src=turned)
    return out


inputs = (np.ones((32, 64), np.float32),)
"""

NK108_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.memset(dst=tile[16:48, :], value=0.0)  # NK108
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK108_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.memset(dst=tile[96:128, :], value=0.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK109_BAD = """\
@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    y_tile = nl.load(y)
    total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=x_tile, data2=y_tile, op=nl.add)  # NK109
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 32), np.float32))
"""

NK109_GOOD = """\
@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    y_tile = nl.load(y)
    total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=x_tile, data2=y_tile.reshape((128, 64)), op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 8, 8), np.float32))
"""

NK110_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    doubled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    view = tile.reshape((128, 2, 2, 2, 2, 4))
    nisa.tensor_tensor(dst=doubled.reshape(view.shape), data1=view, data2=view, op=nl.add)  # NK110
    nisa.dma_copy(dst=out, src=doubled)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK110_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    doubled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    view = tile.reshape((128, 2, 2, 2, 8))
    nisa.tensor_tensor(dst=doubled.reshape(view.shape), data1=view, data2=view, op=nl.add)
    nisa.dma_copy(dst=out, src=doubled)
    return out


inputs = (np.ones((128, 64), np.float32),)
"""

NK111_BAD = """\
@nki.jit
def kernel(x, row):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    row_tile = nl.load(row)
    total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=x_tile, data2=row_tile, op=nl.add)  # NK111
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((1, 64), np.float32))
"""

NK111_GOOD = """\
@nki.jit
def kernel(x, row):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    row_tile = nl.load(row.broadcast(0, 128))
    total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=x_tile, data2=row_tile, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((1, 64), np.float32))
"""

NK112_BAD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    total = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)  # NK112
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 4, 8), np.float32),)
"""

NK112_GOOD = """\
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    total = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=total, op=nl.add, data=tile.permute((0, 2, 1)), axis=2)
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 4, 8), np.float32),)
"""

NK113_BAD = """\
@nki.jit
def kernel(x, index):
    out = nl.ndarray((24, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    index_tile = nl.load(index)
    gathered = nl.ndarray((24, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.local_gather(dst=gathered, src_buffer=x_tile, index=index_tile)  # NK113
    nisa.dma_copy(dst=out, src=gathered)
    return out


inputs = (np.ones((24, 64), np.float32), np.zeros((24, 2), np.uint16))
"""

NK113_GOOD = """\
@nki.jit
def kernel(x, index):
    out = nl.ndarray((24, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.zeros((32, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x_tile[0:24, :], src=x)
    index_tile = nl.zeros((32, 2), dtype=index.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=index_tile[0:24, :], src=index)
    gathered = nl.ndarray((32, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.local_gather(dst=gathered, src_buffer=x_tile, index=index_tile)
    nisa.dma_copy(dst=out, src=gathered[0:24, :])
    return out


inputs = (np.ones((24, 64), np.float32), np.zeros((24, 2), np.uint16))
"""
