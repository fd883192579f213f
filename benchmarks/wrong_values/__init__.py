"""Kernels that are wrong in their values alone, to measure what finds and mends such mistakes."""
