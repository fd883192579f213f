"""The instructions of a NeuronCore: one function an instruction, stating what it requires, does and costs."""
