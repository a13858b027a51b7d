"""What does a trained model say of rows?  Models from files that run no code, and those of the user."""

from __future__ import annotations

from scaleshift.models.file import ModelFile
from scaleshift.models.opening import open_model
from scaleshift.models.predicting import known_classes, name_of_model, other_classes, predictions

__all__ = ["ModelFile", "known_classes", "name_of_model", "open_model", "other_classes", "predictions"]
