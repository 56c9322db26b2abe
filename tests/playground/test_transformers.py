"""Transformers on the page: the logits and attention weights of PyTorch, the counterexample, and what is shown."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from browser import Browser, needs_chromium
from command import exit_code
from jaxtyping import Float, Int64
from scripts import needs_node, run_script
from torch import Tensor

from lengthwise.constructions import construct
from lengthwise.layers.positions.base import POSITIONS
from lengthwise.layers.positions.fire import FIRE
from lengthwise.models.base import make_model
from lengthwise.models.transformer import Transformer
from lengthwise.playground.contents import run_contents
from lengthwise.playground.nets import MAX_SYMBOLS, net_json
from lengthwise.playground.page import part, playground_page
from lengthwise.runs.compiled import save_compiled
from lengthwise.tasks import make_task

TASK = make_task("cycle-navigation")  # three symbols, five classes
LENGTHS = (1, 2, 17, 63, 200)

CASES: list[dict[str, Any]] = [
    {"positions": "none", "num_layers": 2, "num_heads": 2},
    {"positions": "alibi", "num_layers": 3, "num_heads": 3, "d_model": 12},
    {"positions": "t5", "num_layers": 2, "num_heads": 4, "readout": "tied"},
    {"positions": "kerple-log", "num_layers": 2, "num_heads": 2},
    {"positions": "kerple-power", "num_layers": 1, "num_heads": 2},
    {"positions": "fire", "num_layers": 2, "num_heads": 2},
    {"positions": "rotary", "num_layers": 2, "num_heads": 2},
    {"positions": "xl", "num_layers": 2, "num_heads": 4},
    {"positions": "learned", "learned_positions": 700, "num_layers": 1, "num_heads": 1, "read_in": "plain"},
    {"positions": "sinusoidal", "num_layers": 1, "num_heads": 2, "read_in": "plain", "readout": "tied"},
]


def transformer(seed: int, **fields: Any) -> Transformer:
    """An untrained net with weights large enough that attention is far from even."""
    net = make_model("transformer", TASK, seed=seed, **{"d_model": 8, **fields})
    assert isinstance(net, Transformer)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=generator))
    return net.eval()


@torch.no_grad()
def attention_by_definition(net: Transformer, string: Int64[Tensor, " T"]) -> Float[Tensor, "L H T"]:
    """Return the weights of the last position, from the scores of each layer by definition."""
    states = net.read_in(string[None])
    weights = []
    for layer, attention in zip(net.layers, net.read_in.positions.attention(states), strict=True):
        projected = layer.query_key_value(layer.norms[0](states)).unflatten(-1, (3, layer.num_heads, -1))
        query, key, _ = projected.permute(2, 0, 3, 1, 4)
        weights.append(attention.scores(query, key)[0, :, -1].softmax(-1))
        states = layer.by_definition(states, attention=attention)
    return torch.stack(weights)


ON_PAGE = """
const result = given.map(({ net, strings }) => {
  const player = opened({ net, machine: null, task: null, prototypes: null });
  return strings.map((string) => {
    const analysis = analyzed(player, string);
    const logits = analysis.prefixes.map((prefix) => prefix.logits);
    return { logits, attention: attentionAt(player, analysis, string.length) };
  });
});
"""


@needs_node
def test_logits_and_attention_are_those_of_pytorch() -> None:
    nets = [transformer(seed, **fields) for seed, fields in enumerate(CASES)]
    generator = np.random.default_rng(0)
    strings = [torch.from_numpy(generator.integers(3, size=length)) for length in LENGTHS]
    results = run_script(ON_PAGE, [{"net": net_json(net), "strings": [s.tolist() for s in strings]} for net in nets])
    for net, of_net in zip(nets, results, strict=True):
        for string, on_page in zip(strings, of_net, strict=True):
            with torch.no_grad():
                logits = net(string[None])[0]
            torch.testing.assert_close(torch.tensor(on_page["logits"]), logits, rtol=1e-4, atol=1e-4)
            weights = attention_by_definition(net, string)
            torch.testing.assert_close(
                torch.tensor(on_page["attention"], dtype=torch.float32), weights, rtol=1e-5, atol=1e-5
            )
            if len(string) > 2:
                assert float(weights.amax(-1).max()) > 2 / len(string), "attention is far from even"


AGAIN = """
const fresh = () => opened({ net: given.net, machine: null, task: null, prototypes: null });
const player = fresh();
const numbers = (player, analysis) => ({
  logits: analysis.prefixes.map((prefix) => prefix.logits),
  attention: attentionAt(player, analysis, analysis.symbols.length),
});
const analyses = given.strings.map((string) => analyzed(player, string));
const result = given.strings.map((string, index) => {
  const other = fresh();
  return [numbers(player, analyses[index]), numbers(other, analyzed(other, string))];
});
"""


@needs_node
def test_strings_that_begin_alike_are_read_as_if_each_were_the_first() -> None:
    strings = [[0, 1, 2, 0], [0, 1, 2, 0, 1], [0, 1, 0], [0, 1], [2, 1]]
    results = run_script(AGAIN, {"net": net_json(transformer(0, **CASES[1])), "strings": strings})
    for after_others, alone in results:
        assert after_others == alone


AXES = {"positions": 0, "cosines": 0, "sines": 0, "biases": 2, "distance_keys": 2}
"""The axis of positions or distances in the tables of encodings."""


def test_tables_end_with_the_longest_string_of_the_page() -> None:
    lengths = {"learned_positions": 40, "positions": "learned"}
    assert net_json(transformer(0, num_heads=2, **lengths))["maxLength"] == 40
    for fields in CASES:
        net = transformer(0, **fields)
        exported = net_json(net)
        if isinstance(fire := net.read_in.positions, FIRE):
            # The distances of a query beyond the limit are relative to its own position, so no table has its biases.
            limit = min(float(layer.limit_in_positions.detach()) for layer in fire.layers)
            assert exported["maxLength"] == min(MAX_SYMBOLS, int(limit) + 1) < MAX_SYMBOLS
        else:
            assert exported["maxLength"] == MAX_SYMBOLS
        shapes = {tensor["name"]: tensor["shape"] for tensor in exported["tensors"]}
        tables = {name: shapes[name][axis] for name, axis in AXES.items() if name in shapes}
        assert set(tables.values()) == ({exported["maxLength"]} if fields["positions"] != "none" else set())


def test_other_encodings_and_vectors_are_refused_with_the_list() -> None:
    can_run = [fields["positions"] for fields in CASES]
    for name in sorted(set(POSITIONS) - set(can_run)):
        with pytest.raises(ValueError, match=rf"can compute \({', '.join(can_run)}\), got {name}; evaluate"):
            net_json(transformer(0, positions=name, num_heads=2))
    with pytest.raises(ValueError, match="expected a transformer that reads symbols, got a model that reads vectors"):
        net_json(make_model("transformer", make_task("decision-tree")))


SECTION = (
    part("words.js")
    + part("attention.js")
    + """
const player = opened(given.run);
const analysis = analyzed(player, given.string);
const result = given.steps.map((step) => {
  const attention = attentionRows(player, analysis, step);
  const keys = ["Tab", "ArrowUp", "ArrowLeft", "ArrowLeft", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"];
  const cells = [null];
  for (const key of keys) cells.push(movedCell(cells[cells.length - 1], key, attention));
  return {
    attention, cells,
    sentences: [null, cells[2], cells[8]].map((cell) => attentionSentence(given.run, analysis, attention, cell)),
    note: attentionNote(attention),
    reasons: reasons(player, analysis, step),
  };
});
"""
)


@needs_node
def test_the_section_shows_the_newest_positions_and_arrow_keys_choose_a_weight() -> None:
    net = transformer(0, **CASES[0])
    run = {"net": net_json(net), "machine": None, "task": None, "prototypes": None, "separator": "", "isLearned": False}
    run |= {"symbols": ["a", "b", "c"], "classes": list("01234")}
    string = [0, 1, 2] * 67
    one, short, long = run_script(SECTION, {"run": run, "string": string, "steps": [1, 3, 200]})
    labels = ["layer 1, head 1", "layer 1, head 2", "layer 2, head 1", "layer 2, head 2"]
    for on_page, first, step in ((one, 0, 1), (short, 0, 3), (long, 136, 200)):
        attention = on_page["attention"]
        assert (attention["first"], [row["label"] for row in attention["rows"]]) == (first, labels)
        weights = attention_by_definition(net, torch.tensor(string[:step])).flatten(0, 1)
        drawn = torch.tensor([row["weights"] for row in attention["rows"]], dtype=torch.float32)
        torch.testing.assert_close(drawn, weights[:, first:], rtol=1e-5, atol=1e-5)
        earlier = torch.tensor([row["earlier"] for row in attention["rows"]], dtype=torch.float32)
        torch.testing.assert_close(earlier, weights[:, :first].sum(1), rtol=1e-5, atol=1e-5)
    assert "Only the newest 64 of 200 positions are drawn." in long["note"]
    assert "Only" not in short["note"]
    path = [(cell["row"], cell["position"]) for cell in long["cells"][2:]]
    assert long["cells"][:2] == [None, None], "other keys choose nothing"
    assert path == [(0, 199), (0, 198), (0, 197), (1, 197), (2, 197), (3, 197), (3, 198)]
    assert [cell["position"] for cell in short["cells"][2:5]] == [2, 1, 0]
    assert {cell["position"] for cell in one["cells"][2:]} == {0}, "the only position"
    assert short["sentences"][0] == "Click on a cell, or press an arrow key, to read its weight here."
    assert short["sentences"][1].startswith("In layer 1, head 1, position 3 (c) gets ")
    assert "earlier" not in short["sentences"][1]
    assert "The 136 earlier positions together: " in long["sentences"][2]
    assert not any("attends" in reason for reason in one["reasons"]), "one position gets all attention"
    assert any("attends most to the positions " in reason for reason in short["reasons"])


REASON = (
    part("words.js")
    + """
const run = { symbols: ["a", "b"] };
const result = given.map((byHead) => attentionReason(run, { symbols: [0, 1, 1, 0] }, byHead));
"""
)


@needs_node
def test_the_reason_names_the_positions_with_most_attention() -> None:
    uneven = [0.1, 0.5, 0.15, 0.25]
    even = [0.25] * 4
    assert run_script(REASON, [[uneven], [uneven, even], [even, even]]) == [
        "The last layer attends most to the positions 2 (b, 50 %), 4 (a, 25 %) and 3 (b, 15 %). "
        "An even share would be 25 %.",
        "The last layer attends most to the positions 2 (b, 37.5 %), 4 (a, 25 %) and 3 (b, 20 %), "
        "on average over its 2 heads. An even share would be 25 %.",
        "The last layer attends to all 4 positions alike, on average over its 2 heads: 25 % each.",
    ]


@pytest.fixture(scope="module")
def refuted(tmp_path_factory) -> Path:
    """An untrained transformer of parity, and the certificate that refutes it."""
    folder, task = tmp_path_factory.mktemp("refuted") / "net", make_task("parity")
    net = make_model("transformer", task, d_model=8, num_heads=2, positions="alibi").eval()
    save_compiled(construct("block-linear-rnn", task)._replace(model=net), folder)
    assert exit_code("certify", str(folder)) == 1
    return folder


AT_COUNTEREXAMPLE = """
const string = given.counterexample.string.map((symbol) => given.symbols.indexOf(symbol));
const { answer, taskAnswer, isWrong } = analyzed(opened(given), string).prefixes.pop();
const result = { answer, taskAnswer, isWrong };
"""


@needs_node
def test_the_counterexample_of_a_refuted_transformer_is_wrong_under_node(refuted: Path) -> None:
    run = run_contents(refuted)
    assert run["level"] == "refuted"
    wrong = run_script(AT_COUNTEREXAMPLE, run)
    assert wrong["isWrong"]
    assert run["classes"][wrong["answer"]] != run["classes"][wrong["taskAnswer"]]


@needs_chromium
@pytest.mark.slow
def test_somebody_looks_at_the_attention_of_a_transformer(refuted: Path, tmp_path: Path) -> None:
    page = tmp_path / "play.html"
    runs = [run_contents(refuted), {**run_contents(refuted), "name": "another"}]
    runs[1]["net"] = net_json(
        make_model(
            "transformer", make_task("parity"), d_model=8, num_heads=1, positions="learned", learned_positions=20
        )
    )
    page.write_text(playground_page(runs, "Nets", ""), encoding="utf-8")
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(page, "#string=abba&step=3")
        browser.evaluate("document.getElementById('counterexample').click()")
        assert browser.text("verdict") == "The net is wrong."
        browser.open(page, f"#string={'ab' * 50}")
        count = "document.querySelectorAll('#attention {}').length"
        assert browser.evaluate(count.format("tbody tr")) == 4
        assert browser.evaluate(count.format("tbody tr:last-child td")) == 64
        assert browser.text("attention-note").endswith("Only the newest 64 of 100 positions are drawn.")
        last = "document.querySelector('#attention tr:last-child td:last-child')"
        assert browser.evaluate(f"{last}.title").endswith(" %")
        assert 0 < float(browser.evaluate(f"getComputedStyle({last}.firstChild).opacity")) < 1
        browser.evaluate("document.getElementById('attention').focus()")
        browser.press("ArrowLeft", 37)
        browser.press("ArrowDown", 40)
        assert browser.text("attention-cell").startswith("In layer 1, head 2, position 100 (b) gets ")
        browser.evaluate(f"{last}.click()")
        assert browser.text("attention-cell").startswith("In layer 2, head 2, position 100 (b) gets ")
        assert browser.evaluate(count.format(".chosen")) == 1
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), "only the section scrolls"
        assert "The last layer attends" in browser.text("why")
        browser.open(page, "#net=1")
        browser.evaluate("document.getElementById('longer').click()")
        assert browser.text("step-label") == "Symbols read: 20 of 20", "no longer than the table of positions"
        browser.evaluate("document.getElementById('clear').click()")
        assert browser.evaluate(count.format("td")) == 0
        assert not browser.problems
    finally:
        browser.close()
