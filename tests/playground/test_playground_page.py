"""The page: what it holds, what it answers under node, and what somebody sees who types into it."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from browser import Browser, needs_chromium
from command import exit_code
from fewer_strings import draw_fewer_strings
from scripts import needs_node, run_script

from lengthwise.automata.tree_machine import tree_machine
from lengthwise.constructions import construct
from lengthwise.playground.contents import run_contents
from lengthwise.playground.page import content_source, part, playground_page, write_playground
from lengthwise.runs.compiled import save_compiled
from lengthwise.tasks import make_task


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> dict[str, Path]:
    """A tree and a recurrence that solve their tasks exactly, in folders."""
    folder = tmp_path_factory.mktemp("compiled")
    for name, task in (("regular-gpt", "even-pairs"), ("block-linear-rnn", "cycle-navigation")):
        save_compiled(construct(name, make_task(task)), folder / name)
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def contents(compiled) -> dict[str, dict]:
    with pytest.MonkeyPatch.context() as patch:
        draw_fewer_strings(patch.setattr)
        return {name: run_contents(path) for name, path in compiled.items()}


PER_PREFIX = """
const result = given.map(({ run, strings }) => {
  const player = opened(run);
  return strings.map((string) => analyzed(player, string).prefixes);
});
"""


@needs_node
def test_net_machine_and_task_agree_under_node_and_with_python(contents) -> None:
    strings = {name: [[0], [1, 0], [1, 1, 0, 1, 0, 0, 1]] for name in contents}
    given = [{"run": run, "strings": strings[name]} for name, run in contents.items()]
    for run, of_run, name in zip(contents.values(), run_script(PER_PREFIX, given), contents, strict=True):
        task = make_task("even-pairs" if name == "regular-gpt" else "cycle-navigation")
        assert run["level"] == "proved"
        for string, prefixes in zip(strings[name], of_run, strict=True):
            expected = task.transducer.run(np.array([string]))[0].tolist()
            for source in ("answer", "machineAnswer", "taskAnswer"):
                assert [prefix[source] for prefix in prefixes] == expected, (name, source)
            assert [prefix["stateClass"] for prefix in prefixes] == [prefix["machineClass"] for prefix in prefixes]


EXPLAINED = (
    part("words.js")
    + """
const result = given.strings.map((text) => {
  const symbols = Array.from(text, Number);
  const classes = statesOf(given.run.machine, symbols).slice(1);
  const prefixes = classes.map((state) => ({ machineClass: state, stateClass: state, machineAnswer: state % 2 }));
  return machineReasons(given.run, { symbols, prefixes }, symbols.length, "no").join(" ");
});
"""
)


@needs_node
def test_reasons_name_the_shortest_string_alike_and_say_when_nothing_can_change() -> None:
    # Strings of a alone are answered no, those with one b yes, those with more no for good.
    machine = {"start": 0, "table": [[0, 1], [1, 2], [2, 2]], "outputs": [0, 1, 0], "names": ["a", "b", "bb"]}
    run = {"machine": machine, "symbols": ["a", "b"], "classes": ["no", "yes"], "separator": ""}
    at_start, at_b, later, for_good = run_script(EXPLAINED, {"run": run, "strings": ["00", "1", "01", "0110"]})
    assert "shortest" not in at_start + at_b, "the empty string is shorter, and b is itself"
    assert "The shortest of them is b." in later
    assert "The shortest of them is bb. Whatever follows, the answer stays the same." in for_good
    assert "Whatever" not in at_start + at_b + later


CURVE = (
    part("pictures.js")
    + """
const shares = given.prefixes.map((prefix) => shareOf(given.run, prefix));
const result = { shares, curve: curveThrough(shares.map((share, index) => (share === null ? null : [index, share]))) };
"""
)


@needs_node
def test_the_curve_has_gaps_where_the_task_has_no_answer() -> None:
    prefixes = [{"answer": 0, "taskAnswer": answer, "probabilities": [0.25, 0.75]} for answer in (0, 1, None, 0, None)]
    prefixes.append({"answer": None, "taskAnswer": 1, "probabilities": None})
    drawn = run_script(CURVE, {"run": {"task": {}}, "prefixes": prefixes})
    assert drawn == {"shares": [0.25, 0.75, None, 0.25, None, 0], "curve": "M0,0.25h0L1,0.75M3,0.25h0M5,0h0"}
    own = run_script(CURVE, {"run": {"task": None}, "prefixes": [{**one, "taskAnswer": None} for one in prefixes[:2]]})
    assert own["shares"] == [0.25, 0.25], "where the page knows no answers, the curve is of the net's own"


@needs_node
def test_tree_machines_are_those_of_python() -> None:
    machine = tree_machine(make_task("word-problem", group="S3").transducer, chunk_size=3)
    strings = np.random.default_rng(0).integers(2, size=(20, 11))
    code = "const machine = new TreeMachine(given.machine);"
    code += "const result = given.strings.map((string) => machine.levels(string).pop().classes);"
    levels = run_script(code, {"machine": machine.to_json(), "strings": strings.tolist()})
    assert [of_string[-1] for of_string in levels] == machine.final_classes(strings).tolist()


@pytest.mark.usefixtures("fewer_strings")
def test_the_question_says_what_the_settings_mean(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    save_compiled(construct("block-linear-rnn", make_task("tomita", index=3)), folder)
    question, *languages = run_contents(folder)["question"].splitlines()
    assert question == "Recognition of Tomita's language of the given index, over the symbols 0 and 1."
    assert languages[2].startswith("3. no run of 1s of odd length is immediately followed by")
    assert len(languages) == 7


def test_the_page_loads_nothing_and_its_policy_names_its_only_script_and_style(contents) -> None:
    page = playground_page(list(contents.values()), "<Title>", "lengthwise play x")
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org/)", page), "nothing is loaded"
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    style, script = (re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL) for tag in ("style", "script"))
    assert f"style-src {content_source(style[0])}; script-src {content_source(script[0])}" in policy
    assert (len(style), len(script)) == (1, 1)
    assert "unsafe" not in policy
    assert "&lt;Title&gt;" in page
    data = re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)[0]
    assert json.loads(data)["runs"] == json.loads(json.dumps(list(contents.values())))
    assert "but a certificate is about the arithmetic of PyTorch" in " ".join(page.split())


def test_requests_that_cannot_be_met_are_one_sentence(compiled, tmp_path: Path, capsys) -> None:
    (folder, *_) = compiled.values()
    twice = folder / ".." / folder.name
    for paths, page, sentence in (
        ([], "play.html", "runs: expected at least one run, got none"),
        (
            [folder, twice],
            "play.html",
            f"runs: expected each run once, got {re.escape(str(twice))} more than once; name this run once",
        ),
        ([folder], "play.htm", "page: expected a name that ends in .html, got 'play.htm'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            write_playground(paths, tmp_path / page)
    assert exit_code("play", str(folder), "--out", "play.htm") == 2
    assert capsys.readouterr().err.startswith("lengthwise: --out: expected a name that ends in .html")


def test_models_of_one_task_have_different_names(compiled, tmp_path: Path, monkeypatch) -> None:
    draw_fewer_strings(monkeypatch.setattr)
    again = shutil.copytree(compiled["regular-gpt"], tmp_path / "again")
    elsewhere = shutil.copytree(compiled["block-linear-rnn"], tmp_path / "other" / "again")
    paths = [compiled["regular-gpt"], again, compiled["block-linear-rnn"], elsewhere]
    write_playground(paths, tmp_path / "play.html")
    text = (tmp_path / "play.html").read_text(encoding="utf-8")
    named = [name for name in re.findall(r'"name":"([^"]+)"', text) if "even-pairs" in name or "cycle" in name]
    assert len(set(named)) == len(paths)
    assert named[0].endswith("(regular-gpt)")
    assert named[1].endswith(f"({again})")


@pytest.mark.usefixtures("fewer_strings")
def test_a_certificate_of_other_weights_is_refused(tmp_path: Path, capsys) -> None:
    task, folder = make_task("parity"), tmp_path / "net"
    construction = construct("block-linear-rnn", task)
    save_compiled(construction, folder)
    (blocked := tmp_path / "file").touch()
    assert exit_code("certify", str(folder), "--draw", str(blocked / "machine.svg")) == 2
    sentence = f"{blocked / 'machine.svg'}: expected a file in a folder, but {blocked} is a file; name another path"
    assert capsys.readouterr() == ("", f"lengthwise: {sentence}\n"), "said before the work"
    assert exit_code("certify", str(folder), "--draw", str(tmp_path / "machine.svg")) == 0
    assert (tmp_path / "machine.svg").read_text().startswith("<svg")
    certificate = (folder / "certificate.json").read_bytes()
    with torch.no_grad():
        construction.model.readout[4].bias.add_(1e-3)
    save_compiled(construction, folder)
    (folder / "certificate.json").write_bytes(certificate)
    with pytest.raises(ValueError, match="certificate of the weights next to this file, got a certificate of other"):
        run_contents(folder)


@pytest.fixture
def refuted(tmp_path: Path) -> Path:
    """A net of parity that answers 0 to everything, and the certificate that says so."""
    folder, construction = tmp_path / "refuted", construct("block-linear-rnn", make_task("parity"))
    with torch.no_grad():
        construction.model.readout[4].bias.add_(torch.tensor([100.0, 0.0]))
    save_compiled(construction, folder)
    assert exit_code("certify", str(folder)) == 1
    return folder


@needs_chromium
@pytest.mark.slow
def test_the_counterexample_is_a_button(refuted: Path, tmp_path: Path) -> None:
    page = tmp_path / "play.html"
    assert exit_code("play", str(refuted), "--out", str(page)) == 0
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(page, "#net=0&string=aa")
        assert browser.text("verdict") == "The net is right."
        browser.evaluate("document.getElementById('counterexample').click()")
        assert browser.evaluate("document.getElementById('string').value") == "b"
        assert browser.text("verdict").startswith("The net is wrong")
        assert (browser.text("net-answer")[:1], browser.text("task-answer")[:1]) == ("0", "1")
        assert "The net errs here first, after 1 symbol;" in browser.text("why")
        assert browser.evaluate("document.querySelectorAll('#strip li.apart').length") == 1
        assert "The first disagreement, after 1 symbol, is marked" in browser.text("legend")
        for address, problem, read in (
            ("#net=7.5&string=axa", '"x" is not a symbol', 0),
            ("#string=aba&step=-2", "", 0),
        ):
            browser.open(page, address)
            assert browser.text("problem").startswith(problem)
            assert browser.text("step-label").startswith(f"Symbols read: {read} of ")
        assert not browser.problems
    finally:
        browser.close()


@needs_chromium
@pytest.mark.slow
def test_somebody_types_a_string_and_steps_through_it(compiled, tmp_path: Path) -> None:
    page = tmp_path / "play.html"
    assert exit_code("play", *map(str, compiled.values()), "--out", str(page)) == 0
    index = list(compiled).index("regular-gpt")
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(page, f"#net={index}&string=ab")
        assert [browser.text(name)[:1] for name in ("net-answer", "machine-answer", "task-answer")] == ["1"] * 3
        browser.evaluate("document.getElementById('string').select(); document.getElementById('string').focus()")
        browser.write("abba")
        assert browser.text("verdict") == "The net is right."
        assert browser.text("net-answer").startswith("0")
        assert browser.evaluate("document.querySelectorAll('#strip li').length") == 4
        assert "last merge joins ab" in browser.text("why")
        browser.write("x")
        assert '"x" is not a symbol of this task' in browser.text("problem")
        assert browser.text("verdict") == "Nothing has been read yet.", "not what was said of the string before"
        assert browser.text("net-answer") == "-"
        browser.evaluate("document.getElementById('string').select()")
        browser.write("abba")
        browser.evaluate("document.getElementById('step').focus()")
        browser.press("ArrowLeft", 37)
        assert browser.text("step-label") == "Symbols read: 3 of 4"
        assert browser.text("net-answer").startswith("1")
        assert browser.evaluate("document.querySelectorAll('.machine .state.lit').length") == 1
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), "no page wider than 400 px"
        assert not browser.problems, "no script failed, and the policy forbade nothing"
    finally:
        browser.close()


@needs_chromium
@pytest.mark.slow
def test_long_counterexamples_and_symbols_of_addresses(contents, tmp_path: Path) -> None:
    """A counterexample is read whatever its length, but by a tree, which begins with another string."""
    page = tmp_path / "play.html"
    walk, tree = contents["block-linear-rnn"], contents["regular-gpt"]
    runs = [{**run, "counterexample": {"string": run["symbols"][:1] * 700}} for run in (walk, tree)]
    runs.append({**walk, "symbols": ["+", "-", "0"]})
    page.write_text(playground_page(runs, "Nets", ""), encoding="utf-8")
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(page)
        assert browser.text("step-label") == "Symbols read: 700 of 700"
        choose = "const net = document.getElementById('run'); net.value = 1; net.dispatchEvent(new Event('change'))"
        browser.evaluate(choose)
        assert browser.text("step-label") == "Symbols read: 8 of 8"
        title = browser.evaluate("document.getElementById('counterexample').title")
        assert title == "The counterexample has 700 symbols, too many for this page."
        browser.open(page, f"#net=1&string={'a' * 600}")
        assert browser.text("problem") == "expected at most 512 symbols, got 600"
        browser.evaluate("document.getElementById('next').click()")
        assert browser.text("step-label") == "Symbols read: 0 of 0"
        browser.open(page, "#net=2&string=0+0")
        assert (browser.text("problem"), browser.text("step-label")) == ("", "Symbols read: 3 of 3")
        assert not browser.problems
    finally:
        browser.close()


VERDICTS = (
    part("words.js")
    + """
const result = [[true, false], [true, true], [false, false], [false, true]].map(([isLearned, isWrong]) => {
  const run = { task: {}, isLearned };
  return verdict(run, { prefixes: [{ taskAnswer: 1, isWrong }] }, 1).text;
});
"""
)


@needs_node
def test_a_net_of_a_learned_machine_is_not_called_right() -> None:
    assert run_script(VERDICTS, {}) == [
        "The net agrees with the machine in its certificate.",
        "The net differs from the machine in its certificate.",
        "The net is right.",
        "The net is wrong.",
    ]


def test_contents_say_whether_a_machine_was_learned(compiled, contents, tmp_path: Path) -> None:
    assert not any(run["isLearned"] for run in contents.values())
    learned = tmp_path / "learned"
    shutil.copytree(next(iter(compiled.values())), learned)
    (learned / "learned.json").write_text("{}")
    assert run_contents(learned)["isLearned"]
