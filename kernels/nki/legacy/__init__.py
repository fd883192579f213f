"""Example kernels for NeuronCores, the legacy dialect."""
