"""The cases of a space."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from nkitools.facts.case_space import drawn_points, points_of
from nkitools.sweeps.argument_recipe import ArgumentRecipe


def test_a_space_is_all_combinations_of_lists_and_ranges(tmp_path: Path) -> None:
    """A dictionary and a TOML file mean the same, the last name changing fastest."""
    file = tmp_path / "space.toml"
    file.write_text('[space]\nM = { start = 1, stop = 4 }\norder = ["mn", "nm"]\n[arguments.x]\nshape = ["M"]\n')
    wanted = [{"M": m, "order": order} for m in (1, 2, 3) for order in ("mn", "nm")]
    assert list(points_of({"M": range(1, 4), "order": ["mn", "nm"]})) == wanted
    assert list(points_of(file)) == wanted
    file.write_text("[space\n")
    with pytest.raises(ValueError, match=r"space\.toml is no TOML file: .*line 1"):
        list(points_of(file))


def test_a_sample_has_different_cases_and_depends_on_its_seed_alone() -> None:
    """It is a part of the space, the same again with the same seed; no larger than the space."""
    space = {"a": range(10), "b": ["x", "y", "z"], "c": [True, False]}
    every = [repr(each) for each in points_of(space)]
    drawn = drawn_points(space, 20, 5)
    assert len({repr(each) for each in drawn}) == 20
    assert {repr(each) for each in drawn} <= set(every)
    assert drawn == drawn_points(space, 20, 5)
    assert drawn != drawn_points(space, 20, 6)
    assert sorted(map(repr, drawn_points(space, 1000, 0))) == sorted(every)
    counted = Counter(each["a"] for seed in range(60) for each in drawn_points(space, 20, seed))
    assert min(counted.values()) > 70  # 120 each on average


def test_strategies_are_drawn_with_the_seed() -> None:
    """Draws differ from each other, come again with the seed, and mix with lists."""
    space = {"n": st.integers(1, 1000), "dtype": ["float32", "bfloat16"]}
    drawn = drawn_points(space, 12, 1)
    assert len({repr(each) for each in drawn}) == 12
    assert all(1 <= each["n"] <= 1000 for each in drawn)
    assert {each["dtype"] for each in drawn} == {"float32", "bfloat16"}
    assert drawn == drawn_points(space, 12, 1)
    assert drawn != drawn_points(space, 12, 2)
    assert sorted(each["n"] for each in drawn_points({"n": st.integers(1, 3)}, 30, 1)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("space", "sample", "said"),
    [
        ({"n": st.integers()}, None, "n of the space is a strategy, which has no end"),
        ({"n": []}, None, "n of the space needs a list of values"),
        ({"n": "ab"}, 3, "n of the space needs a list of values"),
        ({"n": [1]}, 0, "sample is 0"),
    ],
)
def test_what_is_no_space_is_refused(space: Any, sample: int | None, said: str) -> None:
    """By the name, before anything runs."""
    with pytest.raises(ValueError, match=said):
        drawn_points(space, sample, 0)


def test_a_recipe_makes_arrays_of_numbers_and_axes() -> None:
    """Shape, dtype, fill and seed may name axes; what is no table is passed as it is, or as the axis says."""
    recipe = ArgumentRecipe(
        {
            "x": {"shape": ["rows", 4], "dtype": "dtype", "seed": "seed"},
            "y": {"shape": ["rows", 4], "seed": "seed"},
            "z": {"shape": 3, "fill": 2.5},
            "n": {"shape": [2, 3], "fill": "arange", "dtype": "int32"},
            "eps": 1e-5,
            "rows": "rows",
        }
    )
    made = recipe(rows=5, dtype="bfloat16", seed=3)
    assert (made["x"].shape, made["x"].dtype.name) == ((5, 4), "bfloat16")
    assert (made["y"].shape, made["y"].dtype) == ((5, 4), np.float32)
    assert not np.array_equal(made["x"].astype(np.float32), made["y"].astype("bfloat16").astype(np.float32))
    np.testing.assert_array_equal(made["y"], recipe(rows=5, dtype="float32", seed=3)["y"])
    assert not np.array_equal(made["y"], recipe(rows=5, dtype="float32", seed=4)["y"])
    assert made["z"].tolist() == [2.5, 2.5, 2.5]
    assert made["n"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (made["eps"], made["rows"]) == (1e-5, 5)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"x": {"dtype": "float32"}}, "arguments.x has shape"),
        ({"x": {"shape": [1], "fil": 0}}, "arguments.x has shape"),
        ({"x": {"shape": ["rows"]}}, "arguments.x: shape is"),
        ({"x": {"shape": [1], "fill": "gauss"}}, "arguments.x: fill is 'gauss'"),
    ],
)
def test_what_is_no_recipe_is_refused(table: dict[str, Any], said: str) -> None:
    """By its name."""
    with pytest.raises(ValueError, match=said):
        ArgumentRecipe(table)(columns=3)
