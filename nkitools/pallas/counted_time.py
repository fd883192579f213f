"""The time of a Pallas call by what it computes and moves, at rates that were fitted to measured kernels.

The rates are ``counted_laws.tsv``, a row a chip: ``product`` times the documented time of matrix products, whose sides
are rounded up to those of the chip's matrix unit; ``vector`` cycles of an elementwise operation on a vector register;
microseconds of a grid point and of a call; ``moved`` and ``around`` times the documented time of the bytes that a
kernel and that XLA moves. ``counted_bands.tsv`` has the bands of measured kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from nkitools.facts.tsv import rows_of
from nkitools.pallas.calls import Call, compiling_for, placed_equations
from nkitools.pallas.chips import Chip
from nkitools.pallas.counted_work import FUNCTIONS, Product, Work
from nkitools.pallas.imports import jax_module
from nkitools.pallas.performance import PEAKS

# Cycles a second: the peak of bfloat16 of a TensorCore by the multiply-adds of a cycle, four times 128 x 128 on v5,
# four times 256 x 256 later (two arrays that take two rows a cycle). There is none for v4, which has no profile.
CLOCKS = {"v5e": 1.503e9, "v5p": 1.751e9, "v6e": 1.755e9, "tpu7x": 2.203e9}

_WIDER = 1.5  # how much wider a band is of a family that was not measured on a chip, and again for such a chip
_TABLES = Path(__file__).parent


@dataclass(frozen=True)
class Band:
    """Between which shares of the estimate eight of ten measured kernels lie; ``said``: which kernels, or none."""

    lower: float
    upper: float
    said: str


UNKNOWN = Band(0.5, 2.0, "no kernel was measured")


class Parts(NamedTuple):
    """A call's time in microseconds by the documents of its chip: of products, operations on vectors, and bytes.

    ``steps``: the points of the grid of one TensorCore.
    """

    product: float
    vector: float
    moved: float
    steps: float


class CountedTime(NamedTuple):
    """The time of a call in microseconds: of its operations, of its bytes, and of its starts."""

    compute_us: float
    memory_us: float
    overhead_us: float


@cache
def _laws() -> dict[str, Mapping[str, float]]:
    numbers = ("product", "vector", "step_us", "call_us", "moved", "around")
    return {row["chip"]: {name: float(row[name]) for name in numbers} for row in rows_of(_TABLES / "counted_laws.tsv")}


@cache
def _bands() -> dict[tuple[str, str, str], tuple[int, float, float]]:
    return {
        (row["by"], row["chip"], row["family"]): (int(row["rows"]), float(row["lower"]), float(row["upper"]))
        for row in rows_of(_TABLES / "counted_bands.tsv")
    }


def tpu_info(chip: Chip) -> Any:
    """Return JAX's numbers of a TensorCore of a chip."""
    with compiling_for(chip):
        return jax_module("jax.experimental.pallas.tpu").get_tpu_info()


def parts_of(work: Work, call: Call, chip: Chip) -> Parts:
    """Return the parts of a call's time; TensorCores of one device share a grid that has a parallel dimension."""
    info = tpu_info(chip)
    cores = PEAKS[chip.name].cores_of_device if any(call.parallel) else 1
    products = sum(_seconds(each, info) * count for each, count in work.products.items())
    return Parts(
        product=products / cores * 1e6,
        vector=work.elementwise / CLOCKS.get(chip.name, CLOCKS["v5e"]) / cores * 1e6,
        moved=work.moved / info.mem_bw_bytes_per_second / cores * 1e6,
        steps=work.steps / cores,
    )


def time_of(parts: Parts, law: Mapping[str, float]) -> CountedTime:
    """Return the time of a call at the rates of a chip."""
    return CountedTime(
        compute_us=parts.product * law["product"] + parts.vector * law["vector"],
        memory_us=parts.moved * law["moved"],
        overhead_us=parts.steps * law["step_us"] + law["call_us"],
    )


def microseconds_around(moved: float, chip: Chip) -> float:
    """Return the documented time in which XLA moves so many bytes around the calls of a function."""
    bandwidth = tpu_info(chip).mem_bw_bytes_per_second * PEAKS[chip.name].cores_of_device
    return float(moved / bandwidth * 1e6)


def law_of(chip: Chip) -> Mapping[str, float]:
    """Return the rates of a chip; those of a v5e for a chip that was never measured."""
    return _laws().get(chip.name) or _laws()["v5e"]


def _seconds(product: Product, info: Any) -> float:
    """Return the documented time of a matrix product in seconds, in one pass."""
    rows, inner, columns, dtype = product
    side = info.mxu_column_size
    rates = {"int8": info.int8_ops_per_second, "uint8": info.int8_ops_per_second, "int4": info.int4_ops_per_second}
    rate = rates.get(dtype) or (dtype.startswith("float8") and info.fp8_ops_per_second) or info.bf16_ops_per_second
    return 2.0 * _up(rows, 8) * _up(inner, side) * _up(columns, side) / float(rate)


def _up(size: int, side: int) -> int:
    return -(-size // side) * side


def family_of(work: Work) -> str:
    """Return what a kernel contains, as measured kernels are grouped."""
    if not work.products:
        return "no product"
    return "products and functions" if work.functions else "products"


def band_of(work: Work, chip: Chip) -> Band:
    """Return the band of an estimate by counts."""
    return _band("counts", chip, family_of(work))


def profiled_band(chip: Chip, call: Call) -> Band:
    """Return the band of an estimate by the compiler's profile."""
    names = {equation.primitive.name for equation, _ in placed_equations(call.jaxpr, call.kernel_place)}
    functions = "products" if names.isdisjoint(FUNCTIONS) else "products and functions"
    return _band("compiler", chip, functions if "dot_general" in names else "no product")


def _band(by: str, chip: Chip, family: str) -> Band:
    """Return the band of a family on a chip; a wider one, which says so, where that was never measured."""
    bands = {key[1:]: found for key, found in _bands().items() if key[0] == by}
    if (chip.name, family) in bands:
        rows, lower, upper = bands[chip.name, family]
        return Band(lower, upper, f"eight of ten of {rows} measured kernels, {family}")
    same = [found for (name, _), found in bands.items() if name == chip.name]
    wider = _WIDER if same else _WIDER**2
    said = f"no kernel with {family}" if same and family != "no product" else "no such kernel" if same else "no kernel"
    found = same or list(bands.values())
    lower, upper = min(low for _, low, _ in found) / wider, max(high for *_, high in found) * wider
    return Band(lower, upper, f"{said} was measured on {chip.name}")
