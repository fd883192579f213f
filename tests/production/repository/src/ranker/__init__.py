"""Kernels of a ranking model, and the modules that call them."""
