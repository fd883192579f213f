"""What a NeuronCore is: its generations, dtypes, memories, and the tensors that live in them."""
