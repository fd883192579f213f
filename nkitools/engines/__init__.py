"""The computations of the engines on NumPy arrays: operators, casts on write, MX formats, and costs."""
