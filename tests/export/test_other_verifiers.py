"""Marabou and the package vnnlib (extra `verifiers`) read exported queries."""

import operator
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from slow_nets import slow_net
from vnnlib_queries import export_queries, is_true, parse, save_certified

SECONDS = 20
"""Marabou's time for a comparison."""


@pytest.fixture
def queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Export the queries of a tanh RNN that decides whether the last symbol is b."""
    monkeypatch.chdir(tmp_path)
    save_certified(slow_net("rnn", None), Path("net"))
    return export_queries("net")


@pytest.mark.slow
def test_vnnlib_reads_the_same_enclosures_and_claims(queries: Path) -> None:
    """The package reads version 2 of the language: its header and arrays replace single variables here."""
    vnnlib = pytest.importorskip("vnnlib")
    compat = pytest.importorskip("vnnlib.compat")
    for path in sorted(queries.glob("*.vnnlib")):
        text = path.read_text()
        enclosure, failures = parse(text)
        sizes = [len(re.findall(rf"declare-const {name}_", text)) for name in "XY"]
        arrays = " ".join(
            f"(declare-{kind} {name} float32 [1,{size}])"
            for kind, name, size in zip(("input", "output"), "XY", sizes, strict=True)
        )
        body = re.sub(r"^(\(declare-const|;).*$", "", text, flags=re.MULTILINE)
        body = re.sub(r"([XY])_(\d+)", r"\1[0,\2]", body)
        cases = compat.transform(
            vnnlib.parse_query_string(f"(vnnlib-version <2.0>)\n(declare-network f {arrays})\n{body}")
        )
        read = [operator.attrgetter("input_box")(case) for case in cases]
        assert {tuple(map(tuple, bounds)) for bounds in read} == {tuple(map(tuple, enclosure.T))}
        assert sum(len(case.output_constraints) for case in cases) == len(failures)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Tensorflow parser is unavailable")
def test_marabou_confirms_answers_and_finds_no_failing_step(queries: Path) -> None:
    """Solve each comparison with Marabou: `unsat` proves that it never holds, and `sat` comes with a state.

    Marabou returns `sat` for 36 of the 96 comparisons of steps. The graph is run on each returned state, where the
    comparison is false.
    """
    marabou = pytest.importorskip("maraboupy.Marabou")
    verdicts: dict[tuple[str, str], int] = {}
    for line in (queries / "instances.csv").read_text().splitlines():
        graph, name, _ = line.split(",")
        enclosure, failures = parse((queries / name).read_text())
        run = ReferenceEvaluator(onnx.load(queries / graph))
        for sign, index, end in failures:
            query = marabou.read_onnx(str(queries / graph))
            state, output = (variables[0].flatten() for variables in (query.inputVars, query.outputVars))
            for unit, (low, high) in enumerate(enclosure.T):
                query.setLowerBound(state[unit], low)
                query.setUpperBound(state[unit], high)
            factor, variables = (1 if sign == "<" else -1), [output[index]]
            other = int(end[2:]) if end.startswith("Y_") else None  # addInequality means: sum of products <= number
            if other is None:
                query.addInequality(variables, [factor], factor * float(end))
            else:
                query.addInequality([*variables, output[other]], [factor, -factor], 0.0)
            verdict, values, _ = query.solve(verbose=False, options=marabou.createOptions(timeoutInSeconds=SECONDS))
            kind = name.partition("-")[0]
            verdicts[kind, verdict] = verdicts.get((kind, verdict), 0) + 1
            if verdict == "sat":
                witness = np.array([[values[variable] for variable in state]], dtype=np.float32)
                assert not is_true((sign, index, end), run.run(None, {"state": witness})[0][0])
    assert verdicts == {("step", "unsat"): 60, ("step", "sat"): 36, ("answer", "unsat"): 2}
