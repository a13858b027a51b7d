"""Which proportions, when some cells belong to no class and samples differ by more than their proportions?"""
