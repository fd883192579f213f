"""Layer normalisation of the rows of a matrix, in the modern NKI dialect."""

import nki
import nki.isa as nisa
import nki.language as nl

EPSILON = 1e-5


@nki.jit
def layer_norm(hidden, weight, bias):
    """Each row less its mean, over the root of its variance, times ``weight`` plus ``bias``.

    hidden: float32 [rows, size], any number of rows, which fit into a partition of SBUF; weight and bias: float32
    [size]. Mean and variance come from nisa.bn_stats, of pieces of a row, and nisa.bn_aggr. Returns hidden's shape.
    """
    rows, size = hidden.shape
    pmax, piece = nl.tile_size.pmax, nl.tile_size.bn_stats_fmax
    pieces = [(start, min(piece, size - start)) for start in range(0, size, piece)]
    result = nl.ndarray(hidden.shape, dtype=hidden.dtype, buffer=nl.shared_hbm)
    weights = nl.broadcast_to(nl.load(weight.reshape((1, size))), (pmax, size))
    biases = nl.broadcast_to(nl.load(bias.reshape((1, size))), (pmax, size))

    for start in range(0, rows, pmax):
        height = min(pmax, rows - start)
        tile = nl.load(hidden[start : start + height, :])
        statistics = nl.ndarray((height, 6 * len(pieces)), dtype=nl.float32, buffer=nl.sbuf)
        for number, (first, width) in enumerate(pieces):
            nisa.bn_stats(dst=statistics[:, 6 * number : 6 * number + 6], data=tile[:, first : first + width])
        moments = nl.ndarray((height, 2), dtype=nl.float32, buffer=nl.sbuf)
        nisa.bn_aggr(dst=moments, data=statistics)
        nl.device_print("moments", moments)
        normaliser = nl.rsqrt(nl.add(moments[:, 1:2], EPSILON))
        nisa.tensor_scalar(
            dst=tile, data=tile, op0=nl.subtract, operand0=moments[:, 0:1], op1=nl.multiply, operand1=normaliser
        )
        nisa.tensor_tensor(dst=tile, data1=tile, data2=weights[:height, :], op=nl.multiply)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=biases[:height, :], op=nl.add)
        nisa.dma_copy(dst=result[start : start + height, :], src=tile)
    return result
