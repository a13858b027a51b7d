"""Quantifiers on what a classifier says, and on histograms: one file a family."""
