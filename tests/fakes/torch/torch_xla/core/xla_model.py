"""A fake of torch_xla.core.xla_model."""

import torch_xla


def xla_device():
    """The XLA device."""
    return torch_xla.device()


def mark_step():
    """End the graph."""
    torch_xla.sync()


def wait_device_ops():
    """Wait for the device."""
    torch_xla.log.append("wait")
