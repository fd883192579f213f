"""Kernels with several copies on one semaphore, waits of other sizes, and waits for the other semaphore."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from tests.pallas.racing import TILE, Racing, buffers, copy, racing, semaphores

SEMAPHORES: list[Racing] = []


@racing(SEMAPHORES, buffers(2), semaphores())
def two_copies_waits_for_the_first(x, o, loaded, done, ok):
    one, two = (copy(x.at[at], loaded.at[at], done) for at in (0, 1))
    one.start()
    two.start()
    one.wait()
    if ok:
        two.wait()
    o[...] = loaded[0]  # RACE
    if not ok:
        two.wait()


@racing(SEMAPHORES, buffers(2), semaphores())
def two_copies_waits_for_the_second(x, o, loaded, done, ok):
    one, two = (copy(x.at[at], loaded.at[at], done) for at in (0, 1))
    one.start()
    two.start()
    two.wait()
    if ok:
        one.wait()
    o[...] = loaded[1]  # RACE
    if not ok:
        one.wait()


@racing(SEMAPHORES, buffers(2), semaphores())
def two_copies_waits_twice_for_one(x, o, loaded, done, ok):
    one, two = (copy(x.at[at], loaded.at[at], done) for at in (0, 1))
    one.start()
    two.start()
    one.wait()
    if ok:
        one.wait()
    o[...] = loaded[0] + loaded[1]  # RACE
    if not ok:
        one.wait()


@racing(SEMAPHORES, buffers(3), semaphores())
def three_copies_two_waits(x, o, loaded, done, ok):
    copies = [copy(x.at[at], loaded.at[at], done) for at in range(3)]
    for each in copies:
        each.start()
    for each in copies if ok else copies[:2]:
        each.wait()
    o[...] = loaded[0] + loaded[1]  # RACE
    if not ok:
        copies[2].wait()


@racing(SEMAPHORES, buffers(3), buffers(), semaphores())
def adds_each_after_one_wait(x, o, loaded, total, done, ok):
    copies = [copy(x.at[at], loaded.at[at], done) for at in range(3)]
    for each in copies:
        each.start()
    total[...] = jnp.zeros_like(total)
    if ok:
        for each in copies:
            each.wait()
    for at, each in enumerate(copies):
        if not ok:
            each.wait()
        total[...] += loaded[at]  # RACE
    o[...] = total[...]


@racing(SEMAPHORES, buffers(), semaphores())
def waits_for_half_of_a_copy(x, o, loaded, done, ok):
    copy(x.at[0], loaded, done).start()
    half = copy(x.at[0, 0:4], loaded.at[0:4], done)
    half.wait()
    if ok:
        half.wait()
    o[...] = loaded[...]  # RACE
    if not ok:
        half.wait()


@racing(SEMAPHORES, buffers(), semaphores())
def reads_the_half_that_it_waits_for(x, o, loaded, done, ok):
    copy(x.at[0], loaded, done).start()
    halves = [copy(x.at[0, at : at + 4], loaded.at[at : at + 4], done) for at in (0, 4)]
    halves[0].wait()
    if ok:
        halves[1].wait()
    o[0:4] = loaded[0:4]  # RACE
    if not ok:
        halves[1].wait()
    o[4:8] = loaded[4:8]


@racing(SEMAPHORES, buffers(2), semaphores())
def small_and_large_copy(x, o, loaded, done, ok):
    small = copy(x.at[0, 0:4], loaded.at[0, 0:4], done)
    large = copy(x.at[1], loaded.at[1], done)
    loaded[0] = jnp.zeros(TILE)
    small.start()
    large.start()
    small.wait()
    if ok:
        large.wait()
    o[...] = loaded[0]  # RACE
    if not ok:
        large.wait()


@racing(SEMAPHORES, buffers(2), semaphores(2))
def waits_for_the_other_semaphore(x, o, loaded, done, ok):
    one, two = (copy(x.at[at], loaded.at[at], done.at[at]) for at in (0, 1))
    one.start()
    two.start()
    (one if ok else two).wait()
    o[...] = loaded[0]  # RACE
    (two if ok else one).wait()
    o[...] += loaded[1]


@racing(SEMAPHORES, buffers(2), buffers(), semaphores())
def load_and_store_share_a_semaphore(x, o, loaded, stored, done, ok):
    load, store = copy(x.at[0], loaded.at[0], done), copy(loaded.at[1], stored, done)
    loaded[1] = jnp.ones(TILE)
    load.start()
    store.start()
    store.wait()
    if ok:
        load.wait()
    loaded[1] = jnp.zeros(TILE)  # RACE
    if not ok:
        load.wait()
    o[...] = loaded[0] + stored[...]


@racing(SEMAPHORES, buffers(2), buffers(), semaphores(2))
def double_buffer_with_one_semaphore(x, o, loaded, total, done, ok):
    def load(tile):
        return copy(x.at[tile], loaded.at[tile % 2], done.at[tile % 2 if ok else 0])

    def step(tile, none):
        pl.when(tile + 1 < 4)(lambda: load(tile + 1).start())
        load(tile).wait()
        total[...] += loaded[tile % 2]  # RACE
        return none

    total[...] = jnp.zeros_like(total)
    load(0).start()
    jax.lax.fori_loop(0, 4, step, None)
    o[...] = total[...]


@racing(SEMAPHORES, buffers(2), buffers(), semaphores())
def one_semaphore_copy_after_copy(x, o, loaded, total, done, ok):
    total[...] = jnp.zeros_like(total)
    for tile in range(4):
        load = copy(x.at[tile], loaded.at[tile % 2], done)
        load.start()
        if ok:
            load.wait()
        total[...] += loaded[tile % 2]  # RACE
        if not ok:
            load.wait()
    o[...] = total[...]
