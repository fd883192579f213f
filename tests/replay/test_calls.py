"""Calls that are replayed: arguments of every form, and settings that change between two calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.facts import options

nkitools.install_stand_in(prefer="builtin")

import nki  # noqa: E402
import nki.language as nl  # noqa: E402

SHAPE = (4, 8)
ONES = np.ones(SHAPE, np.float32)


@nki.jit
def halves(x: Any) -> Any:
    """Returns x; each program copies its share of the rows."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = x.shape[0] // nl.num_programs(0)
    start = nl.program_id(0) * rows
    nl.store(out[start : start + rows, :], nl.load(x[start : start + rows, :]))
    return out


@nki.jit
def difference(left: Any, right: Any, factor: float = 1.0) -> Any:
    """Returns (left - right) * factor, and left as it is."""
    out = nl.ndarray(left.shape, dtype=left.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.subtract(nl.load(left), nl.load(right)), factor))
    return out, left


RANDOM = np.random.default_rng(3)
LEFT, RIGHT = (RANDOM.standard_normal(SHAPE).astype(np.float32) for _ in range(2))
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "by position": ((LEFT, RIGHT, 2.0), {}),
    "by name, in another order": ((), {"factor": 2.0, "right": RIGHT, "left": LEFT}),
    "with the default": ((LEFT, RIGHT), {}),
    "one array twice": ((LEFT, LEFT, 2.0), {}),
    "two views of one array": ((LEFT, LEFT[:], 2.0), {}),
    "a transposed array": ((np.asfortranarray(LEFT), RIGHT, 2.0), {}),
    "a stretched array": ((np.broadcast_to(LEFT[:1], SHAPE), RIGHT, 2.0), {}),
    "a read-only array": ((np.frombuffer(LEFT.tobytes(), np.float32).reshape(SHAPE), RIGHT, 2.0), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_any_form_is_replayed(name: str) -> None:
    """By what it computes, and by what it returns: an argument that the kernel returns is the caller's own array."""
    args, kwargs = CALLS[name]
    first, *_, last = (nkitools.simulate(difference, *args, **kwargs) for _ in range(4))
    assert last.replayed.done
    np.testing.assert_array_equal(last.outputs[0], first.outputs[0])
    left = args[0] if args else kwargs["left"]
    assert last.outputs[1] is left
    bound = dict(zip(("left", "right", "factor"), args, strict=False)) | kwargs
    np.testing.assert_array_equal(last.outputs[0], (left - bound["right"]) * np.float32(bound.get("factor", 1.0)))


def test_what_decides_a_run_is_looked_up_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options and variables of the environment that change between two calls of one form."""
    for _ in range(3):
        assert nkitools.simulate(halves, ONES).chip == "trn2"
    monkeypatch.setenv("NKI_NC_VERSION", "gen4")
    assert nkitools.simulate(halves, ONES).chip == "gen4"
    monkeypatch.setenv("NKITOOLS_CHIP", "inf2")
    assert nkitools.simulate(halves, ONES).chip == "inf2"
    with options.override(chip="trn1"):
        assert nkitools.simulate(halves, ONES).chip == "trn1"
    monkeypatch.setenv("NKITOOLS_REPLAY", "off")
    assert nkitools.simulate(halves, ONES).replayed.reason == "replay is off"
    monkeypatch.delenv("NKITOOLS_REPLAY")
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "2")
    assert nkitools.simulate(halves, ONES).settings["grid"] == [2]
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "1")
    assert nkitools.simulate(halves, ONES).settings["grid"] == []
