"""A warm launch notices what has changed since the one before: options, variables, functions, names."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.chip.core import CORE
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import language as nl
from nkitools.facts import kept, options
from nkitools.launch.kept_arguments import changes_fail
from nkitools.launch.prepared import prepared_for
from tests.launch.kernels import doubled

X = np.ones((8, 4), np.float32)


def test_a_launch_without_change_is_prepared_once() -> None:
    """By each way in, and a kernel object keeps what was prepared; `forget` leaves nothing that holds."""
    kernel = nki.jit(doubled.func)
    nkitools.simulate(kernel, X)
    launch = kernel.launched(keeping=nkitools.simulate(kernel, X).again._launch.keeping)  # type: ignore[union-attr]
    prepared = launch.prepared
    assert prepared is not None
    nkitools.simulate(kernel, X)
    assert launch.prepared is prepared is prepared_for(launch)
    with options.override(rules="report"):
        assert prepared_for(launch) is not prepared
    kept.forget()
    assert kernel._launches == {}


def test_a_watch_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set and unset in the environment, and as an override, between launches of one kernel."""
    kernel = nki.jit(doubled.func)
    assert nkitools.simulate(kernel, X).prints == []
    monkeypatch.setenv("NKITOOLS_WATCH", "out")
    assert nkitools.simulate(kernel, X).prints.prefixes == ["out"]
    monkeypatch.delenv("NKITOOLS_WATCH")
    assert nkitools.simulate(kernel, X).prints == []
    with options.override(watch="out"):
        assert nkitools.simulate(kernel, X).prints.prefixes == ["out"]
    assert nkitools.simulate(kernel, X).prints == []


def test_a_limit_of_memory_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's output is more than a limit that is set after a run."""
    kernel = nki.jit(doubled.func)
    nkitools.simulate(kernel, X)
    monkeypatch.setenv("NKITOOLS_MEMORY", "1e-9")
    with pytest.raises(MemoryError, match="the option `memory`"):
        nkitools.simulate(kernel, X)
    monkeypatch.delenv("NKITOOLS_MEMORY")
    nkitools.simulate(kernel, X)


def test_a_debugger_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """PYTHONBREAKPOINT, and a hook of the user's, come before nkitools' own."""
    seen: list[Any] = []

    @nki.jit
    def kernel(x: Any) -> Any:
        seen.append(sys.breakpointhook)
        return x

    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    nkitools.simulate(kernel, X)
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    nkitools.simulate(kernel, X)
    monkeypatch.delenv("PYTHONBREAKPOINT")
    monkeypatch.setattr(sys, "breakpointhook", print)
    nkitools.simulate(kernel, X)
    assert (seen[0] is not sys.__breakpointhook__, seen[1:]) == (True, [sys.__breakpointhook__, print])


def test_a_kernel_that_gets_another_name_runs_under_it() -> None:
    """A run has the name that the kernel object has now."""
    kernel = nki.jit(doubled.func)
    assert nkitools.simulate(kernel, X).kernel == "doubled"
    kernel.__name__ = "twice"
    assert nkitools.simulate(kernel, X).kernel == "twice"


def test_a_kernel_goes_to_another_process_without_what_was_prepared() -> None:
    """Its copy has the function, and no launch."""
    nkitools.simulate(doubled, X)
    assert doubled._launches
    copied = pickle.loads(pickle.dumps({**doubled.__getstate__(), "function": None, "__wrapped__": None}))
    assert "_launches" not in copied


def test_the_severity_of_changed_arguments_is_that_of_now() -> None:
    """A hint, and an error where changes fail, in launches of one kernel."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        nl.store(x, nl.add(tile, tile))
        nl.store(out, tile)
        return out

    for _ in range(2):
        (found,) = [each for each in nkitools.simulate(kernel, X).findings if each.rule == "NK409"]
        assert found.severity == "hint"
        with changes_fail(), pytest.raises(nkitools.KernelError, match="NK409"):
            nkitools.simulate(kernel, X)


def test_a_program_that_is_alone_can_wait() -> None:
    """It gets a baton when it asks for one: the finding says that no program can go on."""

    @nki.jit
    def kernel(x: Any) -> Any:
        core = CORE.get()
        assert core is not None
        assert core.baton.meet("once", core.team, "offer", lambda: "waits") == {0: "offer"}
        core.baton.wait_until(lambda: False, lambda: "waits in vain")
        return x

    with pytest.raises(nkitools.KernelError, match="no program can go on: program 0 waits in vain") as error:
        nkitools.simulate(kernel, X)
    assert error.value.finding.rule == "NK504"
