"""What do studies of accuracy claim, and of cost against other packages?  One function a file of results."""

from collections.abc import Iterator

from claims import Bar, Result, Row, at_most

COVERAGE = Bar(0.92, 0.98)
SETTINGS = ("none", "background .3", "far .3", "near .3")


def error_cost(result: Result) -> Iterator[Row]:
    for name, one in result["models"].items():
        for peer, times in one["times"].items():
            yield Row(
                f"Expected error of {name}, {one['rows']:,} rows, {one['n_bootstrap']} replicates",
                f"{one['seconds']:.2f} CPU seconds",
                f"{peer}, {one['peer_seconds'][peer]:.0f} s, extrapolated",
                times,
                Bar(one["bar"]),
            )


def auc_peers(result: Result) -> Iterator[Row]:
    for peer, one in result["peers"].items():
        for path, times in one["times"].items():
            yield Row(
                f"Sparse AUC, k = 1..50, {path}, {result['rows']:,} x {result['columns']}",
                f"{result['seconds'][path]:.2f} CPU seconds, AUC {one['own_auc'][path]:.3f}",
                f"{peer}, one size, AUC {one['auc']:.3f}",
                times,
                Bar(one["bar"]),
            )


def accuracy(result: Result) -> Iterator[Row]:
    for method, errors in result["synthetic"].items():
        for setting, error in zip(SETTINGS, errors, strict=True):
            yield Row(f"Mean L2 error of proportions, {setting}", method, "", error)


def energy(result: Result) -> Iterator[Row]:
    for setting, difference in result["differences"].items():
        yield Row(
            f"Sliced energy, {setting}", "", "largest difference to the exact one", difference, at_most(0.015)
        )
    one = result["pass"]
    yield Row(
        f"Sliced energy, {one['cells']:,} cells", f"{one['cpu_seconds']:.1f} CPU seconds", "", None, None
    )


def intervals(result: Result) -> Iterator[Row]:
    for features, one in result.items():
        if features != "machine":
            covered = one["95 % intervals cover"]["drawn"]
            yield Row(f"95 % intervals, {features}", "", "share that cover", covered, COVERAGE)
            size = one["test rejects at 5 %, label shift only"]
            yield Row(f"Test at 5 %, {features}", "", "share rejected, label shift only", size)
            power = one["test rejects at 5 %, 2 % far cells"]
            yield Row(f"Test at 5 %, {features}", "", "share rejected, 2 % far cells", power)


def coverage(result: Result) -> Iterator[Row]:
    for method, covered in result.items():
        if method != "machine":
            yield Row(f"95 % intervals, method {method}", "", "share that cover", covered, COVERAGE)


def open_set(result: Result) -> Iterator[Row]:
    for setting, one in result["settings"].items():
        bar = None if one["bar"] is None else at_most(one["bar"])
        limits = f"{one['wrong']} of {one['n']} beyond .15, {one['warned']} of them flagged"
        yield Row(f"Open-set quantifier, {setting}", "", "mean L1", one["error"], bar, limits)


def slices(result: Result) -> Iterator[Row]:
    for part in ("easy", "hard"):
        for method, one in result[part].items():
            bar = Bar(result["bar"]) if method.startswith("default") else None
            limits = f"standard error {one['standard_error']:.3f}"
            yield Row(f"Planted slices, {part}, precision at 10", method, "", one["mean"], bar, limits)


def slices_null(result: Result) -> Iterator[Row]:
    for kind, one in result.items():
        if kind != "machine":
            limits = f"upper 95 % limit {one['false_discovery_high']:.3f}"
            yield Row(
                f"No slices, {kind}", "", "data sets with one", one["false_discovery"], at_most(0.05), limits
            )


def auc_colon(result: Result) -> Iterator[Row]:
    for method, one in result["methods"].items():
        bar = Bar(result["bar"]) if method == "default" else None
        yield Row("Colon tissues, held-out AUC", method, "", one["auc"], bar, f"sd {one['sd']:.3f}")


def error_ols(result: Result) -> Iterator[Row]:
    for scale, covered in zip(result["scales"], result["coverage"], strict=True):
        what = f"Exact interval of least squares, spread {scale:g}"
        yield Row(what, "", "coverage", covered, Bar(*result["bar"]))
