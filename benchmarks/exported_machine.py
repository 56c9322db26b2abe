"""Speed of machines exported as C on one core, in symbols per second.

    python benchmarks/exported_machine.py            prints the table
    python benchmarks/exported_machine.py --quick    takes a second: a test that it runs, without meaningful numbers

The speed is from the smallest of five CPU times of ``NAME_classify``, compiled by ``cc -O2``, on one string of random
symbols. Before anything is timed, its answer to the first 10,000 symbols is compared with the machine's answer.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from lengthwise.automata import Semiautomaton, Transducer, library
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.base import FORMATS
from lengthwise.formats.notes import notes_on
from lengthwise.report.tables.markdown import markdown_table

CHECKED = 10_000
"""The number of symbols after which answers are compared; more would be slow, because NumPy takes a call per symbol."""

HOST = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "m.h"

int main(int count, char **arguments)
{
    size_t length = (size_t)atol(arguments[1]);
    uint8_t *symbols = malloc(length);
    FILE *file = fopen(arguments[2], "rb");
    double best = 1e9;
    int answer = 0;
    if (count != 3 || !symbols || !file || fread(symbols, 1, length, file) != length) return 1;
    for (int i = 0; i < 5; i++) {
        clock_t start = clock();
        answer = m_classify(symbols, length);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        best = seconds < best ? seconds : best;
    }
    printf("%d %g\\n", answer, (double)length / best);
    return 0;
}
"""


def at_random(num_states: int, num_symbols: int) -> Transducer:
    """Return a machine whose table is drawn uniformly."""
    chance = np.random.default_rng(0)
    table = chance.integers(num_states, size=(num_states, num_symbols))
    symbols = tuple(f"s{v}" for v in range(num_symbols))
    return Transducer(Semiautomaton(table, symbols), 0, chance.integers(2, size=num_states))


def symbols_a_second(machine: Transducer, length: int, folder: Path) -> float:
    """Measure the speed of a machine's exported header, in symbols per second."""
    classes = tuple(str(answer) for answer in range(int(machine.outputs.max()) + 1))
    labeled = LabeledMachine(machine, classes)
    (folder / "m.h").write_text(FORMATS["c"].write_annotated(labeled, notes_on(labeled, "m")), encoding="utf-8")
    (folder / "host.c").write_text(HOST, encoding="utf-8")
    subprocess.run(["cc", "-Wall", "-Werror", "-O2", "host.c", "-o", "host"], cwd=folder, check=True)
    string = np.random.default_rng(1).integers(len(machine.symbols), size=length).astype(np.uint8)
    (folder / "symbols").write_bytes(string.tobytes())
    for count in (CHECKED, length):
        words = [str(folder / "host"), str(count), str(folder / "symbols")]
        answer, speed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        if count == CHECKED:
            state = machine.semiautomaton.final_states(string[None, :count].astype(np.int64), machine.start)[0]
            assert int(answer) == machine.outputs[state], "the header answers as the machine does"
    return float(speed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    length = 1 << (16 if parser.parse_args().quick else 26)
    machines = {
        "parity": library.parity(),
        "cycle of 5": library.cycle(5),
        "random, 60 states": at_random(60, 2),
        "random, 300 states": at_random(300, 26),
        "random, 5,000 states": at_random(5_000, 256),
    }
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, machine in machines.items():
            speed = symbols_a_second(machine, length, Path(folder))
            size = machine.semiautomaton.table.shape
            rows.append([name, f"{size[0]:,} x {size[1]}", f"{speed / 1e6:,.0f}"])
    print(markdown_table(["machine", "table", "million symbols a second"], rows))


if __name__ == "__main__":
    main()
