"""What the author imports: the modern `nki` and the legacy `neuronxcc.nki`."""
