"""``python -m benchmarks.chip.tpu FOLDER``: estimates of Pallas kernels by counts, beside times measured on TPUs.

``FOLDER`` is ``tokamax/data/autotuning`` of the public library tokamax (Apache-2.0): for each problem its authors keep
the best setting of a kernel and its time on a device. The kernels are tokamax's own, which this process must be able to
import (Python 3.12 or newer). Nothing is run. The time is a device's, of a whole function, so that the estimate is of
the calls and of what XLA does around them.

A problem whose key has an even ``int(sha256(key).hexdigest()[:8], 16)`` is for building, the others judge. ``--fit``
writes the rates and bands of the building half, and looks at no other row.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.chip.figures import FAR, quantiles
from nkitools.pallas import counted_time
from nkitools.pallas.around_calls import Around
from nkitools.pallas.calls import compiling_for
from nkitools.pallas.chips import CHIPS
from nkitools.pallas.counted_time import Parts
from nkitools.pallas.kernel_integers import work_of
from nkitools.pallas.whole_function import calls_to_compile
from nkitools.sweeps.local_engine import LocalEngine

_CHIPS = {"tpu_v5_lite": "v5e", "tpu_v5": "v5p", "tpu_v6_lite": "v6e", "tpu7x": "tpu7x"}
_FILES = "pallas_mosaic_tpu_"
_OPERATIONS = {
    "flash_attention": ("attention.pallas_mosaic_tpu", "PallasMosaicTpuFlashAttention"),
    "flash_attention_vjp": ("attention.pallas_mosaic_tpu_vjp", "PallasMosaicTpuFlashAttentionVjp"),
    "linear_softmax_cross_entropy_loss": (
        "linear_softmax_cross_entropy_loss.pallas_mosaic_tpu",
        "PallasMosaicTpuLinearSoftmaxCrossEntropyLoss",
    ),
    "linear_softmax_cross_entropy_loss_vjp": (
        "linear_softmax_cross_entropy_loss.pallas_mosaic_tpu",
        "PallasMosaicTpuLinearSoftmaxCrossEntropyLossVjp",
    ),
    "ragged_dot": ("ragged_dot.pallas_mosaic_tpu", "PallasMosaicTpuRaggedDot"),
}
_SOURCE = "openxla/tokamax, data/autotuning (Apache-2.0)"
# Where the search begins, and how far it may go: nothing is faster than its document says. Tuned kernels have large
# blocks, which leaves the time of a grid point open on a v5e: there it is that of the products in JAX's documentation,
# whose blocks of 128 x 128 take 11.8 ms in 32,768 points and 91.8 ms in 262,144, less the time of their bytes.
_BEGIN = {"product": 1.05, "vector": 0.2, "step_us": 0.3, "call_us": 5.0, "moved": 1.1, "around": 1.2}
_BOUNDS = {"product": (1.0, 2.0), "moved": (1.0, 1.5), "around": (1.0, 3.0)}
_KNOWN = {"v5e": {"step_us": 0.265}}


class Row(NamedTuple):
    """A measured setting of a kernel."""

    chip: str
    kernel: str
    key: str
    config: str
    us: float

    @property
    def judges(self) -> bool:
        """Return whether it is kept from the fit."""
        return int(sha256(self.key.encode()).hexdigest()[:8], 16) % 2 == 1


class Counted(NamedTuple):
    """What an estimate is made of: the parts of each call, documented microseconds around them, and the families."""

    calls: tuple[Parts, ...]
    around: float
    families: tuple[str, ...]


def read(folder: Path) -> Iterator[Row]:
    """Yield the rows of Pallas kernels on TPUs."""
    for path in sorted(folder.glob(f"tpu*/{_FILES}*.json")):
        for key, settings in json.loads(path.read_text()).items():
            for config, measured in settings.items():
                us = median(measured["evaluation_times_ms"]) * 1e3
                yield Row(_CHIPS[path.parent.name], path.stem.removeprefix(_FILES), key, config, us)


def counted(row: Row) -> Counted:
    """Return what is counted of a row's kernel on its chip."""
    jax, chip = importlib.import_module("jax"), CHIPS[row.chip]
    with compiling_for(chip):
        fn, arrays = function_of(row)
        traced = jax.make_jaxpr(fn)(*arrays)
        around, calls = Around(traced, arrays), calls_to_compile(traced)
        works = [work_of(each, around.scalars) for each in calls]
        parts = tuple(counted_time.parts_of(work, call, chip) for work, call in zip(works, calls, strict=True))
    families = tuple(map(counted_time.family_of, works))
    return Counted(parts, counted_time.microseconds_around(around.moved, chip), families)


def function_of(row: Row) -> tuple[Callable[..., Any], list[Any]]:
    """Return tokamax's kernel with the row's setting as a function of the row's arrays."""
    jax, pydantic = importlib.import_module("jax"), importlib.import_module("pydantic")
    module, name = _OPERATIONS[row.kernel]
    operation = getattr(importlib.import_module(f"tokamax._src.ops.{module}"), name)()
    specification = importlib.import_module("tokamax._src.pydantic").get_arg_spec_model("Row", operation._fwd_signature)
    arguments = operation.bind(**pydantic.TypeAdapter(specification).validate_json(row.key)).arguments
    config = pydantic.TypeAdapter(operation.config_cls).validate_json(row.config)
    if _is_older(row):
        config = dataclasses.replace(config, tile_k=config.tile_n, tile_n=config.tile_k)
    leaves, tree = jax.tree.flatten(dict(arguments))
    traced = [isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves]

    def fn(*arrays: Any) -> Any:
        left = iter(arrays)
        given = tree.unflatten([next(left) if one else leaf for leaf, one in zip(leaves, traced, strict=True)])
        return operation._fwd(**given, config=config)

    return fn, [leaf for leaf, one in zip(leaves, traced, strict=True) if one]


def _is_older(row: Row) -> bool:
    """Return whether a row was made when the tiles of a transposed product stood in that product's order.

    In the building half it is so on these chips: in the other order there are tiles beyond their dimensions, and times
    above the chip's peak.
    """
    if row.kernel != "ragged_dot" or row.chip not in ("v5e", "tpu7x"):
        return False
    numbers = json.loads(row.key)["ragged_dot_dimension_numbers"]["dot_dimension_numbers"]
    return bool(numbers[0] == [[1], [2]])


def microseconds(found: Counted, law: Mapping[str, float]) -> float:
    """Return the estimated time of a function."""
    calls = (counted_time.time_of(each, law) for each in found.calls)
    return sum(max(each.compute_us, each.memory_us) + each.overhead_us for each in calls) + found.around * law["around"]


def figure(times: Sequence[tuple[float, float]]) -> str:
    """Return the agreement of pairs of a measured and an estimated time."""
    errors = sorted(abs(mine / chip - 1) for chip, mine in times)
    far = [(a, b) for a, b in combinations(times, 2) if max(a[0], b[0]) > min(a[0], b[0]) * (1 + FAR)]
    right = sum((a[0] < b[0]) == (a[1] < b[1]) for a, b in far)
    ninetieth = errors[min(len(errors) * 9 // 10, len(errors) - 1)]
    order = f"{right} of {len(far)} pairs more than 10 % apart in order ({right / max(len(far), 1):.1%})"
    return f"{len(times)} rows, median error {median(errors):.1%}, nine of ten within {ninetieth:.1%}, {order}"


def lines(rows: Sequence[Row], estimates: Sequence[float]) -> Iterator[str]:
    """Yield the agreement by chip, and by chip and kernel."""
    times: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row, us in zip(rows, estimates, strict=True):
        for kernel in ("all kernels", row.kernel):
            times.setdefault((row.chip, kernel), []).append((row.us, us))
    for (chip, kernel), found in sorted(times.items()):
        yield f"{chip}, {kernel}: {figure(found)}"


def fitted(rows: Sequence[tuple[Row, Counted]], known: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return the rates with the least mean error of these rows, by changing one after the other but the known ones.

    A rate's distance from where it began counts a little, so that what the rows do not show stays.
    """
    begin = {**_BEGIN, **(known or {})}
    law = dict(begin)

    def error(candidate: Mapping[str, float]) -> float:
        far = np.mean([abs(np.log(microseconds(found, candidate) / row.us)) for row, found in rows])
        return float(far + 0.003 * sum(np.log(candidate[name] / begin[name]) ** 2 for name in begin))

    for step in (1.5, 1.2, 1.1, 1.05, 1.02, 1.01) * 3:
        for name in [name for name in law if name not in (known or {})]:
            least, most = _BOUNDS.get(name, (0.01, 100.0))
            tried = [min(max(law[name] * factor, least), most) for factor in (1.0, 1 / step, step)]
            law = min(({**law, name: value} for value in tried), key=error)
    return {name: float(f"{value:.3g}") for name, value in law.items()}


def write(rows: Sequence[tuple[Row, Counted]]) -> None:
    """Write the tables of rates and of bands anew; bands of the compiler's profile stay."""
    laws, bands = [], []
    folder = Path(counted_time.__file__).parent
    for chip in dict.fromkeys(row.chip for row, _ in rows):
        mine = [each for each in rows if each[0].chip == chip]
        law = fitted(mine, _KNOWN.get(chip))
        laws.append("\t".join([chip, *map(str, law.values()), str(len(mine)), _SOURCE]))
        for family in sorted({found.families[0] for _, found in mine}):
            ratios = [row.us / microseconds(found, law) for row, found in mine if found.families[0] == family]
            lower, _, upper = quantiles(ratios)
            bands.append(
                f"counts\t{chip}\t{family}\t{len(ratios)}\t{min(lower, 1):.3f}\t{max(upper, 1):.3f}\t{_SOURCE}"
            )
    (folder / "counted_laws.tsv").write_text("\n".join(["chip\t" + "\t".join(_BEGIN) + "\trows\tsource", *laws, ""]))
    path = folder / "counted_bands.tsv"
    head, *known = path.read_text().splitlines()
    path.write_text("\n".join([head, *(line for line in known if not line.startswith("counts")), *bands, ""]))


def main() -> int:
    """Print the agreement of one half of the rows; with ``--fit`` of the building one, whose rates it writes first."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chip.tpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="tokamax/data/autotuning")
    parser.add_argument("--half", choices=("build", "judge"), default="judge", help="which problems (default judge)")
    parser.add_argument("--fit", action="store_true", help="fit the rates to the building half, and write them")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    options = parser.parse_args()
    judges = options.half == "judge" and not options.fit
    rows = [row for row in read(options.folder) if row.judges == judges]
    found: dict[Row, Counted] = {}
    for ended in LocalEngine(workers=options.workers, timeout=600).run(counted, rows):
        if ended.reason:
            print(f"not counted: {ended.task.kernel} on {ended.task.chip}: {ended.reason}: {ended.error}")
        else:
            found[ended.task] = ended.result
    rows = [row for row in rows if row in found]
    if options.fit:
        write([(row, found[row]) for row in rows])
        counted_time._laws.cache_clear()
    estimates = [microseconds(found[row], counted_time.law_of(CHIPS[row.chip])) for row in rows]
    print("\n".join(lines(rows, estimates)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
