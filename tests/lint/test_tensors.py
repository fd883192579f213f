"""NK601, NK602: tensors in Python expressions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.linted import LEGACY, MODERN, marked, of_body
from tests.nki_versions import since

MODERN_CASES = {
    "a sum": "tile = nl.load(x)\ntotal = tile + 1  # NK601 9",
    "a product of parts": "tile = nl.load(x)\ntotal = 2 * tile[:, 0:4]  # NK601 9",
    "a negation": "tile = nl.load(x)\nother = -tile  # NK601 9",
    "an update": "tile = nl.load(x)\ntile += 1  # NK601 1",
    "a comparison": "tile = nl.load(x)\nmask = tile > 3  # NK601 8",
    "of a result": "total = nl.exp(nl.load(x)) * 2  # NK601 9",
    "of a view": "tile = nl.load(x).reshape((4, 4))\ntotal = tile + tile  # NK601 9",
    "of what both ways make": (
        "if x.ndim == 2:\n    tile = nl.load(x)\nelse:\n    tile = nl.exp(x)\ntotal = tile + 1  # NK601 9"
    ),
    "iteration": "tile = nl.load(x)\nfor row in tile:  # NK601 12\n    pass",
    "membership": "tile = nl.load(x)\nfound = 3 in tile  # NK601 9",
    "NumPy": "import numpy as np\ntile = nl.load(x)\ntotal = np.sum(tile)  # NK601 9",
    "if": "tile = nl.load(x)\nif tile:  # NK602 4\n    pass",
    "if of two": "tile, other = nl.load(x), nl.load(x)\nif tile == other:  # NK602 4\n    pass",
    "while": "tile = nl.load(x)\nwhile tile:  # NK602 7\n    pass",
    "not": "tile = nl.load(x)\nempty = not tile  # NK602 13",
    "and": "tile = nl.load(x)\nboth = tile and x  # NK602 8",
    "a conditional expression": "tile = nl.load(x)\nn = 1 if tile else 2  # NK602 10",
    "assert": "tile = nl.load(x)\nassert tile  # NK602 8",
    "float": "tile = nl.load(x)\nn = float(tile)  # NK602 11",
    "bool": "tile = nl.load(x)\nn = bool(tile)  # NK602 10",
}
FINE = {
    "what is not known": "total = x + 1\nif x:\n    pass",
    "a tile in a container": (
        "from types import SimpleNamespace\nbox = SimpleNamespace(tile=nl.load(x))\nif box.tile and not box.tile:\n"
        "    pass"
    ),
    "None": "tile = nl.load(x)\nif tile == None:\n    pass",
    "what may be a number": "tile = nl.load(x)\nif x.ndim == 2:\n    tile = 3\ntotal = tile + 1",
    "sizes": "tile = nl.load(x)\nn = tile.shape[0] + tile.ndim * 2\nif tile.shape[0] > 4:\n    pass",
    "asserted comparisons": "assert nl.equal(nl.load(x), nl.load(x))",
    "operators as values": "op = nl.add\nif op == nl.add:\n    pass",
    "what a loop binds anew": "tile = 1\nfor i in range(2):\n    n = tile + 1\n    tile = nl.load(x)",
    "a shadowed name": "tile = nl.load(x)\nfor tile in (1, 2):\n    n = tile + 1",
    "the second of and": "n = x.ndim and nl.load(x)",
}


@pytest.mark.parametrize("body", since("NumPy", MODERN_CASES))
def test_tensors_in_expressions_of_the_modern_dialect(tmp_path: Path, body: str) -> None:
    """What is marked is found, and nothing else."""
    marked(tmp_path, body)


@pytest.mark.parametrize("head", [MODERN, LEGACY], ids=["modern", "legacy"])
@pytest.mark.parametrize("body", since("a tile in a container", FINE))
def test_nothing_is_guessed(tmp_path: Path, body: str, head: str) -> None:
    """Only what is a tensor whatever happens is spoken of."""
    assert of_body(tmp_path, body, head) == []


@pytest.mark.parametrize("name", ["a sum", "an update", "a negation", "a product of parts", "of a result"])
def test_operators_are_part_of_the_legacy_dialect(tmp_path: Path, name: str) -> None:
    """There ``tile + 1`` is nl.add."""
    assert of_body(tmp_path, MODERN_CASES[name], LEGACY) == []


@pytest.mark.parametrize("name", ["if", "not", "and", "float", "iteration"])
def test_truth_values_are_wrong_in_both(tmp_path: Path, name: str) -> None:
    """The elements exist only when the kernel runs."""
    marked(tmp_path, MODERN_CASES[name], LEGACY)
