"""Convolutions as sums of matrix products, one for each tap, input channels on partitions; modern NKI dialect.

As in neural networks the filter is not mirrored (a cross-correlation), and there is no padding.
"""

import nki
import nki.isa as nisa
import nki.language as nl


def _tiles(size, length):
    """(start, length) of each tile of a dimension; the last one may be shorter."""
    return [(start, min(length, size - start)) for start in range(0, size, length)]


@nki.jit
def conv1d(data, filters):
    """``result[b, o, t] = sum over c and i of filters[o, c, i] * data[b, c, t + i]``.

    data: float32 [batch, channels, length]; filters: float32 [outputs, channels, taps]; any sizes. Returns float32
    [batch, outputs, length - taps + 1].
    """
    batch, channels, length = data.shape
    outputs, _, taps = filters.shape
    span = length - taps + 1
    result = nl.ndarray((batch, outputs, span), dtype=nl.float32, buffer=nl.shared_hbm)
    depth = _tiles(channels, nl.tile_size.pmax)
    for o, height in _tiles(outputs, nl.tile_size.gemm_stationary_fmax):
        stationary = _transposed_taps(filters, o, height, depth)
        for image in range(batch):
            for t, width in _tiles(span, nl.tile_size.psum_bank_fmax):
                total = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.psum)
                for number, (c, size) in enumerate(depth):
                    moving = nl.load(data[image, c : c + size, t : t + width + taps - 1])
                    for tap in range(taps):
                        nisa.nc_matmul(
                            dst=total, stationary=stationary[number][tap], moving=moving[:, tap : tap + width]
                        )
                nisa.dma_copy(dst=result[image, o : o + height, t : t + width], src=nl.copy(total))
    return result


def _transposed_taps(filters, first, height, depth):
    """For each tile of channels and each tap a tile [channels, outputs]: the stationary side of a product."""
    taps = filters.shape[2]
    found = []
    for c, size in depth:
        tile = nl.load(filters[first : first + height, c : c + size, :])
        turned = []
        for tap in range(taps):
            side = nl.ndarray((size, height), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_transpose(dst=side, data=tile[:, :, tap])
            turned.append(nl.copy(side))
        found.append(turned)
    return found


@nki.jit
def conv2d(images, filters):
    """``result[b, o, y, x] = sum over c, i, j of filters[o, c, i, j] * images[b, c, y + i, x + j]``.

    images: float32 [batch, channels, height, width]; filters: float32 [outputs, channels, taps, taps], of any sizes.
    Returns float32 [batch, outputs, height less taps plus 1, width likewise].
    """
    batch, channels, height, width = images.shape
    outputs, _, high, wide = filters.shape
    down, across = height - high + 1, width - wide + 1
    result = nl.ndarray((batch, outputs, down, across), dtype=nl.float32, buffer=nl.shared_hbm)
    flat = filters.reshape((outputs, channels, high * wide))
    depth = _tiles(channels, nl.tile_size.pmax)
    for o, count in _tiles(outputs, nl.tile_size.gemm_stationary_fmax):
        stationary = _transposed_taps(flat, o, count, depth)
        for image in range(batch):
            for y in range(down):
                bands = [nl.load(images[image, c : c + size, y : y + high, :]) for c, size in depth]
                for x, length in _tiles(across, nl.tile_size.psum_bank_fmax):
                    total = nl.ndarray((count, length), dtype=nl.float32, buffer=nl.psum)
                    for taps, band in zip(stationary, bands):
                        for tap in range(high * wide):
                            row, column = tap // wide, x + tap % wide
                            moving = band[:, row, column : column + length]
                            nisa.nc_matmul(dst=total, stationary=taps[tap], moving=moving)
                    line = nl.copy(total)
                    nl.device_print("line", line)
                    nisa.dma_copy(dst=result[image, o : o + count, y, x : x + length], src=line)
    return result


@nki.jit
def max_pool2d(data):
    """The largest of each square of 2 x 2 pixels; an odd last row or column is left out.

    data: float32 [batch, channels, height, width], images that fit into a partition of SBUF. Returns float32 [batch,
    channels, height // 2, width // 2].
    """
    batch, channels, height, width = data.shape
    high, wide = height // 2, width // 2
    result = nl.ndarray((batch, channels, high, wide), dtype=data.dtype, buffer=nl.shared_hbm)
    for image in range(batch):
        for c, size in _tiles(channels, nl.tile_size.pmax):
            tile = nl.load(data[image, c : c + size, :, :])
            low = nl.maximum(tile[:, 0 : 2 * high : 2, 0 : 2 * wide : 2], tile[:, 0 : 2 * high : 2, 1 : 2 * wide : 2])
            up = nl.maximum(tile[:, 1 : 2 * high : 2, 0 : 2 * wide : 2], tile[:, 1 : 2 * high : 2, 1 : 2 * wide : 2])
            nl.store(result[image, c : c + size, :, :], nl.maximum(low, up))
    return result
