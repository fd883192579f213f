"""``python -m benchmarks.sweeps STORE``: many cases of the gallery's kernels in one store; a second call goes on.

Each kernel is swept over shapes, dtypes, seeds and chips, against the gallery's own references.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import nkitools

nkitools.install_stand_in(prefer="builtin")

from kernels import references  # noqa: E402
from kernels.nki.gather_scatter import gather_rows  # noqa: E402
from kernels.nki.layer_norm import layer_norm  # noqa: E402
from kernels.nki.legacy.relu import relu  # noqa: E402
from kernels.nki.legacy.softmax import softmax as legacy_softmax  # noqa: E402
from kernels.nki.matmul import matmul  # noqa: E402
from kernels.nki.rotary import rotary  # noqa: E402
from kernels.nki.softmax import softmax  # noqa: E402
from kernels.nki.state_space_scan import state_space_scan  # noqa: E402
from kernels.nki.top_k import top_k  # noqa: E402


def normal(seed: int, *shapes: tuple[int, ...], dtype: str = "float32") -> tuple[Any, ...]:
    """Normally distributed numbers of these shapes."""
    random = np.random.default_rng(seed)
    return tuple(random.standard_normal(shape, np.float32).astype(dtype) for shape in shapes)


def rows_and_columns(rows: int, columns: int, seed: int, dtype: str = "float32") -> tuple[Any, ...]:
    """One matrix."""
    return normal(seed, (rows, columns), dtype=dtype)


def product(K: int, M: int, N: int, seed: int, dtype: str = "float32") -> tuple[Any, ...]:
    """Two factors, with the contraction first."""
    return normal(seed, (K, M), (K, N), dtype=dtype)


def rows_with_weights(rows: int, columns: int, seed: int) -> tuple[Any, ...]:
    """A matrix, and a scale and an offset of its columns."""
    return normal(seed, (rows, columns), (columns,), (columns,))


def table_and_indices(vocabulary: int, columns: int, tokens: int, seed: int) -> tuple[Any, ...]:
    """A table and which of its rows are wanted."""
    indices = np.random.default_rng(seed).integers(0, vocabulary, tokens).astype(np.int32)
    return *normal(seed, (vocabulary, columns)), indices


def decaying(rows: int, columns: int, seed: int) -> tuple[Any, ...]:
    """Factors below one, and addends."""
    return np.random.default_rng(seed).random((rows, columns), np.float32), *normal(seed + 1, (rows, columns))


def heads(rows: int, count: int, size: int, seed: int) -> tuple[Any, ...]:
    """Heads, and the cosines and sines of their angles."""
    angles = np.arange(rows)[:, None] / 10_000 ** (np.arange(size // 2)[None] / (size // 2))
    return *normal(seed, (rows, count, size)), np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def largest(rows: int, columns: int, k: int, seed: int) -> tuple[Any, ...]:
    """A matrix, and how many numbers of each row are wanted."""
    return *normal(seed, (rows, columns)), k


class Swept(NamedTuple):
    """One kernel and its space."""

    kernel: Any
    arguments: Callable[..., Any]
    reference: Callable[..., Any]
    space: Mapping[str, Any]


SWEPT = (
    Swept(
        softmax, rows_and_columns, references.softmax,
        {"rows": [1, 64, 127, 128, 129, 200], "columns": range(1, 400, 33), "seed": range(16)},
    ),
    Swept(
        gather_rows, table_and_indices, references.gather_rows,
        {"vocabulary": [1, 77, 300], "columns": [1, 31, 64, 96], "tokens": [1, 5, 128, 129, 257], "seed": range(16)},
    ),
    Swept(
        top_k, largest, references.top_k,
        {"rows": [1, 64, 128, 129], "columns": [16, 33, 64, 128], "k": [1, 8, 9, 16], "seed": range(8)},
    ),
    Swept(
        relu, rows_and_columns, references.relu,
        {"rows": [128, 256], "columns": [64, 128, 512, 1000], "dtype": ["float32", "bfloat16"], "seed": range(8)},
    ),
    Swept(
        legacy_softmax, rows_and_columns, references.softmax,
        {"rows": [1, 64, 128, 130], "columns": [1, 16, 100, 512], "seed": range(8)},
    ),
    Swept(
        layer_norm, rows_with_weights, references.layer_norm,
        {"rows": [1, 64, 127, 128, 129, 200], "columns": [32, 64, 128, 256, 512], "seed": range(4)},
    ),
    Swept(
        rotary, heads, references.rotary,
        {"rows": [128, 256], "count": [1, 2, 4], "size": [32, 64], "seed": range(8)},
    ),
    Swept(
        state_space_scan, decaying, references.state_space_scan,
        {"rows": [1, 64, 127, 128], "columns": [1, 31, 100, 512, 1000], "seed": range(4)},
    ),
    Swept(
        matmul, product, references.product,
        {"K": [1, 128, 129], "M": [1, 128, 130], "N": [1, 65, 513], "dtype": ["float32", "bfloat16"], "seed": range(2)},
    ),
)  # fmt: skip


def main() -> None:
    """Sweep all of them, and say how many cases had which outcome."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweeps", description=__doc__)
    parser.add_argument("store", help="the file that keeps what is done")
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds of a case")
    options = parser.parse_args()
    counted: Counter[str] = Counter()
    began = time.monotonic()
    for each in SWEPT:
        found = nkitools.sweep(
            each.kernel, each.space, arguments=each.arguments, reference=each.reference, chips=("trn1", "trn2", "trn3"),
            engine=options.engine, workers=options.workers, store=options.store, timeout=options.timeout,
        )  # fmt: skip
        counted.update(found.outcomes)
        print(f"{found}, {found.stored} of them stored before ({time.monotonic() - began:.0f} s)", flush=True)
        for row in found.failed[:3]:
            print(f"  {row}", flush=True)
    print(f"{sum(counted.values())} cases: {dict(counted)}")


if __name__ == "__main__":
    main()
