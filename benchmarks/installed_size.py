"""How much does an installation weigh?  scaleshift itself, with all that it needs, and what each extra adds.

    python benchmarks/installed_size.py [--json PATH]

Nothing is downloaded: sizes are those of the files that this environment's packages list (bytes on the disk,
without what Python compiles as it runs). An extra that is not installed here is told by what it lacks. Where
hatchling is installed (extra `test`) the wheel is built too, into a temporary folder.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
MB = 1e6


class Needed(NamedTuple):
    """A name and an extra of it, "" for none."""

    name: str
    extra: str


def closure(name: str, extra: str = "") -> tuple[set[str], set[str]]:
    """What `name[extra]` needs, itself among it: packages that are here, and packages that are not."""
    seen: set[Needed] = set()
    here, lacking = set(), set()
    todo = [Needed(canonicalize_name(name), each) for each in {"", extra}]
    while todo:
        needed = todo.pop()
        if needed in seen:
            continue
        seen.add(needed)
        try:
            requires = metadata.requires(needed.name) or []
        except metadata.PackageNotFoundError:
            lacking.add(needed.name)
            continue
        here.add(needed.name)
        for requirement in map(Requirement, requires):
            if requirement.marker is None or requirement.marker.evaluate({"extra": needed.extra}):
                child = canonicalize_name(requirement.name)
                todo += [Needed(child, each) for each in {"", *requirement.extras}]
    return here, lacking


def n_bytes(name: str) -> int:
    """Of the files that a distribution lists."""
    if name == "scaleshift":  # perhaps installed as a link to this tree
        return sum(p.stat().st_size for p in (ROOT / name).rglob("*") if p.is_file() and p.suffix != ".pyc")
    paths = [Path(str(file.locate())) for file in metadata.files(name) or [] if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file())


def wheel_bytes() -> int | None:
    """Of the wheel, or None where it cannot be built here."""
    if find_spec("hatchling") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        return next(Path(folder).glob("*.whl")).stat().st_size


def measure() -> dict[str, object]:
    """All numbers, in bytes."""
    base, lacking = closure("scaleshift")
    if lacking:
        raise SystemExit(f"this environment lacks {', '.join(sorted(lacking))}: pip install -e . first")
    sizes = {name: n_bytes(name) for name in base}
    extras = {}
    for extra in sorted(metadata.metadata("scaleshift").get_all("Provides-Extra") or []):
        here, lacks = closure("scaleshift", extra)
        added = {name: n_bytes(name) for name in here - base}
        extras[extra] = {"bytes": sum(added.values()), "packages": sorted(added), "lacks": sorted(lacks)}
    return {
        "wheel": wheel_bytes(),
        "scaleshift": sizes["scaleshift"],
        "with_dependencies": sum(sizes.values()),
        "n_packages": len(sizes),
        "largest": dict(sorted(sizes.items(), key=lambda item: -item[1])[:8]),
        "extras": extras,
    }


def show(found: dict) -> None:
    """Print the table."""
    wheel = found["wheel"]
    print(
        f"wheel                    {wheel / MB:8.1f} MB" if wheel else "wheel: needs hatchling (extra test)"
    )
    print(f"scaleshift, installed    {found['scaleshift'] / MB:8.1f} MB")
    print(
        f"with all it needs        {found['with_dependencies'] / MB:8.1f} MB, {found['n_packages']} packages"
    )
    for name, size in found["largest"].items():
        print(f"  of which {name:15} {size / MB:7.1f} MB")
    for name, extra in found["extras"].items():
        lacks = f"; not here: {', '.join(extra['lacks'])}" if extra["lacks"] else ""
        print(f"extra {name:18} {extra['bytes'] / MB:+8.1f} MB, {len(extra['packages'])} packages{lacks}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the numbers there")
    options = parser.parse_args()
    result = measure()
    show(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
