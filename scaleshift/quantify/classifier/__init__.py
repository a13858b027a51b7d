"""What does a classifier say of a row?  The default one, cross-fitting, and any estimator of the user's."""
