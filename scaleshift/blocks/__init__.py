"""The engine: one pass over row blocks, additive statistics out."""
