"""How many mistakes in kernels are mended by suggested edits alone, without a model: ``python -m benchmarks.repair``."""
