"""How are the spotlights of `SpotlightSlicer` found, and who stands in their light?"""
