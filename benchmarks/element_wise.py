"""``python -m benchmarks.element_wise``: what an instruction on a whole tile takes, over the same NumPy call.

NumPy's call has ``out=``. Processor time, the least of the rounds, in turns. Beside a tile of bfloat16 NumPy also
converts what it reads and writes, but for the calls that only move. The product is one of [128, 128] and [128, 512],
with a copy out of its bank.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.kernel as nki
import nkitools.dialects.modern.language as nl

ROUNDS, TIMES = 12, 100
SIZES, DTYPES = (512, 4096), (nl.float32, nl.bfloat16)
_HALF, _ONE, _TWO = np.float32(0.5), np.float32(1), np.float32(2)

Call = Callable[[Any, Any, Any], Any]  # of two tiles and a destination
CALLS: dict[str, tuple[Call, Call]] = {
    "tensor_tensor(add)": (
        lambda a, b, d: nisa.tensor_tensor(dst=d, data1=a, data2=b, op=nl.add),
        lambda a, b, d: np.add(a, b, out=d),
    ),
    "tensor_tensor(maximum)": (
        lambda a, b, d: nisa.tensor_tensor(dst=d, data1=a, data2=b, op=nl.maximum),
        lambda a, b, d: np.maximum(a, b, out=d),
    ),
    "tensor_scalar(multiply)": (
        lambda a, b, d: nisa.tensor_scalar(dst=d, data=a, op0=nl.multiply, operand0=2.0),
        lambda a, b, d: np.multiply(a, _TWO, out=d),
    ),
    "tensor_scalar(multiply, add)": (
        lambda a, b, d: nisa.tensor_scalar(dst=d, data=a, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=1.0),
        lambda a, b, d: np.add(np.multiply(a, _TWO, out=d), _ONE, out=d),
    ),
    "scalar_tensor_tensor": (
        lambda a, b, d: nisa.scalar_tensor_tensor(dst=d, data=a, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=b),
        lambda a, b, d: np.add(np.multiply(a, _TWO, out=d), b, out=d),
    ),
    "reciprocal": (lambda a, b, d: nisa.reciprocal(dst=d, data=a), lambda a, b, d: np.divide(_ONE, a, out=d)),
    "activation(exp)": (lambda a, b, d: nisa.activation(dst=d, op=nl.exp, data=a), lambda a, b, d: np.exp(a, out=d)),
    "activation(exp, scale)": (
        lambda a, b, d: nisa.activation(dst=d, op=nl.exp, data=a, scale=0.5),
        lambda a, b, d: np.exp(np.multiply(a, _HALF, out=d), out=d),
    ),
    "activation(tanh)": (lambda a, b, d: nisa.activation(dst=d, op=nl.tanh, data=a), lambda a, b, d: np.tanh(a, out=d)),
    "activation(rsqrt)": (
        lambda a, b, d: nisa.activation(dst=d, op=nl.rsqrt, data=a),
        lambda a, b, d: np.divide(_ONE, np.sqrt(a, out=d), out=d),
    ),
    "activation(square)": (
        lambda a, b, d: nisa.activation(dst=d, op=nl.square, data=a),
        lambda a, b, d: np.square(a, out=d),
    ),
    "activation(copy)": (lambda a, b, d: nisa.activation(dst=d, op=nl.copy, data=a), lambda a, b, d: np.copyto(d, a)),
    "tensor_copy": (lambda a, b, d: nisa.tensor_copy(dst=d, src=a), lambda a, b, d: np.copyto(d, a)),
    "memset": (lambda a, b, d: nisa.memset(dst=d, value=1.0), lambda a, b, d: d.fill(1)),
}
MOVING = ("activation(copy)", "tensor_copy", "memset")


def repeated(call: Callable[[], Any]) -> float:
    """Return the seconds of one of many calls."""
    start = time.process_time()
    for _ in range(TIMES):
        call()
    return (time.process_time() - start) / TIMES


def ratio(ours: Call, plain: Callable[[], Any], x: Any, y: Any, dst: tuple[int, ...], memory: Any) -> float:
    """Return the least time of ``ours(a, b, d)`` on tiles of ``x`` and ``y``, over that of ``plain``."""
    times: list[float] = []

    @nki.jit
    def kernel(x: Any, y: Any) -> Any:
        a, b = (nl.ndarray(each.shape, dtype=each.dtype, buffer=nl.sbuf) for each in (x, y))
        d = nl.ndarray(dst, dtype=x.dtype, buffer=memory)
        seen, out = nl.ndarray(dst, dtype=x.dtype), nl.ndarray(dst, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=a, src=x)
        nisa.dma_copy(dst=b, src=y)
        for _ in range(4):
            ours(a, b, d)
        times.append(repeated(lambda: ours(a, b, d)))
        nisa.tensor_copy(dst=seen, src=d)
        nisa.dma_copy(dst=out, src=seen)
        return out

    least = np.inf
    for _ in range(ROUNDS):
        nkitools.simulate(kernel, x, y, rules="report")
        least = min(least, repeated(plain))
    return float(min(times) / least)


def of_tile(name: str, dtype: Any, size: int) -> float:
    """Return the ratio of an instruction on [128, size]."""
    ours, plain = CALLS[name]
    x, y = ((np.random.default_rng(seed).random((128, size), np.float32) + 1).astype(dtype.dtype) for seed in (0, 1))
    d, wide = x.copy(), [np.empty(x.shape, np.float32) for _ in range(3)]

    def converting() -> None:
        np.copyto(wide[0], x)
        if "tensor_tensor" in name:
            np.copyto(wide[1], y)
        plain(*wide)
        np.copyto(d, wide[2], casting="unsafe")

    converts = dtype is not nl.float32 and name not in MOVING
    return ratio(ours, converting if converts else lambda: plain(x, y, d), x, y, x.shape, nl.sbuf)


def of_product() -> float:
    """Return the ratio of a matrix product in float32, and of a copy out of its bank."""
    x, y = np.eye(128, dtype=np.float32), np.random.default_rng(0).random((128, 512), np.float32)  # y stays as it is
    product, copied = np.empty((128, 512), np.float32), np.empty((128, 512), np.float32)

    def ours(a: Any, b: Any, d: Any) -> None:
        nisa.nc_matmul(dst=d, stationary=a, moving=b, accumulate=False)
        nisa.tensor_copy(dst=b, src=d)

    def plain() -> None:
        np.matmul(x.T, y, out=product)
        np.copyto(copied, product)

    return ratio(ours, plain, x, y, (128, 512), nl.psum)


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    forms = [(dtype, size) for dtype in DTYPES for size in SIZES]
    print(f"{'over NumPy':<30}" + "".join(f"{f'{dtype} {size}':>16}" for dtype, size in forms))
    for name in CALLS:
        print(f"{name:<30}" + "".join(f"{of_tile(name, *form):>16.2f}" for form in forms), flush=True)
    print(f"{'nc_matmul and a copy':<30}{of_product():>16.2f}")


if __name__ == "__main__":
    main()
