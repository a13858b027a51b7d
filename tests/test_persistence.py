"""A model that is saved comes back to the bit, and replaces the one before it as a whole."""

import os
import resource
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import scaleshift as ss
from scaleshift import persistence
from scaleshift.errors import DataError
from scaleshift.quantify.features.fourier import FourierEmbedding

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3)) + 3 * np.repeat(np.eye(3), 200, axis=0)
Y = np.repeat(["a", "b", "c"], 200)
TARGET = RNG.normal(size=(300, 3))
MODEL = ss.DFM(ss.FourierFeatures(64), random_state=0).fit(X, Y)


@pytest.fixture
def path(tmp_path):
    MODEL.save(tmp_path / "model")
    return tmp_path / "model"


# What comes back ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        ss.DFM(random_state=3),
        ss.DFM("gaussian", soft=False, bandwidth=1.5, invalid="drop"),
        ss.DFM(ss.FourierFeatures(frequencies=np.asfortranarray(RNG.normal(size=(32, 3))))),
        ss.DFM(ss.FourierFeatures(64, sampler="iid", random_state=np.int64(5)), criterion="lambda_min"),
        ss.DFM(ss.FourierFeatures(64, kernel="matern52", sampler="orthogonal"), random_state=0),
        ss.DFM(ss.LandmarkFeatures(20, kernel="cauchy"), random_state=0),
        ss.DFM(ss.ExactKernel("laplace", bandwidth=2.0)),
        ss.DFM(ss.EnergyKernel(origin=[1, 0, 0.5])),
        ss.DFM(ss.SlicedEnergy(n_directions=16, n_bins=20, origin=-1.0), random_state=0),
    ],
    ids=lambda model: str(model.features)[:20],
)
def test_a_loaded_model_predicts_the_same_bits(tmp_path, model):
    model.fit(X, Y, sample=np.repeat([1, 2], 300)).save(tmp_path / "model")
    loaded = ss.load(tmp_path / "model")
    xr.testing.assert_identical(loaded.predict(TARGET), model.predict(TARGET))
    assert sorted(vars(loaded)) == sorted(vars(model))


@pytest.mark.parametrize("names", [["x", "10", "9"], [3, 7, 10], [False, True, False], [0.5, 1.5, -1.0]])
def test_labels_come_back_in_their_type(tmp_path, names):
    model = ss.DFM(ss.FourierFeatures(16), bandwidth=1.0).fit(X, np.repeat(names, 200))
    model.save(tmp_path / "model")
    loaded = ss.load(tmp_path / "model")
    assert loaded.labels_.dtype == model.labels_.dtype
    found = loaded.predict(TARGET)["label"].values.tolist()
    assert sorted(found) == sorted(set(names))
    assert {type(label) for label in found} == {type(names[0])}


def test_marker_names_come_back_and_are_matched(tmp_path):
    cells = ss.as_cells(X, sample=np.repeat([1, 2, 3], 200), label=Y, marker=["CD3", "CD19", "CD45"])
    model = ss.DFM(ss.FourierFeatures(16), bandwidth=1.0).fit(cells)
    model.save(tmp_path / "model")
    loaded = ss.load(tmp_path / "model")
    assert loaded.markers_ == ("CD3", "CD19", "CD45")
    assert loaded.source_samples_ == [1, 2, 3]
    turned = cells.isel(marker=[2, 0, 1])
    xr.testing.assert_identical(loaded.predict(turned), model.predict(cells))


def test_a_loaded_model_is_a_scikit_learn_estimator(path):
    loaded = ss.load(path)
    features, expected = loaded.get_params().pop("features"), MODEL.get_params()
    assert features.get_params() == expected.pop("features").get_params()
    assert {name: loaded.get_params()[name] for name in expected} == expected
    again = clone(loaded).fit(X, Y)
    np.testing.assert_array_equal(again.source_.sums, MODEL.source_.sums)


def test_a_model_that_is_not_fitted_comes_back_as_settings(tmp_path):
    ss.DFM(bandwidth=float("inf"), soft=False).save(tmp_path / "model")
    assert repr(ss.load(tmp_path / "model")) == "DFM(bandwidth=inf, soft=False)"


def test_loaded_arrays_are_writable_and_in_c_order(path):
    loaded = ss.load(path)
    for array in (loaded.source_.sums, loaded.gram_, loaded.class_counts_, loaded.embedding_.frequencies):
        assert type(array) is np.ndarray
        assert array.flags.c_contiguous
        array[...] = 0
    assert not loaded.labels_.dtype.hasobject


@pytest.mark.parametrize("state", [np.random.default_rng(4), np.random.RandomState(4)])
def test_a_generator_is_stored_as_none_and_the_seed_it_gave_is_kept(tmp_path, state):
    model = ss.DFM(ss.FourierFeatures(16, random_state=state), random_state=state, bandwidth=1.0).fit(X, Y)
    model.save(tmp_path / "model")
    loaded = ss.load(tmp_path / "model")
    assert loaded.random_state is loaded.features.random_state is None
    assert loaded.seed_ == model.seed_
    assert model.random_state is state


numbers = hnp.boolean_dtypes() | hnp.integer_dtypes(endianness="?") | hnp.floating_dtypes(endianness="?")


@given(hnp.arrays(numbers, hnp.array_shapes(min_dims=0, min_side=0, max_side=4)))
@settings(deadline=None, max_examples=30)
def test_any_array_comes_back_from_disk_to_the_bit(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("models") / "model"
    persistence.save(ss.GaussianKernel(array), path)
    loaded = ss.load(path).bandwidth
    assert (loaded.dtype, loaded.shape) == (array.dtype, array.shape)
    assert loaded.tobytes() == array.tobytes()
    assert loaded.flags.writeable


def test_arrays_of_every_order_and_size_come_back(tmp_path):
    big = RNG.integers(0, 255, (3_000_001, 7), np.uint8)
    big[-1_000_000:] = 0  # a chunk of nothing but the fill value
    given_ = {
        "big": big,
        "turned": X.T,
        "reversed": X[::-2],
        "": X[0],
        "A/..": X[1],
        "a/..": X[2],
        "A/.": X[3],
    }
    persistence.save(ss.GaussianKernel(given_), tmp_path / "model")
    folders = {p.name.casefold() for p in (tmp_path / "model").glob("arrays-*/bandwidth*")}
    assert len(folders) == len(given_)  # also where a file system tells no A from a
    loaded = ss.load(tmp_path / "model").bandwidth
    assert list(loaded) == list(given_)
    for name, array in given_.items():
        np.testing.assert_array_equal(loaded[name], array)
        assert loaded[name].flags.c_contiguous


@pytest.mark.parametrize(("n_samples", "megabytes"), [(1, 3.5), (100, 6.7)])
def test_a_model_is_small_and_of_few_files(tmp_path, n_samples, megabytes):
    """10 classes, 1000 features, 40 folds and at most 40 parts: 3.2 MB each in float64."""
    x, row = RNG.normal(size=(2_000, 40)), np.arange(2_000)
    model = ss.DFM(bandwidth=5.0, random_state=0).fit(x, row % 10, row // 10 % n_samples)
    model.save(tmp_path / "model")
    files = [file for file in (tmp_path / "model").rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < megabytes * 1e6
    assert len(files) <= 24


@pytest.mark.parametrize("features", [len, {"a": [X + 1j]}])
def test_what_is_no_data_is_refused_and_nothing_is_written(path, features):
    before = contents(path.parent)
    for name in ("model", "new"):
        with pytest.raises(DataError, match=r"^features.*cannot be saved"):
            ss.DFM(features).save(path.parent / name)
    assert contents(path.parent) == before


def test_a_model_with_an_object_of_the_users_own_is_refused_by_its_class(tmp_path):
    model = ss.DFM(StandardScaler()).fit(X, Y)
    with pytest.raises(DataError, match=r"features: an object of class .*StandardScaler cannot be saved"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_dataclass_is_saved_by_itself(tmp_path):
    persistence.save(FourierEmbedding(np.ones((2, 3), np.float32), float("nan")), tmp_path / "embedding")
    loaded = ss.load(tmp_path / "embedding")
    assert type(loaded) is FourierEmbedding
    assert loaded.frequencies.dtype == np.float32
    assert np.isnan(loaded.bandwidth)


def test_a_url_is_refused():
    for action in (MODEL.save, ss.load):
        with pytest.raises(DataError, match="s3://bucket/model is a URL"):
            action("s3://bucket/model")


# Replacing ---------------------------------------------------------------------------------------------


def test_an_older_model_is_replaced_as_a_whole(path):
    before = sum(1 for _ in path.rglob("*"))
    other = ss.DFM(ss.FourierFeatures(64), random_state=1).fit(X, Y)
    other.save(path)
    np.testing.assert_array_equal(ss.load(path).source_.sums, other.source_.sums)
    assert sum(1 for _ in path.rglob("*")) == before
    assert [p.name for p in path.parent.iterdir()] == ["model"]


def test_files_of_others_beside_a_model_survive_its_replacement(path):
    (path / "notes.txt").write_text("mine")
    MODEL.save(path)
    assert (path / "notes.txt").read_text() == "mine"


def test_what_killed_writers_have_staged_goes_once_it_is_a_day_old(path):
    staged = [path.parent / f".model-{0:032x}", path / f".model-{1:032x}"]
    others = [
        path.parent / f".model-{2:032x}",
        path.parent / f".another-{3:032x}",
        path.parent / ".model-mine",
    ]
    for folder in (*staged, *others):
        (folder / "arrays").mkdir(parents=True)
    for folder in (*staged, *others[1:]):
        os.utime(folder, (time.time() - 2 * persistence.STALE,) * 2)
    MODEL.save(path)
    assert not any(folder.exists() for folder in staged)
    assert all(folder.exists() for folder in others)  # one of them of a writer that may be alive


def test_a_link_to_a_model_is_followed_and_stays(path, tmp_path):
    (tmp_path / "latest").symlink_to(path)
    ss.DFM(random_state=9).save(tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink()
    assert ss.load(path).random_state == ss.load(tmp_path / "latest").random_state == 9


@pytest.mark.parametrize("what", ["file", "folder", "study", "store", "newer"])
def test_what_is_no_model_is_never_replaced(path, what):
    taken = path.parent / "taken"
    if what == "file":
        taken.write_text("mine")
    elif what == "folder":
        taken.mkdir()
    elif what == "study":
        ss.write_cells(ss.as_cells(X), taken)
    elif what == "store":
        xr.Dataset({"x": ("i", [1])}).to_zarr(taken, zarr_format=3, consolidated=False)
    else:
        taken = path
        text = (path / "zarr.json").read_text()
        (path / "zarr.json").write_text(text.replace('"format": 1', '"format": 2'))
    before = contents(taken)
    with pytest.raises(DataError, match=rf"{taken.name}.*It is not replaced: choose another path"):
        MODEL.save(taken)
    assert contents(taken) == before
    assert {p.name for p in path.parent.iterdir()} == {"model", taken.name}


def contents(folder):
    return {p: p.is_file() and p.read_bytes() for p in [folder, *folder.rglob("*")]}


@pytest.mark.parametrize("standing", [True, False])
def test_a_save_that_fails_leaves_what_was_there(path, standing):
    target = path if standing else path.parent / "new"
    before = contents(path.parent)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            persistence.save(ss.GaussianKernel(np.ones(10_000)), target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert contents(path.parent) == before


KILLED = """
    import os, shutil, signal, sys
    import numpy as np
    from scaleshift import GaussianKernel, persistence

    folder, action = sys.argv[1:]
    new = GaussianKernel([2, np.full(10, 2.0), np.full((3, 3), 2.0)])

    def kill_at(step):
        left = step
        def hook(event, args):
            nonlocal left
            writes = event == "open" and isinstance(args[1], str) and args[1][0] in "wax"
            if writes or event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree"):
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(hook)

    for step in range(200):
        path = f"{folder}/{step}/model"
        os.mkdir(f"{folder}/{step}")
        if action == "replace":
            shutil.copytree(f"{folder}/old", path)
        child = os.fork()  # zarr's own thread starts with its first use, in the child
        if child == 0:
            kill_at(step)
            persistence.save(new, path)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            print(step)
            break
"""


@pytest.mark.parametrize("action", ["replace", "create"])
def test_a_writer_killed_at_any_point_leaves_the_old_model_or_the_new_one(tmp_path, action):
    persistence.save(ss.GaussianKernel([1, np.ones(10), np.ones((3, 3))]), tmp_path / "old")
    script = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path), action]
    steps = int(subprocess.run(script, check=True, capture_output=True, text=True).stdout)
    assert steps > 10
    found = []
    for step in range(steps + 1):
        path = tmp_path / str(step) / "model"
        if action == "create" and not path.exists():
            found.append(None)
        else:
            number, a, b = ss.load(path).bandwidth
            assert (a == number).all()
            assert (b == number).all()
            found.append(number)
        if step % 3 == 0:
            persistence.save(ss.GaussianKernel(3), path)
            assert ss.load(path).bandwidth == 3
            kept = [p.name for p in path.iterdir() if not p.name.startswith(".")]
            assert len(kept) == 2  # zarr.json and the arrays in use
    old = 1 if action == "replace" else None
    first_new = found.index(2)
    assert found == [old] * first_new + [2] * (len(found) - first_new)
    assert found[0] == old
