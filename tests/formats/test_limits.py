"""Files that would take more memory than a reader allows are refused in a sentence."""

import sys

import pytest
from limited_memory import run_limited

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in /proc")

IMPORTS = """
from lengthwise.formats.json import JSON
from lengthwise.formats.jflap import JFLAP
from lengthwise.formats.regex import Regex

def jff(inner, head=""):
    return f'{head}<structure><type>fa</type><state id="0"><initial/><final/></state>{inner}</structure>'

def edge(read):
    return f"<transition><from>0</from><to>0</to><read>{read}</read></transition>"

def named(**content):
    content = {"states": ["0"], "initial": "0", "accepting": [], "alphabet": ["a"], "transitions": []} | content
    return json.dumps(content)

def entities(depth):
    declared = [f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, depth)]
    return f'<!DOCTYPE s [<!ENTITY e0 "x">{"".join(declared)}]>'
"""


# It reads files of 20 MB in a new process; JSON and expressions are read so by default.
@pytest.mark.slow
def test_jflap_is_read_in_bounded_memory() -> None:
    outcomes = run_limited(
        IMPORTS,
        [
            "JFLAP.read(jff(edge('a' * 9_999)))",
            "JFLAP.read(jff(edge('a' * 60_000)))",
            "JFLAP.read(jff(edge('&e8;'), entities(9)))",
            "JFLAP.read(jff(''.join(edge('a' * i + chr(0x4E00 + i)) for i in range(1, 1_000))))",
            "JFLAP.read(jff(edge(''.join(map(chr, range(0x4E00, 0x4E00 + 9_000))))))",
            "JFLAP.read(jff(''.join(edge(bin(10**6 + i)[2:] * 400) for i in range(30))))",
            "JFLAP.read(jff('<x/>' * 1_000_000))",
            "JFLAP.read(jff('<x/>' * 5_000_000))",
        ],
        500,
    )
    starts = [
        "read",
        "refused: expected names of at most 10,000 characters, got a name of 60,000 characters that begins with "
        "'aaaaaaa",
        "refused: expected XML without a document type, got <!DOCTYPE",
        "read",
        "refused: expected at most 10,000,000 transitions, got 81,009,000 (9,001 states and 9,000 symbols",
        "refused: expected at most 200,000 states, got 20",
        "refused: expected edges with symbols, got no such edge",
        "refused: expected a machine's text of at most 20,000,000 characters, got 20,000,",
    ]
    assert [outcome[: len(start)] for outcome, start in zip(outcomes, starts, strict=True)] == starts


def test_json_is_read_in_bounded_memory() -> None:
    outcomes = run_limited(
        IMPORTS,
        [
            "JSON.read('[' + '{},' * 2_000_000 + '{}]')",
            "JSON.read('[' + '{},' * 6_666_666 + '{}]')",
            "JSON.read(named(states=[str(i) for i in range(20_000)], alphabet=[str(i) for i in range(20_000)]))",
            "JSON.read(named(states=[str(i) for i in range(200_000)]))",
            "JSON.read(named(alphabet=['a' * 1_000_000]))",
            "JSON.read(json.dumps({'types': ['x'], 'alphabet': [str(i) for i in range(9_000)], 'edges': [], 'nodes':"
            " [{'id': i, 'source': i - 1, 'data': {'final_counts': {}}} for i in range(9_000)]}))",
        ],
        500,
    )
    starts = [
        "refused: expected a JSON object, got list",
        "refused: expected a machine's text of at most 20,000,000 characters, got 20,000,002",
        "refused: expected at most 10,000,000 transitions, got 400,020,000 (20,001 states and 20,000 symbols",
        "refused: expected at most 200,000 states, got 200,001",
        "refused: expected symbols and answers of at most 1,000 characters, got 1,000,000",
        "refused: expected at most 10,000,000 transitions, got 81,009,000 (9,001 states and 9,000 symbols",
    ]
    assert [outcome[: len(start)] for outcome, start in zip(outcomes, starts, strict=True)] == starts


def test_expressions_are_read_in_bounded_memory() -> None:
    outcomes = run_limited(
        IMPORTS,
        [
            "Regex.read('a' * 20_000_000)",
            "Regex.read('[\\u4e00-\\u55cf]' * 15_000)",
            "Regex.read('a|' * 1_900 + '|' * 90_000)",
            "Regex.read('(a|b)*a' + '(a|b)' * 400)",
            "Regex.read('.*a.{9}\\nalphabet: ' + ''.join(map(chr, range(33, 0xD000))))",
        ],
        800,
    )
    starts = [
        "refused: pattern: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...' has more than 100,000 characters; shorten it",
        "refused: pattern: '[",
        "read",
        "refused: pattern: '(a|b)*a(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)...' needs more than 50,000 states",
        "refused: pattern: '.*a.{9}' needs 1,024 states, each with transitions for 53,215 symbols: more than 10,000",
    ]
    assert [outcome[: len(start)] for outcome, start in zip(outcomes, starts, strict=True)] == starts
    assert outcomes[1].endswith("has more than 2,000 symbols; shorten it")
