"""BLAS uses one thread while a kernel runs, and as many as before afterwards."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

import nkitools
from nkitools.launch.blas import one_thread


def threads() -> set[int]:
    """How many threads each BLAS library would use now."""
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_it_is_one_inside_and_restored_after_success_and_error() -> None:
    """Of the kernel itself."""
    seen: list[set[int]] = []

    def kernel(x: Any, fails: bool) -> Any:
        seen.append(threads())
        if fails:
            raise KeyError("planted")
        return x

    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before = threads()
        nkitools.simulate(kernel, np.ones((4, 4), np.float32), False)
        assert threads() == before
        with pytest.raises(KeyError, match="planted"):
            nkitools.simulate(kernel, np.ones((4, 4), np.float32), True)
        assert threads() == before
    assert seen == [{1}, {1}]


def test_runs_side_by_side_leave_it_as_it_was() -> None:
    """The one that begins second does not take the first one's limit for the state to come back to."""
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with one_thread():
            entered.set()
            leave.wait(10)

    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before = threads()
        thread = threading.Thread(target=other)
        with one_thread():
            thread.start()
            entered.wait(10)
        leave.set()
        thread.join()
        assert threads() == before
