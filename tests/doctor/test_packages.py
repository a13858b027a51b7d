"""What scaleshift asks for, by the metadata that pip reads."""

from importlib import metadata

import pytest

from scaleshift.doctor import packages


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a distribution's metadata in front of those that are installed."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, version, *lines):
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        text = "\n".join(["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *lines])
        (folder / "METADATA").write_text(text + "\n")

    return write


def found(findings):
    return {finding.name: finding for finding in findings}


def test_every_package_that_is_needed_is_here():
    versions = found(packages.versions())
    assert {"scaleshift", "Python", "dask", "distributed", "numba", "scikit-learn", "zarr"} <= set(versions)
    assert {finding.status for finding in versions.values()} == {"ok"}
    assert versions["numba"].facts["installed"] == metadata.version("numba")


def test_an_old_version_is_a_problem_with_the_command_that_mends_it(install):
    install("numba", "0.1")
    numba = found(packages.versions())["numba"]
    assert numba.status == "problem"
    assert numba.value.startswith("0.1; needed is >=")
    assert numba.advice == f'pip install "numba{numba.facts["required"]}"'


def test_a_package_of_an_extra_of_a_needed_package_is_needed(install):
    install("distributed", "2020.1.0")
    distributed = found(packages.versions())["distributed"]
    assert distributed.status == "problem"
    assert distributed.facts["installed"] == "2020.1.0"


def test_extras_name_what_they_lack_and_how_to_get_it(install):
    install(
        "scaleshift",
        "9.9",
        "Requires-Python: >=3.11",
        "Requires-Dist: numpy",
        "Requires-Dist: no-such-package>=2; extra == 'some'",
        "Requires-Dist: numba>=999; extra == 'some'",
        "Requires-Dist: numpy; extra == 'full'",
        "Requires-Dist: no-such-package; sys_platform == 'none' and extra == 'elsewhere'",
        "Requires-Dist: no-such-package; extra == 'test'",
        *(f"Provides-Extra: {name}" for name in ("some", "full", "elsewhere", "test", "dev")),
    )
    extras = found(packages.extras())
    assert set(extras) == {"some", "full", "elsewhere"}
    assert extras["some"].status == "missing"
    assert extras["some"].facts["missing"] == ["no-such-package>=2", "numba>=999"]
    assert extras["some"].advice == 'pip install "scaleshift[some]"'
    assert extras["full"].value == "complete"
    assert extras["elsewhere"].value == "not for this system"


def test_extras_of_extras_count_where_their_package_is_here(install):
    install("outer", "1.0", "Requires-Dist: inner[fast]; extra == 'all'")
    install("inner", "1.0", "Requires-Dist: deep>=3; extra == 'fast'", "Requires-Dist: always")
    assert [str(r) for r in packages.needed("outer", "all")] == [
        'inner[fast]; extra == "all"',
        'deep>=3; extra == "fast"',
    ]
    assert packages.needed("outer") == []


def test_prereleases_count(install):
    install("numba", "999.0.dev1")
    assert found(packages.versions())["numba"].status == "ok"
