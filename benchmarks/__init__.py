"""Speed of the simulator against NumPy."""
