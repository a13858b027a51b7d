"""Saved slicers whose parts do not belong together are refused: kernels check no bounds."""

import json

import pytest
from planted import P, X, Y

import scaleshift as ss
from scaleshift import DominoSlicer, SpotlightSlicer, persistence
from scaleshift.errors import ScaleshiftError

MIXTURE, PREPARED = ("fitted", "mixture_", "fields"), ("fitted", "preparation_", "fields")
LIGHTS = ("fitted", "spotlights_", "fields")
MEANS = (*MIXTURE, "means")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    DominoSlicer(3, n_mixture_components=6, random_state=0).fit(None, X, Y, P).save(folder / "domino")
    SpotlightSlicer(0.05, 50, n_slices=2, random_state=0).fit(None, X, Y, P).save(folder / "spotlight")
    return folder


def at(record, path):
    for name in path:
        record = record[name]
    return record


def forged(path, change):
    """Rewrite the record of a model, its checksum too."""
    root = json.loads((path / "zarr.json").read_text())
    record = root["attributes"][persistence.RECORD]
    change(record["object"])
    record["checksum"] = persistence._checksum(record["object"])
    (path / "zarr.json").write_text(json.dumps(root))


@pytest.mark.parametrize(
    ("model", "part", "other"),
    [
        ("domino", ("class",), "os.system"),
        ("domino", ("class",), "SpotlightSlicer"),
        ("domino", (*MIXTURE[:-1], "class"), "Projection"),
        ("domino", MEANS, (*MIXTURE, "weights")),
        ("domino", (*MIXTURE, "weights"), MEANS),
        ("domino", (*MIXTURE, "label_probs"), MEANS),
        ("domino", (*MIXTURE, "prediction_probs"), MEANS),
        ("domino", (*MIXTURE, "covariance_type"), "full"),
        ("domino", (*MIXTURE, "covariance_type"), "other"),
        ("domino", ("fitted", "slice_components_"), (*MIXTURE, "weights")),
        ("domino", ("fitted", "n_features_in_"), 5),
        ("domino", (*PREPARED, "dtype"), "O"),
        ("domino", (*PREPARED, "holdout"), 5),
        ("domino", (*PREPARED, "seed"), "a"),
        ("domino", (*PREPARED, "projection"), None),
        ("domino", (*PREPARED, "projection", "fields", "mean"), (*MIXTURE, "prediction_probs")),
        ("domino", (*PREPARED, "projection", "fields", "components"), (*MIXTURE, "label_probs")),
        ("spotlight", (*LIGHTS, "means"), (*LIGHTS, "peaks")),
        ("spotlight", (*LIGHTS, "peaks"), (*LIGHTS, "means")),
        ("spotlight", (*LIGHTS, "radii"), (*LIGHTS, "means")),
    ],
    ids=str,
)
def test_parts_that_do_not_belong_together_are_refused(saved, tmp_path, model, part, other):
    path = tmp_path / "model"
    ss.load(saved / model).save(path)

    def change(record):
        at(record, part[:-1])[part[-1]] = at(record, other) if isinstance(other, tuple) else other

    forged(path, change)
    with pytest.raises(ScaleshiftError):
        ss.load(path).predict(None, X, Y, P)


@pytest.mark.parametrize("part", ["mixture_", "slice_components_", "n_features_in_"])
def test_a_part_that_is_missing_is_refused(saved, tmp_path, part):
    path = tmp_path / "model"
    ss.load(saved / "domino").save(path)
    forged(path, lambda record: record["fitted"].pop(part))
    with pytest.raises(ScaleshiftError, match="does not fit together: it was saved damaged"):
        ss.load(path).predict(None, X, Y, P)
