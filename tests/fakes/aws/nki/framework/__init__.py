"""A fake of nki.framework: what calls a kernel for each framework."""
