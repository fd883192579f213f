"""AWS's packages that are here, by their versions, and the ways to a NeuronCore that they are good for.

Source: release notes of Neuron SDK 2.33: torch-neuronx 2.10 and higher is torch's native backend for Trn2 and Trn3;
2.9 and lower drives torch-xla, for all chips up to SDK 2.31.
"""

from __future__ import annotations

from typing import NamedTuple

from nkitools.facts.generations import generation_of
from nkitools.facts.supported_versions import release
from nkitools.targets.packages import aws_package, is_installed, version_of

_NATIVE = (2, 10)
LAST_LEGACY = (2, 24)  # neuronx-cc of SDK 2.29.1; from NKI 0.4 (SDK 2.30) its release notes call the dialect an error
FOR_XLA = "Install torch-neuronx 2.9 with torch-xla (SDK 2.31)."
_FOR_TORCH = {
    "native": "Install torch-neuronx 2.14 (SDK 2.33), torch's native backend.",
    "xla": FOR_XLA,
    "": "Install torch-neuronx: 2.14 on Trn2 and Trn3, 2.9 with torch-xla on Trn1 and Inf2.",
}


class TorchBackend(NamedTuple):
    """The way by which torch reaches a NeuronCore here."""

    kind: str
    """``native``, ``xla``, or empty where there is no way."""
    reason: str
    """The packages and their versions; without a way, what is missing or does not fit the chip."""
    remedy: str = ""
    """The packages that would fit; empty where there is a way."""


def torch_backend(chip: str) -> TorchBackend:
    """Return torch's way to a NeuronCore of ``chip`` (empty: unknown). Imports nothing."""
    version = version_of("torch-neuronx")
    named = f"torch-neuronx {version}" if version else "torch-neuronx"
    fits = _FOR_TORCH["" if not chip else "native" if _takes_native(chip) else "xla"]
    if not is_installed("torch_neuronx"):
        return TorchBackend("", "module torch_neuronx is not installed", fits)
    if version and release(version)[:2] >= _NATIVE:
        if chip and not _takes_native(chip):
            return TorchBackend("", f"{named} is for Trn2 and Trn3, and the NeuronCore here is of {chip}", fits)
        found = TorchBackend("native", f"native {named}")
    elif not is_installed("torch_xla"):
        return TorchBackend("", f"{named} is driven by torch-xla, and module torch_xla is not installed", fits)
    else:
        found = TorchBackend("xla", f"{named} with torch-xla")
    if not is_installed("torch"):
        return TorchBackend("", f"{named} is here, and module torch is not installed", "Install torch.")
    return found


def ways(chip: str) -> str:
    """Return the ways in that are here, for a sentence: by torch, by JAX, with NumPy arrays; and those that are not."""
    found = torch_backend(chip)
    named, absent = [f"{found.reason} (torch tensors)"] if found.kind else [], []
    if not found.kind:
        absent.append(f"no torch tensors: {found.reason}")
    lacking = [module for module in ("jax", "libneuronxla") if not is_installed(module)]
    if lacking:
        absent.append(f"no JAX: module {' and module '.join(lacking)} not installed")
    else:
        named.append(f"JAX {version_of('jax')} by libneuronxla")
    version = version_of("neuronx-cc") or ""
    if aws_package("neuronxcc", "nki") is not None and release(version)[:2] > LAST_LEGACY:
        absent.append(f"no legacy dialect: neuronx-cc {version}, and that of SDK 2.29.1 is the last")
    return "; ".join([", ".join([*named, "NumPy arrays"]), *absent])


def _takes_native(chip: str) -> bool:
    return generation_of(chip).native_torch
