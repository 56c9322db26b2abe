"""Arguments of another kind or out of range: one sentence in place of an error of Python, NumPy, or a wrong answer."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from lengthwise.analysis.clusters import linkage_distances, principal_components
from lengthwise.analysis.continuity import continuity_modulus, on_embeddings, unit_domain
from lengthwise.analysis.drift import harmonics, remainder_drift
from lengthwise.analysis.overview import analyze
from lengthwise.analysis.receptive_field import cumulative_field, receptive_window, tree_answer
from lengthwise.analysis.states import block_states
from lengthwise.analysis.text_field import text_fields
from lengthwise.automata.conformance import ConformanceTest, conformance_strings
from lengthwise.automata.dfa import DFA, joint_sampler
from lengthwise.automata.groups import cycle_notation
from lengthwise.automata.labeled import LabeledMachine, labeled_dfa
from lengthwise.automata.lstar import learn_by_lstar
from lengthwise.automata.monoid import bounded_monoid, transition_monoid
from lengthwise.automata.monoid_laws import monoid_laws
from lengthwise.automata.random_languages import random_language
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.state_elimination import regex_from_dfa
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Certificate, certificate_card
from lengthwise.certification.certify import certify
from lengthwise.certification.confirm import confirm, proof_of
from lengthwise.certification.drawing import drawing_of
from lengthwise.certification.proof_file import write_proof
from lengthwise.certification.verify import check
from lengthwise.constructions.base import construct
from lengthwise.constructions.looped import evaluate, evaluate_exactly, looped_approximation, quantizer
from lengthwise.constructions.memorization.closed_form import (
    arc_margin,
    companion_matrix,
    permutation,
    repeats,
    rotation,
    simplex,
)
from lengthwise.constructions.memorization.contracting import shift_register
from lengthwise.constructions.memorization.farkas import holds, refute, refute_below
from lengthwise.constructions.memorization.feedback import digits
from lengthwise.constructions.memorization.finite import end_indefinitely
from lengthwise.constructions.memorization.frequencies import bounds
from lengthwise.constructions.memorization.lifetime import predicted_lifetime
from lengthwise.constructions.memorization.memorize import memorize
from lengthwise.constructions.memorization.networks import as_elman, as_linear_rnn
from lengthwise.constructions.memorization.planar import planar
from lengthwise.constructions.memorization.rational import memorize_rationally, psi
from lengthwise.constructions.memorization.words import parse_word
from lengthwise.evaluation.curve import LengthCurve
from lengthwise.evaluation.interval import (
    accuracy_interval,
    correlation_interval,
    error_bound,
    holm,
    mean_interval,
    wilson_interval,
)
from lengthwise.evaluation.labeled import labeled_curve
from lengthwise.evaluation.perplexity import paired_ratio, perplexity_curve
from lengthwise.evaluation.plan import EvaluationPlan, parse_lengths
from lengthwise.formats.base import FORMATS, Format
from lengthwise.models.base import make_model
from lengthwise.ops.answer_likelihood import answer_log_probabilities
from lengthwise.runs.compiled import save_compiled
from lengthwise.runs.machine_sources import given_machines, machine_or_expression
from lengthwise.runs.pools.shard import parse_shard
from lengthwise.runs.records import read_records
from lengthwise.runs.tracking.replay import track
from lengthwise.studies.chi2023.routing import blelloch_scan, hillis_steele_scan, path_to
from lengthwise.tasks import make_task
from lengthwise.text.corpus import number_name, number_names, read_texts, split_documents

pytestmark = pytest.mark.unchecked  # the package itself is to refuse them, without beartype

PARITY = make_task("parity")
MACHINE = dfa_from_regex("(a|b)*b")
STRINGS = r"strings: expected a \[strings, length\] array of integers, got "
WORD = r"word: expected a Word, got '.*'; make it with parse_word$"
TEXT = make_task("text")
LSTM, TREE = make_model("lstm", PARITY), make_model("regular-gpt", PARITY)
LANGUAGE_MODEL = make_model("lstm", TEXT)
PLAN, CURVE = EvaluationPlan(), LengthCurve(protocol="independent", points=())
TURN, ABC = rotation(2, 1), parse_word("abc")
TOKENS = PARITY.encode("ab")[None]
GENERATOR = torch.Generator()
NET = construct("rnn", PARITY)
COMPILED = certify(NET.model, PARITY)
NO_WORD = "word: expected a Word, got 'ab'; make it with parse_word"
TRANSDUCER = "machine: expected a Transducer, got None; give one"
NO_MODEL = "model: expected a model of this package, got NoneType; "


def probabilities(targets: list) -> torch.Tensor:
    """The likelihood of answers to two symbols, for a coin that the only symbol may turn over."""
    first, tokens = torch.tensor([[1.0, 0.0]]), torch.zeros(1, 2, dtype=torch.int64)
    return answer_log_probabilities(torch.full((1, 2, 2), 0.5), torch.eye(2), tokens, torch.tensor(targets), first)


MEASUREMENTS: list[tuple[Callable[[], object], str]] = [
    (
        lambda: perplexity_curve(LANGUAGE_MODEL, TEXT, [8], split="zz"),
        "split: expected one of train, valid, test, got 'zz'; choose one of these",
    ),
    (lambda: PLAN.measure_perplexity(LSTM, PARITY), "task: expected a text, got parity, which has answers; use length"),
    (lambda: PLAN.limit_lengths("a"), "max_length: expected a whole number, got 'a'; give one"),
    (lambda: PLAN.covers(3), "other: expected an EvaluationPlan, got 3; give one"),
    (lambda: parse_lengths(5), "lengths: expected a text such as 41-500,1000, got 5; give one"),
    (lambda: CURVE.save(5), "path: expected a path, got 5; give one"),
    (lambda: CURVE.save(""), "path: expected a path, got ''; give one, or '.' for the current folder"),
    (lambda: CURVE.nearest_point("a"), "length: expected a whole number, got 'a'; give one"),
    (lambda: mean_interval(["a"]), r"values: expected numbers, got \['a'\]; give a list of them"),
    (lambda: holm(["a"]), r"p_values: expected numbers, got \['a'\]; give a list of them"),
    (lambda: holm(None), "p_values: expected numbers, got None; give a list of them"),
    (lambda: wilson_interval("a", 3), "num_correct: expected a whole number, got 'a'; give one"),
    (lambda: wilson_interval(3, "a"), "num_strings: expected a whole number, got 'a'; give one"),
    (lambda: accuracy_interval([1.5], 10), r"accuracies: expected numbers in \[0, 1\] or NaN, got 1.5; give prob"),
    (
        lambda: error_bound(-1, 3),
        "num_wrong: expected a count from 0 to num_strings, which must be at least 0, got -1 of 3; ",
    ),
    (lambda: correlation_interval(2.0, 10), "value: expected a correlation from -1 to 1, got 2.0; compute"),
    (lambda: correlation_interval("a", 10), "value: expected a correlation, got 'a'; give one"),
    (lambda: check(None), "certificate: expected a Certificate, got None; give one"),
    (lambda: certificate_card(None), "certificate: expected a Certificate, got None; give one"),
]

MACHINES: list[tuple[Callable[[], object], str]] = [
    (lambda: Transducer.from_json({}), r"content: expected the entry 'symbols', got \[\]; give the result of to_json"),
    (lambda: Transducer.from_json({"symbols": []}), r"content: expected the entry 'start', got \['symbols'\]; give"),
    (lambda: Transducer.from_json(None), "content: expected the entries of a transducer, got None; give one"),
    (lambda: DFA.from_json(None), "content: expected the entries of an automaton, got None; give one"),
    (lambda: transition_monoid(MACHINE.semiautomaton, "a"), "maximum: expected a whole number of at least 1, got 'a'"),
    (lambda: transition_monoid(MACHINE), r"machine: expected a Semiautomaton, got DFA\(.*; give one$"),
    (lambda: bounded_monoid(MACHINE), r"machine: expected a Semiautomaton, got DFA\("),
    (lambda: bounded_monoid(MACHINE.semiautomaton, "a"), "maximum: expected a whole number of at least 1, got 'a'"),
    (lambda: monoid_laws(MACHINE), r"machine: expected a TreeMachine, got DFA\("),
    (lambda: labeled_dfa(MACHINE).with_symbols(5), "symbols: expected several texts, got 5; give a list"),
    (lambda: labeled_dfa(MACHINE).aligned("ab", 4), "classes: expected several texts, got 4; give a list"),
    (lambda: labeled_dfa(MACHINE).aligned(3, "ab"), "symbols: expected several texts, got 3; give a list"),
    (lambda: labeled_dfa(MACHINE).renamed({}, ("a",)), "order: expected one of a, got 'reject'; choose one"),
    (lambda: cycle_notation(5), "permutation: expected the image of each point, got 5; give one"),
    (lambda: joint_sampler(MACHINE), r"languages: expected a list of DFAs, got DFA\("),
    (lambda: joint_sampler([MACHINE], None), "repeat_weights: expected a list of numbers, got None; give one"),
    (lambda: MACHINE.semiautomaton.leading_to([True]), r"targets: expected one entry .* got shape \(1,\); give"),
    (lambda: MACHINE.semiautomaton.shortest_string(0, [True]), r"targets: expected one entry .* got shape \(1,\); "),
    (
        lambda: MACHINE.semiautomaton.transition_matrix(np.array([0.5, np.nan])),
        r"probabilities: expected a number of at least 0 for each of the 2 symbols, got shape \(2,\), array\(",
    ),
    (lambda: DFA.from_json({**MACHINE.to_json(), "accepting": 0}), "accepting: expected a list, got 0; give one"),
    (lambda: DFA.from_json({**MACHINE.to_json(), "alphabet": 3}), "alphabet: expected a list, got 3; give one"),
    (lambda: DFA.from_json({**MACHINE.to_json(), "transitions": 3}), "transitions: expected a list, got 3; give one"),
    (lambda: MACHINE.sample(np.array([["x"]])), r"uniforms: expected numbers in \[0, 1\), got others"),
    (lambda: MACHINE.with_symbols(5), "symbols: expected several texts, got 5; give a list"),
    (lambda: MACHINE.sample(np.array([[1.5]])), r"uniforms: expected numbers in \[0, 1\), got others; draw them with"),
    (lambda: conformance_strings(None, 5), TRANSDUCER),
    (lambda: conformance_strings(MACHINE.transducer, "a"), "max_symbols: expected a whole number, got 'a'; give one"),
    (lambda: ConformanceTest(None), TRANSDUCER),
    (lambda: random_language(2 * 10**6, 2, 0), "num_states: expected a whole number from 1 to 1,000, got 2000000; "),
    (
        lambda: random_language(3, 27, 0),
        "num_symbols: expected a whole number from 1 to 26, got 27; give a number in this range",
    ),
    (
        lambda: random_language(3, 2, -1),
        "seed: expected a whole number from 0 to 9,223,372,036,854,775,807, got -1; give a number in this range",
    ),
]

CONSTRUCTIONS: list[tuple[Callable[[], object], str]] = [
    (
        lambda: TURN.generate(-1),
        "count: expected a whole number from 0 to 1,000,000,000, got -1; give a number in this range",
    ),
    (
        lambda: digits(ABC).generate(-1),
        "count: expected a whole number from 0 to 1,000,000,000, got -1; give a number in this range",
    ),
    (
        lambda: TURN.states(-1),
        "count: expected a whole number from 0 to 1,000,000,000, got -1; give a number in this range",
    ),
    (lambda: TURN.margin(0), "count: expected a whole number of at least 1, got 0; give 1 or more"),
    (lambda: repeats(TURN, parse_word("001"), -1), "count: expected a whole number from 0 to 1,000,000,000, got -1"),
    (lambda: repeats(TURN, "ab", 3), NO_WORD),
    (lambda: permutation(ABC, power=2.5), "power: expected a whole number, got 2.5; give one"),
    (
        lambda: predicted_lifetime(memorize("001"), "float8"),
        "precision: expected 'bfloat16' or 'float16' or 'float32' or 'float64', got 'float8'; choose one",
    ),
    (lambda: psi(0), "order: expected a whole number of at least 1, got 0; give 1 or more"),
    (lambda: arc_margin(1, 0), "period: expected a whole number of at least 1, got 0; give 1 or more"),
    (lambda: arc_margin(4, 3), "zeros: expected a whole number from 0 to 3, got 4; give a number in this range"),
    (lambda: digits("ab"), NO_WORD),
    (lambda: shift_register("ab"), NO_WORD),
    (lambda: end_indefinitely(5), "text: expected a text, got 5; give one"),
    (lambda: end_indefinitely("ab", end=5), "end: expected a symbol, got 5; give one"),
    (lambda: refute("ab", (1,)), NO_WORD),
    (lambda: refute(ABC, (9,)), "frequencies: expected a whole number from 1 to 1, got 9; give a number"),
    (lambda: refute(ABC, (1,), "zz"), "kind: expected 'coincidence' or 'interval' or 'exact', got 'zz'; choose one"),
    (lambda: refute_below(None), "memorization: expected a result of memorize, got None; give one"),
    (lambda: bounds("ab"), NO_WORD),
    (lambda: holds("ab", None), NO_WORD),
    (lambda: holds(ABC, None), "certificate: expected a FarkasCertificate, got None; give one"),
    (lambda: as_linear_rnn(None), "generator: expected a LinearGenerator, got None; give one"),
    (lambda: as_elman(None, "relu", 3), "generator: expected a LinearGenerator, got None; give one"),
    (lambda: memorize("001", budget=-1), "budget: expected a whole number of at least 1, got -1; give 1 or more"),
    (
        lambda: memorize_rationally("001", budget=-1),
        "budget: expected a whole number of at least 1, got -1; give 1 or more",
    ),
    (lambda: looped_approximation(None, 4, 2), "function: expected a function, got None; give one"),
    (lambda: evaluate(quantizer(num_bins=4), [1]), "inputs: expected a tensor, got a list; make a tensor"),
    (lambda: evaluate(None, torch.ones(1, 1, 1)), "network: expected a LoopedNetwork, got None; give one"),
    (lambda: evaluate_exactly(quantizer(num_bins=4), 3), r"inputs: expected shape \[B, T, 1\] .*, got \[\]; give each"),
]

CERTIFICATES_AND_RUNS: list[tuple[Callable[[], object], str]] = [
    (lambda: Certificate.read(5), "path: expected a path, got 5; give one"),
    (lambda: Certificate.from_text(5), "certificate: .*, got other text .expected the text of JSON, got int"),
    (lambda: check(COMPILED, proof=5), "proof: expected a path, got 5; give one"),
    (lambda: check(COMPILED, proof="nope.proof"), "nope.proof: "),
    (lambda: confirm("c.json", LSTM, PARITY), "certificate: expected a Certificate, got 'c.json'; give one"),
    (lambda: proof_of("c.json", LSTM, PARITY), "certificate: expected a Certificate, got 'c.json'; give one"),
    (lambda: confirm(COMPILED, PARITY, LSTM), "model: expected a model of this package, got Parity; "),
    (lambda: confirm(COMPILED, LSTM, MACHINE), "task: expected a task, got 'DFA"),
    (lambda: write_proof(COMPILED, LSTM, PARITY, None), "path: expected a path, got None; give one"),
    (lambda: drawing_of("c.json"), "certificate: expected a Certificate, got 'c.json'; give one"),
    (lambda: COMPILED.reaches("sure"), "level: expected 'refuted' or .*, got 'sure'; choose one of these"),
    (lambda: save_compiled(LSTM, "net"), r"construction: expected a Construction, as construct returns it, got LSTM\("),
    (lambda: save_compiled(NET, ""), "folder: expected a path, got ''; give one"),
    (lambda: save_compiled(NET, __file__), "folder: expected a folder, got the file "),
    (lambda: given_machines("(a|b)*"), r"sources: expected a list of sources, got '\(a.b\)\*'; put the source into"),
    (lambda: given_machines([5]), "sources: expected texts, got 5; give one"),
    (lambda: machine_or_expression(5), "source: expected a file, a folder or a regular expression, got 5; give one"),
    (lambda: read_records("none.gz"), "none.gz: there is no such file; name a file"),
    (lambda: track(5, "tensorboard"), "run: expected a path, got 5; give one"),
    (lambda: parse_shard(5), "shard: expected a share such as 2/3, got 5; give one"),
    (
        lambda: labeled_curve(LSTM, PARITY, [("ab", "x")]),
        "examples: expected Examples, as read_examples makes",
    ),
    (lambda: labeled_curve(LSTM, MACHINE, None), "task: expected a task, got 'DFA"),
    (lambda: PLAN.reset_unused("parity"), "task: expected a task, got 'parity'; make one"),
    (lambda: CURVE.between("a", 3), "low: expected a number, got 'a'; give one"),
    (lambda: CURVE.between(3, None), "high: expected a number, got None; give one"),
    (lambda: paired_ratio("a", [1.0]), "first: expected numbers, got 'a'; give a list of them"),
    (lambda: paired_ratio([1.0], None), "second: expected numbers, got None; give a list of them"),
    (lambda: paired_ratio([], []), "first: expected at least one chunk, got none; measure one or more"),
]

TEXTS_AND_ANALYSES: list[tuple[Callable[[], object], str]] = [
    (lambda: read_texts([__file__], held_out=2.0), "held_out: expected a fraction from 0 to below 1, got 2.0; give"),
    (lambda: read_texts([__file__], held_out=-1), "held_out: expected a fraction from 0 to below 1, got -1; give"),
    (lambda: split_documents(["ab"], "a", ["test"]), "held_out: expected a fraction of the characters, got 'a'; give"),
    (lambda: read_texts([3], held_out=0.1), "files: expected a path, got 3; give one"),
    (lambda: read_texts([], held_out=0.1), r"files: expected at least one file, got \[\]; name text files"),
    (lambda: number_name(2000), "number: expected a whole number from 0 to 999, got 2000; give a number in this range"),
    (lambda: number_name(-1), "number: expected a whole number from 0 to 999, got -1; give a number in this range"),
    (lambda: number_names(-3), "count: expected a whole number from 0 to 1,000, got -3; give a number in this range"),
    (lambda: block_states(LSTM, PARITY, TOKENS), "model: expected a regular-gpt, got lstm; make one with make_model"),
    (lambda: block_states(None, PARITY, TOKENS), NO_MODEL),
    (lambda: remainder_drift(LSTM, PARITY, [3], 2), "task: expected the task sum, got parity; make one with make_task"),
    (lambda: remainder_drift(TREE, make_task("sum"), [3], 2), "model: expected a recurrent model, got regular-gpt; "),
    (lambda: text_fields(LSTM, PARITY, [8]), "task: expected a text, got parity, which has answers; for such a task"),
    (lambda: block_states(TREE, PARITY, "ab"), "inputs: expected a tensor, got a str; make"),
    (
        lambda: block_states(TREE, make_task("cycle-navigation"), TOKENS),
        "task: expected a regular task of the model's 2 symbols, got cycle-navigation; give the task that",
    ),
    (lambda: text_fields(LANGUAGE_MODEL, TEXT, 8), "lengths: expected a list of lengths, got 8; give one"),
    (lambda: text_fields(LANGUAGE_MODEL, TEXT, []), "lengths: expected at least one length, got none; give a list"),
    (lambda: text_fields(LANGUAGE_MODEL, TEXT, ["a"]), "lengths: expected a whole number of at least 1, got 'a'; "),
    (lambda: tree_answer(LSTM), r"model: expected a regular-gpt, got LSTM\("),
    (lambda: cumulative_field(torch.ones(3)), r"norms: expected shape \[B, T\], got \[3\]; reshape"),
    (lambda: receptive_window(torch.ones(3)), r"cumulative: expected shape \[B, T\], got \[3\]; reshape"),
    (lambda: receptive_window(torch.ones(1, 3), "a"), "share: expected a number, got 'a'; give one"),
    (lambda: linkage_distances(torch.ones(3)), r"states: expected shape \[N, D\], got \[3\]; reshape"),
    (lambda: harmonics([1], [2], 3), "states: expected a tensor, got a list; make a tensor"),
    (lambda: unit_domain(0, 1), "num_tokens: expected a whole number of at least 1, got 0; give 1 or more"),
    (lambda: on_embeddings(PARITY), r"model: expected a torch module, got Parity\("),
    (
        lambda: continuity_modulus(len, "token", 0.1, unit_domain(2, 1), GENERATOR),
        "distances: expected numbers, got 0.1; give a list of them",
    ),
    (lambda: continuity_modulus(len, "token", [0.1], None, GENERATOR), "domain: expected a Domain, got None; give one"),
    (
        lambda: continuity_modulus(len, "token", [0.1], unit_domain(2, 1), 0),
        "generator: expected a torch.Generator, got 0; give one",
    ),
    (lambda: analyze(TREE, PARITY, length="a"), "length: expected a whole number of at least 1, got 'a'; give"),
    (lambda: analyze(None, PARITY), NO_MODEL),
    (lambda: analyze(TREE, None), "task: expected a task, got 'None'; make one with lengthwise.make_task"),
    (
        lambda: continuity_modulus(None, "token", [0.1], unit_domain(2, 1), GENERATOR),
        "function: expected a function, got None; give one",
    ),
    (
        lambda: principal_components(torch.tensor([[0.0, 1.0], [torch.nan, 2.0]]), 1),
        "states: expected finite numbers, got infinity or NaN; leave out",
    ),
    (lambda: principal_components(None), "states: expected a tensor, got a NoneType; make a tensor"),
]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        *MEASUREMENTS,
        *MACHINES,
        *CONSTRUCTIONS,
        *CERTIFICATES_AND_RUNS,
        *TEXTS_AND_ANALYSES,
        (lambda: dfa_from_regex(5), "pattern: expected a text, got 5; give one$"),
        (lambda: dfa_from_regex("a", tokens="letters"), "tokens: expected 'characters' or 'words', got 'letters'; "),
        (lambda: MACHINE.count("3"), "length: expected a whole number of symbols, at least 0, got '3'; give"),
        (lambda: MACHINE.count(1.5), "length: expected a whole number of symbols, at least 0, got 1.5; give"),
        (lambda: MACHINE.accepts([[0]]), STRINGS + r"\[\[0\]\]; give the symbol ids as a NumPy array"),
        (lambda: MACHINE.accepts(None), STRINGS + "None; "),
        (lambda: MACHINE.accepts(np.array([0, 1])), STRINGS + r"shape \(2,\) of int64; "),
        (lambda: MACHINE.accepts(np.array(0)), STRINGS + r"shape \(\) of int64; "),
        (lambda: MACHINE.accepts(np.array([[0.5]])), STRINGS + r"shape \(1, 1\) of float64; "),
        (lambda: regex_from_dfa(None), "dfa: expected a DFA, got None; give one$"),
        (lambda: planar("01"), WORD),
        (lambda: simplex("abc"), WORD),
        (lambda: permutation("abc"), WORD),
        (lambda: companion_matrix([]), r"coefficients: expected numbers of which the first is 1, got \[\]; begin"),
        (lambda: companion_matrix([2, 1]), r"coefficients: expected .* got \[2, 1\]; begin with the highest power"),
        (lambda: hillis_steele_scan(-3), "length: expected at least 1 symbol, got -3; "),
        (lambda: blelloch_scan(0), "length: expected at least 1 symbol, got 0; "),
        (lambda: path_to(hillis_steele_scan(4), 9), r"position: expected a position from 0 to 3, got 9; choose"),
        (lambda: path_to(hillis_steele_scan(4), -1), r"position: expected a position from 0 to 3, got -1; choose"),
        (lambda: cycle_notation([0, 0, 1]), r"permutation: expected each number from 0 to 2 once, got \(0, 0, 1\); "),
        (lambda: learn_by_lstar(2, "moore", len, len), "kind: expected 'Moore' or 'Mealy', got 'moore'; "),
        (lambda: PARITY.encode(5), "text: expected a text or a list of symbols, got 5; "),
        (lambda: PARITY.decode("ab"), r"ids: expected a tensor \[T\] of ids of parity from 0 to 1, .* got 'ab'; "),
        (lambda: PARITY.decode(torch.tensor([2])), r"ids: .* got \[2\]; make ids with task.encode$"),
        (lambda: PARITY.decode(torch.tensor([-2])), r"ids: .* got \[-2\]; "),
        (lambda: PARITY.decode(torch.tensor([0.5])), r"ids: .* got \[0\.5\]; "),
        (lambda: PARITY.decode(torch.tensor([[0]])), r"ids: .* got \[\[0\]\]; "),
        (lambda: probabilities([[1, 4]]), "targets: expected ids of answers in 0..1, or -100 for no answer, got 4; "),
        (lambda: probabilities([[-1, 0]]), "targets: expected ids of answers in 0..1, or -100 for no answer, got -1; "),
        (lambda: probabilities([[0]]), r"targets: expected shape \[1, 2\], like tokens, got \[1, 1\]; "),
        (lambda: probabilities([0, 1]), r"targets: expected shape \[1, 2\], like tokens, got \[2\]; "),
        (lambda: holm([2, -1]), r"p_values: expected numbers in \[0, 1\] or NaN, got 2; give probabilities$"),
        (lambda: holm([0.5, -1]), r"p_values: expected numbers in \[0, 1\] or NaN, got -1; give probabilities$"),
    ],
)
def test_one_sentence_names_the_argument(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}"):
        call()


def test_arguments_at_the_ends_are_accepted() -> None:
    assert MACHINE.accepts(np.array([[]])).tolist() == [False]
    assert MACHINE.count(np.int64(2)) == 2
    assert path_to(hillis_steele_scan(4), 0) == path_to([], 0) == []
    assert hillis_steele_scan(1) == blelloch_scan(1) == []
    assert holm([0, 1]) == [0, 1]


@pytest.mark.parametrize("name", list(FORMATS))
def test_formats_write_only_labeled_machines(name: str) -> None:
    for machine in (None, MACHINE, MACHINE.transducer):
        with pytest.raises(ValueError, match=r"^machine: expected a LabeledMachine, got .*; write LabeledMachine\("):
            FORMATS[name].write(machine)


def test_a_format_of_a_user_needs_no_check_of_its_own() -> None:
    class Sizes(Format):
        name, suffixes = "sizes", (".sizes",)

        @staticmethod
        def write(machine: LabeledMachine, *, unit: str = "") -> str:
            return f"{machine.machine.num_states}{unit}"

    kind: Any = Sizes()
    assert kind.write(labeled_dfa(MACHINE)) == kind.write(machine=labeled_dfa(MACHINE)) == "2"
    assert Sizes.write(labeled_dfa(MACHINE), unit=" states") == "2 states"
    with pytest.raises(ValueError, match=r"^machine: "):
        Sizes.write(3)


def test_numbers_at_the_ends_are_accepted() -> None:
    assert TURN.generate(0) == "" == number_names(0)
    assert TURN.states(np.int64(2)).shape == (2, 2)
    assert error_bound(0, 0) == 1.0
    assert np.isnan(correlation_interval(1 + 1e-15, 10)).all()
    assert np.isnan(accuracy_interval([np.nan, 0.5], 10)).all()
    assert mean_interval(np.array([0.5, 0.5], np.float32)) == (0.5, 0.5)
    assert split_documents(["ab"], 0, ["test"]) == {"train": ("ab",), "test": ()}
