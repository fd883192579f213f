"""Kernels with copies in flight in the shape of real ones: gathers, prefetches, accumulators, rings of buffers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from tests.pallas.racing import ANY, TILE, TILES, Racing, both, buffers, copy, racing, semaphores

COPIES: list[Racing] = []


@racing(COPIES, buffers(2), buffers(), semaphores(), semaphores())
def gather_one_sem(x, o, buf, other, s, t, ok):
    buf[...] = jnp.zeros_like(buf)
    a, b = copy(x.at[0], buf.at[0], s), copy(x.at[1], buf.at[1], s)
    a.start()
    b.start()
    both(copy(x.at[2], other, t))
    a.wait()
    if ok:
        b.wait()
    o[...] = buf[0] + buf[1] + other[...]  # RACE
    if not ok:
        b.wait()


@racing(COPIES, buffers(), buffers(), semaphores(), semaphores(), output=ANY)
def scatter_then_change(x, o, buf, other, s, t, ok):
    both(copy(x.at[0], buf, s))
    c = copy(buf, other, s)
    c.start()
    both(copy(x.at[1], o, t))
    if ok:
        c.wait()
    buf[...] = buf[...] * 2  # RACE
    if not ok:
        c.wait()
    both(copy(buf, o, t))


@racing(COPIES, buffers(), semaphores(2), output=ANY)
def two_copies_one_target(x, o, buf, s, ok):
    a, b = copy(x.at[0], buf, s.at[0]), copy(x.at[1], buf, s.at[1])
    a.start()
    if ok:
        a.wait()
    b.start()  # RACE
    if not ok:
        a.wait()
    b.wait()
    both(copy(buf, o, s.at[0]))


@racing(COPIES, buffers(), buffers(), semaphores(3), output=ANY)
def copy_of_a_landing_buffer(x, o, buf, other, s, ok):
    a, b = copy(x.at[0], buf, s.at[0]), copy(buf, o, s.at[1])
    a.start()
    both(copy(x.at[1], other, s.at[2]))
    if ok:
        a.wait()
    b.start()  # RACE
    if not ok:
        a.wait()
    b.wait()


@racing(COPIES, buffers(), buffers(2), semaphores(2), semaphores(), output=ANY)
def accumulates_while_flushing(x, o, acc, buf, s, t, ok):
    acc[...] = jnp.zeros_like(acc)
    c = copy(acc, o, t)
    for i in range(TILES):
        both(copy(x.at[i], buf.at[i % 2], s.at[i % 2]))
        if i == 3:
            c.start()
        if i == 3 and ok:
            c.wait()
        acc[...] += buf[i % 2]  # RACE
    if not ok:
        c.wait()
    both(c)


@racing(COPIES, buffers(), buffers(), semaphores(2))
def part_of_rows(x, o, buf, other, s, ok):
    c = copy(x.at[0, 0:4], buf.at[0:4], s.at[0])
    buf[...] = jnp.ones_like(buf)
    c.start()
    both(copy(x.at[1], other, s.at[1]))
    if ok:
        c.wait()
    o[...] = buf[...]  # RACE
    if not ok:
        c.wait()


@racing(COPIES, buffers(), buffers(), semaphores(2))
def masked_store_over_load(x, o, buf, other, s, ok):
    c = copy(x.at[0], buf, s.at[0])
    c.start()
    both(copy(x.at[1], other, s.at[1]))
    if ok:
        c.wait()
    buf[2:3, :] = other[2:3, :]  # RACE
    if not ok:
        c.wait()
    o[...] = buf[...]


@racing(COPIES, buffers(2), buffers(), semaphores(2), semaphores())
def wait_in_wrong_branch(x, o, buf, other, s, t, ok):
    buf[...] = jnp.zeros_like(buf)
    for i in range(2):
        copy(x.at[i], buf.at[i], s.at[i]).start()
    both(copy(x.at[2], other, t))

    @pl.when(other[0, 0] < (1e9 if ok else -1.0))
    def _():
        for i in range(2):
            copy(x.at[i], buf.at[i], s.at[i]).wait()

    o[...] = buf[1] + other[...]  # RACE

    @pl.when(other[0, 0] >= (1e9 if ok else -1.0))
    def _():
        for i in range(2):
            copy(x.at[i], buf.at[i], s.at[i]).wait()


@racing(COPIES, buffers(3), semaphores(3), semaphores())
def triple_buffer_two_sems(x, o, buf, s, t, ok):
    buf[...] = jnp.zeros_like(buf)

    def c(i):
        return copy(x.at[i], buf.at[i % 3], s.at[i % 3])

    c(0).start()
    c(1).start()
    total = jnp.zeros(TILE)
    for i in range(TILES):
        c(i).wait()
        if i + 2 < TILES:
            c(i + 2).start()
        total += buf[(i if ok else i + 1) % 3]  # RACE
    o[...] = total


@racing(COPIES, buffers(4), buffers(), semaphores(4), semaphores())
def paged_gather(x, o, pages, other, s, t, ok):
    pages[...] = jnp.zeros_like(pages)
    for i in range(4):
        copy(x.at[5 - i], pages.at[i], s.at[i]).start()
    both(copy(x.at[0], other, t))
    for i in range(4 if ok else 3):
        copy(x.at[5 - i], pages.at[i], s.at[i]).wait()
    o[...] = jnp.sum(pages[...], axis=0)  # RACE
    if not ok:
        copy(x.at[2], pages.at[3], s.at[3]).wait()


@racing(COPIES, buffers(), buffers(), semaphores(2))
def restart_while_reading(x, o, buf, res, s, ok):
    both(copy(x.at[0], buf, s.at[0]))
    nxt = copy(x.at[1], buf, s.at[0])
    if not ok:
        nxt.start()
    v = buf[...]  # RACE
    both(copy(x.at[2], res, s.at[1]))
    if ok:
        nxt.start()
    nxt.wait()
    o[...] = v + buf[...] + res[...]


@racing(COPIES, buffers(2), semaphores(2), semaphores(), output=ANY)
def hbm_read_back(x, o, buf, s, t, ok):
    both(copy(x.at[0], buf.at[0], s.at[0]))
    w = copy(buf.at[0], o, t)
    w.start()
    both(copy(x.at[1], buf.at[1], s.at[1]))
    if ok:
        w.wait()
    back = copy(o, buf.at[1], s.at[0])
    back.start()  # RACE
    back.wait()
    if not ok:
        w.wait()


@racing(COPIES, buffers(3), semaphores(3))
def local_copy_chain(x, o, buf, s, ok):
    a = copy(x.at[0], buf.at[0], s.at[0])
    b = copy(buf.at[1], buf.at[2], s.at[1])
    buf[1] = jnp.ones(TILE, jnp.float32)
    a.start()
    b.start()
    a.wait()
    if ok:
        b.wait()
    o[...] = buf[2] + buf[0]  # RACE
    if not ok:
        b.wait()


@racing(COPIES, buffers(), semaphores(2))
def run_scoped(x, o, buf, s, ok):
    def body(mine):
        mine[...] = jnp.zeros_like(mine)
        c = copy(x.at[0], mine, s.at[0])
        c.start()
        both(copy(x.at[1], buf, s.at[1]))
        if ok:
            c.wait()
        o[...] = mine[...] + buf[...]  # RACE
        if not ok:
            c.wait()

    pl.run_scoped(body, buffers())


@racing(COPIES, buffers(2), buffers(), semaphores(2), semaphores())
def inside_while(x, o, buf, acc, s, t, ok):
    acc[...] = jnp.zeros_like(acc)
    buf[...] = jnp.zeros_like(buf)

    def c(i):
        return copy(x.at[i], buf.at[i % 2], s.at[i % 2])

    c(0).start()

    def step(i):
        @pl.when(i + 1 < TILES)
        def _():
            c(i + 1).start()

        if ok:
            c(i).wait()
        acc[...] += buf[i % 2]  # RACE
        if not ok:
            c(i).wait()
        return i + 1

    jax.lax.while_loop(lambda i: i < TILES, step, 0)
    o[...] = acc[...]


@racing(COPIES, buffers(), buffers(2), semaphores(), semaphores(2))
def weights_prefetch(x, o, w, a, sw, sa, ok):
    w[...] = jnp.ones_like(w)
    cw = copy(x.at[5], w, sw)
    cw.start()
    for i in range(2):
        both(copy(x.at[i], a.at[i], sa.at[i]))
    if ok:
        cw.wait()
    o[...] = a[0] * w[...] + a[1]  # RACE
    if not ok:
        cw.wait()


@racing(COPIES, buffers(), semaphores(2))
def output_direct(x, o, buf, s, ok):
    c = copy(x.at[0], o, s.at[0])
    c.start()
    both(copy(x.at[1], buf, s.at[1]))
    if ok:
        c.wait()
    o[...] = buf[...]  # RACE
    if not ok:
        c.wait()


@racing(COPIES, buffers(2), buffers(), semaphores(2), semaphores())
def stale_wait_slot(x, o, buf, acc, s, t, ok):
    buf[...] = jnp.zeros_like(buf)
    acc[...] = jnp.zeros_like(acc)
    for i in range(2):
        copy(x.at[i], buf.at[i], s.at[i]).start()
    for i in range(2):
        copy(x.at[i], buf.at[i], s.at[i if ok else 1 - i]).wait()
        acc[...] += buf[i]  # RACE
    o[...] = acc[...]
