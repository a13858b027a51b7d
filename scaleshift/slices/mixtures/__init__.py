"""How is the mixture of `DominoSlicer` learned, and who belongs to its components?"""
