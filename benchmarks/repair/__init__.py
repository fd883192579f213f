"""Mistakes in kernels that suggested edits alone mend, without a model: ``python -m benchmarks.repair``."""
