"""What is saved comes back to the bit; what is damaged, foreign or forged is refused by name."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import textwrap
import zlib
from dataclasses import dataclass

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import scaleshift as ss
from scaleshift import encoding, persistence
from scaleshift.errors import DataError, SchemaError
from scaleshift.quantify.features import FeatureMap
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


def same(a, b) -> bool:
    """Whether two values are of one type and equal to the bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and a.dtype.kind in "UO":
        return a.dtype == b.dtype and a.shape == b.shape and same(a.ravel().tolist(), b.ravel().tolist())
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[name], b[name]) for name in a)
    if isinstance(a, float | np.floating):
        return bool(a == b or (a != a and b != b)) and np.signbit(a) == np.signbit(b)
    return bool(a == b)


# What comes back ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        ss.DFM(random_state=3),
        ss.DFM("gaussian", soft=False, bandwidth=1.5, invalid="drop"),
        ss.DFM(ss.FourierFeatures(frequencies=np.asfortranarray(RNG.normal(size=(32, 3))))),
        ss.DFM(ss.FourierFeatures(64, sampler="iid", random_state=np.int64(5)), criterion="lambda_min"),
    ],
    ids=lambda model: str(model.features)[:20],
)
def test_a_loaded_model_predicts_the_same_bits(tmp_path, model):
    model.fit(X, Y, sample=np.repeat([1, 2], 300)).save(tmp_path / "model")
    loaded = ss.load(tmp_path / "model")
    xr.testing.assert_identical(loaded.predict(TARGET), model.predict(TARGET))
    assert same(sorted(vars(loaded)), sorted(vars(model)))


@pytest.mark.parametrize("names", [["x", "10", "9"], [3, 7, 10], [False, True, False], [0.5, 1.5, -1.0]])
def test_labels_come_back_in_their_type(tmp_path, names):
    model = ss.DFM(ss.FourierFeatures(16), bandwidth=1.0).fit(X, np.repeat(names, 200))
    model.save(tmp_path / "model")
    loaded = ss.load(tmp_path / "model")
    assert same(loaded.labels_, model.labels_)
    assert same(loaded.predict(TARGET)["label"].values.tolist(), model.labels_.tolist())


def test_marker_names_come_back_and_are_matched(tmp_path):
    cells = ss.as_cells(X, sample=np.repeat([1, 2, 3], 200), label=Y, marker=["CD3", "CD19", "CD45"])
    model = ss.DFM(ss.FourierFeatures(16), bandwidth=1.0).fit(cells)
    model.save(tmp_path / "model")
    loaded = ss.load(tmp_path / "model")
    assert loaded.markers_ == ("CD3", "CD19", "CD45")
    assert same(loaded.source_samples_, [1, 2, 3])
    turned = cells.isel(marker=[2, 0, 1])
    xr.testing.assert_identical(loaded.predict(turned), model.predict(cells))


def test_a_loaded_model_is_a_scikit_learn_estimator(path):
    loaded = ss.load(path)
    features, expected = loaded.get_params().pop("features"), MODEL.get_params()
    assert features.get_params() == expected.pop("features").get_params()
    assert {name: loaded.get_params()[name] for name in expected} == expected
    again = clone(loaded).fit(X, Y)
    np.testing.assert_array_equal(again.means_, MODEL.means_)


def test_a_model_that_is_not_fitted_comes_back_as_settings(tmp_path):
    ss.DFM(bandwidth=float("inf"), soft=False).save(tmp_path / "model")
    assert repr(ss.load(tmp_path / "model")) == "DFM(bandwidth=inf, soft=False)"


def test_loaded_arrays_are_writable_and_in_c_order(path):
    loaded = ss.load(path)
    for array in (loaded.means_, loaded.gram_, loaded.class_counts_, loaded.embedding_.frequencies):
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


dtypes = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    hnp.unicode_string_dtypes(endianness="?", max_len=5),
)
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, min_side=0, max_side=4))
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
objects = hnp.arrays(object, hnp.array_shapes(min_dims=0, min_side=0, max_side=4), elements=plain)
numbers = arrays.map(lambda array: array.astype(array.dtype.newbyteorder("=")).ravel())
scalars = numbers.filter(len).map(lambda array: array[0])
values = st.recursive(
    plain | arrays | objects | scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
        | st.builds(ss.FourierFeatures, frequencies=inner).map(lambda features: ss.DFM(features))
    ),
    max_leaves=8,
)


def parameters(value):
    """The same value with every estimator in it as a dict of its parameters."""
    if isinstance(value, ss.DFM):
        return {"DFM": parameters(value.features.frequencies)}
    if isinstance(value, list | tuple):
        return type(value)(parameters(item) for item in value)
    return {name: parameters(v) for name, v in value.items()} if isinstance(value, dict) else value


@given(values)
@settings(deadline=None, max_examples=150)
def test_any_value_comes_back_to_the_bit(value):
    tree, stored = encoding.encode(ss.GaussianKernel(value))
    back = encoding.decode(
        json.loads(json.dumps(tree)),
        lambda name, dtype, shape: stored[name].astype(dtype).reshape(shape),
    )
    assert same(parameters(back.bandwidth), parameters(value))


@given(arrays)
@settings(deadline=None, max_examples=30)
def test_any_array_comes_back_from_disk_to_the_bit(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("models") / "model"
    persistence.save(ss.GaussianKernel(array), path)
    loaded = ss.load(path).bandwidth
    assert same(loaded, np.ascontiguousarray(array).reshape(array.shape))
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


def test_a_model_is_small_and_of_few_files(tmp_path):
    """10 classes, 1000 features, 40 markers: means and frequencies take 240 000 bytes in float64."""
    x = RNG.normal(size=(1_000, 40))
    ss.DFM(bandwidth=5.0, random_state=0).fit(x, np.arange(1_000) % 10).save(tmp_path / "model")
    files = [file for file in (tmp_path / "model").rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 250_000
    assert len(files) <= 12


# What is refused when saving ---------------------------------------------------------------------------


class MyMap(FeatureMap):
    def learn(self, source):
        return None


class DFM(ss.DFM):
    """Of the name that the table knows, but another class."""


@dataclass(frozen=True)
class Own:
    x: int = 1


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (ss.DFM(ss.FourierFeatures(frequencies=len)), "features.frequencies: a function cannot be saved"),
        (ss.DFM(MyMap()), r"^features: an object of class .*\.MyMap cannot be saved"),
        (ss.DFM(LogisticRegression()), "features: an object of class sklearn.*LogisticRegression"),
        (ss.DFM(ss.DFM), "features: an object of class .*ABCMeta|features: an object of class builtins.type"),
        (ss.GaussianKernel({"a": [1, Own()]}), r"bandwidth.a.1: an object of class .*\.Own"),
        (ss.GaussianKernel({1: 2}), "bandwidth has the key 1, and only text can be a key"),
        (ss.GaussianKernel(X + 1j), "bandwidth: a ndarray of dtype complex128"),
        (ss.GaussianKernel(np.array(["2020"], "M8[Y]")), r"ndarray of dtype datetime64\[Y\]"),
        (ss.GaussianKernel(np.array([{}], object)), "bandwidth: an object of class builtins.dict"),
        (ss.GaussianKernel(np.ma.array([1, 2])), "bandwidth: a MaskedArray of dtype int64"),
        (ss.GaussianKernel(np.longdouble(1)), "bandwidth: an object of class numpy.longdouble"),
        (ss.GaussianKernel({1, 2}), "bandwidth: an object of class builtins.set"),
        (ss.GaussianKernel(np.random.default_rng()), "bandwidth: an object of class numpy.random"),
        (DFM(), r"^an object of class .*test_persistence.DFM cannot be saved"),
        (MODEL.predict, "^a function cannot be saved"),
        ([1, 2], "^an object of class builtins.list cannot be saved"),
    ],
)
def test_what_is_no_data_is_refused_by_name_and_writes_nothing(tmp_path, thing, message):
    with pytest.raises(DataError, match=message):
        persistence.save(thing, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_url_is_refused():
    for action in (MODEL.save, ss.load):
        with pytest.raises(DataError, match="s3://bucket/model is a URL"):
            action("s3://bucket/model")


# Replacing ---------------------------------------------------------------------------------------------


def test_an_older_model_is_replaced_as_a_whole(path):
    before = sum(1 for _ in path.rglob("*"))
    other = ss.DFM(ss.FourierFeatures(64), random_state=1).fit(X, Y)
    other.save(path)
    assert same(ss.load(path).means_, other.means_)
    assert sum(1 for _ in path.rglob("*")) == before
    assert [p.name for p in path.parent.iterdir()] == ["model"]


def test_files_of_others_beside_a_model_survive_its_replacement(path):
    (path / "notes.txt").write_text("mine")
    MODEL.save(path)
    assert (path / "notes.txt").read_text() == "mine"


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
        edit(path, format=2)
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


# Damage ------------------------------------------------------------------------------------------------


def edit(path, **changes):
    """Change the record of a model, checksum included, as a forger would."""
    root = json.loads((path / "zarr.json").read_text())
    record = root["attributes"]["scaleshift"]
    record.update(changes)
    record["checksum"] = zlib.crc32(json.dumps(record["object"], sort_keys=True).encode())
    (path / "zarr.json").write_text(json.dumps(root))


def forge(path, node):
    """A model with one parameter, which is the node."""
    persistence.save(ss.GaussianKernel([np.arange(5.0)]), path)
    edit(path, object={"type": "object", "class": "GaussianKernel", "parameters": node, "fitted": {}})


def array_file(path, name):
    (file,) = path.glob(f"arrays-*/{name}")
    return file


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize("name", ["means_", "gram_", "class_counts_", "embedding_.frequencies"])
@pytest.mark.parametrize(
    "damage", [None, flipped, lambda d: d[: len(d) // 2], lambda d: b"", lambda d: d + d]
)
def test_a_missing_or_damaged_array_is_named(path, name, damage):
    (file,) = (f for f in array_file(path, name).glob("c/**/*") if f.is_file())
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage(file.read_bytes()))
    what = "is missing" if damage is None else "cannot be read"
    with pytest.raises(DataError, match=rf"model: the array arrays-\w+/{re.escape(name)} {what}"):
        ss.load(path)


@pytest.mark.parametrize("name", ["means_", "means_/zarr.json", "."])
def test_an_array_without_metadata_is_missing(path, name):
    gone = array_file(path, name)
    gone.unlink() if gone.is_file() else shutil.rmtree(gone)
    with pytest.raises(DataError, match=r"the array arrays-\w+/\S+ is missing"):
        ss.load(path)


def test_no_flipped_bit_of_the_record_goes_unnoticed_in_a_number_or_name(path):
    text = (path / "zarr.json").read_text()
    start = text.index('"object"') + len('"object": ')
    for place in range(start, len(text) - 60, 23):
        if not text[place].isalnum():
            continue
        changed = chr(ord(text[place]) ^ 1)
        (path / "zarr.json").write_text(text[:place] + changed + text[place + 1 :])
        with pytest.raises(SchemaError, match="its record is damaged"):
            ss.load(path)


@pytest.mark.parametrize("length", [0, 1, 30, 1000])
def test_half_a_record_is_damaged(path, length):
    (path / "zarr.json").write_bytes((path / "zarr.json").read_bytes()[:length])
    with pytest.raises(SchemaError, match=r"its record is damaged.*save the model again"):
        ss.load(path)


def test_the_wrong_place_is_told(path, tmp_path):
    ss.write_cells(ss.as_cells(X), tmp_path / "study")
    xr.Dataset({"x": ("i", [1])}).to_zarr(tmp_path / "store", zarr_format=3, consolidated=False)
    zarr.create_group(tmp_path / "v2", zarr_format=2)
    (tmp_path / "file").write_text("{}")
    for name, message in {
        "nothing": "nothing does not exist",
        "file": "file is no saved model",
        "v2": "v2 is no saved model",
        "store": "store is a Zarr store, but no saved model",
        "study": r"study is a study, no model: open it with scaleshift.open_cells",
    }.items():
        with pytest.raises(SchemaError, match=message):
            ss.load(tmp_path / name)


# Other versions, and forged models ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"format": 7, "version": "2.0"},
            r"newer scaleshift \(2.0, format 7\); this one reads format 1: upgrade",
        ),
        ({"format": "x"}, "unknown format 'x'"),
        ({"format": 0}, "unknown format 0"),
        ({"format": None}, "unknown format None"),
        ({"arrays": "../elsewhere"}, "'../elsewhere' is none of its own"),
        ({"arrays": 3}, "record is damaged"),
        ({"object": {"type": "code"}}, "unknown type 'code'"),
        ({"object": {"type": "object", "class": "os.system"}}, "class 'os.system' is stored.*does not know"),
        ({"object": {"type": "object", "class": ["DFM"]}}, "record is damaged"),
        ({"object": {"type": "object", "class": "DFM"}}, r"record is damaged \(KeyError"),
    ],
)
def test_other_formats_and_unknown_classes_are_refused_by_name(path, changes, message):
    edit(path, **changes)
    with pytest.raises(SchemaError, match=message):
        ss.load(path)


def test_unknown_parameters_fields_and_attributes_are_refused_by_name(path):
    tree = json.loads((path / "zarr.json").read_text())["attributes"]["scaleshift"]["object"]
    for place, name, message in [
        ("parameters", "turbo", "DFM parameter 'turbo' is stored.*upgrade; it was saved by scaleshift 0"),
        ("parameters", "__class__", "DFM parameter '__class__'"),
        ("fitted", "predict", "DFM.predict is stored: fitted attributes are words that end in '_'"),
        ("fitted", "__dict__", "DFM.__dict__ is stored"),
        ("fitted", "a b_", "DFM.a b_ is stored"),
        ("fitted", "_x_", "DFM._x_ is stored"),
        ("fitted", "x_\n", "is stored"),
    ]:
        edit(path, object=tree | {place: tree[place] | {name: 1}})
        with pytest.raises(SchemaError, match=message):
            ss.load(path)
    embedding = tree["fitted"]["embedding_"]
    fields = {"fields": embedding["fields"] | {"sums": 1}}
    edit(path, object=tree | {"fitted": {"embedding_": embedding | fields}})
    with pytest.raises(SchemaError, match="FourierEmbedding field 'sums' is stored"):
        ss.load(path)
    fields = {"fields": {"bandwidth": 1.0}}
    edit(path, object=tree | {"fitted": {"embedding_": embedding | fields}})
    with pytest.raises(SchemaError, match=r"record is damaged.*'frequencies'"):
        ss.load(path)


def test_a_parameter_that_is_newer_than_the_model_takes_its_default(path):
    tree = json.loads((path / "zarr.json").read_text())["attributes"]["scaleshift"]["object"]
    del tree["parameters"]["soft"]
    edit(path, object=tree)
    assert ss.load(path).soft is True


ARRAY = {"type": "array", "name": "bandwidth.0", "dtype": "<f8", "shape": [5]}


@pytest.mark.parametrize(
    ("node", "error", "message"),
    [
        (ARRAY | {"name": "../../other"}, SchemaError, r"array name '../../other' is stored"),
        (ARRAY | {"name": "/etc"}, SchemaError, "array name '/etc'"),
        (ARRAY | {"name": ".."}, SchemaError, "array name '..'"),
        (ARRAY | {"name": "a/b"}, SchemaError, "array name 'a/b'"),
        (ARRAY | {"name": "other"}, DataError, r"array arrays-\w+/other is missing"),
        (ARRAY | {"dtype": "O"}, SchemaError, "unknown dtype 'O'"),
        (ARRAY | {"dtype": "<f8,<f8"}, SchemaError, "unknown dtype"),
        (ARRAY | {"dtype": "<i8"}, DataError, "bandwidth.0 cannot be read"),
        (ARRAY | {"shape": [5, 1]}, DataError, "bandwidth.0 cannot be read"),
        (ARRAY | {"shape": 5}, SchemaError, "record is damaged"),
        ({"type": "items", "dtype": "<U1", "shape": [3], "items": ["a"]}, SchemaError, "record is damaged"),
        ({"type": "scalar", "dtype": "|u1", "value": 300}, SchemaError, "record is damaged"),
        ({"type": "scalar", "dtype": "M8", "value": 300}, SchemaError, "unknown dtype 'M8'"),
    ],
)
def test_forged_nodes_are_refused(tmp_path, node, error, message):
    forge(tmp_path / "model", {"bandwidth": node})
    with pytest.raises(error, match=message):
        ss.load(tmp_path / "model")


def test_a_record_nested_a_hundred_thousand_deep_is_damaged(path):
    text = (path / "zarr.json").read_text()
    (path / "zarr.json").write_text(text.replace('"means_"', "[" * 100_000 + "]" * 100_000))
    with pytest.raises(SchemaError, match="its record is damaged"):
        ss.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"codecs": [{"name": "bytes"}, {"name": "numcodecs.pickle"}]},
        {"codecs": [{"name": "bytes"}, {"name": "blosc", "configuration": {"cname": "lz4"}}]},
        {"data_type": "object"},
        {"data_type": "float32"},
        {"shape": [6]},
        {"node_type": "group"},
        {"storage_transformers": [{"name": "x"}]},
        {"chunk_key_encoding": {"name": "v2"}},
        {"chunk_grid": {"name": "rectilinear"}},
        {"codecs": ["bytes", "crc32c"]},
        {"codecs": None},
    ],
)
def test_arrays_stored_in_another_way_are_refused_before_zarr_sees_them(tmp_path, change):
    forge(tmp_path / "model", {"bandwidth": ARRAY})
    file = array_file(tmp_path / "model", "bandwidth.0") / "zarr.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(DataError, match=r"the array arrays-\w+/bandwidth.0 cannot be read"):
        ss.load(tmp_path / "model")


@pytest.mark.parametrize(
    "link", ["zarr.json", "arrays", "means_", "means_/zarr.json", "means_/c", "means_/c/0/0"]
)
def test_links_in_a_model_are_refused(path, tmp_path, link):
    """Though what they point to is the very same file or folder, outside."""
    place = path / link if link == "zarr.json" else array_file(path, "." if link == "arrays" else link)
    place.rename(tmp_path / "outside")
    place.symlink_to(tmp_path / "outside")
    with pytest.raises(SchemaError, match=r"is a link or a special file|is no regular file"):
        ss.load(path)


@pytest.mark.parametrize("place", ["zarr.json", "means_/c/0/0"])
def test_a_pipe_in_a_model_is_refused_and_never_waited_for(path, place):
    file = path / place if place == "zarr.json" else array_file(path, place)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(SchemaError, match=r"is a link or a special file|is no regular file"):
        ss.load(path)


WATCHED = """
    import os, sys
    import scaleshift as ss
    from scaleshift.errors import ScaleshiftError

    warm, *models = sys.argv[1:]
    ss.load(warm)
    seen = []
    def hook(event, args):
        kinds = ("import", "compile", "exec", "pickle", "marshal", "subprocess", "ctypes")
        if event.split(".")[0] in kinds or event in ("os.system", "os.exec", "os.posix_spawn", "os.fork"):
            seen.append((event, str(args[0])))
        elif event in ("open", "os.listdir", "os.scandir") and isinstance(args[0], str):
            if not os.path.abspath(args[0]).startswith(os.path.dirname(warm)):
                seen.append((event, args[0]))
    sys.addaudithook(hook)
    for model in models:
        try:
            ss.load(model)
            seen.append(("loaded", model))
        except ScaleshiftError:
            pass
    ss.load(warm)
    open(os.devnull).close()  # the one thing that should be seen
    print(seen)
"""


def test_loading_a_forged_model_runs_imports_and_opens_nothing(path, tmp_path):
    """Audit events of the interpreter, once a first load has imported what scaleshift itself needs."""
    forged = []
    for i, node in enumerate(
        [
            ARRAY | {"name": "../../../../etc/passwd"},
            ARRAY | {"dtype": "O"},
            {"type": "object", "class": "os.system", "parameters": {"command": "true"}, "fitted": {}},
            {"type": "object", "class": "subprocess:Popen", "fields": {}},
            {"type": "object", "class": "DFM", "parameters": {"__init__": 1}, "fitted": {}},
            {"type": "object", "class": "DFM", "parameters": {}, "fitted": {"__reduce__": 1}},
            {"type": "eval", "value": "1+1"},
        ]
    ):
        forge(tmp_path / f"node{i}", {"bandwidth": node})
        forged.append(f"{tmp_path}/node{i}")
    for i, change in enumerate(
        [
            {"codecs": [{"name": "bytes"}, {"name": "numcodecs.lzma"}]},
            {"codecs": [{"name": "antigravity"}]},
            {"data_type": "antigravity"},
            {"chunk_grid": {"name": "antigravity"}},
        ]
    ):
        forge(tmp_path / f"array{i}", {"bandwidth": ARRAY})
        file = array_file(tmp_path / f"array{i}", "bandwidth.0") / "zarr.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | change))
        forged.append(f"{tmp_path}/array{i}")
    script = [sys.executable, "-c", textwrap.dedent(WATCHED), str(path), *forged]
    done = subprocess.run(script, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == f"[('open', '{os.devnull}')]"


def test_a_dataclass_is_saved_by_itself(tmp_path):
    persistence.save(FourierEmbedding(np.ones((2, 3), np.float32), float("nan")), tmp_path / "embedding")
    loaded = ss.load(tmp_path / "embedding")
    assert type(loaded) is FourierEmbedding
    assert loaded.frequencies.dtype == np.float32
    assert np.isnan(loaded.bandwidth)
