"""Requests made up at random, most of them wrong: what `fuzz.py` asks of the commands. They name files of `prepare`."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lengthwise.constructions import CONSTRUCTIONS
from lengthwise.experiment import EXPERIMENTS
from lengthwise.files import json_text
from lengthwise.models import MODELS
from lengthwise.presets import PRESETS
from lengthwise.tasks import TASKS
from lengthwise.training.recipe import Recipe

SMALL = ["--longest", "41", "--set", "train.batch_size=2", "--set", "train.max_length=4", "--set", "train.min_length=1"]
STEPS = ["--set", "train.steps=2"]
"""The last word of every request to train: how many steps there are is the user's to say, and no fault."""

HUGE = ["9" * 20, "9223372036854775807", "2147483648", "1000000000", "99999999"]
ODD = ["", "-1", "0", "1", "2", "3", "1.5", "nan", "inf", "-inf", "1e9", "true", "None", "x", "é", "\udcff"]
BROKEN = ["[", "]]", "[[1", "[" * 5_000, "[" * 200_000, "{a=" * 3_000, "'", '"', "\n", "=", "."]
TABLES = ["[[0,1],[1,0]]", "[]", "{}", "[1,2]", "[-1]", "['a']", "{a=1}", "a" * 3_000]
ODD_JSON = [None, True, -1, 0, 1, 2, 2**70, 1e308, 0.5, "", "a", "é", [], {}, [[0]], {"a": 1}]
TRAINED = ["finished/*", "stopped/*"]
COMPILED = ["compiled-regular-gpt", "compiled-rnn", "compiled-block-linear-rnn"]

Request = Callable[[random.Random], list[str]]


def prepare(run: Callable[[list[str]], None]) -> None:
    """A finished run, one that is not measured, compiled models, and certificates of all of these."""
    settings = ["--set", "model.d_model=8", "--set", "model.num_heads=2"]
    run(["train", "parity", "regular-gpt", *SMALL, *settings, *STEPS, "--runs", "finished"])
    run(["certify", str(folder("finished/*")), "--out", "refuted.json", "--min-level", "refuted"])
    for name in CONSTRUCTIONS:
        run(["compile", "--task", "parity", "--to", name, "--out", f"compiled-{name}"])
        run(["certify", f"compiled-{name}", "--out", f"{name}.json"])
    shutil.copytree("finished", "stopped")
    (folder("stopped/*") / "result.json").unlink()


def folder(pattern: str) -> Path:
    """The folder of this name; a run's name is an id, for which a star stands."""
    return next(Path().glob(pattern))


def number(chance: random.Random) -> str:
    return chance.choice([*HUGE, *ODD, *ODD, str(chance.randrange(-3, 40))])


def odd_value(chance: random.Random) -> str:
    return number(chance) if chance.random() < 0.7 else chance.choice([*BROKEN, *TABLES])


def odd_name(chance: random.Random) -> str:
    return chance.choice([*TASKS, *MODELS, *PRESETS, *ODD, "".join(chance.choices("parity-gru/x", k=6))])


def nested(model: type, prefix: str) -> list[str]:
    """The settings below a section, as paths."""
    paths = []
    for name, field in model.model_fields.items():  # type: ignore[attr-defined]
        path = f"{prefix}.{name}"
        inner = field.annotation
        paths += nested(inner, path) if hasattr(inner, "model_fields") else [path]
    return paths


def settings() -> list[str]:
    paths = {f"task.{name}" for task in TASKS.values() for name in task.model_fields}
    paths |= {f"model.{name}" for model in MODELS.values() for name in model.Config.model_fields}
    return [*sorted(paths | set(nested(Recipe, "train"))), "a.b", "task", "x", "x.y.z", "train.optimizer"]


SETTINGS = settings()


def assignment(chance: random.Random) -> list[str]:
    return ["--set", f"{chance.choice(SETTINGS)}={odd_value(chance)}"]


def own_assignment(chance: random.Random, task: str, model: str) -> list[str]:
    """A setting that this task, this model or the recipe has."""
    own = [f"task.{name}" for name in TASKS[task].model_fields]
    own += [f"model.{name}" for name in MODELS[model].Config.model_fields]
    path = chance.choice(own if chance.random() < 0.7 else SETTINGS)
    return ["--set", f"{path}={odd_value(chance)}"]


def text_of(chance: random.Random, letters: str, most: int) -> str:
    return "".join(chance.choices(letters, k=chance.randrange(most)))


def options_of(chance: random.Random, names: dict[str, list[str]], share: float = 0.4) -> list[str]:
    """Some of these options, each with one of its values."""
    return [word for name in names if chance.random() < share for word in (name, chance.choice(names[name]))]


def command_line(chance: random.Random) -> list[str]:
    """A command with options of its own and of others, most with values that make no sense."""
    commands = [
        "train",
        "train",
        "train",
        "reproduce",
        "show",
        "list",
        "demo",
        "export",
        "--help",
        "",
        "é",
        "--version",
    ]
    command = chance.choice(commands)
    if command == "train":
        task, model = chance.choice(list(TASKS)), chance.choice(list(MODELS))
        pair = [odd_name(chance), model] if chance.random() < 0.2 else [task, model]
        picked = options_of(chance, {"--seed": [*HUGE, *ODD], "--seeds": [*ODD, "0,0", "0-99999999999", "1-0"]}, 0.05)
        picked += options_of(chance, {"--preset": [*PRESETS, *ODD], "--workers": [*HUGE, *ODD]}, 0.05)
        changes = [word for _ in range(chance.randrange(3)) for word in own_assignment(chance, task, model)]
        return ["train", *pair, *SMALL, *picked, *changes, *STEPS]
    names = ["--out", "--check", "--scale", "--workers", "--rows", "--columns", "--pages", "--length", "--to", "--seed"]
    picked = options_of(chance, {name: [*ODD, "finished", "smoky"] for name in names}, 0.3)
    scale = ["--scale", "smoky"] if command in ("demo", "reproduce") else []
    return [command, chance.choice(["nowhere", *TASKS, *MODELS, *EXPERIMENTS, *ODD]), *picked, *scale]


def measuring(chance: random.Random) -> list[str]:
    """Evaluate, predict, certify, analyze, report: mostly of whole runs, with odd options."""
    command = chance.choice(["evaluate", "evaluate", "predict", "predict", "certify", "analyze", "report", "resume"])
    run = chance.choice(["nowhere", "refuted.json", "finished", *COMPILED, *ODD])
    if chance.random() < 0.8:
        run = str(folder("finished/*" if chance.random() < 0.8 else "stopped/*"))
    if command == "evaluate":
        lengths = ["3-5", "0", "5-3", "1-99999999999", ",", "1," * 20_000, "3-9," * 30 + "4", "9", *HUGE, *ODD]
        values = {"--seed": [*HUGE, *ODD], "--out": ["points.csv", ".", "a/b/c"]}
        values |= {"--protocol": ["independent", "one-pass", "structured", "x"]}
        small = ["--lengths", chance.choice(lengths) if chance.random() < 0.3 else "41-43", "--strings"]
        small.append(chance.choice([*HUGE, *ODD]) if chance.random() < 0.3 else "4")
        return ["evaluate", run, *small, *options_of(chance, values)]
    if command == "predict":
        letters = "ababab" if chance.random() < 0.7 else "abx \t0é-"
        return ["predict", run, *(text_of(chance, letters, 9) for _ in range(chance.randrange(4)))]
    if command == "analyze":
        picked = ["--length", "20"] if chance.random() < 0.7 else ["--length", number(chance)]
        return ["analyze", run, *picked, *options_of(chance, {"--seed": [*HUGE, *ODD], "--out": ["a.html", ".", "x"]})]
    if command == "report":
        return ["report", run, *([run] * (chance.random() < 0.3)), "--out", chance.choice(["r.html", ".", ""])]
    if command == "resume":
        return ["resume", run, "--longest", chance.choice(["41", "0", "-1", "x", "nan", "1.5"])]
    picked = options_of(chance, {"--check": ["refuted.json", "rnn.json", *ODD], "--min-level": ["proved", *ODD]})
    return ["certify", run, *picked, "--out", chance.choice(["c.json", ".", "a/b"])]


def memorizing(chance: random.Random) -> list[str]:
    word = text_of(chance, "ab01é ", 12) * chance.choice([1, 1, 1, 1, 40])
    flags = [flag for flag in ("--robust", "--rational", "--prove") if chance.random() < 0.3]
    values = {"--max-dimension": [*HUGE, *ODD], "--budget": ["3", *HUGE, *ODD]}
    return [
        "memorize",
        *flags,
        *options_of(chance, values, 0.3),
        "--out",
        chance.choice(["x.pdf", "x.png", *(6 * ["x.svg"])]),
        "--",
        word,
    ]


def toml_file(chance: random.Random) -> list[str]:
    """A file of settings, made of pieces that are right and wrong."""
    pieces = [
        "[train]\n",
        "[model]\n",
        "[task]\n",
        "[[train]]\n",
        "steps = 5",
        "= 3\n",
        '"',
        "\x00",
        "x = 1979-05-27\n",
    ]
    pieces += [
        "x = 1979-05-27\n",
        "[train.optimizer]\nname = 'adam'\n",
        "d_model = 1_6\n",
        "a = " + "[" * 9_000,
        "a." * 3_000 + "b = 1\n",
    ]
    lines = [
        chance.choice([*pieces, f"{chance.choice(SETTINGS)} = {number(chance)}\n"]) for _ in range(chance.randrange(6))
    ]
    Path("run.toml").write_text("".join(lines), encoding="utf-8", errors="surrogateescape")
    return ["train", chance.choice(list(TASKS)), "gru", "--config", "run.toml", *SMALL, *STEPS]


def pattern(chance: random.Random) -> list[str]:
    pieces = ["a", "b", "(", ")", "|", "*", "+", "?", ".", "[ab]", "[^a]", "{2}", "{2000}", "{0}", "{3,}", "{,2}", "\\"]
    text = "".join(chance.choices(pieces, k=chance.randrange(14)))
    text = chance.choice([well_formed(chance, 6), well_formed(chance, 6), text, f"({text}){{2000}}", "(" * 60 + text])
    chunk = ["--chunk-size", number(chance)] if chance.random() < 0.2 else []
    alphabet = ["--alphabet", chance.choice(["abc", "aa", "", "é"])] if chance.random() < 0.5 else []
    return ["compile", "--to", chance.choice(list(CONSTRUCTIONS)), *chunk, *alphabet, "--", text]


def well_formed(chance: random.Random, depth: int) -> str:
    """A pattern without errors, which may still be far too large."""
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(["a", "b", ".", "[ab]", "[^a]", "()", "", "(|)"])
    parts = [well_formed(chance, depth - 1) for _ in range(chance.randrange(1, 4))]
    repeat = chance.choice(["", "", "", "*", "+", "?", "{2}", "{0}", "{3,}", "{0,4}", "{40}", "{2000}"])
    return f"({chance.choice(['|', '']).join(parts)}){repeat}"


def automaton(chance: random.Random) -> list[str]:
    num_states, num_letters = chance.randrange(1, 6), chance.randrange(1, 4)
    table: Any = [[chance.randrange(num_states) for _ in range(num_letters)] for _ in range(num_states)]
    accepting: Any = [chance.randrange(num_states)]
    if chance.random() < 0.4:
        table[chance.randrange(num_states)] = chance.choice([[], [99], [-1, 0], [1.5], ["a"], 3, [2**70], [None]])
    if chance.random() < 0.2:
        accepting = chance.choice([[], [99], [-1], 3, [2**70], ["x"]])
    values = {"alphabet": list("abc"[:num_letters]), "transitions": table, "accepting": accepting}
    words = [word for name, value in values.items() for word in ("--set", f"task.{name}={json.dumps(value)}")]
    start = ["--set", f"task.start={number(chance)}"] if chance.random() < 0.3 else []
    return ["compile", "--task", "dfa", "--to", chance.choice(list(CONSTRUCTIONS)), *words, *start]


def group(chance: random.Random) -> list[str]:
    """A word problem of a group with a name, or of one that permutations generate."""
    to = ["--to", chance.choice(["rnn", "block-linear-rnn", "regular-gpt"])]
    if chance.random() < 0.5:
        name = chance.choice("SAZCDQ") + number(chance)
        return ["compile", "--task", "word-problem", "--set", f"task.group={name}", *to]
    points = chance.choice([2, 3, 4, 5, 120])
    generators: list[Any] = [chance.sample(range(points), points) for _ in range(chance.randrange(1, 4))]
    if chance.random() < 0.4:
        generators[0] = chance.choice([[], [0], [0, 0], [99, 1], [-1, 0], ["a"], 3, [2**70, 0]])
    return ["compile", "--task", "word-problem", "--set", f"task.generators={json.dumps(generators)}", *to]


def training(chance: random.Random) -> list[str]:
    """Two steps of a small net, most of which succeed."""
    model = chance.choice(list(MODELS))
    sizes = {"d_model": ["4", "8", "16"], "num_heads": ["1", "2"], "num_layers": ["1", "2"], "state_dim": ["4"]}
    sizes |= {"max_codes": ["4", "8"]}
    own = MODELS[model].Config.model_fields
    words = [f"model.{name}={chance.choice(values)}" for name, values in sizes.items() if name in own]
    extra = assignment(chance) if chance.random() < 0.3 else []
    settings = [part for word in words for part in ("--set", word)]
    return ["train", chance.choice(list(TASKS)), model, *SMALL, *settings, *extra, *STEPS]


def certificate(chance: random.Random) -> list[str]:
    """A certificate that was changed: bytes, or values and entries, with a digest that is right again."""
    text = Path(f"{chance.choice(['refuted', *CONSTRUCTIONS])}.json").read_text(encoding="utf-8")
    if chance.random() < 0.3:
        Path("changed.json").write_bytes(with_flipped_bytes(text.encode(), chance))
    else:
        Path("changed.json").write_text(with_changed_entries(text, chance), encoding="utf-8")
    run = [chance.choice(COMPILED)] if chance.random() < 0.02 else []
    return ["certify", *run, "--check", "changed.json"]


def damaged_run(chance: random.Random) -> list[str]:
    """A folder of a run, or of a compiled model, with a file that is damaged; and a command that reads it."""
    shutil.rmtree("damaged", ignore_errors=True)
    original = folder(chance.choice([*TRAINED, *TRAINED, *COMPILED]))
    run = Path("damaged", original.name)
    shutil.copytree(original, run)
    path = chance.choice(sorted(run.iterdir()))
    content = path.read_bytes()
    damage = chance.choice(["missing", "folder", "bytes", "bytes", "entries", "entries", "entries", "nested", "other"])
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "entries" and path.suffix == ".json":
        path.write_text(with_changed_entries(content.decode(), chance), encoding="utf-8")
    elif damage == "nested":
        path.write_text(chance.choice(["[" * 200_000, '{"a":' * 200_000, "{}", "null", "[]", ""]), encoding="utf-8")
    elif damage == "other":
        path.write_bytes(Path("refuted.json").read_bytes())
    elif damage != "missing" and content:
        path.write_bytes(with_flipped_bytes(content, chance))
    command = chance.choice(["predict", "predict", "evaluate", "evaluate", "certify", "resume", "resume", "report"])
    if original.name in COMPILED and chance.random() < 0.9:
        command = "certify"
    options = {"predict": ["abba"], "evaluate": ["--lengths", "3-5", "--strings", "4"], "resume": ["--longest", "41"]}
    return [command, str(run), *options.get(command, [])]


def with_flipped_bytes(content: bytes, chance: random.Random) -> bytes:
    """Up to three bytes replaced; half of the time the rest is cut off somewhere."""
    changed = bytearray(content)
    for _ in range(chance.randrange(1, 4)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed[: chance.choice([len(changed), chance.randrange(len(changed))])])


def with_changed_entries(text: str, chance: random.Random) -> str:
    """A JSON object with one or two values replaced, removed or repeated, and the digest that goes with them."""
    content = json.loads(text)
    content.pop("digest", None)
    for _ in range(chance.randrange(1, 3)):
        change(content, chance)
    return json_text(content)


def change(content: Any, chance: random.Random) -> None:
    """Replace, remove or repeat an entry somewhere below."""
    keys = list(content) if isinstance(content, dict) else list(range(len(content)))
    if not keys:
        return
    key = chance.choice(keys)
    inner = content[key]
    kind = chance.randrange(4)
    if isinstance(inner, dict | list) and inner and chance.random() < 0.85:
        change(inner, chance)
    elif kind == 0:
        del content[key]
    elif kind == 1 and isinstance(content, list):
        content.insert(key, inner)
    elif kind == 2 and isinstance(inner, int):
        content[key] = inner + chance.choice([-1, 1])
    else:
        content[key] = chance.choice([*ODD_JSON, 2**62, 99_999_999])


KINDS: dict[str, tuple[Request, int]] = {
    "certificates": (certificate, 30),
    "command lines": (command_line, 22),
    "automata": (automaton, 12),
    "TOML files": (toml_file, 7),
    "patterns": (pattern, 6),
    "groups": (group, 6),
    "measuring": (measuring, 5),
    "trainings": (training, 5),
    "damaged runs": (damaged_run, 5),
    "memorizing": (memorizing, 2),
}
"""With weights as a tester's 25,000 requests had them."""


def make_request(seed: int, index: int) -> tuple[str, list[str], str]:
    """The kind, the words and the state of the standard streams of a request; writes the files that it names."""
    chance = random.Random(f"{seed}-{index}")
    kind = chance.choices(list(KINDS), [weight for _, weight in KINDS.values()])[0]
    streams = chance.choice(["<&-", ">&-", "2>&-", ">/dev/full", "| true", "ascii"]) if chance.random() < 0.03 else ""
    return kind, KINDS[kind][0](chance), streams
