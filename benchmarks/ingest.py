"""How fast do files become a study, does a killed import go on, and what memory does a large file take?

python benchmarks/ingest.py [--files 2000] [--events 500] [--large 2000000] [--json FILE]

1. Many small FCS files (20 channels): files a second of CPU time, in one process of its own with one thread.
2. The same import killed with SIGKILL in the middle and resumed: is the store the same, by the checksums of
   its samples and of its files?
3. One large file: growth of the peak resident memory while it streams into a store, over the file's size.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dask
from fcs import most_held, write_file
from timing import machine, write_json

import scaleshift as ss
from scaleshift.cells.manifest import read_manifest

CHANNELS, CHUNK = 20, 131_072


def ingest(source: str, store: str, chunk: int, threads: int, resume: bool) -> None:
    """The import of one child process; prints its CPU seconds and the growth of its memory."""
    warm_up()
    before = most_held()
    start = time.process_time()
    with dask.config.set(num_workers=threads):
        ss.ingest(source, store, chunk_cells=chunk, resume=resume)
    print(json.dumps({"cpu": time.process_time() - start, "grown": most_held() - before}))


def warm_up() -> None:
    """A small import first: what is imported and compiled once is no cost of a file."""
    with tempfile.TemporaryDirectory() as folder:
        write_file(Path(folder, "a.fcs"), "F", "<f4", 1_000, CHANNELS)
        ss.ingest(folder, f"{folder}/study.zarr")


def child(source: Path, store: Path, chunk: int, *more: str, threads: int = 1) -> subprocess.Popen[str]:
    """An import in a process of its own."""
    command = [sys.executable, __file__, "--child", str(source), str(store), str(chunk), str(threads), *more]
    environment = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def finished(process: subprocess.Popen[str]) -> dict[str, float]:
    output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"the import failed with {process.returncode}")
    return json.loads(output.splitlines()[-1])


def digest(store: Path) -> str:
    """SHA-256 over the arrays' files, in the order of their names; the records tell when and where."""
    total = hashlib.sha256()
    for path in sorted(p for name in ("X", "obs", "var") for p in (store / name).rglob("*") if p.is_file()):
        total.update(str(path.relative_to(store)).encode() + path.read_bytes())
    return total.hexdigest()


def killed_and_resumed(source: Path, store: Path, chunk: int) -> int:
    """Kill an import once part of the study is committed, then resume it; the cells that were committed."""
    process = child(source, store, chunk)
    committed = 0
    while not committed and process.poll() is None:
        time.sleep(0.02)
        try:
            committed = read_manifest(store).n_cells
        except ss.SchemaError:
            continue
    process.send_signal(signal.SIGKILL)
    process.communicate()
    committed = read_manifest(store).n_cells
    finished(child(source, store, chunk, "--resume"))
    return committed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--events", type=int, default=500)
    parser.add_argument("--large", type=int, default=2_000_000)
    parser.add_argument("--json")
    parser.add_argument("--child", nargs=4)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    if options.child:
        source, store, chunk, threads = options.child
        ingest(source, store, int(chunk), int(threads), options.resume)
        return
    results: dict[str, object] = {"machine": machine(), "files": options.files, "events": options.events}
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small")
        small.mkdir()
        for i in range(options.files):
            write_file(small / f"{i:05d}.fcs", "F", "<f4", options.events, CHANNELS)
        chunk = max(1, options.files * options.events // 64)
        whole, parts = Path(folder, "whole.zarr"), Path(folder, "parts.zarr")
        seconds = finished(child(small, whole, CHUNK))["cpu"]
        results["files_per_cpu_second"] = options.files / seconds
        rate = options.files / seconds
        print(f"{options.files} files of {options.events} events: {rate:.0f} files a CPU second")

        whole = Path(folder, "chunks.zarr")
        finished(child(small, whole, chunk))
        committed = killed_and_resumed(small, parts, chunk)
        same = read_manifest(whole).checksums == read_manifest(parts).checksums
        first, second = digest(whole), digest(parts)
        n_cells = read_manifest(whole).n_cells
        print(
            f"killed with {committed} of {n_cells} cells committed, resumed: samples' checksums equal: {same}"
        )
        print(f"  whole   {first}\n  resumed {second}")
        results["resumed"] = {"committed": committed, "n_cells": n_cells, "equal": same and first == second}

        large = Path(folder, "large.fcs")
        write_file(large, "F", "<f4", options.large, CHANNELS)
        size = large.stat().st_size
        for threads in (1, 2):
            process = child(large, Path(folder, f"large{threads}.zarr"), CHUNK, threads=threads)
            grown = finished(process)["grown"]
            results[f"memory_over_size_{threads}_threads"] = ratio = grown / size
            what = f"{size / 1e6:.0f} MB in one file, {threads} threads"
            print(f"{what}: memory grows by {grown / 1e6:.0f} MB, {ratio:.2f} of its size")
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
