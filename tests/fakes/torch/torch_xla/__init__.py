"""A fake of torch_xla with a NeuronCore.

Source: "NKI as framework custom operator" (``torch_xla.device``, ``torch_xla.sync``) and torch_xla's own documentation:
operations are recorded and run when ``sync`` ends the graph; ``wait_device_ops`` waits until the device has finished.
"""

import torch

log = []


def device():
    """The XLA device: here the CPU."""
    return torch.device("cpu")


def sync():
    """End the graph."""
    log.append("sync")
