"""What selecting instructions refuse, their form and their cost."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Tile, empty, issue, refusal, tile
from tests.isa.test_docstrings import named_rules

COMMANDS = nisa.reduce_cmd

# --- what they refuse ------------------------------------------------------------------------------------------------

X = np.ones((32, 8), np.float32)
V = np.ones((32, 1), np.float32)
P = np.ones((32, 8), np.uint8)
N = np.ones((32, 8), np.int32)
TALL = np.ones((256, 8), np.float32)
LONG = np.ones((1, 60000), np.float32)
PACKED = np.zeros((32, 8), nl.float8_e5m2_x4.dtype)
DST, COLUMN = empty((32, 8)), empty((32, 1))
SIX = np.ones((32, 1, 2, 2, 2, 1), np.float32)
Cases = dict[str, tuple[str, str, dict[str, Any]]]


def from_partition(first: int) -> Tile:
    """A destination of 32 partitions that begins elsewhere."""
    return empty((128, 8), view=lambda t: t[first : first + 32, :])


AFFINE: dict[str, Any] = {
    "dst": DST,
    "pattern": [[1, 8]],
    "channel_multiplier": 1,
    "on_true_tile": tile(X),
    "on_false_value": 0.0,
}
AFFINE_REFUSED: Cases = {
    "256 partitions": ("NK101", "`on_true_tile`", {"dst": empty((256, 8)), "on_true_tile": tile(TALL)}),
    "partitions": ("NK102", "`dst`", {"dst": empty((16, 8))}),
    "one partition": ("NK102", "`on_true_tile`", {"on_true_tile": tile(X[:1])}),
    "too long": ("NK107", "bytes", {"dst": empty(LONG.shape), "on_true_tile": tile(LONG), "pattern": [[1, 60000]]}),
    "start": ("NK108", "`dst`", {"dst": from_partition(8)}),
    "pattern and data": ("NK109", "`on_true_tile`", {"on_true_tile": tile(X[:, :4])}),
    "pattern and dst": ("NK109", "`dst`", {"dst": empty((32, 4))}),
    "six dimensions": ("NK110", "6 dimensions", {"on_true_tile": tile(SIX)}),
    "dst in PSUM": ("NK201", "`dst` must be in SBUF", {"dst": empty((32, 8), memory="psum")}),
    "data in PSUM": ("NK201", "`on_true_tile` must be in SBUF", {"on_true_tile": tile(X, "psum")}),
    "packed": ("NK301", "`on_true_tile`", {"on_true_tile": tile(PACKED)}),
    "no comparison": ("NK306", "`cmp_op`=nl.add", {"cmp_op": nl.add}),
    "a tile for a number": ("NK609", "`on_false_value`", {"on_false_value": tile(V)}),
    "no number": ("NK609", "`on_false_value`", {"on_false_value": None}),
    "five steps": ("NK609", "`pattern`", {"pattern": [[1, 1]] * 5}),
    "no pattern": ("NK609", "`pattern`", {"pattern": [1, 8]}),
    "a step of 33 bits": ("NK609", "pattern step", {"pattern": [[2**32, 8]]}),
    "nothing": ("NK609", "num of 0", {"pattern": [[1, 0]]}),
    "a fractional offset": ("NK609", "`offset`", {"offset": 0.5}),
    "an offset of 33 bits": ("NK609", "`offset`", {"offset": 2**31}),
    "a fractional multiplier": ("NK609", "`channel_multiplier`", {"channel_multiplier": 1.5}),
}
RANGE: dict[str, Any] = {
    "dst": DST,
    "on_true_tile": tile(X),
    "comp_op0": nl.greater_equal,
    "comp_op1": nl.less,
    "bound0": tile(V),
    "bound1": tile(V),
    "reduce_res": COLUMN,
}
RANGE_REFUSED: Cases = {
    "256 partitions": ("NK101", "has 256", {"dst": empty((256, 8)), "on_true_tile": tile(TALL)}),
    "dst's partitions": ("NK102", "`dst`", {"dst": empty((16, 8))}),
    "bound's partitions": ("NK102", "`bound0`", {"bound0": tile(V[:16])}),
    "one bound": ("NK111", "`bound1`", {"bound1": tile(V[:1])}),
    "result's partitions": ("NK102", "`reduce_res`", {"reduce_res": empty((16, 1))}),
    "too long": ("NK107", "bytes", {"dst": empty((32, 60000)), "on_true_tile": empty((32, 60000))}),
    "start": ("NK108", "`dst`", {"dst": from_partition(8)}),
    "dst's elements": ("NK109", "`dst`", {"dst": empty((32, 4))}),
    "wide bound": ("NK109", "`bound0`", {"bound0": tile(X)}),
    "wide result": ("NK109", "`reduce_res`", {"reduce_res": empty((32, 2))}),
    "six dimensions": ("NK110", "6 dimensions", {"on_true_tile": tile(SIX)}),
    "HBM": ("NK201", "`bound1`", {"bound1": tile(V, "hbm")}),
    "integers": ("NK301", "`on_true_tile`", {"on_true_tile": tile(N)}),
    "bound in bfloat16": ("NK301", "`bound0`", {"bound0": tile(V, dtype=nl.bfloat16)}),
    "integer bound": ("NK301", "`bound1`", {"bound1": tile(V.astype(np.int32))}),
    "packed": ("NK301", "`dst`", {"dst": empty((32, 8), nl.float8_e5m2_x4)}),
    "not_equal": ("NK306", "`comp_op0`=nl.not_equal", {"comp_op0": nl.not_equal}),
    "no comparison": ("NK306", "`comp_op1`=nl.add", {"comp_op1": nl.add}),
    "a sum": ("NK306", "`reduce_op`=nl.add", {"reduce_op": nl.add}),
    "load_reduce": ("NK609", "`reduce_cmd`", {"reduce_cmd": COMMANDS.load_reduce}),
    "zero": ("NK609", "`on_false_value`", {"on_false_value": 0.0}),
    "infinity": ("NK609", "`on_false_value`", {"on_false_value": -np.inf}),
    "a tile for a number": ("NK609", "must be FP32_MIN", {"on_false_value": None}),
    "fractional start": ("NK609", "`range_start`", {"range_start": 0.5}),
    "start beyond 2**24": ("NK609", "`range_start`", {"range_start": 2**24 - 6}),
    "start below -2**24": ("NK609", "`range_start`", {"range_start": -(2**24) - 1}),
}
SELECT: dict[str, Any] = {"dst": DST, "predicate": tile(P), "on_true": tile(X), "on_false": 0.0}
SELECT_REFUSED: Cases = {
    "256 partitions": ("NK101", "has 256", {"dst": empty((256, 8)), "on_true": tile(TALL)}),
    "predicate's partitions": ("NK102", "`predicate`", {"predicate": tile(P[:16])}),
    "one predicate": ("NK111", "`predicate`", {"predicate": tile(P[:1])}),
    "vector's partitions": ("NK102", "`on_false`", {"on_false": tile(V[:16])}),
    "result's partitions": ("NK102", "`reduce_res`", {"reduce_res": empty((16, 1))}),
    "too long": ("NK107", "bytes", {"dst": empty((32, 60000)), "on_true": empty((32, 60000))}),
    "start": ("NK108", "`dst`", {"dst": from_partition(8)}),
    "dst's elements": ("NK109", "`dst`", {"dst": empty((32, 4))}),
    "predicate's elements": ("NK109", "`predicate`", {"predicate": tile(P[:, :4])}),
    "wide vector": ("NK109", "`on_false`", {"on_false": tile(X)}),
    "wide result": ("NK109", "`reduce_res`", {"reduce_res": empty((32, 2))}),
    "six dimensions": ("NK110", "6 dimensions", {"on_true": tile(SIX)}),
    "both in PSUM": ("NK201", "both in PSUM", {"predicate": tile(P, "psum"), "on_true": tile(X, "psum")}),
    "HBM": ("NK201", "`on_true`", {"on_true": tile(X, "hbm")}),
    "tfloat32": ("NK301", "`on_true`", {"on_true": tile(X, dtype=nl.tfloat32)}),
    "int32": ("NK301", "`on_true`", {"on_true": tile(N)}),
    "uint32": ("NK301", "`on_true`", {"on_true": tile(N.astype(np.uint32))}),
    "packed": ("NK301", "`on_true`", {"on_true": tile(PACKED)}),
    "float predicate": ("NK301", "`predicate`", {"predicate": tile(X)}),
    "uint32 predicate": ("NK301", "`predicate`", {"predicate": tile(P.astype(np.uint32))}),
    "integer result": ("NK301", "`reduce_res`", {"reduce_res": empty((32, 1), nl.int32)}),
    "a sum": ("NK306", "`reduce_op`=nl.add", {"reduce_op": nl.add}),
    "reset": ("NK609", "`reduce_cmd`", {"reduce_cmd": COMMANDS.reset}),
    "load_reduce": ("NK609", "`reduce_cmd`", {"reduce_cmd": COMMANDS.load_reduce}),
    "no command": ("NK609", "`reduce_cmd`", {"reduce_cmd": None}),
    "no alternative": ("NK609", "`on_false`", {"on_false": None}),
    "number for a tile": ("NK609", "`on_true`", {"on_true": 1.0}),
}
COPY: dict[str, Any] = {"dst": DST, "src": tile(X), "predicate": tile(P)}
COPY_REFUSED: Cases = {
    "256 partitions": ("NK101", "has 256", {"dst": empty((256, 8)), "src": tile(TALL)}),
    "partitions": ("NK102", "`src`", {"src": tile(X[:16])}),
    "dst's partitions": ("NK102", "`dst`", {"dst": empty((16, 8))}),
    "one source": ("NK111", "`src`", {"src": tile(X[:1])}),
    "too long": ("NK107", "bytes", {"dst": empty((32, 60000)), "src": empty((32, 60000))}),
    "start": ("NK108", "`dst`", {"dst": from_partition(8)}),
    "elements": ("NK109", "`src`", {"src": tile(X[:, :4])}),
    "dst's elements": ("NK109", "`dst`", {"dst": empty((32, 4)), "src": 1.0}),
    "six dimensions": ("NK110", "6 dimensions", {"src": tile(SIX)}),
    "both in PSUM": ("NK201", "both in PSUM", {"src": tile(X, "psum"), "predicate": tile(P, "psum")}),
    "HBM": ("NK201", "`dst`", {"dst": empty((32, 8), memory="hbm")}),
    "other dtypes": ("NK301", "same dtype", {"dst": empty((32, 8), nl.bfloat16)}),
    "float predicate": ("NK301", "`predicate`", {"predicate": tile(X)}),
    "signed predicate": ("NK301", "`predicate`", {"predicate": tile(N)}),
    "a number into packed": ("NK301", "`dst`", {"dst": empty((32, 8), nl.float8_e5m2_x4), "src": 1.0}),
    "no source": ("NK609", "`src`", {"src": None}),
}
BOUNDS: dict[str, Any] = {"dst": empty((1, 2, 8)), "segment_ids": tile(X[:1])}
BOUNDS_REFUSED: Cases = {
    "256 partitions": ("NK101", "has 256", {"segment_ids": tile(TALL)}),
    "partitions of ids": ("NK109", "`segment_ids`", {"segment_ids": tile(X)}),
    "partitions of dst": ("NK109", "`dst`", {"dst": empty((2, 8))}),
    "too long": ("NK107", "bytes", {"segment_ids": tile(LONG), "dst": empty((1, 2, 60000))}),
    "start": ("NK108", "`dst`", {"dst": empty((64, 2, 8), view=lambda t: t[8:9, :, :])}),
    "elements": ("NK109", "`dst`", {"dst": empty((1, 8))}),
    "six dimensions": ("NK110", "6 dimensions", {"segment_ids": tile(SIX[:1])}),
    "PSUM": ("NK201", "`segment_ids`", {"segment_ids": tile(X[:1], "psum")}),
    "dtype of ids": ("NK301", "`segment_ids`", {"segment_ids": tile(P[:1])}),
    "dtype of dst": ("NK301", "`dst`", {"dst": empty((1, 2, 8), nl.bfloat16)}),
}
REFUSED: dict[str, tuple[dict[str, Any], Cases]] = {
    "affine_select": (AFFINE, AFFINE_REFUSED),
    "range_select": (RANGE, RANGE_REFUSED),
    "select_reduce": (SELECT, SELECT_REFUSED),
    "tensor_copy_predicated": (COPY, COPY_REFUSED),
    "sequence_bounds": (BOUNDS, BOUNDS_REFUSED),
}


@pytest.mark.parametrize(("name", "case"), [(name, case) for name, (_, cases) in REFUSED.items() for case in cases])
def test_what_is_refused(name: str, case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    good, cases = REFUSED[name]
    rule, named, changed = cases[case]
    instruction = getattr(nisa, name)
    finding = refusal(instruction, **{**good, **changed})
    assert finding.rule == rule
    assert named in finding.message
    assert rule in named_rules(instruction.__doc__)
    issue(instruction, **good)  # the case differs from a call that is good


def test_range_select_came_with_neuron_core_v3() -> None:
    """NK606 before; the other four run everywhere."""
    assert refusal(nisa.range_select, **RANGE, chip="trn1").rule == "NK606"
    for name, (good, _) in REFUSED.items():
        for chip in ("trn1", "trn2", "trn3"):
            if (name, chip) != ("range_select", "trn1"):
                assert issue(getattr(nisa, name), **good, chip=chip).rules == []


@pytest.mark.parametrize("start", [-(2**24), 2**24 - 7])
def test_indices_reach_the_last_integer_that_float32_holds(start: int) -> None:
    """Element 7 of a partition has the index 2**24."""
    last = np.full((32, 1), start + 7, np.float32)
    arguments = {**RANGE, "comp_op0": nl.equal, "comp_op1": nl.equal, "bound0": tile(last), "bound1": tile(last)}
    chosen = issue(nisa.range_select, **arguments, range_start=start).dst == 1
    np.testing.assert_array_equal(chosen, np.broadcast_to(np.arange(8) == 7, (32, 8)))


@pytest.mark.parametrize(("ids", "place"), [([1, -1, 2], 1), ([1, 2, 2.5], 2), ([np.nan, 1, 1], 0)])
def test_segment_ids_are_whole_numbers_from_0_on(ids: list[float], place: int) -> None:
    """NK609 when the kernel runs, with the first such element."""
    finding = refusal(nisa.sequence_bounds, empty((1, 2, 3)), tile(np.array([ids], np.float32)))
    assert finding.rule == "NK609"
    assert f"element {place} is" in finding.message


# --- form and cost ---------------------------------------------------------------------------------------------------

SIGNATURES = {
    nisa.affine_select: (
        "(dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op=nl.equal, offset=0, name=None)"
    ),
    nisa.range_select: (
        "(dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd=<reduce_cmd.reset_reduce: 3>, "
        "reduce_res=None, reduce_op=nl.maximum, range_start=0, on_false_value=-3.4028234663852886e+38, name=None)"
    ),
    nisa.select_reduce: (
        "(dst, predicate, on_true, on_false, reduce_res=None, reduce_cmd=<reduce_cmd.idle: 0>, reduce_op=nl.maximum, "
        "reverse_pred=False, name=None)"
    ),
    nisa.sequence_bounds: "(dst, segment_ids, name=None)",
    nisa.tensor_copy_predicated: "(dst, src, predicate, reverse_pred=False, name=None)",
}


@pytest.mark.parametrize(("instruction", "signature"), SIGNATURES.items(), ids=lambda value: getattr(value, "name", ""))
def test_the_signature_is_the_documented_one(instruction: Any, signature: str) -> None:
    """Names, order and defaults."""
    assert str(inspect.signature(instruction)) == signature


def test_what_they_cost() -> None:
    """The formulas of SDK 2.26, and what we take where there is none."""
    wide = np.ones((8, 512), np.float32)
    p = np.ones((8, 512), np.uint8)
    args = (nl.less, nl.less, tile(wide[:, :1]), tile(wide[:, :1]))
    priced = {
        "affine": (issue(nisa.affine_select, empty(wide.shape), [[1, 512]], 0, tile(wide), 0.0), "gpsimd", 150 + 512),
        "range": (issue(nisa.range_select, empty(wide.shape), tile(wide), *args), "vector", 512),
        "short range": (issue(nisa.range_select, empty((8, 8)), tile(wide[:, :8]), *args), "vector", 64),
        "copy": (issue(nisa.tensor_copy_predicated, tile(wide), tile(wide), tile(p)), "vector", 1024),
        "number": (issue(nisa.tensor_copy_predicated, tile(wide), 1.0, tile(p)), "vector", 1024),
        "from PSUM": (issue(nisa.tensor_copy_predicated, tile(wide), tile(wide, "psum"), tile(p)), "vector", 512),
        "select": (issue(nisa.select_reduce, empty(wide.shape), tile(p, "psum"), tile(wide), 0.0), "vector", 512),
        "bounds": (issue(nisa.sequence_bounds, empty((1, 2, 512)), tile(wide[:1])), "gpsimd", 150 + 512),
    }
    for name, (issued, engine, cycles) in priced.items():
        assert (issued.instruction.engine, issued.instruction.cycles) == (engine, cycles), name
