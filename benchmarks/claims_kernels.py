"""What do the kernels claim?  One function a file of results."""

from collections.abc import Iterator

from claims import Bar, Result, Row, at_most, missing

PROTOTYPE = Bar(0.95)
FOURIER = {  # columns -> peer -> times longer, at least
    5: {"numpy": Bar(6), "torch": Bar(10), "PyKeOps": Bar(100), "prototype": PROTOTYPE},
    20: {"numpy": Bar(3.5), "prototype": PROTOTYPE},
}
SHARE = Bar(0.85)  # of the limit


def fma_limit(result: Result) -> Iterator[Row]:
    for bits, speed in result["bits"].items():
        yield Row(
            f"FMA limit, vectors of {bits} bits",
            f"{speed['fma_per_ns']:.1f} lane-FMAs/ns",
            "",
            None,
            None,
            f"{speed['mixed_per_ns']:.1f} operations/ns where one in four is an addition",
        )


def _limits(one: Result) -> str:
    return (
        f"{one['share_of_limit']:.0%} of the FMA limit, {one['share_of_limit_with_additions']:.0%} of that "
        "with additions"
    )


def fourier(result: Result) -> Iterator[Row]:
    for one in result["results"]:
        d, speed = one["n_columns"], one["elements_per_ns"]["kernel"]
        what, ours = f"Fourier class sums, {d} columns", f"{speed:.2f} elements/ns"
        bars = FOURIER.get(d, {})
        yield Row(what, ours, "share of the FMA limit", one["share_of_limit"], SHARE, _limits(one))
        for peer, times in one["peers"].items():
            note = f"compiled with {result['keops_flags'] or 'its own flags'}" if peer == "PyKeOps" else ""
            yield Row(what, ours, peer, times, bars.get(peer), note)
        yield from missing(what, one)


def fourier_keops(result: Result) -> Iterator[Row]:
    for one in result["results"]:
        for row in fourier({**result, "results": [one]}):
            if row.peer == "PyKeOps":
                yield row


def landmarks(result: Result) -> Iterator[Row]:
    for one in result["results"]:
        what = f"Landmark class sums, {one['n_columns']} columns, {result['n_landmarks']} landmarks"
        ours = f"{one['elements_per_ns']:.2f} elements/ns"
        yield Row(what, ours, "share of the FMA limit", one["share_of_limit"], None, _limits(one))
        for peer, times in one["peers"].items():
            yield Row(what, ours, peer, times, PROTOTYPE if peer == "prototype" else None)
        times = one["time_over_kernel"]["Fourier D = 1000"]
        yield Row(what, ours, "our Fourier sums, D = 1000", times, None, "cost alone, at unequal error")
        yield from missing(what, one)


def mixture(result: Result) -> Iterator[Row]:
    for one in result["results"]:
        what = f"Iteration of EM, {one['n_columns']} columns, {result['n_components']} components"
        ours = f"{one['ns_per_row']['kernel']:.0f} ns a row"
        for peer, times in one["time_over_kernel"].items():
            if not peer.startswith("kernel"):
                note = "" if peer == "prototype" else "without terms of labels and predictions"
                yield Row(what, ours, peer, times, PROTOTYPE if peer == "prototype" else None, note)
        yield Row(what, ours, "share saved by each of four restarts", one["saved_by_restarts"])


def scatter(result: Result) -> Iterator[Row]:
    for one in result["results"]:
        what = f"Second moments of {one['n_groups']} groups, {one['n_columns']} columns"
        ours = f"{1e3 * one['seconds_median']['kernel']:.1f} ms"
        for peer, times in one["time_over_kernel"].items():
            note = "of all rows: what BLAS takes without groups" if peer == "unsplit product" else ""
            yield Row(what, ours, peer, times, PROTOTYPE if peer == "prototype" else None, note)


def simplex(result: Result) -> Iterator[Row]:
    for one in result["results"]:
        kind = "at most 1" if one["soft"] else "1"
        what = f"Simplex program, {one['n_classes']} classes, total {kind}"
        ours = f"{one['microseconds_per_problem']['batch']:.1f} us"
        for peer, times in one["time_over_batch"].items():
            yield Row(what, ours, peer, times)


def equal_error(result: Result) -> Iterator[Row]:
    for one in result["results"]:
        what = (
            f"Landmarks in place of Fourier D = {result['n_features']} at no larger error, far noise "
            f"{one['eps']:g}, {one['n_columns']} columns"
        )
        chosen = one["smallest"]
        if chosen is None:
            yield Row(what, "", "", None, Bar(3), "none of the numbers of landmarks tried is as accurate")
            continue
        of = one["landmarks"][str(chosen)]
        yield Row(
            what,
            f"{chosen} landmarks, error {of['error']:.4f}",
            f"Fourier, error {one['fourier_error']:.4f}",
            of["fourier_over_landmarks"],
            Bar(3),
            f"paired difference {of['difference']:+.4f} +- {of['standard_error']:.4f}, {one['draws']} draws",
        )


def five_million(result: Result) -> Iterator[Row]:
    what = f"{result['n_rows']:,} x {result['n_columns']}, D = {2 * result['n_frequencies']}, DFM.fit"
    ours = f"{result['core_seconds']:.2f} core-seconds"
    limits = f"the kernel alone takes {result['kernel_seconds']:.2f}"
    yield Row(what, ours, "core-seconds of the fit", result["core_seconds"], at_most(1.2), limits)
    exact = f"exact kernel, {result['exact_seconds']:.1f} s at {result['exact_rows']:,} rows"
    note = f"n^2: extrapolated by ({result['n_rows']:,} / {result['exact_rows']:,})^2"
    yield Row(what, ours, exact, result["exact_over_ours"], None, note)


def gpu(result: Result) -> Iterator[Row]:
    for name, one in result.items():
        if not isinstance(one, dict) or "times_one_cpu_core" not in one:
            continue
        kind, first = name.split("_d")[0], name == "fourier_d5"
        what = f"GPU, {kind} sums, {one['rows']:,} x {one['columns']}, {one['points']} points"
        resident = one["ms"]["resident"]
        ours, bar = f"{resident:.1f} ms resident", at_most(10) if first else None
        yield Row(what, ours, "milliseconds, rows on the GPU", resident, bar)
        yield Row(what, ours, "our kernel on one CPU core", one["times_one_cpu_core"])
        share = one["share_of_copying"]["pageable"]
        speed = f"{one['host_gb_per_s']:.1f} GB/s from the host"
        yield Row(what, speed, "share of the speed of copying rows", share, Bar(0.5) if first else None)
    one = result.get("mixture")
    if one:
        ns = one["ns_per_row"]
        what = f"GPU, EM pass, {one['columns']} columns, {one['components']} components"
        times = ns["one_cpu_core"] / ns["resident"]
        yield Row(what, f"{ns['resident']:.2f} ns a row", "our kernel on one CPU core", times)
