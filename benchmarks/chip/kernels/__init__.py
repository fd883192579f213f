"""Kernels in our own words that do what measured ones did."""
