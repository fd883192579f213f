"""Mistakes in kernels that talk to other devices: each is one finding, at its line."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402
from jax.sharding import PartitionSpec  # noqa: E402

from nkitools.pallas import check  # noqa: E402
from nkitools.pallas.compiler import why_not  # noqa: E402
from nkitools.rules.finding import NotModelled  # noqa: E402
from tests.pallas.collectives import DEVICES, DMA, WHOLE, hands_on, meet, neighbours, ring, send  # noqa: E402
from tests.pallas.kernels import like, ramp  # noqa: E402

pytestmark = pytest.mark.skipif(len(jax.devices()) < DEVICES, reason="XLA_FLAGS asks for fewer devices")


def signal(device: Any, semaphore: Any) -> None:
    """Signal a semaphore of another device."""
    pl.semaphore_signal(semaphore, 1, device_id=(device,))


def to_the_next(x_ref: Any, out_ref: Any, sent: Any, received: Any) -> Any:
    """Return the copy to the next device."""
    after = neighbours()[2]
    return pltpu.make_async_remote_copy(x_ref, out_ref, sent, received, device_id=(after,))


def right(x_ref: Any, out_ref: Any, sent: Any, received: Any) -> None:
    meet()
    send(x_ref, out_ref, sent, received, neighbours()[2])


def does_not_wait(x_ref: Any, out_ref: Any, sent: Any, received: Any) -> None:
    meet()
    to_the_next(x_ref, out_ref, sent, received).start()  # PL204


def signals_twice(x_ref: Any, out_ref: Any, sent: Any, received: Any) -> None:  # PL204
    barrier, (_, before, after) = pltpu.get_barrier_semaphore(), neighbours()
    for device in (before, after, after):
        signal(device, barrier)
    pl.semaphore_wait(barrier, 2)
    send(x_ref, out_ref, sent, received, after)


def does_not_meet(x_ref: Any, out_ref: Any, sent: Any, received: Any) -> None:
    copy = to_the_next(x_ref, out_ref, sent, received)
    copy.start()  # PL209
    copy.wait()


def sends_before_it_meets(x_ref: Any, out_ref: Any, sent: Any, received: Any) -> None:
    copy = to_the_next(x_ref, out_ref, sent, received)
    copy.start()  # PL209
    meet()
    copy.wait()


def receives_before_it_sends(x_ref: Any, out_ref: Any, sent: Any, received: Any) -> None:
    meet()
    copy = to_the_next(x_ref, out_ref, sent, received)
    copy.wait_recv()  # PL208
    copy.start()
    copy.wait_send()


def waits_for_two_of_one(x_ref: Any, out_ref: Any, sent: Any, received: Any) -> None:
    barrier, (_, _, after) = pltpu.get_barrier_semaphore(), neighbours()
    signal(after, barrier)
    pl.semaphore_wait(barrier, 2)  # PL208
    send(x_ref, out_ref, sent, received, after)


MISTAKES = [
    does_not_wait,
    signals_twice,
    does_not_meet,
    sends_before_it_meets,
    receives_before_it_sends,
    waits_for_two_of_one,
]


@pytest.mark.parametrize("kernel", MISTAKES, ids=lambda kernel: kernel.__name__)
def test_a_mistake_is_one_finding_at_its_line(kernel: Any) -> None:
    """Whatever else goes wrong on four devices because of it, and however it ends."""
    lines, first = inspect.getsourcelines(kernel)
    at, rule = next((first + number, text[-6:-1]) for number, text in enumerate(lines) if "  # PL" in text)
    run = check(hands_on(kernel), ramp(32))
    assert [(each.rule, each.line, each.file) for each in run.findings] == [(rule, at, __file__)]


def test_without_a_mistake_there_is_no_finding() -> None:
    """The parts of the rows have moved on by one device."""
    run = check(hands_on(right), ramp(32))
    assert run.findings == []
    np.testing.assert_array_equal(run.outputs, np.roll(ramp(32), 8, axis=0))


def test_a_deadlock_says_who_waits() -> None:
    """Each device with its line, and what it lacks."""
    (finding,) = check(hands_on(waits_for_two_of_one), ramp(32), modes="tpu_interpret").findings
    line = finding.line
    waits = [f"device {device} at line {line} (has" for device in range(DEVICES)]
    assert all(each in finding.message for each in waits)
    assert finding.message.startswith("devices wait for each other, and none goes on: device 0")
    assert "(has 1 of 2)" in finding.message


def test_buffers_have_their_names_on_every_device() -> None:
    """The devices allocate one after the other; the first point of the grid comes when some have not begun."""

    def kernel(x_ref: Any, out_ref: Any, rows: Any, sent: Any, received: Any) -> None:
        meet()
        send(x_ref, rows, sent, received, neighbours()[2])
        out_ref[...] = rows[...] + rows[pl.ds(8 + 0 * jax.lax.axis_index("x"), 8)]

    def body(part: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=like(part),
            in_specs=[WHOLE],
            scratch_shapes=[pltpu.VMEM((8, 128), part.dtype), DMA, DMA],
            compiler_params=pltpu.CompilerParams(collective_id=0),
        )(part)

    run = check(ring(body, PartitionSpec("x")), ramp(32), modes="tpu_interpret")
    assert {each.rule for each in run.findings} == {"PL201"}
    assert all("scratch `rows`" in each.message for each in run.findings)


def permutes(x: Any) -> Any:
    """Hand the rows on, in a ``shard_map`` that takes its mesh from around it."""

    def body(part: Any) -> Any:
        return pl.pallas_call(
            right,
            out_shape=like(part),
            in_specs=[WHOLE],
            out_specs=WHOLE,
            scratch_shapes=[DMA, DMA],
            compiler_params=pltpu.CompilerParams(collective_id=0),
        )(part)

    rows = PartitionSpec("x")
    return jax.shard_map(body, in_specs=rows, out_specs=rows, check_vma=False)(x)


@pytest.mark.parametrize("mesh", [{"x": DEVICES}, jax.sharding.AbstractMesh((DEVICES,), ("x",))], ids=["sizes", "mesh"])
def test_the_check_gives_a_mesh(mesh: Any) -> None:
    """The function runs on as many simulated devices, and is compiled for a topology."""
    run = check(permutes, ramp(32), mesh=mesh, topology="v5e:2x2")
    assert run.findings == []
    np.testing.assert_array_equal(run.outputs, np.roll(ramp(32), 8, axis=0))
    assert run.compiled["v5e"].accepted is (None if why_not() else True)


def test_more_devices_than_there_are_is_refused() -> None:
    """With the setting that makes them."""
    count = len(jax.devices())
    with pytest.raises(NotModelled, match=rf"the mesh has {count + 1} devices, and JAX has {count} on this CPU"):
        check(permutes, ramp(32), mesh={"x": count + 1})


@pytest.mark.parametrize("topology", ["v7:2x2", "v5e", "v5e:2x2x1", "v5p:2x2", "v5e:2xy"])
def test_what_is_no_topology_is_named(topology: str) -> None:
    """With what it should look like."""
    with pytest.raises(ValueError, match=rf"topology is '{topology}'; it is a chip and its layout, as 'v5e:2x2'"):
        check(permutes, ramp(32), mesh={"x": DEVICES}, topology=topology)
