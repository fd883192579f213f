"""The share of a TPU's peak, and the refusal to take any other time for performance."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402  (JAX decides whether this file is collected)
import ml_dtypes  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

import nkitools.pallas  # noqa: E402
from nkitools.pallas import performance as module  # noqa: E402
from nkitools.pallas.calls import compiling_for  # noqa: E402
from nkitools.pallas.chips import CHIPS  # noqa: E402
from nkitools.pallas.performance import PEAKS, measure, peak, utilisation  # noqa: E402
from nkitools.rules.finding import NotModelled  # noqa: E402
from tests.pallas.kernels import double  # noqa: E402

PRODUCT = 2 * 8192**3


@pytest.fixture
def tpu(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A v5e that is not there: the CPU computes under its name, and the clock stands still but for what tests add."""
    device = SimpleNamespace(platform="tpu", device_kind="TPU v5 lite", num_cores=1, id=0)
    clock = SimpleNamespace(now=0.0, device=device)
    monkeypatch.setattr(module, "_device", lambda *_: device)
    monkeypatch.setattr(jax, "device_put", lambda args, _: jax.tree_util.tree_map(jnp.asarray, args))
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock.now)
    return clock


def test_utilisation_is_the_share_of_the_peak() -> None:
    """An 8192^3 product in 10 ms is 110 T operations per second: 56 % of a v5e's bfloat16, 28 % of its int8."""
    assert utilisation(0.01, PRODUCT, "bfloat16", "v5e") == pytest.approx(0.558128, abs=1e-6)
    assert utilisation(0.01, PRODUCT, "int8", "v5e") == pytest.approx(0.279774, abs=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", jnp.bfloat16, ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16)])
def test_a_dtype_goes_by_any_of_its_names(dtype: Any) -> None:
    """A name, JAX's type, ml_dtypes' and NumPy's dtype object mean the same."""
    assert peak(dtype, "v6e") == 918e12


def test_the_forms_of_float8_share_a_peak() -> None:
    """The documentation speaks of FP8, whatever the exponent."""
    assert peak(ml_dtypes.float8_e4m3fn, "tpu7x", cores=2) == peak("float8_e5m2", "tpu7x", cores=2) == 4614e12


def test_the_peak_is_that_of_a_jax_device() -> None:
    """A JAX device is half a TPU7x and the whole of a v5p; ``cores`` says otherwise."""
    assert (peak("bfloat16", "tpu7x"), peak("bfloat16", "tpu7x", cores=2)) == (2307e12 / 2, 2307e12)
    assert (peak("int8", "v5p"), peak("int8", "v5p", cores=1)) == (918e12, 459e12)
    with pytest.raises(ValueError, match="cores is 2; a v5e has 1"):
        peak("int8", "v5e", cores=2)


def test_the_peaks_are_near_those_that_jax_knows() -> None:
    """Google's documentation and JAX's rounder numbers, both per TensorCore, differ by less than 1 %."""
    for name, of_chip in PEAKS.items():
        with compiling_for(CHIPS[name]):
            known = pltpu.get_tpu_info()
        rates = {
            "bfloat16": known.bf16_ops_per_second,
            "int8": known.int8_ops_per_second,
            "float8": known.fp8_ops_per_second,
        }
        for dtype, operations in of_chip.operations.items():
            if rates[dtype]:  # 0 stands for "not available"
                assert operations / of_chip.cores == pytest.approx(rates[dtype], rel=0.01), (name, dtype)


def test_every_chip_that_can_be_checked_for_has_a_peak() -> None:
    """The table of chips and that of peaks go by the same names."""
    assert PEAKS.keys() == CHIPS.keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 1.0, "int8", "v9"), "no peak is known for chip 'v9'; known are v4, v5e, v5p, v6e, tpu7x"),
        ((1.0, 1.0, "float32", "v5e"), "states no peak of float32 for v5e; it does for bfloat16, int8"),
        ((1.0, 1.0, jnp.int8, "tpu7x"), "states no peak of int8 for tpu7x; it does for bfloat16, float8"),
        ((0.0, 1.0, "int8", "v5e"), "seconds is 0.0; a measured time is positive"),
        ((float("nan"), 1.0, "int8", "v5e"), "seconds is nan"),
        ((1.0, -1.0, "int8", "v5e"), "operations is -1.0; a count is not negative"),
        ((1.0, 786e12, "int8", "v5e"), "are 2.00 times the peak of v5e in int8"),
    ],
)
def test_what_cannot_be_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    """Unknown chips and dtypes, and times and counts that no measurement gives."""
    with pytest.raises(ValueError, match=message):
        utilisation(*arguments)


def test_the_time_of_a_cpu_is_refused() -> None:
    """Without a TPU there is nothing to measure, and the function is not run."""
    ran: list[object] = []
    with pytest.raises(
        NotModelled, match=r"`append` on cpu \(cpu\); such a time is not the performance of a TPU kernel"
    ):
        measure(ran.append, np.zeros(8, np.float32), operations=8)
    with pytest.raises(NotModelled, match="such a time is not the performance"):
        measure(ran.append, jnp.zeros(8), operations=8)
    assert ran == []


def test_the_script_of_the_how_to_page_needs_a_tpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is none it is refused at its own line, before anything is computed."""
    if jax.default_backend() == "tpu":
        pytest.skip("there is a TPU, and measuring on it takes its time")
    script = Path(__file__).parents[2] / "docs" / "how-to" / "example" / "product_time.py"
    monkeypatch.syspath_prepend(str(script.parent))
    with pytest.raises(NotModelled, match="measure was asked to time `product` on") as refused:
        runpy.run_path(str(script))
    monkeypatch.delitem(sys.modules, "product")
    assert Path(refused.value.finding.file) == script


def test_the_time_of_an_interpreted_kernel_is_refused(tpu: SimpleNamespace) -> None:
    """Interpretation on a TPU is XLA's program and not the kernel, also where it hides in a jitted function."""
    with (
        pltpu.force_tpu_interpret_mode(True),
        pytest.raises(NotModelled, match="which interprets a Pallas call; such a time is not its performance"),
    ):
        measure(jax.jit(double), np.zeros((8, 128), np.float32), operations=1024, dtype="bfloat16")


def test_measuring_takes_the_median_of_the_trials(tpu: SimpleNamespace) -> None:
    """One call to compile, then trials of several calls each, whose time is that of one."""
    durations = iter([100.0, *[0.010] * 4, *[0.030] * 4, *[0.020] * 4])

    def product(x: Any, y: Any) -> Any:
        jax.debug.callback(lambda: setattr(tpu, "now", tpu.now + next(durations)))
        return jnp.dot(x, y, preferred_element_type=jnp.int32)

    # The callback makes time pass, and waiting for it is what block_until_ready does on a device.
    ones = np.ones((4, 4), np.int8)
    with pytest.MonkeyPatch.context() as patch:
        ready = jax.block_until_ready
        patch.setattr(jax, "block_until_ready", lambda outputs: (ready(outputs), jax.effects_barrier())[0])
        measured = measure(product, ones, ones, operations=PRODUCT, trials=3, calls=4)
    assert measured.trials == pytest.approx((0.010, 0.030, 0.020))
    assert (measured.function, measured.chip, measured.dtype) == ("product", "v5e", "int8")
    assert measured.seconds == pytest.approx(0.020)
    assert measured.utilisation == pytest.approx(PRODUCT / 0.020 / 393e12)
    assert str(measured) == "product on v5e: 20000.0 us, 55.0 Tint8 op/s, 14.0% of the peak"


def test_an_unknown_tpu_is_refused(tpu: SimpleNamespace) -> None:
    """A device whose peak is not known is named."""
    tpu.device.device_kind = "TPU8i"
    with pytest.raises(NotModelled, match="the peak of TPU8i is not known"):
        measure(jnp.sin, np.zeros(8, np.float32), operations=8)


def test_measuring_needs_trials_calls_and_a_dtype(tpu: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be compared with a peak is not run either."""
    monkeypatch.setattr(module, "_seconds", lambda *_: pytest.fail("was measured"))
    with pytest.raises(ValueError, match="states no peak of float32 for v5e"):
        measure(jnp.sin, np.zeros(8, np.float32), operations=8)
    with pytest.raises(ValueError, match="trials is 0 and calls is 10; both are at least 1"):
        measure(jnp.sin, np.zeros(8, np.float32), operations=8, trials=0)
    with pytest.raises(ValueError, match="no argument of the function is an array"):
        measure(lambda: jnp.zeros(8), operations=8)


def test_it_is_reached_from_the_package() -> None:
    """``nkitools.pallas.utilisation`` and ``nkitools.pallas.measure`` are the functions."""
    assert nkitools.pallas.measure is measure
    assert nkitools.pallas.utilisation is utilisation
