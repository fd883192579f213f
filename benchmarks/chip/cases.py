"""The rows that are judged, and the kernels that are run for them, as data."""

from __future__ import annotations

import csv
import hashlib
import re
from ast import literal_eval
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

TABLES = Path(__file__).parent / "tables"
GENERATOR = 4096, 128  # the matrix out of which the published sums took their rows


class Filled(NamedTuple):
    """An array argument: its shape, its dtype and what it holds."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    content: str = "zeros"  # or normal, small, falling (small negatives), published (``shape[0]`` is a seed)


class Case(NamedTuple):
    """A kernel to run: its module, its name there, what makes it (if something does), its arguments."""

    module: str
    name: str
    arguments: tuple[Any, ...]
    chip: str = "trn2"
    made_by: tuple[Any, ...] = ()
    sum_order: str = "fast"


class Row(NamedTuple):
    """A row of a table: what it is judged as, its family there, and the cases whose figures it is compared with."""

    part: str
    family: str
    cells: dict[str, str]
    keys: tuple[str, ...]

    @property
    def extra_bytes(self) -> int:
        """Return the bytes that a chip moved beyond those that the kernel asks for; 0 where these are not told."""
        moved, asked = (self.cells.get(name, "") for name in ("bytes", "floor_bytes"))
        return int(moved) - int(asked) if moved.isdigit() and asked.isdigit() else 0


Found = tuple[Row, dict[str, Case]]


def table(name: str) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with (TABLES / f"{name}.tsv").open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


@cache
def plan() -> tuple[tuple[Row, ...], dict[str, Case]]:
    """Return all rows that are judged, and their cases by key."""
    rows, cases = [], {}
    for row, own in (*_verdicts(), *_times(), *_sums()):
        rows.append(row)
        cases.update(own)
    return tuple(rows), cases


def subset(share: int = 5, least: int = 3) -> set[str]:
    """Return the keys of the ordinary run: all small kernels and sums, and a fixed part of each stratum of the others.

    A stratum is a family of a table, a verdict, and whether the chip spilled. Of each every ``share``-th row is taken,
    at least ``least``: those with the smallest hashes of their keys.
    """
    strata: dict[tuple[Any, ...], set[tuple[str, ...]]] = {}
    for row in plan()[0]:
        every = row.keys if row.part in ("verdict", "sums") else ""
        stratum = row.family, row.cells.get("dtype"), row.cells.get("verdict"), row.extra_bytes > 0, every
        strata.setdefault(stratum, set()).add(row.keys)
    taken: set[str] = set()
    for each in strata.values():
        ordered = sorted(each, key=lambda keys: hashlib.sha256(keys[0].encode()).hexdigest())
        taken.update(key for keys in ordered[: max(least, len(ordered) // share)] for key in keys)
    return taken


def _verdicts() -> Iterator[Found]:
    for cells in table("verdicts"):
        name, _, given = cells["case"].partition(" ")
        key = f"{cells['kernel'] if cells['kernel'] == 'blocked' else 'verdict'} {cells['case']}"
        if cells["kernel"] == "blocked" and cells["verdict"] != "asserted":
            (K, M, N), blocks = map(int, name.split("x")), tuple(map(int, given.split(",")))
            case = Case("blocked", "blocked", (Filled((K, M)), Filled((K, N)), *blocks))
            yield Row("blocked", name, cells, (key,)), {key: case}
        elif not cells["kernel"].startswith("blocked") and given.startswith("(") and name:
            filled = (
                Filled(each, content="normal") if isinstance(each, tuple) else each for each in literal_eval(given)
            )
            case = Case("verdicts", name, tuple(filled))
            yield Row("verdict", name.split("_")[0], cells, (key,)), {key: case}


def _times() -> Iterator[Found]:
    for cells in table("latencies"):
        key, n = f"{cells['kernel']} {cells['shapes']} {cells['dtype']}", _numbers(cells["shapes"])
        if cells["family"].startswith("bench02"):
            _, variant, _, tiles = cells["kernel"].split()
            operands = tuple(Filled((n["K"], n[side]), cells["dtype"]) for side in "MN")
            made = (128, *map(int, tiles.split("/")[1:]), variant != "naive")
            yield Row("time", "tiled matmul", cells, (key,)), {key: Case("tiled", "of", operands, made_by=made)}
        elif cells["family"].startswith("kiln"):
            name = "topk" if cells["kernel"].startswith("topk") else "delta"
            yield Row("time", cells["kernel"], cells, (key,)), {key: (_topk if name == "topk" else _delta)(cells, n)}
        elif cells["source"].startswith("allen") and cells["meaning"].startswith("execution on"):
            yield _fusion(cells, key, n)


def _fusion(cells: dict[str, str], key: str, n: dict[str, int]) -> Found:
    """Return an attention, or an MLP, whose baseline is two kernels one after the other."""
    family, kind = cells["kernel"].split()
    if family == "attention":
        operand = Filled((128, n["S"]), cells["dtype"])
        name = "together" if kind == "fused" else "apart"
        return Row("time", cells["kernel"], cells, (key,)), {key: Case("attention", name, (operand,) * 3)}
    names = ("product", "gelu") if kind == "baseline" else (kind.removeprefix("fused_"),)
    cases = {}
    for name in names:
        shapes = [(n["M"], n["N"])] if name == "gelu" else [(n["K"], n["M"]), (n["K"], n["N"]), (1, n["N"])]
        arguments = tuple(Filled(shape, cells["dtype"]) for shape in shapes)
        cases[f"mlp {name} {cells['shapes']} {cells['dtype']}"] = Case("mlp", name, arguments)
    return Row("time", cells["kernel"], cells, tuple(cases)), cases


def _topk(cells: dict[str, str], _: dict[str, int]) -> Case:
    rows, width, keep = map(int, re.findall(r"\d+", cells["shapes"]))
    pieces = 1  # a row lies in as many partitions
    while rows * pieces * 2 <= 128 and width % (pieces * 2) == 0:
        pieces *= 2
    x = Filled((rows * pieces, width // pieces), content="normal")
    return Case("rounds", "topk", (x, keep, pieces, pieces.bit_length() - 1, width.bit_length()), "trn1")


def _delta(cells: dict[str, str], n: dict[str, int]) -> Case:
    heads, tokens, by_channel = n["heads"], n["tokens"], "KDA" in cells["kernel"]
    wide, narrow = (tokens, heads, 128), (tokens, heads)
    decays = Filled(wide if by_channel else narrow, content="falling")
    others = [Filled(shape, content="small") for shape in (narrow, (heads, 128, 128), (128, 11, 128))]
    qkv = [Filled(wide, content="small") for _ in range(3)]
    return Case("rounds", "delta", (*qkv, decays, *others, int(by_channel)), "trn1")


def _sums() -> Iterator[Found]:
    for cells in table("sums"):
        if cells["device_hex"]:
            seed, width = int(cells["seed"]), int(cells["elements"])
            x = Filled((seed, GENERATOR[0], width), content="published")
            keys = {f"sums {order} {seed} {width}": order for order in ("chip", "fast")}
            cases = {key: Case("sums", "row_sums", (x,), "trn1", sum_order=order) for key, order in keys.items()}
            yield Row("sums", f"{width} elements", cells, tuple(keys)), cases


def _numbers(text: str) -> dict[str, int]:
    """Return the numbers of a text such as ``K2048 M512`` by the names that stand before them."""
    return {name: int(number) for name, number in re.findall(r"([A-Za-z]+)(\d+)", text)}
