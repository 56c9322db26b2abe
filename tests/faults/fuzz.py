"""Made-up requests by the thousand: each ends with exit code 0, 1 or 2, without a traceback, in 10 CPU s and 2 GB.

Run by hand as ``python tests/faults/fuzz.py --requests 20000 --seed 0`` (about 20 minutes of a core); a small number of
them is a test. A finding is printed with its number: ``--first NUMBER --requests 1`` runs that request again.

Requests run in children of a process that has imported the package; they are forked one by one. The limit on memory is
one on address space (``RLIMIT_AS``): what the process has mapped when it is forked, and 2 GB. It counts what is
reserved and never touched, too, so that it is stricter than one on resident memory. The library that draws pictures
reserves more than that for the smallest of them: commands say so and go on, which is no finding. Certification tests
100 strings of 500 symbols instead of 1,000 of 10,000.
"""

import argparse
import gc
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import NamedTuple

import torch
from requests_at_random import KINDS, make_request, prepare

import lengthwise
import lengthwise.certification.traces as traces_module
import lengthwise.certification.verify as verify_module
from lengthwise.cli.app import main

MAX_CPU_SECONDS, MAX_WALL_SECONDS, MAX_BYTES = 10, 120, 2 << 30
MAX_LINE = 2_000


class Ending(NamedTuple):
    """How a request ended: its exit code, or what went wrong, and what it took."""

    code: int
    finding: str
    cpu_seconds: float
    megabytes: float


def execute(arguments: list[str], streams: str = "") -> Ending:
    """Run a request in a forked child under limits. What it prints is kept in the files `output` and `errors`."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _become(arguments, streams)
    _, status, usage = os.wait4(child, 0)
    errors = Path("errors").read_text(encoding="utf-8", errors="replace")
    code = os.waitstatus_to_exitcode(status)
    problem = finding(code, errors, is_silent="2>&-" in streams)
    return Ending(code, problem, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def finding(code: int, errors: str, *, is_silent: bool = False) -> str:
    """What is wrong with an ending, or nothing."""
    problem = ""
    if code < 0:
        problem = f"ended by {signal.Signals(-code).name}"
    elif code not in (0, 1, 2):
        problem = f"exit code {code}"
    elif "Traceback" in errors:
        problem = "a traceback"
    elif any(phrase in errors for phrase in ("allocate", "out of memory", "std::bad_alloc")):
        problem = "out of memory"
    elif code and not is_silent and not errors.rpartition("\n")[0].rpartition("\n")[2].startswith("lengthwise: "):
        problem = "no sentence"
    elif any(len(line) > MAX_LINE for line in errors.splitlines()):
        problem = "an endless sentence"
    return f"{problem}: {errors[-900:]}" if problem else ""


def _become(arguments: list[str], streams: str) -> None:
    """The child: standard streams, limits, the request; never returns."""
    code = 99
    try:
        _open_streams(streams)
        mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + MAX_BYTES, mapped + MAX_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(MAX_WALL_SECONDS)
        main(arguments)
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else 0
    except BaseException:  # what main lets through is what this script looks for
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


def _open_streams(streams: str) -> None:
    """The null device as input, files as output; or as a shell redirects them."""
    reader, writer = os.pipe()
    os.close(reader)  # nobody reads what is written
    output = {">/dev/full": "/dev/full"}.get(streams, "output")
    for descriptor, path in ((0, os.devnull), (1, output), (2, "errors")):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | (os.O_TRUNC if descriptor else 0)), descriptor)
    if streams == "| true":
        os.dup2(writer, 1)
    os.closerange(3, 256)
    encoding = "ascii" if streams == "ascii" else "utf-8"
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(descriptor, mode, encoding=encoding, errors=errors, closefd=False)
        for descriptor, mode, errors in ((0, "r", "strict"), (1, "w", "strict"), (2, "w", "backslashreplace"))
    )
    closed = {"<&-": 0, ">&-": 1, "2>&-": 2}.get(streams)
    if closed is not None:
        os.close(closed)
        setattr(sys, ("stdin", "stdout", "stderr")[closed], None)


def get_ready() -> None:
    """Import everything, draw fewer strings in certification, and make the files that requests name."""
    for module in walk_packages(lengthwise.__path__, "lengthwise."):
        if not module.name.endswith(("__main__", "renderer")):
            import_module(module.name)
    traces_module.TESTED_LENGTHS = verify_module.MIN_LENGTHS = (40, 500)
    traces_module.NUM_STRINGS = verify_module.MIN_STRINGS = 100
    for name in ("torch._dynamo", "scipy.optimize", "numpy.ctypeslib", "numpy.ma"):  # else each child imports them
        import_module(name)
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # or the first collection in a child would copy every page

    def run(arguments: list[str]) -> None:
        ending = execute(arguments)
        if ending.code:
            raise RuntimeError(f"{arguments}: {ending}")

    prepare(run)


def fuzz(num_requests: int, seed: int, first: int = 0, say: Callable[[str], object] = print) -> int:
    """Run requests, say every finding and what they took, kind by kind; returns the number of findings."""
    get_ready()
    endings: dict[str, list[Ending]] = {kind: [] for kind in KINDS}
    for index in range(first, first + num_requests):
        kind, arguments, streams = make_request(seed, index)
        ending = execute(arguments, streams)
        endings[kind].append(ending)
        if ending.finding:
            say(f"--seed {seed} --first {index}: {[word[:200] for word in arguments]} {streams}\n  {ending.finding}")
        shutil.rmtree("runs", ignore_errors=True)
        if num_requests == 1:
            say(f"{arguments} {streams}: {ending}\n{Path('errors').read_text(encoding='utf-8')[-2000:]}")
    for line in summary(endings):
        say(line)
    return sum(bool(ending.finding) for ended in endings.values() for ending in ended)


def summary(endings: dict[str, list[Ending]]) -> list[str]:
    """A line for each kind."""
    lines = [
        f"{'kind':14} {'requests':>8} {'code 0':>7} {'code 1':>7} {'code 2':>7} {'findings':>8} {'CPU s':>7} {'MB':>6}"
    ]
    everything = {**endings, "all": [ending for ended in endings.values() for ending in ended]}
    for kind, ended in everything.items():
        codes = Counter(ending.code for ending in ended)
        counts = " ".join(f"{codes[code]:7,}" for code in (0, 1, 2))
        num_findings = sum(bool(ending.finding) for ending in ended)
        most = max((ending.cpu_seconds for ending in ended), default=0), max((e.megabytes for e in ended), default=0)
        lines.append(f"{kind:13} {len(ended):8,} {counts} {num_findings:8} {most[0]:7.2f} {most[1]:5.0f}")
    return lines


def fuzz_in_new_folder(num_requests: int, seed: int, first: int = 0) -> None:
    """Exits with 1 where something was found."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        num_findings = fuzz(num_requests, seed, first, lambda line: print(line, flush=True))  # noqa: T201
        os.chdir("/")
    sys.exit(1 if num_findings else 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Requests made up at random; see the text at the head of the file.")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first request")
    chosen = parser.parse_args()
    fuzz_in_new_folder(chosen.requests, chosen.seed, chosen.first)
