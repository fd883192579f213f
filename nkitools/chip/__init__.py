"""A NeuronCore: its generations, dtypes, memories, and the tensors that live in them."""
