"""What instructions compute, written from the documents: NumPy and ml_dtypes alone, nothing of nkitools.

A program is plain data (`programs`): tiles with inputs, and steps. `steps` has each instruction twice: how a legal call
is drawn at random, and what it makes of the tiles. `make fuzz` runs programs here and in the simulator.
"""
