"""The canary: what nkitools stands on inside of JAX is as it was. A failure here names what moved."""

from __future__ import annotations

import ast
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import nkitools  # noqa: E402
from nkitools.pallas import check, jax_internals  # noqa: E402
from nkitools.pallas.chips import CHIPS  # noqa: E402
from nkitools.pallas.device_axes import abstract_mesh, mesh_of  # noqa: E402
from tests.pallas.kernels import double, ramp  # noqa: E402

ROOM = Path(nkitools.__file__).parent / "pallas"


@pytest.fixture(autouse=True)
def _looked_at_anew() -> Any:
    jax_internals.moved.cache_clear()
    yield
    jax_internals.moved.cache_clear()


@pytest.mark.parametrize("part", sorted({mark.part for mark in jax_internals.MARKS}))
def test_nothing_has_moved(part: str) -> None:
    """Every private name is there, with the parameters and fields that are used."""
    if part == jax_internals.GPU:
        pytest.importorskip("absl", reason="JAX's Mosaic GPU takes absl-py")
    assert jax_internals.moved(part) == ""


def test_private_names_stand_in_one_module() -> None:
    """No other module of the room names an inside module of JAX; the prints have theirs since before."""
    naming = {
        path.name
        for path in ROOM.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("jax._src")
    }
    assert naming == {"jax_internals.py"}


def test_what_moved_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module, the name and what it lacks; the JAX that has it otherwise."""
    marks = (
        jax_internals.Mark(jax_internals.SHARED_MEMORY, "SharedMemory", ("flux",), "test"),
        jax_internals.Mark(jax_internals.SHARED_MEMORY, "HyperMemory", (), "test"),
        jax_internals.Mark("jax._src.nowhere", "anything", (), "test"),
    )
    monkeypatch.setattr(jax_internals, "MARKS", marks)
    said = jax_internals.moved("test")
    assert said.startswith("jax 0.")
    assert f"{jax_internals.SHARED_MEMORY}.SharedMemory has no flux" in said
    assert f"{jax_internals.SHARED_MEMORY}.HyperMemory is not there" in said
    assert "jax._src.nowhere.anything is not there" in said


def test_what_an_older_jax_has_in_its_place_is_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newer name is the one that is missed where there is neither."""
    there = jax_internals.Mark(jax_internals.SHARED_MEMORY, "SharedMemory.allocate_buffer", ("key",), "test")
    gone = jax_internals.Mark(jax_internals.SHARED_MEMORY, "SharedMemory.of_old", (), "test")
    newer = jax_internals.Mark(jax_internals.SHARED_MEMORY, "SharedMemory.to_come", (), "test")
    monkeypatch.setattr(jax_internals, "MARKS", (newer._replace(before=there), there._replace(before=gone)))
    assert jax_internals.moved("test") == ""
    jax_internals.moved.cache_clear()
    monkeypatch.setattr(jax_internals, "MARKS", (newer._replace(before=gone),))
    assert jax_internals.moved("test").endswith(f": {jax_internals.SHARED_MEMORY}.SharedMemory.to_come is not there")


def test_threads_and_accesses_of_all_versions() -> None:
    """A core has a number among those of all devices, or its device beside it; an access comes with either."""
    assert [jax_internals.core_of(thread, 2) for thread in (0, 3, np.int32(4), (0, 1), (2, np.int32(0)))] == [
        0,
        1,
        0,
        1,
        0,
    ]
    rest = ("clock", ("any", 100, 0, 0), (slice(0, 8),))
    assert jax_internals.access_of(1, 0, *rest) == jax_internals.access_of((1, 0), *rest) == ((1, 0), *rest)
    of_gpu = jax_internals.access_of(SimpleNamespace(device_id=1), *rest[:2], SimpleNamespace(range=rest[2]))
    assert of_gpu == ((1, 0), *rest)


def test_loops_and_kernels_of_all_versions() -> None:
    """What an equation or a callback has, in the form before 0.11 and in that since."""
    parts = SimpleNamespace(unpack=lambda: ((None, None), (None,), (None, None, None)))
    assert jax_internals.scan_counts({"num_consts": 2, "num_carry": 1}) == (2, 1)
    assert jax_internals.scan_counts({"ft_in": parts}) == (2, 1)
    assert [jax_internals.first_kernel(each) for each in ({"jaxpr": "a"}, {"jaxprs": ("a", "b")})] == ["a", "a"]
    meshes = [jax_internals.meshes_of(each) for each in ({}, {"mesh": None}, {"mesh": "m"}, {"meshes": ("m", "n")})]
    assert meshes == [(), (), ("m",), ("m", "n")]


def test_started_copies() -> None:
    """A semaphore has those that signal it, the last one first."""
    semaphore = SimpleNamespace(cv=Lock(), tasks={1: ["a", "b"]})
    assert [jax_internals.next_task(semaphore, 1) for _ in range(3)] == ["b", "a", None]


def test_a_mesh_that_is_given_by_its_sizes_wants_no_placed_arguments() -> None:
    """Its axes are left to XLA, whatever the installed JAX makes of a mesh by default."""
    auto = jax.sharding.AxisType.Auto
    assert abstract_mesh(CHIPS["v5e"], (("x", 2), ("y", 1))).axis_types == (auto, auto)
    assert mesh_of(jax.devices(), (("x", 1),)).axis_types == (auto,)


def test_a_check_goes_on_without_what_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """TPU interpretation is left out with the reason, and the rest is made."""
    mark = jax_internals.Mark(jax_internals.INTERPRETER, "interpret_pallas_call", ("flux",), jax_internals.WATCH)
    monkeypatch.setattr(jax_internals, "MARKS", (*jax_internals.MARKS, mark))
    run = check(double, ramp(), modes="interpret,tpu_interpret")
    assert (run.outputs == 2 * ramp()).all()
    assert run.left_out["tpu_interpret"].endswith("interpret_pallas_call has no flux")
    assert [(each.rule, each.severity, each.file) for each in run.findings] == [("NK607", "warning", __file__)]
