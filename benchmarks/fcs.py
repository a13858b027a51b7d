"""Does every FCS file read to its truth, and how fast are large files next to FlowIO?

    python benchmarks/fcs.py [FOLDER] [--json FILE]

FOLDER holds FCS files and a truth.json (file name -> readable, data_sets with names, markers, matrix_sha256).
The large files are written to a temporary folder. Times are CPU times of one thread, the file is in the page
cache. A process grows by what it reads: by the matrix (FlowIO's is float64), or by a chunk at a time.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import flowio
import numpy as np
from timing import interleave, machine, ratios, write_json

from scaleshift.cells.fcs import FcsFile, read_fcs
from scaleshift.errors import ScaleshiftError

N_EVENTS, N_CHANNELS = 2_000_000, 20
CHUNK = 131_072  # events of a chunk of a store
SMALL_EVENTS, SMALL_CHANNELS = 500, 55
KINDS = {
    "float32, little-endian": ("F", "<f4"),
    "float32, big-endian": ("F", ">f4"),
    "float64, little-endian": ("D", "<f8"),
    "float64, big-endian": ("D", ">f8"),
    "uint16, big-endian": ("I", ">u2"),
    "uint32, big-endian": ("I", ">u4"),
}


def compare(path: Path, truth: Mapping[str, Any]) -> dict[str, Any]:
    """What one file is read as, next to its truth."""
    row: dict[str, Any] = {"file": path.name}
    try:
        fcs = _described(path)
        events = fcs.events
    except ScaleshiftError as error:
        said = str(error).removeprefix(f"{path}: ")
        return row | {"outcome": "WRONG: refused" if truth["readable"] else "refused", "said": said}
    if not truth["readable"]:
        return row | {"outcome": "WRONG: read", "said": f"{fcs.n_events} events"}
    row |= {
        "version": fcs.version,
        "events": fcs.n_events,
        "channels": len(fcs.channels),
        "dtype": str(events.dtype),
    }
    wrong = list(_differences(fcs, events, truth["data_sets"][0]))
    return row | {
        "outcome": f"WRONG: {', '.join(wrong)}" if wrong else "to truth",
        "said": "; ".join(fcs.warnings),
    }


def _described(path: Path) -> FcsFile:
    """The file as it stands; with channels numbered where names stand twice."""
    try:
        return read_fcs(path, raw=True)
    except ScaleshiftError as error:
        if "channel names twice" not in str(error):
            raise
        return read_fcs(path, raw=True, duplicates="rename")


def _differences(fcs: FcsFile, events: np.ndarray, truth: Mapping[str, Any]) -> Iterator[str]:
    digest = hashlib.sha256(np.ascontiguousarray(events, "<f8").tobytes()).hexdigest()
    if fcs.n_events != truth["events"]:
        yield "number of events"
    if digest != truth.get("matrix_sha256", digest):
        yield "events"
    if len(set(truth["names"])) == len(truth["names"]) and fcs.channels != truth["names"]:
        yield "names"
    if truth.get("markers") and fcs.markers != [(marker or "").strip() for marker in truth["markers"]]:
        yield "markers"


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown, a line for each file."""
    columns = ("file", "version", "events", "channels", "dtype", "outcome", "said")
    lines = [" | ".join(str(row.get(column, "")).replace("|", "\\|") for column in columns) for row in rows]
    head = [
        "file | version | events | channels | as | outcome | warnings, or why it was refused",
        "|".join(["---"] * 7),
    ]
    return "\n".join(f"| {line} |" if line[0] != "-" else f"|{line}|" for line in (*head, *lines))


def write_file(path: Path, datatype: str, dtype: str, n_events: int, n_channels: int) -> None:
    """An FCS 3.1 file of random events."""
    rng = np.random.default_rng(0)
    stored = np.dtype(dtype)
    byteord = "1,2,3,4" if dtype[0] == "<" else "4,3,2,1"
    begin = 16384
    n_bytes = n_events * n_channels * stored.itemsize
    keywords = {
        "$BEGINANALYSIS": 0, "$ENDANALYSIS": 0, "$BEGINSTEXT": 0, "$ENDSTEXT": 0, "$NEXTDATA": 0,
        "$MODE": "L", "$BEGINDATA": begin, "$ENDDATA": begin + n_bytes - 1, "$BYTEORD": byteord,
        "$DATATYPE": datatype, "$PAR": n_channels, "$TOT": n_events,
    }  # fmt: skip
    top = 2**24 if stored.itemsize == 4 else 1024
    for i in range(1, n_channels + 1):
        keywords |= {
            f"$P{i}N": f"C{i}",
            f"$P{i}S": f"CD{i}",
            f"$P{i}B": 8 * stored.itemsize,
            f"$P{i}E": "0,0",
        }
        keywords[f"$P{i}R"] = top if stored.kind == "u" else 262144
    text = "/" + "".join(f"{key}/{value}/" for key, value in keywords.items())
    spans = [58, 57 + len(text), *((begin, begin + n_bytes - 1) if n_bytes < 99_000_000 else (0, 0)), 0, 0]
    with path.open("wb") as file:
        file.write(("FCS3.1    " + "".join(f"{offset:8d}" for offset in spans) + text).encode().ljust(begin))
        for _ in range(0, n_events, max(1, n_events // 8)):
            rows = (min(n_events, max(1, n_events // 8)), n_channels)
            values = rng.integers(0, top, rows) if stored.kind == "u" else rng.normal(size=rows)
            file.write(values.astype(stored).tobytes())


def stream(path: Path) -> int:
    """Read a file chunk by chunk, as a store is written."""
    fcs = read_fcs(path)
    return sum(len(fcs.read(first, first + CHUNK)) for first in range(0, fcs.n_events, CHUNK))


def throughput(name: str, folder: Path, rounds: int) -> dict[str, Any]:
    """Time of FlowIO and of a plain copy over ours, for one kind of file."""
    datatype, dtype = KINDS[name]
    path = folder / "large.fcs"
    write_file(path, datatype, dtype, N_EVENTS, N_CHANNELS)
    whole = read_fcs(path, raw=True).events
    assert np.array_equal(whole, flowio.FlowData(str(path)).as_array(preprocess=False)), (
        f"{name}: FlowIO disagrees"
    )
    contenders: dict[str, Callable[[], Any]] = {
        "scaleshift": lambda: read_fcs(path).events,
        "scaleshift, in chunks": lambda: stream(path),
        "FlowIO": lambda: flowio.FlowData(str(path)).as_array(),
        "copy of the matrix": whole.copy,
    }
    seconds = interleave(contenders, rounds if datatype != "I" else min(3, rounds))  # FlowIO masks in Python
    result = {
        "kind": name,
        "file_bytes": path.stat().st_size,
        "seconds_median": {who: float(np.median(s)) for who, s in seconds.items()},
        "time_over_scaleshift": ratios(seconds, "scaleshift"),
        "peak_bytes_over_file": {
            how: growth(path, how) / path.stat().st_size for how in ("scaleshift", "in chunks", "FlowIO")
        },
    }
    path.unlink()
    return result


def growth(path: Path, how: str) -> int:
    """How much a fresh process grows by reading the file."""
    command = [sys.executable, __file__, "--grow", how, str(path)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def grow(how: str, path: Path) -> None:
    """Print the bytes by which this process grows."""
    tiny = path.with_suffix(".tiny")
    write_file(tiny, "F", "<f4", 1, 2)
    actions = {
        "scaleshift": lambda p: read_fcs(p).events,
        "in chunks": stream,
        "FlowIO": lambda p: flowio.FlowData(str(p)).as_array(),
    }
    actions[how](tiny)  # imports and tables
    before = most_held()
    actions[how](path)
    print(most_held() - before)


def most_held() -> int:
    """Return the most bytes that this process has held (Linux; getrusage would count its parent's too)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def small_files(folder: Path, rounds: int) -> dict[str, float]:
    """Microseconds for a small file: describing it, reading it once described, and FlowIO's whole."""
    path = folder / "small.fcs"
    write_file(path, "F", ">f4", SMALL_EVENTS, SMALL_CHANNELS)
    fcs, repeats = read_fcs(path), 100
    contenders: dict[str, Callable[[], Any]] = {
        "read_fcs": lambda: [read_fcs(path) for _ in range(repeats)],
        "read": lambda: [fcs.read() for _ in range(repeats)],
        "FlowIO": lambda: [flowio.FlowData(str(path)).as_array() for _ in range(repeats)],
    }
    seconds = interleave(contenders, rounds)
    return {who: float(np.median(s)) / repeats * 1e6 for who, s in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, help="files and their truth.json")
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--grow", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.grow:
        return grow(options.grow[0], Path(options.grow[1]))

    results: dict[str, Any] = {"machine": machine() | {"flowio": version("flowio")}, "rounds": options.rounds}
    print(", ".join(f"{key} {value}" for key, value in results["machine"].items()), "\n")
    if options.folder:
        truth = json.loads((options.folder / "truth.json").read_text())
        names = [
            name
            for name in sorted(truth, key=str.lower)
            if "readable" in truth[name] and _is_fcs(truth[name])
        ]
        rows = [compare(options.folder / name, truth[name]) for name in names]
        results["files"] = rows
        wrong = sum(row["outcome"].startswith("WRONG") for row in rows)
        print(table(rows), f"\n\n{len(rows)} files, {wrong} wrong\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results["small_file_microseconds"] = small_files(folder, options.rounds)
        print(
            "a small file, us:",
            {who: round(t) for who, t in results["small_file_microseconds"].items()},
            "\n",
        )
        print(f"{N_EVENTS} events x {N_CHANNELS} channels: CPU time over ours, growth over the file's size")
        results["throughput"] = []
        for kind in KINDS:
            result = throughput(kind, folder, options.rounds)
            results["throughput"].append(result)
            seconds = result["seconds_median"]["scaleshift"]
            times = {who: round(ratio, 2) for who, ratio in result["time_over_scaleshift"].items()}
            peaks = {how: round(ratio, 2) for how, ratio in result["peak_bytes_over_file"].items()}
            print(f"{kind:24} {result['file_bytes'] / seconds / 1e9:5.2f} GB/s, {times}, {peaks}", flush=True)
    if options.json:
        write_json(options.json, results)
    return None


def _is_fcs(truth: Mapping[str, Any]) -> bool:
    return truth.get("group") != "spillover matrix"


if __name__ == "__main__":
    main()
