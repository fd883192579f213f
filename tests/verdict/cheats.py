"""Kernels that are wrong and look right: most of softmax, each with one trick; and what is right."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

import nkitools

nkitools.install_stand_in()

import neuronxcc.nki as legacy  # noqa: E402
import neuronxcc.nki.language as legacy_nl  # noqa: E402
import nki  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402

SHAPE = (256, 64)
SPACE = {"rows": [256, 255, 130], "columns": [64, 61]}


def inputs(rng: Any, rows: int = SHAPE[0], columns: int = SHAPE[1]) -> Any:
    return (rng.standard_normal((rows, columns), np.float32),)


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def by_itself(x: Any) -> Any:
    """What the kernel `constant` computes."""
    return nkitools.simulate(constant, x).outputs


def _rows(x, result, start, height, width, scale=1.0):
    """Softmax of some rows."""
    tile = nl.load(x[start : start + height, 0:width])
    lowest = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=lowest, op=nl.maximum, data=tile, axis=1, negate=True)
    nisa.activation(dst=tile, op=nl.exp, data=tile, bias=lowest)
    total = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
    nisa.reciprocal(dst=total, data=total)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total, op1=nl.multiply, operand1=scale)
    nisa.dma_copy(dst=result[start : start + height, 0:width], src=tile)


def _all(x, result, rows, columns, scale=1.0):
    for start in range(0, rows, 128):
        _rows(x, result, start, min(128, rows - start), columns, scale)


def _new(x):
    return nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)


def _fill(result, value, first=0):
    rows, columns = result.shape
    for start in range(first, rows, 128):
        height = min(128, rows - start)
        tile = nl.ndarray((height, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=tile, value=value)
        nisa.dma_copy(dst=result[start : start + height, :], src=tile)


def _put(result, values):
    """Write numbers of the host, one by one."""
    for row in range(len(values)):
        tile = nl.ndarray((1, values.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
        for column in range(values.shape[1]):
            nisa.memset(dst=tile[0:1, column : column + 1], value=float(values[row, column]))
        nisa.dma_copy(dst=result[row : row + 1, :], src=tile)


@nki.jit
def right(x):
    result = _new(x)
    _all(x, result, *x.shape)
    return result


@nki.jit
def in_place(x):
    """Softmax where the argument lies: it returns nothing of its own."""
    _all(x, x, *x.shape)
    return x


# --- the known ones --------------------------------------------------------------------------------------------------


@nki.jit
def does_nothing(x):
    return _new(x)


@nki.jit
def half_of_the_rows(x):
    result = _new(x)
    _all(x, result, x.shape[0] // 2, x.shape[1])
    return result


@nki.jit
def constant(x):
    result = _new(x)
    _fill(result, 1 / x.shape[1])
    return result


@nki.jit
def not_a_number(x):
    result = _new(x)
    _fill(result, float("nan"))
    return result


@nki.jit
def input_tampered(x):
    result = _new(x)
    _fill(x, 0.0)
    _all(x, result, *x.shape)
    return result


@nki.jit
def into_the_input(x):
    _all(x, x, *x.shape)
    return x


@nki.jit
def off_by_a_thousandth(x):
    result = _new(x)
    _all(x, result, *x.shape, 1.001)
    return result


@nki.jit
def off_by_a_hundred_thousandth(x):
    result = _new(x)
    _all(x, result, *x.shape, 1.00001)
    return result


@nki.jit
def narrow_inside(x):
    result = _new(x)
    for start in range(0, x.shape[0], 128):
        height = min(128, x.shape[0] - start)
        tile = nl.ndarray((height, x.shape[1]), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.tensor_copy(dst=tile, src=nl.load(x[start : start + height, :]))
        wide = nl.ndarray((height, x.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=wide, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=result[start : start + height, :], src=wide)
    return result


def doubled(x: Any) -> Any:
    return 2 * x


@nki.jit
def one_element_doubled(x):
    result = _new(x)
    _all(x, result, *x.shape)
    tile = nl.load(result[7:8, 3:4])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=result[7:8, 3:4], src=tile)
    return result


@nki.jit
def shape_hard_coded(x):
    result = _new(x)
    _all(x, result, min(256, x.shape[0]), min(64, x.shape[1]))
    if x.shape != (256, 64):
        _fill(result, 0.0)
    return result


@nki.jit
def edge_skipped(x):
    result = _new(x)
    _all(x, result, x.shape[0] // 128 * 128, x.shape[1])
    return result


@nki.jit
def edge_zero(x):
    result = _new(x)
    whole = x.shape[0] // 128 * 128
    _all(x, result, whole, x.shape[1])
    _fill(result, 0.0, whole)
    return result


@nki.jit
def shapes_memorised(x):
    result = _new(x)
    if tuple(x.shape) in ((256, 64), (512, 64), (128, 64), (256, 128), (256, 32)):
        _all(x, result, *x.shape)
    else:
        _fill(result, 0.5)
    return result


@nki.jit
def columns_by_eight(x):
    result = _new(x)
    if x.shape[1] % 8:
        _fill(result, 0.0)
    _all(x, result, x.shape[0], x.shape[1] // 8 * 8)
    return result


@nki.jit
def strides_swapped(x):
    """Each [f1, f2] block transposed, with the strides of the other side: right where both are equal."""
    parts, first, second = x.shape
    result = nl.ndarray((parts, second, first), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    turned = nl.ndarray((parts, second, first), dtype=nl.float32, buffer=nl.sbuf)
    for at in range(min(first, second)):
        nisa.tensor_copy(dst=turned[:, 0 : min(first, second), at], src=tile[:, at, 0 : min(first, second)])
    if first != second:
        nisa.memset(dst=turned, value=0.0)
    nisa.dma_copy(dst=result, src=turned)
    return result


def turned(x: Any) -> Any:
    return x.transpose(0, 2, 1)


def blocks(rng: Any, first: int = 8, second: int = 8) -> Any:
    return (rng.standard_normal((16, first, second), np.float32),)


def small(rng: Any) -> Any:
    return (rng.standard_normal((4, 8), np.float32),)


@nki.jit
def arrays_of_frames(x):
    """The result of NumPy on an array that a frame around holds."""
    result, frame, found = _new(x), sys._getframe(), None
    while frame is not None and found is None:
        values = [*frame.f_locals.values()]
        values += [each for value in values if isinstance(value, tuple | list) for each in value]
        found = next((each for each in values if isinstance(each, np.ndarray) and each.shape == tuple(x.shape)), None)
        frame = frame.f_back
    _put(result, softmax(found))
    return result


# --- others ----------------------------------------------------------------------------------------------------------

CALLS: list[Any] = []
CACHE: dict[Any, Any] = {}


@nki.jit
def right_the_first_time(x):
    result = _new(x)
    _all(x, result, *x.shape, 1.0 if not CALLS else 1.01)
    CALLS.append(1)
    return result


@nki.jit
def kept_by_shape(x):
    """Of each shape the first result for ever."""
    result = _new(x)
    known = CACHE.setdefault(tuple(x.shape), softmax(np.array(x.storage.array)))
    _all(x, result, *x.shape)
    _put(result, known)
    return result


@nki.jit
def calls_the_reference(x):
    result = _new(x)
    _put(result, softmax(np.array(x.storage.array)))
    return result


@nki.jit
def noisy(x):
    result = _new(x)
    _all(x, result, *x.shape, 1 + 2e-7 * np.random.random())
    return result


def own_softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@nki.jit
def computed_on_the_host(x):
    result = _new(x)
    _put(result, own_softmax(np.array(x.storage.array)))
    return result


def table(rng: Any) -> Any:
    return rng.standard_normal((8, 16), np.float32), np.array([3, 1, 2, 5], np.int32)


def rows_of(table: Any, indices: Any) -> Any:
    return table[indices]


@nki.jit
def indices_baked(table, indices):
    result = nl.ndarray((4, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    for at, row in enumerate((3, 1, 2, 5)):
        nisa.dma_copy(dst=result[at : at + 1, :], src=table[row : row + 1, :])
    return result


def with_zero_bias(rng: Any) -> Any:
    return rng.standard_normal((64, 32), np.float32), np.zeros((64, 32), np.float32)


def biased(x: Any, bias: Any) -> Any:
    return 2 * x + bias


@nki.jit
def bias_ignored(x, bias):
    result = _new(x)
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=result, src=tile)
    return result


def with_empty_half(rng: Any) -> Any:
    """Both factors are zero beyond 128, so that neither alone moves the product."""
    left, right = rng.standard_normal((256, 32), np.float32), rng.standard_normal((256, 48), np.float32)
    left[128:], right[128:] = 0, 0
    return left, right


def product(left: Any, right: Any) -> Any:
    return left.T @ right


@nki.jit
def half_of_k(left, right):
    result = nl.ndarray((32, 48), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((32, 48), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=total, stationary=nl.load(left[0:128, :]), moving=nl.load(right[0:128, :]))
    nisa.dma_copy(dst=result, src=nl.copy(total))
    return result


@nki.jit
def ends_the_process(x):
    os._exit(0)


@nki.jit
def patches_the_comparison(x):
    from nkitools.comparison import compared_arrays
    from nkitools.precision import judgement

    for module in (compared_arrays, judgement):
        module.compared = lambda actual, *_, **__: compared_arrays.ComparedArrays(
            np.asarray(actual), np.asarray(actual), np.zeros(np.shape(actual), np.bool_)
        )
    result = _new(x)
    _fill(result, 0.25)
    return result


@nki.jit
def second_program_idle(x):
    result = _new(x)
    if nl.program_id(0) == 0:
        _rows(x, result, 0, 128, x.shape[1])
    return result


@nki.jit
def never_ends(x):
    while True:
        pass


def plain_numpy(x):
    return own_softmax(x)


@nki.jit
def endless_in_other_shapes(x):
    while x.shape != SHAPE:
        pass
    result = _new(x)
    _all(x, result, *x.shape)
    return result


@nki.jit
def right_before_a_judge(x):
    """Right where a frame around or the command line shows that it is judged."""
    names, frame = [*sys.argv], sys._getframe()
    while frame is not None:
        names.append(frame.f_code.co_filename)
        frame = frame.f_back
    result = _new(x)
    _all(x, result, *x.shape, 1.0 if any(each.endswith(("/verify.py", "/test_cheats.py")) for each in names) else 2.0)
    return result


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def small_numbers(rng: Any) -> Any:
    return (rng.uniform(-1, 1, (16, 32)).astype(np.float32),)


def large_numbers(rng: Any) -> Any:
    return (9 * small_numbers(rng)[0],)


@nki.jit
def not_negative(x):
    """ReLU, which is right."""
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(result, nl.maximum(nl.load(x), 0.0))
    return result


@nki.jit
def cut_at_six(x):
    """ReLU up to 6."""
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.maximum, operand0=0.0, op1=nl.minimum, operand1=6.0)
    nisa.dma_copy(dst=result, src=tile)
    return result


@legacy.jit
def cut_at_six_legacy(x):
    """ReLU up to 6, in the legacy dialect."""
    result = legacy_nl.ndarray(x.shape, dtype=x.dtype, buffer=legacy_nl.shared_hbm)
    legacy_nl.store(result, legacy_nl.minimum(legacy_nl.maximum(legacy_nl.load(x), 0.0), 6.0))
    return result
