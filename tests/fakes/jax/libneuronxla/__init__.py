"""A fake of libneuronxla, AWS's plugin of JAX: what is looked for is whether it is installed."""
