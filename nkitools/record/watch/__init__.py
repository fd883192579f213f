"""Values that instructions write, kept while a run is watched."""
