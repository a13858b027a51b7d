"""Models that were forged: refused in one line by every verb that takes one, and nothing of them is run.

`tests/test_persistence_damage.py` has what is done to saved models, `tests/slices/test_pickled_models.py`
what is done to pickles.
"""

import io
import json
import os
import shutil
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import skops.io
from danger import pickled
from sklearn.linear_model import LogisticRegression

import scaleshift as ss

DATA = Path(__file__).parents[1] / "data"
X = np.random.default_rng(0).normal(size=(60, 3))


# A message of Protocol Buffers, by hand ----------------------------------------------------------------


def number(n):
    out = b""
    while True:
        out += bytes([n & 127 | (128 if n > 127 else 0)])
        n >>= 7
        if not n:
            return out


def field(tag, value):
    if isinstance(value, int):
        return number(tag << 3) + number(value)
    value = value.encode() if isinstance(value, str) else value
    return number(tag << 3 | 2) + number(len(value)) + value


def value_info(name, *dims):
    shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def onnx(tensor, more=b"", in_node=False, name="probabilities"):
    """x @ W, softmaxed or not; W the tensor, an initializer or the value of a node."""
    constant = b""
    if in_node:
        attribute = field(1, "value") + field(5, tensor) + field(20, 4)
        constant = field(1, field(2, "W") + field(4, "Constant") + field(5, attribute))
    node = field(1, "x") + field(1, "W") + field(2, name) + field(4, "MatMul")
    graph = constant + field(1, node) + field(2, "g") + (b"" if in_node else field(5, tensor))
    graph += field(11, value_info("x", "n", 3)) + field(12, value_info(name, "n", 3)) + more
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def outside(location, length=36, beyond=0):
    """Weights in another file; bits beyond those of a field's number are dropped by readers of C++."""
    entries = {"location": location, "offset": "0", "length": str(length)}
    told = b"".join(field(13 + beyond, field(1, key) + field(2, value)) for key, value in entries.items())
    return field(1, 3) + field(1, 3) + field(2, 1) + field(8, "W") + told + field(14 + beyond, 1)


def inside(shape=(3, 3), n=9):
    dims = b"".join(field(1, size) for size in shape)
    return dims + field(2, 1) + field(8, "W") + field(9, struct.pack(f"<{n}f", *range(n)))


def skops_file(change):
    """A file of skops, its schema changed."""
    raw = skops.io.dumps(LogisticRegression().fit(X, np.arange(60) % 3))
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, change(content) if name == "schema.json" else content)
    return made.getvalue()


def system(schema):
    found = json.loads(schema)
    found |= {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"}
    return json.dumps(found)


def partial(schema):
    found = json.loads(schema)
    found["content"] = {
        "__class__": "partial",
        "__module__": "functools",
        "__loader__": "PartialNode",
        "content": {"func": {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"}},
    }
    return json.dumps(found)


CUT = (DATA / "logistic_maps.onnx").read_bytes()
FORGED = {
    "cut.onnx": lambda root: CUT[:200],
    "weights_beside.onnx": lambda root: onnx(outside("weights.bin")),
    "weights_above.onnx": lambda root: onnx(outside("../secret.txt")),
    "weights_anywhere.onnx": lambda root: onnx(outside(f"{root}/secret.txt")),
    "weights_of_a_node.onnx": lambda root: onnx(outside("../secret.txt"), in_node=True),
    "weights_of_a_device.onnx": lambda root: onnx(outside("/dev/zero", 2**40)),
    "weights_of_a_number_too_long.onnx": lambda root: onnx(outside("weights.bin", beyond=2**29)),
    "huge_shape.onnx": lambda root: onnx(inside((2**31, 2**31))),
    "no_such_width.onnx": lambda root: onnx(inside((2**20, 3))),
    "escapes.onnx": lambda root: onnx(inside((3, 4)), name="\x1b[2J\x1b]0;prob\x07"),
    "endless_number.onnx": lambda root: b"\xff" * 1000,
    "length_beyond.onnx": lambda root: number(7 << 3 | 2) + number(2**62) + b"x",
    "pickle.onnx": pickled,
    "pickle.skops": pickled,
    "cut.skops": lambda root: skops_file(lambda schema: schema)[:300],
    "system.skops": lambda root: skops_file(system),
    "partial.skops": lambda root: skops_file(partial),
    "deep.skops": lambda root: skops_file(lambda schema: b'{"content":' * 100_000),
    "empty.skops": lambda root: b"",
    "pickle.pkl": pickled,
    "pickle.joblib": pickled,
    "pickle": pickled,
    "pickle.pt": pickled,
    "text.json": lambda root: b"{}",
}


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("verb", ["slices", "error"])
def test_a_forged_model_is_refused(danger, study, verb, name):
    (danger.work / "weights.bin").write_bytes(struct.pack("<9f", *range(9)))
    (danger.work / name).write_bytes(FORGED[name](danger.root))
    model = f"./{name}" if verb == "error" and "." not in name else name
    danger.run(verb, "study.zarr", "--model", model, "--output", "output", names=name)


@pytest.mark.parametrize("name", ["os.system", "posix.system", "builtins.eval", "subprocess.Popen"])
def test_a_command_in_a_model_is_never_trusted(danger, study, name):
    module, _, function = name.rpartition(".")

    def forged(schema):
        found = json.loads(schema) | {"__loader__": "FunctionNode", "content": name}
        return json.dumps(found | {"__class__": function, "__module__": module})

    (danger.work / "m.skops").write_bytes(skops_file(forged))
    for trust in ([], ["--trust", name]):
        text = danger.run("slices", "study.zarr", "--model", "m.skops", *trust, codes=(1,), names="m.skops")
        assert "the file is forged" in text
        assert "--trust" not in text


def test_a_bomb_of_a_model_has_an_end(danger, study):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("schema.json", b"[" + b" " * 2**29)
    (danger.work / "bomb.skops").write_bytes(made.getvalue())
    danger.run("slices", "study.zarr", "--model", "bomb.skops", names="unpacks to 512 MB")


@pytest.mark.parametrize("name", ["/dev/zero", "pipe.onnx", "folder.skops", "linked.onnx"])
def test_a_device_is_no_model(danger, study, name):
    os.mkfifo(danger.work / "pipe.onnx")
    (danger.work / "folder.skops").mkdir()
    os.symlink("/dev/zero", danger.work / "linked.onnx")
    for verb in ("slices", "error"):
        danger.run(verb, "study.zarr", "--model", name, names=name)


def test_a_tensor_within_the_file_is_fine(danger, study):
    (danger.work / "fine.onnx").write_bytes(onnx(inside((3, 3))))
    ss.models.open_model(danger.work / "fine.onnx")


# Saved by scaleshift -----------------------------------------------------------------------------------


def forged(path, change):
    root = json.loads((path / "zarr.json").read_text())
    record = root["attributes"]["scaleshift"]
    change(record["object"])
    record["checksum"] = zlib.crc32(json.dumps(record["object"], sort_keys=True).encode())
    (path / "zarr.json").write_text(json.dumps(root))


def of_another_class(thing):
    thing["class"] = "Popen"


def with_a_class_inside(thing):
    thing["parameters"]["features"] = {
        "type": "object",
        "class": "ModelFile",
        "fields": {"path": "/dev/zero"},
    }


def with_markup(thing):
    thing["parameters"]["\x1b[2J<script>"] = 1


def with_a_method(thing):
    thing["fitted"]["__class__"] = "os.system"


def with_an_array_elsewhere(thing):
    name = next(iter(thing["fitted"]))
    thing["fitted"][name] = {"type": "array", "name": "../../secret.txt", "dtype": "<f8", "shape": [1]}


def with_a_huge_array(thing):
    name = next(iter(thing["fitted"]))
    thing["fitted"][name] = {"type": "array", "name": "gram_", "dtype": "<f8", "shape": [2**40]}


CHANGES = [
    of_another_class,
    with_a_class_inside,
    with_markup,
    with_a_method,
    with_an_array_elsewhere,
    with_a_huge_array,
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_forged_saved_model_is_refused(danger, study, change):
    source = ss.open_cells(study, samples=["S1"])
    ss.DFM(ss.FourierFeatures(16), bandwidth=1.0, random_state=0).fit(source).save(danger.work / "model")
    forged(danger.work / "model", change)
    danger.run("quantify", "study.zarr", "--model", "model", "--output", "output", codes=(1,), names="model")


def test_a_model_is_not_saved_along_a_link(danger, study):
    """A folder that is a link to another is what the user named; a folder of arrays in it is not."""
    arguments = ["quantify", "study.zarr", "--source", "sample == S1", "--method", "cc", "--bootstrap", "0"]
    danger.output.mkdir()
    danger.run(*arguments, "--save-model", "output/model", codes=(0,))
    (arrays,) = (danger.output / "model").glob("arrays-*")
    shutil.move(arrays, danger.root / "keep" / arrays.name)
    os.symlink(danger.root / "keep" / arrays.name, arrays)
    danger.run("quantify", "study.zarr", "--model", "output/model", codes=(1,), names="is a link")
    danger.run(*arguments, "--save-model", "output/model", codes=(0,))
    assert list((danger.root / "keep" / arrays.name).iterdir())
