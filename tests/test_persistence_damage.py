"""A saved model that is damaged, of another version or forged is refused by name, and never run."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import zlib

import numpy as np
import pytest
import xarray as xr
import zarr

import scaleshift as ss
from scaleshift import persistence
from scaleshift.errors import DataError, SchemaError

X = np.random.default_rng(0).normal(size=(60, 3))
MODEL = ss.DFM(ss.FourierFeatures(64), bandwidth=1.0, random_state=0).fit(X, np.repeat(["a", "b", "c"], 20))


@pytest.fixture
def path(tmp_path):
    MODEL.save(tmp_path / "model")
    return tmp_path / "model"


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


@pytest.mark.parametrize("name", ["source_.sums", "gram_", "class_counts_", "embedding_.frequencies"])
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


@pytest.mark.parametrize("name", ["gram_", "gram_/zarr.json", "."])
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
    (path / "zarr.json").write_text(text.replace('"gram_"', "[" * 100_000 + "]" * 100_000))
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
    "link", ["zarr.json", "arrays", "gram_", "gram_/zarr.json", "gram_/c", "gram_/c/0/0"]
)
def test_links_in_a_model_are_refused(path, tmp_path, link):
    """Though what they point to is the very same file or folder, outside."""
    place = path / link if link == "zarr.json" else array_file(path, "." if link == "arrays" else link)
    place.rename(tmp_path / "outside")
    place.symlink_to(tmp_path / "outside")
    with pytest.raises(SchemaError, match=r"is a link or a special file|is no regular file"):
        ss.load(path)


@pytest.mark.parametrize("place", ["zarr.json", "gram_/c/0/0"])
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
