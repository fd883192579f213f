"""Variants by their estimates, and the space that they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.facts.case_space import points_of

BUFFERS = 1  # tiles of `doubled`


@nki.jit
def doubled(x: Any, block: int = 512, order: str = "forward") -> Any:
    """Return x + x by blocks of columns."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = [nl.ndarray((128, block), dtype=x.dtype, buffer=nl.sbuf) for _ in range(BUFFERS)]
    count = x.shape[1] // block
    for n in range(count):
        columns = nl.ds((n if order == "forward" else count - 1 - n) * block, block)
        tile = tiles[n % BUFFERS]
        nisa.dma_copy(dst=tile, src=x[:, columns])
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
        nisa.dma_copy(dst=out[:, columns], src=tile)
    return out


X = np.ones((128, 8192), np.float32)


def test_variants_are_ranked_by_the_estimates_that_they_have_alone() -> None:
    """Each latency is that of the variant's own run; the least is first, and every variant of the space is there."""
    found = nkitools.tune(doubled, [X], space={"block": [256, 2048, 512], "order": ["forward", "back"]}, chip="trn2")
    own = {}
    for block in (256, 512, 2048):
        own[block] = nkitools.simulate(doubled, X, block=block, chip="trn2").estimate().latency_us
    forward = [each for each in found.variants if each.values["order"] == "forward"]
    assert [each.values["block"] for each in forward] == sorted(own, key=own.__getitem__)
    assert [each.latency_us for each in forward] == sorted(own.values())
    assert len(found.variants) == 6
    assert len(found.proposed) == 5
    assert found.best is found.variants[0]
    assert str(found).splitlines()[0].startswith("* block=2048, order=")


def test_what_the_estimates_do_not_tell_apart_is_said() -> None:
    """Variants within 5 % of the best, which is the first of them; the margin is that of the next one."""
    made = nkitools.tune(doubled, [X], space={"block": [256, 2048], "order": ["forward", "back"]}, chip="trn2")
    best = made.best.latency_us
    assert made.margin == pytest.approx(made.variants[1].latency_us / best - 1)
    assert list(made.alike) == [each for each in made.variants if each.latency_us <= 1.05 * best]
    assert 1 < len(made.alike) < 4
    lines = str(made).splitlines()
    assert lines[-2].startswith(f"chosen: block={made.best.values['block']}, ")
    assert lines[-1].startswith(f"the first {len(made.alike)} cannot be distinguished")
    alone = nkitools.tune(doubled, [X], space={"block": [256]}, chip="trn2")
    assert alone.margin is None
    assert len(str(alone).splitlines()) == 1


def test_a_constant_of_the_module_is_a_name_of_the_space_and_comes_back() -> None:
    """A second buffer lets loads overlap; afterwards the module is as it was, and so is the caller's array."""
    data = X.copy()
    found = nkitools.tune(doubled, [data], space={"BUFFERS": [1, 4]}, block=2048, chip="trn2")
    assert [each.values["BUFFERS"] for each in found.variants] == [4, 1]
    assert found.variants[0].latency_us < 0.9 * found.variants[1].latency_us
    assert BUFFERS == 1
    np.testing.assert_array_equal(data, X)


def test_a_variant_that_does_not_run_stands_last_with_the_reason() -> None:
    """A tile that is larger than SBUF is refused by a rule, and the other variants are ranked."""
    found = nkitools.tune(doubled, [np.ones((128, 131072), np.float32)], space={"block": [131072, 4096]}, chip="trn2")
    assert [each.values["block"] for each in found.variants] == [4096, 131072]
    assert found.variants[1].estimate is None
    assert "NK107" in found.variants[1].refused
    assert [each.values["block"] for each in found.proposed] == [4096]


def test_wrong_calls_say_what_is_wrong() -> None:
    """A name that there is not, another objective, a level of rules, and a space in which nothing runs."""
    with pytest.raises(ValueError, match="blocks is no parameter of the kernel and no constant of its module"):
        nkitools.tune(doubled, [X], space={"blocks": [1]})
    with pytest.raises(ValueError, match="there is 'estimate' alone"):
        nkitools.tune(doubled, [X], space={"block": [512]}, objective="device")
    with pytest.raises(TypeError, match="tune takes no rules="):
        nkitools.tune(doubled, [X], space={"block": [512]}, rules="report")
    with pytest.raises(ValueError, match=r"no variant runs; the first one: .*NK609"):
        nkitools.tune(doubled, [X], space={"block": [0]})


def test_a_space_is_a_dictionary_or_a_file(tmp_path: Path) -> None:
    """Both have the same points, in the order of the names; a table `space` stands for the file."""
    points = [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]
    assert list(points_of({"a": [1, 2], "b": ("x", "y")})) == points
    for text in ('a = [1, 2]\nb = ["x", "y"]\n', '[space]\na = [1, 2]\nb = ["x", "y"]\n'):
        (tmp_path / "space.toml").write_text(text)
        assert list(points_of(tmp_path / "space.toml")) == points


@pytest.mark.parametrize(("space", "told"), [({}, "no names"), ({"a": []}, "a of"), ({"a": "xy"}, "a of")])
def test_a_space_without_values_is_refused(space: Any, told: str) -> None:
    """A text is no list of values."""
    with pytest.raises(ValueError, match=told):
        list(points_of(space))
