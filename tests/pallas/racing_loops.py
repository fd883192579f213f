"""A double-buffered pipeline of loads and stores, right and with each of six races, in a loop and without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from tests.pallas.racing import ANY, ROWS, TILES, Racing, buffers, copy, marked_lines, semaphores

KINDS = ("reads early", "stores early", "stores late", "clears", "reads next", "waits for next")


def _loop(unrolled: bool) -> Callable[[Callable[[Any], None]], None]:
    def go(body: Callable[[Any], None]) -> None:
        if unrolled:
            for tile in range(TILES):
                body(tile)
        else:
            jax.lax.fori_loop(0, TILES, lambda tile, none: (body(tile), none)[1], None)

    return go


def _pipeline(kind: str, unrolled: bool) -> Callable[..., None]:
    def kernel(x: Any, o: Any, loaded: Any, stored: Any, loads: Any, stores: Any, ok: bool) -> None:
        race = "" if ok else kind

        def load(tile: Any) -> Any:
            return copy(x.at[tile], loaded.at[tile % 2], loads.at[tile % 2])

        def store(tile: Any) -> Any:
            return copy(stored.at[tile % 2], o.at[tile], stores.at[tile % 2])

        loaded[...] = jnp.zeros_like(loaded)
        load(0).start()

        @_loop(unrolled)
        def _(tile: Any) -> None:
            pl.when(tile + 1 < TILES)(lambda: load(tile + 1).start())
            if race == "reads early":
                value = loaded[tile % 2]  # RACE: reads early
                load(tile).wait()
            elif race == "waits for next":
                pl.when(tile + 1 < TILES)(lambda: load(tile + 1).wait())
                value = loaded[tile % 2]  # RACE: waits for next
                pl.when(tile == 0)(lambda: load(0).wait())
            else:
                load(tile).wait()
                value = loaded[(tile + (race == "reads next")) % 2]  # RACE: reads next
            if race == "stores early":
                stored[tile % 2] = value + 1  # RACE: stores early
            pl.when(tile >= 2)(lambda: store(tile - 2).wait())
            if race != "stores early":
                stored[tile % 2] = value + 1
            store(tile).start()
            if race == "stores late":
                stored[tile % 2] = value + 2  # RACE: stores late
            if race == "clears":
                loaded[(tile + 1) % 2] = jnp.zeros((ROWS, 128), jnp.float32)  # RACE: clears

        store(TILES - 2).wait()
        store(TILES - 1).wait()

    return kernel


_SCRATCH = (buffers(2), buffers(2), semaphores(2), semaphores(2))
LOOPS = [
    Racing(
        f"{kind}, {'unrolled' if unrolled else 'in a loop'}",
        _pipeline(kind, unrolled),
        _SCRATCH,
        marked_lines(_pipeline, f"# RACE: {kind}"),
        ANY,
        TILES,
    )
    for kind in KINDS
    for unrolled in (False, True)
]
