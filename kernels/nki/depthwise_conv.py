"""Depthwise convolutions: each channel with a filter of its own, channels on partitions; modern NKI.

As in neural networks the filter is not mirrored (a cross-correlation).
"""

import nki
import nki.isa as nisa
import nki.language as nl

LENGTH = 2048  # outputs of a tile of the 1-D convolution
BAND = 4096  # outputs, about, of a band of rows of the 2-D convolution


def _filtered(windows, weights):
    """The sum of ``windows``, one for each tap, times the columns of ``weights`` [channels, taps], float32 in SBUF."""
    total = nl.ndarray(windows[0].shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=total, data=windows[0], op0=nl.multiply, operand0=weights[:, 0:1])
    for tap in range(1, len(windows)):
        nisa.scalar_tensor_tensor(
            dst=total,
            data=windows[tap],
            op0=nl.multiply,
            operand0=weights[:, tap : tap + 1],
            op1=nl.add,
            operand1=total,
        )
    return total


def _channel_tiles(channels):
    """A slice for each 128 channels; the last one may hold fewer."""
    pmax = nl.tile_size.pmax
    return [nl.ds(start, min(pmax, channels - start)) for start in range(0, channels, pmax)]


@nki.jit
def depthwise_conv1d(data, weights):
    """Causal: ``result[b, c, t] = sum over i of weights[c, i] * data[b, c, t - taps + 1 + i]``, zeros before the start.

    data: float32 [batch, channels, length]; weights: float32 [channels, taps]; any sizes.
    Returns data's shape, float32.
    """
    batch, channels, length = data.shape
    taps = weights.shape[1]
    assert weights.shape[0] == channels, "there must be one filter for each channel"
    result = nl.ndarray(data.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    for rows in _channel_tiles(channels):
        filters = nl.load(weights[rows, :])
        for image in range(batch):
            for start in range(0, length, LENGTH):
                width = min(LENGTH, length - start)
                before = start - taps + 1
                tile = nl.ndarray((filters.shape[0], taps - 1 + width), dtype=nl.float32, buffer=nl.sbuf)
                missing = max(0, -before)
                if missing:
                    nisa.memset(dst=tile[:, :missing], value=0.0)
                nisa.dma_copy(dst=tile[:, missing:], src=data[image, rows, before + missing : start + width])
                total = _filtered([tile[:, tap : tap + width] for tap in range(taps)], filters)
                nisa.dma_copy(dst=result[image, rows, start : start + width], src=total)
    return result


def _padded_band(image, first, count, above, beside):
    """Rows ``first - above`` to ``first + count + above`` of an image [channels, height, width], zeros around it."""
    channels, height, width = image.shape
    tile = nl.zeros((channels, count + 2 * above, width + 2 * beside), dtype=nl.float32, buffer=nl.sbuf)
    top, bottom = max(0, first - above), min(height, first + count + above)
    begin = top - first + above
    nisa.dma_copy(dst=tile[:, begin : begin + bottom - top, beside : beside + width], src=image[:, top:bottom, :])
    return tile


@nki.jit
def depthwise_conv2d(data, weights):
    """Zeros around, so that the result has data's size: ``result[b, c]`` is ``data[b, c]`` correlated with its filter.

    data: float32 [batch, channels, height, width], rows that fit into SBUF; weights: float32 [channels, taps, taps] or
    of two different odd numbers of taps. Returns data's shape, float32.
    """
    batch, channels, height, width = data.shape
    assert weights.shape[0] == channels, "there must be one filter for each channel"
    down, across = weights.shape[1:]
    assert down % 2 == 1, "a filter must have an odd number of rows"
    assert across % 2 == 1, "a filter must have an odd number of columns"
    assert width <= BAND, f"a row may have up to {BAND} columns"
    band = BAND // width
    result = nl.ndarray(data.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    for rows in _channel_tiles(channels):
        filters = nl.load(weights[rows, :, :])
        filters = filters.reshape((filters.shape[0], down * across))
        for image in range(batch):
            for first in range(0, height, band):
                count = min(band, height - first)
                tile = _padded_band(data[image, rows, :, :], first, count, down // 2, across // 2)
                windows = [tile[:, y : y + count, x : x + width] for y in range(down) for x in range(across)]
                nisa.dma_copy(dst=result[image, rows, first : first + count, :], src=_filtered(windows, filters))
    return result
