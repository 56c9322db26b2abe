"""FlexFringe's JSON: machines as it writes them, and what is refused."""

import json
from copy import deepcopy
from typing import Any

import pytest

from lengthwise.formats.json import JSON


def node(number: int, source: int, counts: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "source": source,
        "label": "fin: ",
        "size": 9,
        "level": 1,
        "style": "",
        "isred": 1,
        "issink": 0,
        "isblue": 0,
        "trace": "0 0",
        "data": {
            "final_counts": counts,
            "path_counts": {"0": 3},
            "total_final": sum(counts.values()),
            "total_paths": 3,
        },
    }


def edge(source: int, name: str, target: int) -> dict[str, str]:
    ends = {"source": str(source), "target": str(target)}
    return {"id": f"{source}_{target}", **ends, "name": name, "appearances": ""}


MODEL: dict[str, Any] = {
    "types": ["1", "0"],
    "alphabet": ["login", "logout"],
    "nodes": [
        node(0, -1, {"0": 0, "1": 0}),
        node(1, 0, {"0": 7, "1": 2}),
        node(2, 0, {"0": 3, "1": 3, "-1": 9}),
        node(3, 1, {"1": 1}),
    ],
    "edges": [edge(0, "login", 1), edge(0, "logout", 2), edge(1, "login", 3), edge(3, "logout", 7)],
}


def test_the_most_frequent_type_is_the_answer() -> None:
    machine = JSON.read(json.dumps(MODEL))
    assert machine.symbols == ("login", "logout")
    assert machine.classes == ("1", "0")
    strings = {"": "", "login": "1", "logout": "1", "login login": "0", "login logout": ""}
    strings |= {"login login logout": "", "login login logout logout": ""}
    assert {text: machine.answer_to(text.split()) for text in strings} == strings


def change(path: list[Any], value: Any) -> dict[str, Any]:
    content = deepcopy(MODEL)
    part = content
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            change(["nodes", 0, "data", "trans_counts"], {}),
            r"^expected the data of a node \(.*\), got 'trans_counts'; export a model",
        ),
        (
            change(["nodes", 0, "data"], None),
            r"^expected the data of a node .*, got NoneType; export a model",
        ),
        (change(["nodes", 0, "weight"], 1), r"^expected the entries of a node .*, got 'weight'; export a model"),
        (change(["edges", 0, "guard"], "x < 1"), r"^expected the entries of an edge .*, got 'guard'; export a model"),
        (change(["more"], []), r"^expected the entries \(.*\), got 'more'; export a model"),
        (
            change(["nodes", 1, "source"], -1),
            r"^nodes: expected one node with source -1, got 2; give this source",
        ),
        (change(["nodes", 1, "id"], 0), r"^nodes: expected each id once, got id 0 twice; keep one of"),
        (
            change(["nodes", 1, "id"], None),
            r"^expected the number of a node, got 'None'; export the model again with FlexFringe$",
        ),
        (
            change(["edges", 1], edge(0, "login", 2)),
            r"^edges: expected one edge of each symbol, got two of 'login' from",
        ),
        (
            change(["edges", 1], edge(9, "login", 2)),
            r"^edges: expected declared nodes and symbols, got node 9",
        ),
        (
            change(["edges", 1], edge(0, "x", 2)),
            r"^edges: expected declared nodes and symbols, got symbol 'x'",
        ),
        (change(["types"], ["1", "1"]), r"^types: expected different texts that are not empty, got"),
        (
            change(["nodes", 1, "data", "final_counts"], {"2": 1}),
            r"^final_counts: expected a whole number as the count of each type",
        ),
        (
            change(["nodes", 1, "data", "final_counts"], {"1": 0.5}),
            r"^final_counts: expected a whole number as the count of each type",
        ),
        (change(["nodes"], {}), r"^nodes: expected a list, got dict; export the model again with FlexFringe$"),
    ],
)
def test_other_models_are_refused(content: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JSON.read(json.dumps(content))
