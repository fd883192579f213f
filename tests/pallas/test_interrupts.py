"""Ctrl-C ends a Pallas kernel that XLA would compute for ever."""

from __future__ import annotations

import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from nkitools.pallas import interrupts
from nkitools.pallas.interrupts import ended_by_ctrl_c
from tests.children import line_of, python, started

ENDLESS = """\
import sys
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
import nkitools.pallas


def turn(carry):
    number, value = carry
    jax.lax.cond(number == 0, lambda: jax.debug.print("turn {}", number), lambda: None)
    return jnp.maximum(number, 1), value * 1.0


def kernel(x_ref, o_ref):
    start = jnp.int32(0), x_ref[...]
    o_ref[...] = jax.lax.while_loop(lambda carry: carry[1][0, 0] < 2.0, turn, start)[1]


def endless(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(x)


nkitools.pallas.run(endless, jnp.ones((8, 128), jnp.float32))
"""


@pytest.mark.process
@pytest.mark.frameworks
def test_a_loop_that_never_ends_is_ended(tmp_path: Path) -> None:
    """Exit code 130 and one line that names the function."""
    (tmp_path / "endless.py").write_text(ENDLESS)
    with started(python(str(tmp_path / "endless.py"))) as process:
        assert line_of(process).startswith("turn")
        time.sleep(1)  # the print is made in Python, which Ctrl-C reaches; the turns after it are not
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1] == (
        "nkitools: interrupted: endless does not end; look for a while_loop that never does"
    )


def test_one_that_ends_is_interrupted_as_ever(ctrl_c: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own KeyboardInterrupt, and nothing is left that watches."""
    monkeypatch.setattr(interrupts, "_PATIENCE_SECONDS", 60.0)
    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt), ended_by_ctrl_c("brief"):
        signal.raise_signal(signal.SIGINT)
    assert signal.set_wakeup_fd(-1) == -1
    assert threading.active_count() == threads


def test_others_that_watch_signals_go_on() -> None:
    """An event loop keeps its own."""
    here, there = socket.socketpair()
    there.setblocking(False)
    signal.set_wakeup_fd(there.fileno())
    try:
        with ended_by_ctrl_c("inside"):
            pass
    finally:
        assert signal.set_wakeup_fd(-1) == there.fileno()
    here.close()
    there.close()
