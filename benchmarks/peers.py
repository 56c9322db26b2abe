"""CPU times of this package next to packages that users might choose instead, with ratios and growth.

    python benchmarks/peers.py            prints the table
    python benchmarks/peers.py --save     also writes docs/results/peers.md and the dated numbers
    python benchmarks/peers.py --quick    takes seconds: a test of this script, without meaningful numbers

`make peers` installs the peers into a separate environment, and saves the page. The benchmark is one process with one
thread. The two results of a task are compared before the task is timed. Both packages take turns, so that they have the
same load of the machine, and a ratio is the median over turns. The tasks are in `peer_works.py`.
"""

import gc
import math
import resource
import statistics
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import torch
from peer_works import WORKS, Work
from speed_page import environment, parse_options, provenance, write_results

from lengthwise.report.tables.markdown import markdown_table

TURNS = 5


class Measurement(NamedTuple):
    """The median CPU milliseconds of both at one size, and the median, smallest and largest ratio of theirs to ours.

    `floor` is the median of the part of our work that the peer does not do, or None if it is not timed separately.
    """

    title: str
    peer: str
    size: int
    ours: float
    theirs: float
    ratio: float
    min_ratio: float
    max_ratio: float
    floor: float | None = None


def cpu_ms(work: Callable[[], Any]) -> float:
    """Return the CPU milliseconds of a call, in this process and in processes that it starts and waits for."""
    gc.collect()
    before = _cpu_seconds()
    work()
    return 1000 * (_cpu_seconds() - before)


def _cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure(work: Work, size: int, turns: int) -> Measurement:
    """Compare the two results, then take turns; each package's first turn is a warm-up and does not count."""
    pair = work.make(size)
    assert pair.are_equal(pair.ours(), pair.theirs()), f"{work.title}, size {size}: the results differ"
    times = [(_repeated(pair.ours), _repeated(pair.theirs)) for _ in range(turns)]
    ratios = [theirs / ours for ours, theirs in times]
    ours, theirs = (statistics.median(side) for side in zip(*times, strict=True))
    floor = None if pair.floor is None else statistics.median(_repeated(pair.floor) for _ in range(turns))
    measured = Measurement(
        work.title, name_of(work), size, ours, theirs, statistics.median(ratios), min(ratios), max(ratios), floor
    )
    print(
        f"{work.title:40s} {size:>9,} {measured.peer:32s} {theirs:12,.2f} {ours:12,.2f} {measured.ratio:8.2f}",
        flush=True,
    )
    return measured


def _repeated(work: Callable[[], Any]) -> float:
    """Return the CPU milliseconds of a call; short calls are repeated, because the clock's steps are coarse."""
    first = cpu_ms(work)
    count = math.ceil(20 / max(first, 0.1)) if first < 20 else 1
    if count == 1:
        return first
    return cpu_ms(lambda: [work() for _ in range(count)]) / count


def name_of(work: Work) -> str:
    """Return the name of the peer with the version of its package."""
    if work.distribution == "python":
        return f"{work.peer} of Python"
    return f"{work.peer} of {work.distribution} {version(work.distribution)}"


def is_installed(work: Work) -> bool:
    try:
        return work.distribution == "python" or bool(version(work.distribution))
    except PackageNotFoundError:
        return False


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float | None:
    """Return the slope of log time against log size, by least squares; None for a single size."""
    if len(sizes) < 2:
        return None
    slope, _ = statistics.linear_regression([math.log(size) for size in sizes], [math.log(time) for time in times])
    return slope


def page(measurements: Sequence[Measurement], where: dict[str, str]) -> str:
    """Return the page: a row for each task, at its largest size."""
    rows, missed = [], []
    for work in filter(is_installed, WORKS):
        if not (own := [m for m in measurements if m.title == work.title and m.peer == name_of(work)]):
            continue
        last = own[-1]
        slopes = [exponent([m.size for m in own], times) for times in ([m.theirs for m in own], [m.ours for m in own])]
        rows.append(
            [
                work.title,
                last.peer,
                f"{last.size:,} {work.unit}" if len(work.sizes) > 1 else "-",
                f"{last.theirs:,.1f}",
                f"{last.ours:,.1f}",
                f"{last.ratio:,.2f} ({last.min_ratio:,.2f} to {last.max_ratio:,.2f})",
                " / ".join("-" if slope is None else f"{slope:.1f}" for slope in slopes),
            ]
        )
        if last.ratio < work.aim:
            floor = "" if last.floor is None else f"{last.floor:,.1f}"
            reason = f". {work.reason.format(floor=floor)}" if work.reason else ""
            compared = f"theirs / ours is {last.ratio:.2f}; the aim is {work.aim:g}"
            missed.append(f"- {work.title}, next to {last.peer}: {compared}{reason}")
    absent = sorted({work.distribution for work in WORKS if not is_installed(work)})
    parts = [
        "# Speed compared with other packages",
        "The table compares the CPU times of this package and of other packages for the same or similar work, at the "
        "largest measured size, on one core.",
        markdown_table(["work", "peer", "size", "theirs, ms", "ours, ms", "theirs / ours", "growth"], rows),
        "*Ours* is this package, and *theirs* the other package (column *peer*). The two packages take turns, in one "
        "process with one thread. Before the measurement, the results of the two packages were compared if they must "
        "be equal. In rows *evaluate with*, the peer computes no biases, so its work is smaller. *Theirs / ours*: "
        "the ratio of their times in one turn. The entry is the median over turns, with the smallest and the largest "
        "ratio in brackets. Above 1, this package is faster. *Growth*: the exponent with which the time grows with "
        "the size, for the other package / for this package. In the last two rows, a command of this package is "
        'compared with `import torch`. Each runs in a process of its own, and has no size ("-").',
        *([f"Not installed, so not measured: {', '.join(absent)}."] if absent else []),
        "```console\nmake peers\n```",
        "## Below the aim\n\n"
        "The aim is that theirs / ours is at least 1. If the peer is one of torch's own fused kernels, the aim is "
        "0.95. Transformers with biases are compared with a net without biases, and their aim is 0.8.",
        "\n".join(missed) or "No row.",
        provenance(where),
    ]
    return "\n\n".join(parts) + "\n"


def save(measurements: Sequence[Measurement]) -> None:
    """Write the page and the dated numbers."""
    where = environment()
    record = {"measurements": [m._asdict() for m in measurements]}
    write_results("peers", where, record, {"peers.md": page(measurements, where)})


def main() -> None:
    options = parse_options(__doc__)
    torch.set_num_threads(1)
    measurements = [
        measure(work, size, 1 if options.quick else TURNS)
        for work in WORKS
        if is_installed(work)
        for size in (work.sizes[:1] if options.quick else work.sizes)
    ]
    if options.save:
        save(measurements)


if __name__ == "__main__":
    main()
