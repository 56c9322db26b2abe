"""The separate checker limits its work: each loop over the contents of a file has a limit, which some proof reaches."""

import pytest
from proved_nets import NETS, proof_of

from lengthwise.certification import checker
from lengthwise.certification.checker import (
    MAX_CLOSURE,
    MAX_ELEMENTS,
    MAX_FILE,
    MAX_MOVES,
    MAX_PAIRS,
    MAX_PIECES,
    MAX_SIZE,
    MAX_TERMS,
    MAX_WORK,
    Rejected,
    demand_limit,
)

ALWAYS = {("bytes of a proof", MAX_FILE)}
OF_CLASSES = ALWAYS | {
    ("states of the transducer", MAX_SIZE),
    ("classes", MAX_SIZE),
    ("terms of a sum", 4 * MAX_TERMS),
    ("multiplications", MAX_WORK),
}
OF_TREES = OF_CLASSES | {
    ("moves of the task's machine along windows", MAX_MOVES),
    ("nodes of one level", MAX_PAIRS),
    ("numbers in the bounds of one state", MAX_ELEMENTS),
}
OF_PAIRS = OF_CLASSES | {
    ("pairs of a class and a state of the task", MAX_PAIRS),
    ("steps of pairs of a class and a state of the task", MAX_MOVES),
}
OF_RECURRENCES = OF_PAIRS | {("numbers in the bounds of one state", MAX_ELEMENTS)}
LIMITS = {
    **dict.fromkeys(("chunks of 2", "chunks of 3", "float64", "no codes yet", "codes", "compiled tree"), OF_TREES),
    **dict.fromkeys(("rnn", "gru", "lstm", "wrapped rnn", "wrapped gru", "wrapped lstm"), OF_RECURRENCES),
    **dict.fromkeys(("compiled rnn", "reflections"), OF_RECURRENCES),
    "one-hot": OF_RECURRENCES | {("moves of blocks", MAX_MOVES)},
    "mixture": OF_PAIRS | {("moves of blocks", MAX_MOVES)},
    "attention": OF_RECURRENCES
    | {
        ("symbols of a string", MAX_TERMS),
        ("products of queries and keys", MAX_ELEMENTS),
        ("sides of queries, keys and values", MAX_ELEMENTS),
        ("scores", MAX_ELEMENTS),
        ("sums along paths", MAX_ELEMENTS),
        ("regions of masses", MAX_PIECES),
    },
    "choices": OF_CLASSES - {("classes", MAX_SIZE)}
    | {
        ("entries of columns", MAX_MOVES),
        ("numbers in the bounds of one state", MAX_ELEMENTS),
        ("pairs of a state of the net and a state of the task", MAX_PAIRS),
        ("steps", MAX_MOVES),
    },
    "rule": ALWAYS
    | {
        ("numbers as cells of the rule", MAX_ELEMENTS),
        ("numbers as numbers of the rule", MAX_ELEMENTS),
        ("pairs of edges of its rule and the task's", MAX_ELEMENTS),
        ("multiplications until no pair of edges is new", MAX_CLOSURE),
    },
}


@pytest.mark.parametrize("name", NETS)
def test_every_limit_is_checked_before_a_verdict(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    proof = proof_of(name)
    passed: dict[tuple[str, int], list[int]] = {}

    def record(number: int, limit: int, what: str) -> None:
        passed.setdefault((what, limit), []).append(number)
        demand_limit(number, limit, what)

    monkeypatch.setattr(checker, "demand_limit", record)
    proof.verdict()
    assert passed.keys() == LIMITS[name]
    for (what, limit), numbers in passed.items():

        def stop(number: int, given: int, told: str, what: str = what, limit: int = limit) -> None:
            demand_limit(number, 0 if (told, given) == (what, limit) else given, told)

        assert max(numbers) > 0, what
        monkeypatch.setattr(checker, "demand_limit", stop)
        with pytest.raises(Rejected, match=f"expected at most 0 {what}, got .*; this checker stops there"):
            proof.verdict()


def test_a_limit_may_be_reached() -> None:
    demand_limit(3, 3, "steps")
    with pytest.raises(Rejected, match="expected at most 3 steps, got 4; this checker stops there"):
        demand_limit(4, 3, "steps")
