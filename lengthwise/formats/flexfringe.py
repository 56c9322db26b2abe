"""The JSON of FlexFringe, which learns automata from labeled traces."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.formats.limits import check_table

_ENTRIES = ("types", "alphabet", "nodes", "edges")
_NODE_ENTRIES = ("id", "source", "label", "size", "level", "style", "isred", "issink", "isblue", "trace", "data")
_DATA_ENTRIES = ("final_counts", "path_counts", "total_final", "total_paths")
_EDGE_ENTRIES = ("id", "source", "target", "name", "appearances")


def flexfringe_machine(content: Mapping[str, Any]) -> LabeledMachine:
    """Return the machine in a model that FlexFringe learned by counting types.

    Types are the labels of FlexFringe's training strings. A state's answer is the most frequent type among the training
    strings that ended there. If several types are equally frequent, the answer is the first of them, as in FlexFringe.
    A state in which no string ended has no answer. A missing edge, or an edge to a state that FlexFringe did not print,
    leads to a state without an answer. The initial state is the state whose source is -1.

    Raises:
        ValueError: an entry is missing, unknown (such as the probabilities of other heuristics) or malformed; or a node
            has two edges with one symbol.

    Example:
        >>> node = {"id": 0, "source": -1, "data": {"final_counts": {"0": 1, "1": 3}}}
        >>> edge = {"source": "0", "target": "0", "name": "a"}
        >>> content = {"types": ["in", "out"], "alphabet": ["a"], "nodes": [node], "edges": [edge]}
        >>> flexfringe_machine(content).answer_names()
        ['out', '']

    Source: Verwer and Hammerschmidt, "FlexFringe: a passive automaton learning package" (2017); its `print_json`.
    """
    _check_entries(content, _ENTRIES, _ENTRIES, "entries")
    types, alphabet = (_names(content[entry], entry) for entry in ("types", "alphabet"))
    nodes = _list(content["nodes"], "nodes")
    numbers = dict[str, int]()
    start = []
    outputs = []
    for node in nodes:
        _check_entries(node, _NODE_ENTRIES, ("id", "source", "data"), "entries of a node")
        name = _number(node["id"])
        if name in numbers:
            raise ValueError(f"nodes: expected each id once, got id {name} twice; keep one of the two nodes")
        if _number(node["source"]) == "-1":
            start.append(len(numbers))
        numbers[name] = len(numbers)
        outputs.append(_answer(node["data"], len(types)))
    if len(start) != 1:
        raise ValueError(f"nodes: expected one node with source -1, got {len(start)}; give this source to one node")
    # One more state than nodes: the sink of missing edges.
    check_table(len(nodes) + 1, len(alphabet))
    sink = len(nodes)
    table = np.full((sink + 1, len(alphabet)), sink)
    columns, given = {symbol: v for v, symbol in enumerate(alphabet)}, set()
    for edge in _list(content["edges"], "edges"):
        _check_entries(edge, _EDGE_ENTRIES, ("source", "target", "name"), "entries of an edge")
        source = _number(edge["source"])
        target = _number(edge["target"])
        symbol = edge["name"]
        if symbol not in columns or source not in numbers:
            unknown = f"node {source}" if symbol in columns else f"symbol {str(symbol)[:60]!r}"
            raise ValueError(f"edges: expected declared nodes and symbols, got {unknown}; declare it")
        if (source, symbol) in given:
            raise ValueError(
                f"edges: expected one edge of each symbol, got two of {symbol!r} from node {source}; keep one of them"
            )
        given.add((source, symbol))
        table[numbers[source], columns[symbol]] = numbers.get(target, sink)
    machine = Transducer(Semiautomaton(table, tuple(alphabet)), start[0], np.array([*outputs, IGNORE]))
    return LabeledMachine(machine, tuple(types))


def _answer(data: Any, num_types: int) -> int:
    """Return the most frequent type of strings that ended in a state, or the first of equally frequent types."""
    _check_entries(data, _DATA_ENTRIES, ("final_counts",), "data of a node")
    counts = [0] * num_types
    for key, count in (data["final_counts"] or {}).items():
        if key == "-1":  # strings of unknown type
            continue
        if not (key.isascii() and key.isdigit() and len(key) < 10 and int(key) < num_types) or type(count) is not int:
            raise ValueError(
                "final_counts: expected a whole number as the count of each type, with types numbered below "
                f"{num_types}, got {str({key: count})[:60]}; export the model again with FlexFringe"
            )
        counts[int(key)] = count
    return counts.index(max(counts)) if max(counts, default=0) > 0 else IGNORE


def _check_entries(content: Any, known: Collection[str], needed: Collection[str], what: str) -> None:
    got = type(content).__name__
    if isinstance(content, Mapping):
        unknown, missing = set(content) - set(known), set(needed) - set(content)
        if not unknown and not missing:
            return
        got = f"{min(unknown)[:80]!r}" if unknown else f"no {min(missing)}"
    raise ValueError(
        f"expected the {what} ({', '.join(known)}), got {got}; export a model that FlexFringe learned by counting "
        "types, for example with the heuristic evidence_driven"
    )


def _names(content: Any, what: str) -> list[str]:
    names = _list(content, what)
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise ValueError(
            f"{what}: expected different texts that are not empty, got {str(names)[:60]}; write each name once, in "
            "quotes"
        )
    return list(names)


def _list(content: Any, what: str) -> Sequence[Any]:
    if not isinstance(content, list):
        raise ValueError(
            f"{what}: expected a list, got {type(content).__name__}; export the model again with FlexFringe"
        )
    return content


def _number(value: Any) -> str:
    """Return a node's number as text. FlexFringe writes numbers in nodes, and their texts in edges."""
    text = str(value)
    if isinstance(value, bool) or not (text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()):
        raise ValueError(f"expected the number of a node, got {text[:60]!r}; export the model again with FlexFringe")
    return text
