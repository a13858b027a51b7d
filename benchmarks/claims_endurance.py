"""What do benchmarks of endurance claim?  One function a file of results."""

from collections.abc import Iterator

from claims import Bar, Result, Row, at_most

SAME = Bar(1)  # 1: the same bits
KILLS, PASS_S, MB_A_MINUTE = 20, 180, 1.0


def kills(result: Result) -> Iterator[Row]:
    for name, one in result["jobs"].items():
        undisturbed = sum(one["undisturbed_s"]) / 2
        what = f"{one['kills']} kills of workers, {name}"
        ours = f"{one['killed_s']:.0f} s, {undisturbed:.0f} s undisturbed"
        seen = (
            f"{one['workers_seen']} workers; {one['tasks_recomputed']} of {one['tasks']} tasks computed again"
        )
        full = name != "class sums" or (one["kills"] >= KILLS and undisturbed >= PASS_S)
        yield Row(what, ours, "same bits", float(one["equal"]), SAME if full else None, seen)
        memory = f"{one['largest_worker_gb']:.2f} GB the largest worker"
        yield Row(what, ours, "seconds lost a kill", one["lost_s_per_kill"], None, memory)


def driver(result: Result) -> Iterator[Row]:
    for name, one in result["commands"].items():
        what = f"{one['kills']} kills of the driver, {name}"
        ours = f"{one['killed_s']:.0f} s, {one['undisturbed_s']:.0f} s undisturbed"
        yield Row(what, ours, "same bits", float(one["equal"]), SAME)
        units = f"{one['units']} units of work; {one['lost_s_per_kill']:.1f} s lost a kill, starts included"
        bar = at_most(one["may_be_lost"])
        yield Row(what, ours, "units lost a kill, at most", one["lost_at_most"], bar, units)


def adaptive(result: Result) -> Iterator[Row]:
    for name, one in result["jobs"].items():
        what = f"1, 2, 1 workers in mid job, {name}"
        ours = f"{one['adaptive_s']:.0f} s, {one['one_worker_s']:.0f} s on one"
        limits = f"{one['workers_seen']} workers seen"
        if "held" in one:
            limits += f"; of {one['held']} results held {one['held_elsewhere']} moved or made again, "
            limits += f"{one['held_done_with']} no longer needed, {one['held_computed_again']} computed twice"
        happened = one["workers_seen"] > 1 and one.get("retired_in_mid_job", True)
        yield Row(what, ours, "same bits", float(one["equal"] and happened), SAME, limits)


def soak(result: Result) -> Iterator[Row]:
    what = f"{result['seconds']:.0f} s of all four questions, {result['rounds']} rounds"
    for name, one in result["memory"].items():
        ours = f"{one['first_mb']:.0f} MB after the warm-up, {one['last_mb']:.0f} MB at the end"
        limits = f"standard error {one['se']:.2f}"
        yield Row(what, ours, f"MB a minute, {name}", one["mb_per_minute"], at_most(MB_A_MINUTE), limits)
    for name in ("tasks", "futures"):
        yield Row(what, "", f"{name} left when idle", result["counts"][name]["most"], at_most(0))
    for name, one in result["counts"].items():
        if name not in ("tasks", "futures"):
            limits = f"at most {one['most']}"
            yield Row(what, "", f"more {name}, last third over middle one", one["grown"], at_most(0), limits)
