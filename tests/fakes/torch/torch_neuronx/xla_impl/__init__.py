"""A fake of torch_neuronx.xla_impl: it has the loader of custom operators."""
