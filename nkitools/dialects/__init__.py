"""The modules that authors import: the modern `nki` and the legacy `neuronxcc.nki`."""
