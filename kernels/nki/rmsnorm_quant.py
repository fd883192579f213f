"""RMS normalisation with quantisation of every row to 8 bits, in nki.language and in nki.isa; modern NKI dialect.

A row of the matrix is a token. It leaves as 8-bit numbers and one float32 scale: numbers times scale are, up to
rounding, ``row / sqrt(mean(row**2) + EPSILON) * weight``, and the largest of them takes the whole range of the dtype.

The normaliser is one positive number a row, so that it changes the scale and not the numbers: these follow from
``row * weight`` and its peak. One pass over the row finds that peak and the sum of squares together.
"""

import nki
import nki.isa as nisa
import nki.language as nl

EPSILON = 1e-6
COLUMNS = 2048  # of a tile: engines stay busy, and several tiles are small beside SBUF
LOWEST_PEAK = 1e-30  # a row of zeros has this peak, so that nothing is divided by zero


def _largest(dtype):
    """The largest number of a dtype that rows are quantised to."""
    assert dtype == nl.float8_e4m3 or dtype == nl.int8, "rows are quantised to float8_e4m3 or int8"
    return 240.0 if dtype == nl.float8_e4m3 else 127.0


def _tiles(stop, size):
    """(start, length) of each tile of ``range(stop)``; the last one may be shorter."""
    return [(start, min(size, stop - start)) for start in range(0, stop, size)]


@nki.jit
def rmsnorm_quant(hidden, weight, dtype=nl.float8_e4m3):
    """Rows normalised and quantised, in nki.language.

    hidden: float32 or bfloat16 [rows, size], any number of rows, size up to 16384, whose squares add up in float32;
    weight: float32 or bfloat16 [size]. Returns ``dtype`` (float8_e4m3 or int8) [rows, size] and float32 [rows, 1].
    """
    (rows, size), largest = hidden.shape, _largest(dtype)
    pmax = nl.tile_size.pmax
    quantised = nl.ndarray((rows, size), dtype=dtype, buffer=nl.shared_hbm)
    scales = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    weights = nl.broadcast_to(nl.load(weight.reshape((1, size)), dtype=nl.float32), (pmax, size))

    for first, height in _tiles(rows, pmax):
        tokens = nl.ds(first, height)
        squares = nl.zeros((height, 1), dtype=nl.float32)
        peak = nl.full((height, 1), LOWEST_PEAK, dtype=nl.float32)
        products = []
        for start, width in _tiles(size, COLUMNS):
            tile = nl.load(hidden[tokens, nl.ds(start, width)], dtype=nl.float32)
            product = nl.multiply(tile, weights[:height, nl.ds(start, width)])
            squares = nl.add(squares, nl.sum(nl.square(tile), axis=1, keepdims=True))
            peak = nl.maximum(peak, nl.max(nl.abs(product), axis=1, keepdims=True))
            products.append(product)

        normaliser = nl.rsqrt(nl.add(nl.multiply(squares, 1.0 / size), EPSILON))
        nl.store(scales[tokens, :], nl.multiply(nl.multiply(peak, normaliser), 1.0 / largest))
        factor = nl.multiply(nl.reciprocal(peak), largest)
        for (start, width), product in zip(_tiles(size, COLUMNS), products):
            numbers = nl.multiply(product, factor.broadcast(1, width), dtype=dtype)
            nl.store(quantised[tokens, nl.ds(start, width)], numbers)
    return quantised, scales


def _column(height):
    """A float32 number for each row, in SBUF."""
    return nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)


def _products(hidden, tokens, weights):
    """The rows ``tokens`` times ``weights``, in SBUF, the sum of the rows' squares and the products' peak."""
    height, size = weights.shape
    product = nl.ndarray((height, size), dtype=nl.float32, buffer=nl.sbuf)
    squares, peak = _column(height), _column(height)
    for start, width in _tiles(size, COLUMNS):
        columns = nl.ds(start, width)
        tile = nl.ndarray((height, width), dtype=hidden.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=hidden[tokens, columns])
        # Both engines have registers that go on adding, or comparing, from one tile of the row to the next.
        command = nisa.reduce_cmd.reset_reduce if start == 0 else nisa.reduce_cmd.reduce
        square = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=square, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=squares, reduce_cmd=command)
        nisa.tensor_tensor(dst=product[:, columns], data1=tile, data2=weights[:, columns], op=nl.multiply)
        magnitude = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar_reduce(
            dst=magnitude,
            data=product[:, columns],
            op0=nl.abs,
            operand0=0.0,
            reduce_op=nl.maximum,
            reduce_res=peak,
            reduce_cmd=command,
        )
    nisa.tensor_scalar(dst=peak, data=peak, op0=nl.maximum, operand0=LOWEST_PEAK)
    return product, squares, peak


@nki.jit
def rmsnorm_quant_isa(hidden, weight, dtype=nl.float8_e4m3):
    """The same, in nki.isa: squares add up on the Scalar Engine while the Vector Engine looks for the peak."""
    (rows, size), largest = hidden.shape, _largest(dtype)
    pmax = nl.tile_size.pmax
    quantised = nl.ndarray((rows, size), dtype=dtype, buffer=nl.shared_hbm)
    scales = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    weights = nl.ndarray((pmax, size), dtype=weight.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=weights, src=weight.reshape((1, size)).broadcast(0, pmax))

    for first, height in _tiles(rows, pmax):
        tokens = nl.ds(first, height)
        product, squares, peak = _products(hidden, tokens, weights[:height, :])
        scale, factor = _column(height), _column(height)
        nisa.tensor_scalar(dst=scale, data=squares, op0=nl.multiply, operand0=1.0 / size, op1=nl.add, operand1=EPSILON)
        nisa.tensor_scalar(dst=scale, data=scale, op0=nl.rsqrt, operand0=0.0, engine=nisa.engine.gpsimd)
        nisa.tensor_scalar(
            dst=scale, data=scale, op0=nl.multiply, operand0=peak, op1=nl.multiply, operand1=1.0 / largest
        )
        nisa.dma_copy(dst=scales[tokens, :], src=scale)

        nisa.reciprocal(dst=factor, data=peak)
        numbers = nl.ndarray((height, size), dtype=dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(
            dst=numbers, data=product, op0=nl.multiply, operand0=factor, op1=nl.multiply, operand1=largest
        )
        nisa.dma_copy(dst=quantised[tokens, :], src=numbers)
    return quantised, scales
