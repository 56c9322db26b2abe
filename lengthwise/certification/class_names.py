"""Names of the classes of a certificate's machine, for people: strings that have them."""

from itertools import product

import numpy as np
from jaxtyping import Int64

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.machines import machine_from_json
from lengthwise.display import spelled

MAX_TRIED = 4_096


def class_names(certificate: Certificate) -> list[str]:
    """For each class of a certificate's machine the first string that has it, the pad (a dot) before all.

    Where no string up to the length at which there are `MAX_TRIED` has it, its number, or that it is the start.
    """
    if certificate.machine is None:
        return []
    machine = machine_from_json(certificate.machine)
    if isinstance(machine, GridMachine):
        return []
    names: dict[int, str] = {}
    if isinstance(machine, TreeMachine):
        names[int(machine.leaves[0])] = "."
    length = 0
    num_symbols = len(machine.symbols)
    while num_symbols ** (length + 1) <= MAX_TRIED and length < len(machine.outputs) > len(names):
        length += 1
        strings = np.array(list(product(range(num_symbols), repeat=length)))
        present, first = np.unique(_classes(machine, strings), return_index=True)
        for k, row in sorted(zip(present.tolist(), first.tolist(), strict=True), key=lambda pair: pair[1]):
            names.setdefault(k, spelled([machine.symbols[v] for v in strings[row]], machine.symbols))
    if isinstance(machine, Transducer):
        names.setdefault(machine.start, "(start)")
    return [names.get(k, f"#{k}") for k in range(len(machine.outputs))]


def _classes(machine: TreeMachine | Transducer, strings: Int64[np.ndarray, "B T"]) -> Int64[np.ndarray, " B"]:
    if isinstance(machine, TreeMachine):
        return machine.final_classes(strings)
    return machine.semiautomaton.final_states(strings, machine.start)
