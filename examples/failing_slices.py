"""Where does a classifier of cells fail?  Slices of some centres' samples, in words, and what grew at others.

    python examples/failing_slices.py [--cells 9000]

A classifier learns from two samples of the study that ships with scaleshift. Slices, cells that lie
together and are labelled wrongly more often than others, are learned from two samples of other centres (the
source) and looked for in two more (the target); ten seconds. Printed are the slices, what became of each by
`ss.slices.compare` (did it grow, what does that cost in points of error), and the same once more without
the target's labels, when only the growth can be seen: which is what a new site can have on its first day.
"""

from __future__ import annotations

import argparse

import pandas as pd
from sklearn.linear_model import LogisticRegression

import scaleshift as ss

TRAINED, SOURCE, TARGET = ["S01", "S02"], ["S09", "S13"], ["S11", "S15"]


def labelled(samples: list[str], n: int) -> pd.DataFrame:
    """Up to n labelled cells of each sample, as a table."""
    cells = ss.datasets.load_demo()
    table = pd.DataFrame(cells["X"].values, columns=cells["marker"].values)
    table["sample"] = cells["sample"].values[cells["sample_code"].values]
    table["label"] = pd.Categorical.from_codes(cells["label_code"].values, cells["label"].values)
    table = table[table["sample"].isin(samples) & table["label"].notna()]
    return table.groupby("sample").head(n).reset_index(drop=True)


def main(n: int = 9_000) -> None:
    """Train, find slices, describe them, compare."""
    markers = list(ss.datasets.load_demo()["marker"].values)
    train, source, target = (labelled(samples, n) for samples in (TRAINED, SOURCE, TARGET))
    model = LogisticRegression(max_iter=1_000).fit(train[markers], train["label"].astype(str))

    slicer = ss.DominoSlicer(n_slices=3, random_state=0)
    slicer.fit(None, source[markers], source["label"], model.predict_proba(source[markers]))
    print(f"Where it fails in {' and '.join(SOURCE)} (judged by a fifth of the cells, held out):")
    found = slicer.describe()
    for words in found["words"].values:
        print(f"- {words}")

    predicted = model.predict_proba(target[markers])
    now = slicer.describe(None, target[markers], target["label"], predicted)
    print(f"The same slices in {' and '.join(TARGET)}:")
    change = ss.slices.compare(found, now)
    for words in change["words"].values:
        print(f"- {words}")
    print(f"In all: {change['summary'].item()}")

    unseen = ss.slices.compare(found, slicer.describe(None, target[markers], pred_probs=predicted))
    print(f"Without the labels of {' and '.join(TARGET)}: {unseen['summary'].item()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=9_000, help="of each sample, at most")
    main(parser.parse_args().cells)
