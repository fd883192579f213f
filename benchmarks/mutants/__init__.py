"""How many mistakes in a kernel are noticed: systematic mutations of the example kernels, and what tells of each."""
