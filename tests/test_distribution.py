"""What is in the wheel and the sdist, built from what git tracks: all that they need, and no more."""

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from importlib import import_module
from pathlib import Path

import pytest
import yaml

import scaleshift

ROOT = Path(__file__).parents[1]


def hatch(folder, target, out):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def tracked():
    """Names of the files that git tracks."""
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return {name for name in told.stdout.split("\0") if name and (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def sdist(tracked, tmp_path_factory):
    """The folder of an unpacked source distribution of them."""
    pytest.importorskip("hatchling", reason="the build backend is in the extra `test`")
    work = tmp_path_factory.mktemp("sdist")
    for name in tracked:
        (work / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, work / "copy" / name)
    hatch(work / "copy", "sdist", work)
    with tarfile.open(next(work.glob("*.tar.gz"))) as archive:
        archive.extractall(work / "unpacked", filter="data")
    return next((work / "unpacked").iterdir())


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """A wheel, built from the sdist as installers do: its texts by name, None for what is no text."""
    out = tmp_path_factory.mktemp("wheel")
    hatch(sdist, "wheel", out)
    with zipfile.ZipFile(next(out.glob("*.whl"))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def of_metadata(wheel, name):
    """A file of the wheel's dist-info."""
    return next(text for file, text in wheel.items() if file.endswith(f".dist-info/{name}")).decode()


@pytest.fixture(scope="module")
def metadata(wheel):
    return message_from_string(of_metadata(wheel, "METADATA"))


def test_the_sdist_is_all_that_git_tracks(sdist, tracked):
    files = {str(path.relative_to(sdist)) for path in sdist.rglob("*") if path.is_file()}
    assert files == tracked | {"PKG-INFO"}


def test_the_wheel_is_the_package_and_nothing_else(wheel, tracked):
    package = {name for name in wheel if ".dist-info/" not in name}
    assert package == {name for name in tracked if name.startswith("scaleshift/")}


@pytest.mark.parametrize("kind", ["/py.typed", ".npz", ".NOTICE.txt", ".cu"])
def test_what_is_no_python_is_in_the_wheel_too(wheel, kind):
    assert [name for name in wheel if name.startswith("scaleshift/") and name.endswith(kind)]


def test_licences_are_in_the_wheel_and_speak_of_all_data(wheel):
    assert "Apache License" in of_metadata(wheel, "licenses/LICENSE")
    notice = of_metadata(wheel, "licenses/NOTICE")
    data = [name for name in wheel if name.startswith("scaleshift/data/")]
    assert data
    assert not [name for name in data if name not in notice]


def test_metadata_say_what_it_is(metadata):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert metadata["Name"] == "scaleshift"
    assert metadata["Version"] == scaleshift.__version__
    assert metadata["Summary"] == project["description"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert set(metadata.get_all("Provides-Extra")) == set(project["optional-dependencies"])
    assert metadata.get_payload().startswith("# scaleshift")


def test_classifiers_are_known(metadata):
    known = pytest.importorskip("trove_classifiers", reason="hatchling brings it").classifiers
    assert set(metadata.get_all("Classifier")) <= known


def test_metadata_name_no_machine(metadata):
    head = "\n".join(f"{name}: {value}" for name, value in metadata.items())
    urls = [word for word in head.split() if "://" in word]
    assert not [url for url in urls if not url.startswith("https://") or "localhost" in url]
    assert str(ROOT) not in head
    assert str(Path.home()) not in head


def test_the_command_is_there(wheel):
    line = next(
        each for each in of_metadata(wheel, "entry_points.txt").splitlines() if each.startswith("scale")
    )
    command, place = (part.strip() for part in line.split("="))
    module, function = place.split(":")
    assert command == "scaleshift"
    assert callable(getattr(import_module(module), function))


def test_the_citation_is_of_this_version():
    """A release has a date too. (The form of the file is that of cff-version 1.2.0.)"""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(cited)
    assert all(set(author) == {"name"} for author in cited["authors"])
    assert cited["version"] == scaleshift.__version__
    assert ("date-released" in cited) == (".dev" not in scaleshift.__version__)
    assert cited["license"] == "Apache-2.0"
