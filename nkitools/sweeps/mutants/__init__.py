"""Mistakes that are made in kernels on purpose: every operator at every place of a source where it applies."""
