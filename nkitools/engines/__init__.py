"""What the engines compute, on NumPy arrays: operators, casts on write, MX formats, and what an instruction costs."""
