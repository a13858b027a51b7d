"""How wrong will a model be on a shifted target, without its labels?"""
