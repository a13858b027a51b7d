"""What do passes over stores claim, and the reading of files?  One function a file of results."""

from collections.abc import Iterator

from claims import Bar, Result, Row, at_most

MEMORY_GB, IN_KERNEL, TWO_THREADS, IMPORT = at_most(2), Bar(0.75), Bar(1.85), at_most(1.2)


def out_of_core(result: Result) -> Iterator[Row]:
    what = f"DFM.fit, {result['cells']:,} x {result['markers']} from Zarr"
    ours = f"{result['pass_cpu_s']:.1f} CPU seconds, {result['pass_wall_s']:.1f} s"
    base = f"reading {result['read_cpu_s']:.1f} s + kernel {result['kernel_cpu_s']:.1f} s"
    share = 1 / result["pass_over_read_plus_kernel"]
    yield Row(what, ours, base, share, IN_KERNEL, "share of the CPU time in kernel and decoding")
    yield Row(what, f"{result['peak_memory_gb']:.2f} GB", "memory", result["peak_memory_gb"], MEMORY_GB)
    folds = result["pass_with_folds_cpu_s"] / result["pass_cpu_s"]
    yield Row(f"{what}, with folds for intervals", ours, "the same with folds", folds)


def many_samples(result: Result) -> Iterator[Row]:
    for features in ("fourier", "landmarks"):
        if features in result:
            one = result[features]
            what = f"Predict {result['samples']:,} samples of {result['cells']:,} cells, {features}"
            ours = f"{one['many_0_s']:.1f} s"
            yield Row(what, ours, f"one sample as large, {one['one_0_s']:.1f} s", one["many_over_one"])
            yield Row(
                what, ours, "MB by which the driver grows, 200 replicates", one["driver_growth_mb"], None
            )


def slices_out_of_core(result: Result) -> Iterator[Row]:
    what = f"DominoSlicer.fit, {result['rows']:,} x {result['columns']}"
    for name in ("kept", "read_again"):
        one = result[name]
        told = f"{what}, {'rows kept in memory' if name == 'kept' else 'read again'}"
        ours = f"{one['cpu_s']:.0f} CPU seconds"
        yield Row(told, ours, "an EM pass over reading and kernel", one["pass_over_kernel_plus_read"])
        yield Row(told, ours, "GB of memory", one["peak_memory_gb"])


def auc_out_of_core(result: Result) -> Iterator[Row]:
    base = sum(result["base"].values())
    for name, orders in result["fits"].items():
        for order, one in orders.items():
            yield Row(
                f"SparseAUC, {name}, rows {order}, {result['rows']:,} x {result['columns']}",
                f"{one['cpu_s']:.1f} CPU seconds, {one['passes']:.1f} passes",
                f"reading and one product, {base:.1f} s",
                one["cpu_s"] / base,
            )


def threads(result: Result) -> Iterator[Row]:
    for one in result["results"]:
        yield Row(
            f"{one['what']}, {result['n_rows']:,} x {result['n_columns']}",
            f"{one['two_s']:.2f} s on two",
            f"one, {one['one_s']:.2f} s",
            one["one_over_two"],
            TWO_THREADS if one["has_bar"] else None,
            f"two busy cores alone: {result['cores_one_over_two']:.2f}",
        )


def scaling(result: Result) -> Iterator[Row]:
    for factor, points in result["curves"].items():
        base = next(point for point in points if point["is_base"])
        for point in points:
            if not point["is_base"]:
                yield Row(
                    f"DFM.fit by {factor}: {point['value']:,} beside {base['value']:,}",
                    f"{point['ns_per_row']:.0f} ns a row, {point['peak_memory_gb']:.2f} GB",
                    f"{base['ns_per_row']:.0f} ns, {base['peak_memory_gb']:.2f} GB",
                    point["ns_per_row"] / base["ns_per_row"],
                )
    for one in result["overhead"]:
        what = f"Scheduling, {one['scheduler']}, {one['blocks']:,} blocks"
        ours = f"{one['us_per_block']:.0f} us a block, {one['cpu_us_per_block']:.0f} us of CPU on the driver"
        peer, times = "plain Dask, one task a block", one["plain_us_per_block"] / one["us_per_block"]
        yield Row(what, ours, peer, times, None, one["note"])
    one = result["overhead"][-1]
    yield Row(
        f"Scheduling, {one['scheduler']}, 1,000,000 blocks",
        "",
        "seconds, by arithmetic",
        one["seconds_of_million"],
        None,
        f"not measured: {one['blocks']:,} blocks times {1_000_000 / one['blocks']:g}",
    )


def fcs(result: Result) -> Iterator[Row]:
    for one in result["throughput"]:
        ours = f"{1e3 * one['seconds_median']['scaleshift']:.0f} ms"
        for peer, times in one["time_over_scaleshift"].items():
            if not peer.startswith("scaleshift"):
                yield Row(f"FCS, {one['file_bytes'] / 1e6:.0f} MB of {one['kind']}", ours, peer, times)


def ingest(result: Result) -> Iterator[Row]:
    ours = f"{result['files_per_cpu_second']:.0f} files a CPU second"
    yield Row(f"Ingest {result['files']:,} files of {result['events']:,} events", ours, "", None)
    for n in (1, 2):
        grown = result[f"memory_over_size_{n}_threads"]
        yield Row(f"Ingest one large file, threads: {n}", ours, "memory over the file's size", grown)


def import_time(result: Result) -> Iterator[Row]:
    base = f"`{result['base']}`, {result['cpu_s'][result['base']]:.2f} s"
    for name, ratio in result["over_base"].items():
        bar = IMPORT if name == "import scaleshift" else None
        yield Row(name, f"{result['cpu_s'][name]:.2f} CPU seconds", base, ratio, bar)
