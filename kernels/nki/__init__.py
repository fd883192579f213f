"""Example kernels for NeuronCores, the modern dialect."""
