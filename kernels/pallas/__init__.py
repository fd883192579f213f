"""Example kernels for TPUs."""
