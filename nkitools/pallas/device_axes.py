"""The axes of devices that a function is spread over by ``shard_map``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from nkitools.pallas import jax_internals
from nkitools.pallas.chips import Chip
from nkitools.pallas.imports import jax_module, refuse
from nkitools.pallas.jax_types import DeviceMesh

Axes: TypeAlias = tuple[tuple[str, int], ...]  # the name and the size of each axis


def axes_of(mesh: DeviceMesh | Mapping[str, int] | None) -> Axes:
    """Return the axes of a mesh of JAX, or of a mapping of names to sizes; () for None."""
    sizes = {} if mesh is None else mesh if isinstance(mesh, Mapping) else mesh.shape
    return tuple((str(name), int(size)) for name, size in sizes.items())


def devices_in(axes: Axes) -> int:
    """Return the number of devices in a mesh with these axes."""
    return math.prod(size for _, size in axes)


def abstract_mesh(chip: Chip, axes: Axes = ()) -> Any:
    """Return a mesh of ``chip`` along ``axes``, without devices."""
    sharding = jax_module("jax.sharding")
    device = jax_internals.abstract_device(chip.device_kind)
    names, sizes = tuple(name for name, _ in axes), tuple(size for _, size in axes)
    return sharding.AbstractMesh(sizes, names, axis_types=_types(axes), abstract_device=device)


def mesh_of(devices: Sequence[Any], axes: Axes) -> Any:
    """Return a mesh along ``axes`` of the first ``devices``."""
    names, sizes = [name for name, _ in axes], [size for _, size in axes]
    some = np.array(devices[: devices_in(axes)]).reshape(sizes)
    return jax_module("jax.sharding").Mesh(some, names, axis_types=_types(axes))


def _types(axes: Axes) -> tuple[Any, ...]:
    """Return the axis types for a mesh: ``Auto`` for each axis, which was JAX's default before 0.11.

    With the newer ``Explicit`` axes ``shard_map`` accepts only arrays that are already sharded, and a check's are not.
    """
    return (jax_module("jax.sharding").AxisType.Auto,) * len(axes)


def on_every_device(fn: Callable[..., Any], mesh: DeviceMesh) -> Any:
    """Return ``fn`` jitted; each device of ``mesh``, if it has axes, gets whole operands."""
    jax, sharding = jax_module(), jax_module("jax.sharding")
    if not axes_of(mesh):
        return jax.jit(fn)
    whole = sharding.PartitionSpec()
    spread = jax.shard_map(fn, mesh=mesh, in_specs=whole, out_specs=whole, check_vma=False)
    everywhere = sharding.NamedSharding(mesh, whole)
    return jax.jit(spread, in_shardings=everywhere, out_shardings=everywhere)


def on_simulated_devices(fn: Callable[..., Any], axes: Axes) -> Callable[..., Any]:
    """Return ``fn`` on a mesh of CPU devices with these axes; ``fn`` itself without axes.

    ``NotModelled`` (NK607) if JAX has fewer CPU devices.
    """
    if not axes:
        return fn
    jax, sharding = jax_module(), jax_module("jax.sharding")
    devices, wanted = jax.devices("cpu"), devices_in(axes)
    if len(devices) < wanted:
        refuse(
            f"the mesh has {wanted} devices, and JAX has {len(devices)} on this CPU",
            f"Set XLA_FLAGS=--xla_force_host_platform_device_count={wanted} in the environment before JAX starts.",
        )
    mesh = mesh_of(devices, axes)

    @functools.wraps(fn)
    def spread(*args: Any, **kwargs: Any) -> Any:
        kind = sharding.get_abstract_mesh().abstract_device
        with jax.set_mesh(mesh), sharding.use_abstract_mesh(mesh.abstract_mesh.update(abstract_device=kind)):
            return jax.jit(lambda: fn(*args, **kwargs))()

    return spread
