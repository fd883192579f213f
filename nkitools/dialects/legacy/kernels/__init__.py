"""Kernels of the legacy dialect: their source, state and checks."""
