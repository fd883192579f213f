"""The share of a TPU's peak that a kernel reaches: times measured on the device, against the chip's documented peak.

The times of a CPU say nothing about a TPU, least of all those of interpreted kernels, so `measure` refuses them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

from nkitools.pallas.calls import equations
from nkitools.pallas.chips import CHIPS
from nkitools.pallas.imports import jax_module, refuse, without_jax_warnings
from nkitools.pallas.jax_types import Argument, Device, DTypeLike, Jaxpr
from nkitools.pallas.launch import name_of


class Peak(NamedTuple):
    """The peak of a chip: operations a second by dtype (a multiply-add is two), and the TensorCores that share them."""

    operations: MappingProxyType[str, float]
    cores: int  # TensorCores of a chip
    cores_of_device: int  # TensorCores of one JAX device, where nothing was configured otherwise


def _peak(cores: int, cores_of_device: int, **operations: float) -> Peak:
    return Peak(MappingProxyType(operations), cores, cores_of_device)


# Per chip, from the page of docs.cloud.google.com/tpu/docs named beside each, "peak compute per chip"; what they do not
# state is not here. The two TensorCores of a v4 or v5p are one JAX device (megacore), those of a TPU7x are two.
PEAKS: MappingProxyType[str, Peak] = MappingProxyType(
    {
        "v4": _peak(2, 2, bfloat16=275e12, int8=275e12),  # v4: "275 teraflops (bf16 or int8)"
        "v5e": _peak(1, 1, bfloat16=197e12, int8=393e12),  # v5e
        # v5p; its int8 is in Google's announcement of Cloud TPU v5p (December 2023), not on the page. The float8 of v5p
        # and v6e are in the comparison on the page tpu7x.
        "v5p": _peak(2, 2, bfloat16=459e12, int8=918e12, float8=459e12),
        "v6e": _peak(1, 1, bfloat16=918e12, int8=1836e12, float8=918e12),  # v6e
        "tpu7x": _peak(2, 1, bfloat16=2307e12, float8=4614e12),  # tpu7x; it states none for int8
    }
)

# What JAX calls their devices (`device_kind`); some it calls by a second name too.
_CHIP_OF_KIND = {chip.device_kind: chip.name for chip in CHIPS.values()} | {
    "TPU v5e": "v5e",
    "TPU v5p": "v5p",
    "TPU v6e": "v6e",
}


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The time of a function on a TPU, as `measure` returns it."""

    function: str
    """The function's name."""
    chip: str
    """The name of the chip, as `peak` takes it."""
    dtype: str
    """The name of the dtype whose peak was taken."""
    operations: float
    """Operations of one call, as the caller counted them."""
    seconds: float
    """Seconds of one call: the median over the trials."""
    trials: tuple[float, ...]
    """Seconds of one call in each trial: the trial's time divided by its number of calls."""
    utilisation: float
    """Share of the device's peak, between 0 and 1."""

    def __str__(self) -> str:
        rate = self.operations / self.seconds
        return (
            f"{self.function} on {self.chip}: {self.seconds * 1e6:.1f} us, {rate / 1e12:.1f} T{self.dtype} op/s, "
            f"{self.utilisation:.1%} of the peak"
        )


def peak(dtype: DTypeLike, chip: str, *, cores: int | None = None) -> float:
    """Return the documented peak in operations per second; a multiply-add counts two.

    - ``dtype`` of the factors: its name in full, or a dtype of NumPy, ml_dtypes or JAX. bfloat16 (every chip), int8
      (but for tpu7x) and float8 of any form (v5p, v6e, tpu7x) have a peak. float32 has none, as a TPU multiplies it in
      several passes of bfloat16.
    - ``chip``: "v4", "v5e", "v5p", "v6e" or "tpu7x".
    - ``cores``: how many TensorCores count; by default as many as JAX calls one device: the one of a v5e or v6e, both
      of a v4 or v5p, one of the two of a TPU7x.

    Raises ``ValueError`` for a chip or a dtype without a documented peak, and for ``cores`` that the chip does not
    have.
    """
    if chip not in PEAKS:
        raise ValueError(f"no peak is known for chip {chip!r}; known are {', '.join(PEAKS)}")
    of_chip = PEAKS[chip]
    name = _dtype_name(dtype)
    family = "float8" if name.startswith("float8") else name
    if family not in of_chip.operations:
        known = ", ".join(of_chip.operations)
        raise ValueError(f"Google's documentation states no peak of {name} for {chip}; it does for {known}")
    counted = of_chip.cores_of_device if cores is None else cores
    if not 1 <= counted <= of_chip.cores:
        raise ValueError(f"cores is {cores}; a {chip} has {of_chip.cores}")
    return of_chip.operations[family] * counted / of_chip.cores


def utilisation(seconds: float, operations: float, dtype: DTypeLike, chip: str, *, cores: int | None = None) -> float:
    """Return the share of the peak, between 0 and 1, that ``operations`` in ``seconds`` reach.

    ``seconds`` must be measured on the chip; a product [M, K] x [K, N] has 2 M K N ``operations``. The other arguments
    are those of `peak`. Raises ``ValueError`` as `peak` does, for a time that is not positive, for a negative count,
    and for more than the peak: then the count or the time is wrong.
    """
    if not seconds > 0:
        raise ValueError(f"seconds is {seconds}; a measured time is positive")
    if not operations >= 0:
        raise ValueError(f"operations is {operations}; a count is not negative")
    limit = peak(dtype, chip, cores=cores)
    share = operations / seconds / limit
    if share > 1:
        raise ValueError(
            f"{operations:g} operations in {seconds:g} s are {share:.2f} times the peak of {chip} in "
            f"{_dtype_name(dtype)} ({limit:g} per second), which it cannot do: check the count, the time and the dtype"
        )
    return share


def measure(
    fn: Callable[..., Any],
    /,
    *args: Argument,
    operations: float,
    dtype: DTypeLike | None = None,
    trials: int = 10,
    calls: int = 10,
) -> Measurement:
    """Time ``fn(*args)`` on one TPU device, and compare the time with the peak of that device.

    The device is that of the first JAX array in ``args``, else JAX's default device. The function is jitted and called
    once before the clock runs. Each trial starts ``calls`` calls and waits for the last. The device runs them in order,
    so that the host starts one while the device runs the one before.

    - ``fn``: a JAX function of arrays, with or without Pallas calls.
    - ``args``: its arguments; they are moved to the device before the clock runs.
    - ``operations`` of one call; a product [M, K] x [K, N] has 2 M K N.
    - ``dtype`` of the factors, as `peak` takes it; by default that of the first array in ``args``.
    - ``trials``: the number of measurements; their median counts.
    - ``calls``: the number of calls in a trial.

    Raises ``NotModelled`` (NK607) if the device is no TPU, or one whose peak is not known, if JAX interprets one of the
    Pallas calls (such a time is not the kernel's performance), and without JAX. ``ValueError`` for less than one trial
    or call, without ``dtype`` for arguments without an array, and as in `utilisation`.
    """
    if trials < 1 or calls < 1:
        raise ValueError(f"trials is {trials} and calls is {calls}; both are at least 1")
    jax = jax_module()
    name = name_of(fn)
    device = _device(jax, args)
    if device.platform != "tpu":
        refuse(
            f"measure was asked to time `{name}` on {device.device_kind} ({device.platform}); such a time is not the "
            "performance of a TPU kernel",
            "Run it on a machine with a TPU. Without one, `nkitools.pallas.sweep` shows what fits and compiles.",
        )
    chip = _chip(device)
    on_device = jax.device_put(args, device)
    with without_jax_warnings():
        traced = jax.make_jaxpr(fn)(*on_device)
    if _interprets(traced.jaxpr):
        refuse(
            f"measure was asked to time `{name}`, which interprets a Pallas call; such a time is not its performance",
            "Give pallas_call interpret=False, and call measure outside of force_tpu_interpret_mode.",
        )
    counted = dtype if dtype is not None else _first_dtype(jax, on_device)
    cores = getattr(device, "num_cores", None)
    peak(counted, chip, cores=cores)  # a dtype without one is refused before the device is kept busy
    with without_jax_warnings():
        times = tuple(_seconds(jax, jax.jit(fn), on_device, trials, calls))
    middle = statistics.median(times)
    return Measurement(
        function=name,
        chip=chip,
        dtype=_dtype_name(counted),
        operations=operations,
        seconds=middle,
        trials=times,
        utilisation=utilisation(middle, operations, counted, chip, cores=cores),
    )


def _seconds(
    jax: ModuleType, fn: Callable[..., Any], args: tuple[Any, ...], trials: int, calls: int
) -> Iterator[float]:
    """Yield the time of one call, trial by trial, once the function is compiled and has run."""
    jax.block_until_ready(fn(*args))
    for _ in range(trials):
        start = time.perf_counter()
        for _ in range(calls):
            outputs = fn(*args)
        jax.block_until_ready(outputs)
        yield (time.perf_counter() - start) / calls


def _device(jax: ModuleType, args: tuple[Any, ...]) -> Any:
    """Return the device that the first JAX array lies on, else the one that JAX would take."""
    for leaf in jax.tree_util.tree_leaves(args):
        if isinstance(leaf, jax.Array):
            return min(leaf.devices(), key=lambda device: device.id)
    default = jax.config.jax_default_device
    return default if hasattr(default, "platform") else jax.local_devices(backend=default)[0]


def _chip(device: Device) -> str:
    """Return the chip of a TPU device; ``NotModelled`` (NK607) if its peaks are unknown."""
    if device.device_kind not in _CHIP_OF_KIND:
        remedy = f"Known are {', '.join(PEAKS)}."
        refuse(f"the peak of {device.device_kind} is not known to this version of nkitools", remedy)
    return _CHIP_OF_KIND[device.device_kind]


def _interprets(jaxpr: Jaxpr) -> bool:
    """Return whether any Pallas call in ``jaxpr``, at whatever depth, would be interpreted."""
    return any(each.primitive.name == "pallas_call" and each.params.get("interpret") for each in equations(jaxpr))


def _first_dtype(jax: ModuleType, args: tuple[Any, ...]) -> Any:
    for leaf in jax.tree_util.tree_leaves(args):
        if hasattr(leaf, "dtype"):
            return leaf.dtype
    raise ValueError("no argument of the function is an array, so say which dtype it multiplies: dtype=...")


def _dtype_name(dtype: DTypeLike) -> str:
    """ "bfloat16" for the name itself, ml_dtypes.bfloat16, jnp.bfloat16 and a dtype object."""
    if isinstance(dtype, str):
        return dtype
    named = getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    return str(named if isinstance(named, str) else dtype)
