"""A fake of torch_neuronx: importing it makes the Neuron device torch_xla's."""
