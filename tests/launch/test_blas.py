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


def test_it_is_one_in_any_thread() -> None:
    """A run in a worker thread is limited where the main thread has set the number before, and restores it."""
    seen: list[set[int]] = []

    def kernel(x: Any) -> Any:
        seen.append(threads())
        return x

    with ThreadpoolController().limit(limits=2, user_api="blas"):
        for _ in range(2):
            thread = threading.Thread(target=nkitools.simulate, args=(kernel, np.ones((4, 4), np.float32)))
            thread.start()
            thread.join()
            assert threads() == {2}
    assert seen == [{1}, {1}]


def test_the_limit_holds_until_the_last_run_ends() -> None:
    """Of two runs side by side the one that ends first leaves the limit of the other as it is."""
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        entered, leave = threading.Event(), threading.Event()

        def other() -> None:
            with one_thread():
                entered.set()
                leave.wait(10)

        thread = threading.Thread(target=other)
        with one_thread():
            thread.start()
            entered.wait(10)
        assert threads() == {1}
        leave.set()
        thread.join()
        assert threads() == {2}
