"""The example kernels with a fault planted into them: one tile of the third iteration is wrong."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from tests.loading import loaded

KERNELS = Path(__file__).parents[3] / "kernels" / "nki"


class Planted(NamedTuple):
    """A kernel file, what is replaced in it by what, and the counters of the turn that it spoils."""

    file: str
    right: str
    wrong: str
    turn: dict[str, str]


PLANTED = {
    "softmax": Planted(
        "softmax.py",
        "        tile = nl.load(logits[start : start + height, :])\n",
        "        tile = nl.load(logits[nl.ds(0 if start == 256 else start, height), :])\n",
        {"start": "256"},
    ),
    "attention": Planted(
        "attention.py",
        "        nisa.dma_copy(dst=result[start : start + height, :], src=scaled)\n",
        "        nisa.tensor_scalar(dst=scaled, data=scaled, op0=nl.multiply, operand0=2.0 if start == 256 else 1.0)\n"
        "        nisa.dma_copy(dst=result[start : start + height, :], src=scaled)\n",
        {"start": "256"},
    ),
    "giou": Planted(
        "giou.py",
        "            targets_tile = nl.load(targets[rows, columns, :])\n",
        "            targets_tile = nl.load((preds if m == 2 else targets)[rows, columns, :])\n",
        {"m": "2"},
    ),
}


def module_of(name: str, directory: Path) -> tuple[ModuleType, int]:
    """The kernel's module with its fault, and the line of that."""
    planted = PLANTED[name]
    source = (KERNELS / planted.file).read_text()
    assert source.count(planted.right) == 1
    at = source.index(planted.right)
    path = directory / planted.file
    path.write_text(source.replace(planted.right, planted.wrong))
    module = loaded(path, f"planted_{name}")
    return module, source.count("\n", 0, at) + 1


def arguments(name: str) -> tuple[Any, ...]:
    """Arguments of five iterations."""
    random = np.random.default_rng(7)
    if name == "softmax":
        return (random.standard_normal((640, 64), np.float32),)
    if name == "attention":
        return tuple(random.standard_normal((640, 32), np.float32) for _ in range(3))
    corners = random.random((2, 640, 16, 2), np.float32)
    return tuple(np.concatenate([each, each + np.float32(0.5)], axis=-1) for each in corners)


def expected(name: str, *args: Any) -> Any:
    """What NumPy makes of them."""
    if name == "softmax":
        return _softmax(args[0])
    if name == "attention":
        query, key, value = args
        return _softmax(query @ key.T / np.sqrt(query.shape[1])) @ value
    return _giou(*args)


def _softmax(rows: Any) -> Any:
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _giou(first: Any, second: Any) -> Any:
    def area(low: Any, high: Any) -> Any:
        return np.prod(np.maximum(high - low, 0), axis=-1)

    inner = area(np.maximum(first[..., :2], second[..., :2]), np.minimum(first[..., 2:], second[..., 2:]))
    outer = area(np.minimum(first[..., :2], second[..., :2]), np.maximum(first[..., 2:], second[..., 2:]))
    union = area(first[..., :2], first[..., 2:]) + area(second[..., :2], second[..., 2:]) - inner
    return inner / union - (outer - union) / outer
