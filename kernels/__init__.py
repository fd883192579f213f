"""Example kernels, each with its reference in `gallery`."""
