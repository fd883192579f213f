"""The engine on Ray, on a cluster of this process; with Ray itself it was tried by hand (docs/explanation/scale.md)."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from nkitools.sweeps import ray_engine


class Ray:
    """Stands in for Ray. A task runs when its result is asked for; ``most`` counts the tasks that waited at a time."""

    exceptions = SimpleNamespace(
        **{
            name: type(name, (Exception,), {})
            for name in ("TaskCancelledError", "WorkerCrashedError", "NodeDiedError", "OutOfMemoryError")
        }
    )

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self.most = 0
        self.is_on = False

    def is_initialized(self) -> bool:
        return self.is_on

    def init(self, **given: Any) -> None:
        self.given, self.is_on = given, True

    def shutdown(self) -> None:
        self.is_on = False

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def put(self, value: Any) -> Any:
        return value

    def remote(self, **_: Any) -> Any:
        return lambda function: SimpleNamespace(remote=lambda *given: (function, given))

    def wait(self, references: list[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        self.most = max(self.most, len(references))
        return references[:1], references[1:]

    def get(self, reference: Any) -> Any:
        function, (work, task, _, _) = reference
        assert function is ray_engine._limited
        if task == "lost":
            raise self.exceptions.WorkerCrashedError("the worker died\nin detail")
        return work(task)


@pytest.mark.parametrize(("workers", "at_a_time"), [(1, 1), (2, 2), (None, 6)])
def test_every_task_ends_once(workers: int | None, at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one worker too; as many wait as workers were asked for, or two for each core of the cluster."""
    ray = Ray()
    monkeypatch.setitem(sys.modules, "ray", ray)
    engine = ray_engine.RayEngine(workers=workers, address="host:6399")
    tasks = [str(number) for number in range(20)] + ["lost"]
    ended = {each.task: each for each in engine.run(lambda task: 2 * task, tasks)}
    assert sorted(ended) == sorted(tasks)
    assert all(each.result == 2 * task for task, each in ended.items() if task != "lost")
    assert (ended["lost"].reason, ended["lost"].error) == ("lost", "the worker died")
    assert (ray.most, ray.is_on) == (at_a_time, False)
    assert (ray.given["address"], ray.given["num_cpus"]) == ("host:6399", None)


def test_no_tasks_need_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started."""
    ray = Ray()
    monkeypatch.setitem(sys.modules, "ray", ray)
    assert list(ray_engine.RayEngine().run(str, [])) == []
    assert ray.given == {}
