"""From a folder of FCS files to an Excel sheet of percentages: check, ingest, label, quantify, workbook.

    python examples/fcs_to_excel.py [FOLDER] [--meta SHEET --labels GATES] [--output OUTPUT]

Without FOLDER eight FCS files, a sample sheet and a table of gates are made from the study that ships with
scaleshift, and a ninth file that was cut off in the middle; ten seconds. Four samples are gated: three are
learned from, the fourth is kept as a check. The sheet's column `gated` says which are learned from. In
OUTPUT lie then study.zarr, proportions.xlsx and proportions.png. Needs `pip install "scaleshift[excel]"`.

The same on the command line; both give the same numbers, to the last bit:

    scaleshift check fcs-to-excel/fcs --meta fcs-to-excel/fcs/samples.csv
    scaleshift ingest fcs-to-excel/fcs study.zarr --meta fcs-to-excel/fcs/samples.csv --skip
    scaleshift label study.zarr fcs-to-excel/fcs/gates.csv
    scaleshift quantify study.zarr --source "gated == true" --method open-set --output results

Printed are what `check` has to say, the table (a share of all cells by sample and label; letters are flags,
explained below it), and how far the estimates are from the gates of the sample kept as a check: they are
near, though that sample has a flag, which tells of a doubt and not of an error. The workbook has the sheets
percent, counts, low, high (the ends of the intervals), flags, gated and about.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from rich.console import Console

import scaleshift as ss

LEARNED_FROM, CHECKED = ["S01", "S05", "S09"], "S13"
CENTRES = {"S01": "A", "S02": "A", "S05": "A", "S07": "A", "S09": "B", "S11": "B", "S13": "B", "S15": "B"}
METALS = ("Y89", "In115", "La139", "Pr141", "Nd142", "Sm147", "Eu151", "Yb171")


def fcs_bytes(counts: np.ndarray, channels: list[str], markers: list[str]) -> bytes:
    """A minimal FCS 3.1 file: a header, keywords, and the counts (n, n_channels) as little-endian floats."""
    data = np.ascontiguousarray(counts, dtype="<f4").tobytes()
    keywords = {"$TOT": len(counts), "$PAR": len(channels), "$DATATYPE": "F", "$BYTEORD": "1,2,3,4"}
    keywords |= {"$MODE": "L", "$NEXTDATA": 0, "$CYT": "CyTOF2"}
    for i, (channel, marker) in enumerate(zip(channels, markers, strict=True), start=1):
        keywords |= {f"$P{i}N": channel, f"$P{i}S": marker, f"$P{i}B": 32, f"$P{i}E": "0,0", f"$P{i}R": 8192}
    text = "".join(f"|{name}|{value}" for name, value in keywords.items())
    begin = 58 + len(text) + len("|$BEGINDATA||$ENDDATA||") + 2 * 8
    end = begin + len(data) - 1
    text += f"|$BEGINDATA|{begin:08d}|$ENDDATA|{end:08d}|"
    header = "FCS3.1    " + "".join(f"{place:8d}" for place in (58, begin - 1, begin, end, 0, 0))
    return (header + text).encode() + data


def write_files(folder: Path, n: int) -> None:
    """The first n cells of each demo sample as FCS, a sample sheet, gates of four; one file cut off."""
    folder.mkdir(parents=True)
    cells = ss.datasets.load_demo()
    labels = cells["label"].values
    sheet, gates = [], []
    for code, sample in enumerate(cells["sample"].values.tolist()):
        of_sample = cells.isel(cell=np.flatnonzero(cells["sample_code"].values == code)[:n])
        counts = 5 * np.sinh(of_sample["X"].values)  # the demo holds arcsinh(ion count / 5)
        markers = of_sample["marker"].values.tolist()
        written = fcs_bytes(counts, [f"{metal}Di" for metal in METALS], markers)
        folder.joinpath(f"{sample}.fcs").write_bytes(written)
        sheet.append((f"{sample}.fcs", sample, CENTRES[sample], str(sample in LEARNED_FROM).lower()))
        if sample in (*LEARNED_FROM, CHECKED):
            of_cell = of_sample["label_code"].values
            gated = np.flatnonzero(of_cell >= 0)
            gates.append(
                pd.DataFrame({"file": f"{sample}.fcs", "event": gated, "label": labels[of_cell[gated]]})
            )
    folder.joinpath("cut.fcs").write_bytes(written[: len(written) // 2])
    sheet.append(("cut.fcs", "cut", "B", "false"))
    columns = ["file_name", "sample_id", "centre", "gated"]
    pd.DataFrame(sheet, columns=columns).to_csv(folder / "samples.csv", index=False)
    pd.concat(gates).to_csv(folder / "gates.csv", index=False)


def make_study(folder: Path, meta: Path, labels: Path, store: Path) -> None:
    """Check, ingest, label: files that cannot be used are told and left out."""
    plan = ss.check(folder, meta=meta)
    markers = ", ".join(plan.columns.markers)
    print(f"{len(plan.counts)} samples, {sum(plan.counts.values()):,} cells, {markers}")
    for said in (*plan.said, *plan.problems):
        print(f"- {said}")
    ss.ingest(folder, store, meta=meta, errors="skip")
    labelled = ss.label_cells(store, labels)
    print(f"- {labelled['n_labelled']:,} cells have a label")
    for remark in labelled["remarks"]:
        print(f"- {remark['text']}")


def quantify(store: Path, output: Path) -> xr.Dataset:
    """Learn from the samples that the sheet calls gated, answer for all others; workbook and picture."""
    study = ss.open_cells(store)
    samples, is_gated = study["sample"].values, study["gated"].values.astype(bool)
    source = ss.open_cells(store, samples=samples[is_gated])
    target = ss.open_cells(store, samples=samples[~is_gated])
    result = ss.OpenSetQuantifier(random_state=0).fit(source).predict(target)
    gated = ss.report.compare_gated(result, target)
    ss.report.table(result, output / "proportions.xlsx", gated=gated)
    ss.report.plot(result, output / "proportions.png")
    Console().print(ss.report.text(result))
    print("beside the gates:", ss.report.summarize_gated(gated))
    return result


def main() -> None:
    """Run all steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="of FCS files; made where it is left out")
    parser.add_argument("--meta", type=Path, help="sample sheet; samples.csv of the folder where left out")
    parser.add_argument("--labels", type=Path, help="gates; gates.csv of the folder where left out")
    parser.add_argument("--cells", type=int, default=9_000, help="of each made sample, 18 000 at most")
    parser.add_argument("--output", type=Path, default=Path("fcs-to-excel"))
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    folder = given.folder or given.output / "fcs"
    if given.folder is None and not folder.exists():
        write_files(folder, given.cells)
    store = given.output / "study.zarr"
    if store.exists():
        parser.error(f"{store} is there from an earlier run: delete it, or choose another --output")
    make_study(folder, given.meta or folder / "samples.csv", given.labels or folder / "gates.csv", store)
    quantify(store, given.output)
    print(f"wrote {given.output}/proportions.xlsx and .png; a row with a letter deserves a look before use")


if __name__ == "__main__":
    main()
