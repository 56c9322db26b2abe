"""Numbers of docs/solved.md that are on no linked page, computed from the records of the pages.

Each function of `COUNTS` gets the records of a page, and returns forms of sentences of docs/solved.md, with their
values. In a form, `#` stands for a number, `@` for names of tasks, and `...` for text of the same cell of a table.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from statistics import mean, median
from typing import Any

from lengthwise.display import percent
from lengthwise.evaluation.interval import mean_interval
from lengthwise.runs.result import RunResult

Runs = list[RunResult]
Values = dict[str, list[Any]]


def label(run: RunResult) -> str:
    """Name the task of a run as docs/solved.md does."""
    task = run.spec["task"]
    named = {"bounded-dyck": f"D_{task.get('depth')}", "tomita": f"Tomita {task.get('index')}"}
    named["word-problem"] = re.sub(r"^(\w)(\d)$", r"\1_\2", task.get("group", ""))
    return named.get(task["name"], task["name"])


def by_task(runs: Runs, key: Callable[[RunResult], Any] = label) -> dict[Any, Runs]:
    """Group runs, by the names of their tasks unless another key is given."""
    groups: dict[Any, Runs] = defaultdict(list)
    for run in runs:
        groups[key(run)].append(run)
    return groups


def level(runs: Iterable[RunResult], *names: str) -> int:
    """Count the certificates of these levels."""
    return sum(run.certificate is not None and run.certificate.level in names for run in runs)


def right(runs: Iterable[RunResult]) -> Runs:
    """Keep the runs without an error at the scored lengths."""
    return [run for run in runs if run.dense.balanced().min() == 1.0]


def proved(runs: Runs) -> int:
    """Count the runs if all of them are proved; otherwise return a number that no page states."""
    return len(runs) if level(runs, "proved") == len(runs) else -1


def errors(runs: Runs) -> list[int]:
    """Return the lengths of the counterexamples of refuted nets, the shortest first."""
    return sorted(len(run.certificate.counterexample.string) for run in runs if run.certificate.counterexample)


def with_model(runs: Runs, **settings: object) -> Runs:
    """Keep the runs whose models have these settings; None means that a setting is missing."""
    return [run for run in runs if all(run.spec["model"].get(key) == kept for key, kept in settings.items())]


def score(runs: Runs) -> float:
    """Return the mean accuracy of runs at the scored lengths."""
    return mean(run.dense.balanced().mean() for run in runs)


def cut(share: float) -> float:
    """Return the percentage that pages print."""
    return float(percent(share).removesuffix(" %"))


def of_proved_tasks(runs: Runs) -> Values:
    """Count tasks and their CPU seconds; the limit of 13 seconds is a choice of docs/solved.md."""
    tasks = by_task(runs, lambda run: json.dumps(run.spec["task"], sort_keys=True))
    exact = [name for name in tasks if proved(tasks[name]) > 0]
    large = [name for name in exact if "word-problem" in name and not re.search('"(Z7|S3)"', name)]
    seconds = {name: [run.training.cpu_seconds for run in tasks[name]] for name in tasks}
    kinds = [f'{start}"generators": [], "group": "{group}5"' for start in ("{", '"elements", ') for group in "AS"]
    medians = [round(median(seconds[name])) for part in kinds for name in tasks if part in name]
    return {
        "on # of # regular tasks, among them # word problems": [len(exact), len(tasks), len(large)],
        "`likelihood` | # tasks, # seeds | All nets are `proved`": [len(exact), proved(runs) / len(tasks)],
        "# tasks take at most 13 CPU seconds": [sum(max(times) <= 13 for times in seconds.values())],
        "for A_5 and S_5 are # and # seconds, or # and # if": medians,
    }


def of_table_2(runs: Runs) -> Values:
    """Count the nets of the paper's layer that reach 100 %, make no error, and are refuted."""
    ours = with_model(runs, columns="rescaled")
    tasks = [by_task(ours)[name] for name in ("sum", "equal-ends")]
    # The page states the same counts for both tasks.
    (counts,) = {(sum(max(net.fresh_tests) == 1 for net in group), len(group), len(right(group))) for group in tasks}
    (single,) = by_task(ours)["modular-arithmetic"]
    literal = [run for run in with_model(runs, columns="clamped") if label(run) == "sum"]
    lost = [run for run in literal if max(run.fresh_tests) == 1 and run not in right(literal)]
    return {
        "100 % on # of # seeds | on each task, # of # nets make": [*counts, len(tasks[0])],
        "ModArith(5) | # % on one seed | ... accuracy of # %": [cut(max(single.fresh_tests)), cut(score([single]))],
        "On each of # seeds, the net loses this score": [len(lost) if len(lost) == len(literal) else -1],
        "refute all # nets": [level(ours, "refuted") if level(ours, "refuted") == len(ours) else -1],
    }


def of_regular_gpt(runs: Runs) -> Values:
    """Count the levels in the table of RegularGPT, and the nets of column *products*."""
    products = with_model(runs, name="block-linear-rnn")
    nets = by_task(with_model(runs, name="regular-gpt"))
    count = {name: Counter(run.certificate.level for run in nets[name]) for name in nets}
    (seeds,) = {len(group) for group in nets.values()}
    solved = {name for name in nets if len(right(nets[name])) == seeds}
    exact, read_off = ({name for name in solved if count[name][kind] == seeds} for kind in ("proved", "extracted"))
    mixed = {name for name in solved if 0 < count[name]["proved"] == seeds - count[name]["extracted"] < seeds}
    two, three, four, twelve = (nets[name] for name in ("Tomita 2", "Tomita 3", "D_4", "D_12"))
    (lost,) = (run for run in two if run not in right(two))
    wrong = [sum(p.num_strings - p.num_correct for p in run.dense.points) for run in three if run not in right(three)]
    (strings,) = {sum(point.num_strings for point in run.dense.points) for run in three}
    chance = mean(point.baseline for run in twelve for point in run.dense.balanced().points)
    parts = [count[name]["proved"] for name in ("D_2", "Tomita 7", "even-pairs")]
    of_two = [len(right(two)), len(two), count["Tomita 2"]["proved"]]
    others = solved - exact - mixed - read_off
    of_four = [others, count["D_4"]["extracted"], count["D_4"]["refuted"], *errors(four)]
    of_three = [len(right(three)), len(three), len(wrong), min(wrong), max(wrong), strings]
    return {
        "the # tasks of the next section, # seeds": [len(nets), len(products) / len(nets)],
        "All # nets are `proved`, also on": [proved(products)],
        "| @ | No error on any seed. `proved` on all # seeds": [exact, seeds],
        "| @ | No error on any seed. # nets of D_2, # of Tomita 7 and # of even-pairs are `proved`": [mixed, *parts],
        "| @ | No error on any seed. `extracted` on all # seeds": [read_off, seeds],
        "| @ | No error on any seed. # nets are `extracted`, and # net is refuted by a string of # symbols": of_four,
        "No error on # of # seeds, and these # nets are `proved`.": of_two,
        "The fifth net is at chance after # attempts.": [len(lost.training.attempts)],
        "on # of # seeds (`extracted`, `tested`). The other # nets make # to # errors each on # strings": of_three,
        "# of them is refuted by a string of # symbols": [count["Tomita 3"]["refuted"], *errors(three)],
        "| D_12 | # % on average. Chance is # %": [cut(score(twelve)), cut(chance)],
    }


def of_codebooks(runs: Runs) -> Values:
    """Count levels and attempts; an attempt ends with a certificate if its loss is low."""
    nets = by_task(runs)
    tries = {name: [len(run.training.attempts) for run in nets[name]] for name in nets}
    low = [attempt.is_solved for run in runs for attempt in run.training.attempts[:-1]]
    extracted = [level(group, "extracted") for group in (runs, nets["D_4"], nets["Tomita 3"])]
    return {
        "trained on # tasks, which": [len(nets)],
        "All # nets reach this goal and make no error.": [len(right(runs))],
        "# nets are `proved` and # are `extracted` (# of D_4, # of Tomita 3)": [level(runs, "proved"), *extracted],
        "# nets need one attempt, and": [sum(group.count(1) for group in tries.values())],
        "nets of Tomita 2 need # to #.": [min(tries["Tomita 2"]), max(tries["Tomita 2"])],
        "# attempt was given up because of its certificate": [sum(low)],
        "# attempts were given up because of their training loss": [len(low) - sum(low)],
    }


def of_groups(runs: Runs) -> Values:
    """Return the group that a net learned, and the width of this net."""
    (net,) = (run for run in runs if level([run], "extracted"))
    return {"word problem of @ with width D=# (one seed, `extracted`)": [{label(net)}, net.spec["model"]["d_model"]]}


def of_chunks(runs: Runs) -> Values:
    """Choose the chunk size of each task and seed by the loss of pilots, and count the nets without an error."""
    fixed = with_model(runs, lower_chunk_sizes=None)
    pilots, full = ([run for run in fixed if run.spec["train"]["steps"] == steps] for steps in (1_000, 6_000))
    cells = by_task(pilots, lambda run: (label(run), run.spec["seed"]))
    best = {
        cell: min(group, key=lambda run: run.final_loss).spec["model"]["chunk_size"] for cell, group in cells.items()
    }
    chosen = [run for run in full if run.spec["model"]["chunk_size"] == best[label(run), run.spec["seed"]]]
    seconds = [sum(run.training.cpu_seconds for run in group) for group in (pilots, chosen)]
    sizes = [len(right(with_model(full, chunk_size=size))) for size in (2, 3, 4)]
    return {
        "# tasks, # seeds). RegularGPT combines": [len(by_task(runs)), len({run.spec["seed"] for run in runs})],
        "choose C, all # nets make no error.": [len(right(chosen)) if right(chosen) == chosen else -1],
        "# nets make no error with C=2, # with C=3, and # with C=4": sizes,
        "Training the pilots takes # as long": [round(seconds[0] / seconds[1], 1)],
    }


def of_the_papers_width(runs: Runs) -> Values:
    """Return the most steps, in full hundreds, and the accuracies of the longest run on modular arithmetic."""
    longest = max(runs, key=lambda run: run.training.step)
    steps = max(run.training.step for run in runs if label(run) != label(longest))
    first, *_, last = longest.dense.points
    return {
        "to the printed digits, within # steps": [math.ceil(steps / 100) * 100],
        "After the paper's # steps (one seed), it scores # %:": [longest.training.step, cut(longest.dense.mean())],
        ": # % at # symbols, and # % at #.": [cut(first.accuracy), first.length, cut(last.accuracy), last.length],
    }


def of_elman_networks(runs: Runs) -> Values:
    """Name the tasks on which all, some or no nets are proved or solved."""
    nets = by_task(runs)
    exact = {name for name in nets if proved(nets[name]) > 0}
    partly = {name for name in nets if level(nets[name], "proved")} - exact
    return {
        "They are `proved` on @ on all # seeds.": [exact, len(runs) / len(nets)],
        ". On @ they are `proved` on some seeds.": [partly],
        "on some seeds. @ are not learned": [{name for name in nets if not right(nets[name])}],
    }


def of_reflections(runs: Runs) -> Values:
    """Count the nets that are proved right up to a length, with the least such length."""
    lengths = [run.certificate.max_length for run in runs if level([run], "bounded")]
    return {
        "On # of # seeds, the nets are proved right up to # symbols or more.": [len(lengths), len(runs), min(lengths)],
        "The fifth net is refuted by a string of # symbols.": errors(runs),
    }


def of_grids(runs: Runs) -> Values:
    """Count the proved nets of each task."""
    (counts,) = {(level(nets, "proved"), len(nets)) for nets in by_task(runs).values()}
    return {"proved on # dynamic programming tasks": [len(by_task(runs))], "on # of # seeds each": [*counts]}


def of_bounded_transformers(runs: Runs) -> Values:
    """Count the nets that are right up to the largest length, and the refuted nets, by layers and positions."""
    longest = max(run.certificate.max_length or 0 for run in runs)
    by_layers = [with_model(runs, num_layers=layers) for layers in (1, 2)]
    far = [sum(run.certificate.max_length == longest for run in group) for group in by_layers]
    alibi = [run for run in with_model(runs, positions="alibi") if run.final_loss < 0.01]
    first = by_task(by_layers[0])["Tomita 1"]
    log, xl, fire, rotary = (with_model(first, positions=name) for name in ("kerple-log", "xl", "fire", "rotary"))
    least = [min(run.certificate.max_length or 0 for run in group) for group in ([*log, *xl], fire)]
    named = {label(run) for run in runs if re.match("D_|Tomita", label(run))}
    return {
        "# nets of one layer and # nets of two layers are right on every string of up to # symbols": [*far, longest],
        "No net learned @.": [named - {label(run) for run in right(runs)}],
        "With ALiBi, # of the # nets that fit their training lengths": [level(alibi, "refuted"), len(alibi)],
        "lengths are refuted, by strings of # to # symbols.": [errors(alibi)[0], errors(alibi)[-1]],
        "all # nets with KERPLE's logarithm and all # with XL are right up to # sym": [len(log), len(xl), least[0]],
        "FIRE are right up to # symbols": [least[1]],
        "All # nets with rotary positions are refuted": [level(rotary, "refuted")],
    }


def of_positions(runs: Runs) -> Values:
    """Count the nets that fit, make no error or are refuted, by position encoding."""
    # Sinusoids have neither a name nor a learned table in the settings of a model.
    nets = by_task(runs, lambda run: run.spec["model"].get("positions") or run.spec["model"]["learned_positions"])
    fits = {name: sum(run.final_loss < 0.01 for run in group) for name, group in nets.items()}
    solved = {name: len(right(group)) for name, group in nets.items()}
    most = [max(fits, key=fits.get), min(solved, key=solved.get), max(solved, key=solved.get)]
    assert most == [0, 0, "xl"], "sinusoids fit most often and are right least often, and XL is right most often"
    assert sum(length <= 3 for length in errors(runs)) > len(errors(runs)) / 2, "more than half, says the page"
    high = [run for run in right(runs) if run.final_loss >= 0.01]
    num_tasks = len(by_task(runs))
    return {
        "# small nets were trained: # encodings on": [len(runs), len(nets)],
        "encodings on # tasks, with # seeds": [num_tasks, len(runs) / len(nets) / num_tasks],
        "# nets have a loss below 0.01": [sum(fits.values())],
        "# nets make no error at 41-500, all of them on @.": [len(right(runs)), {label(run) for run in right(runs)}],
        "# of these # nets have a loss of 0.01 or more": [len(high), len(right(runs))],
        "# of # nets), but are right beyond the training length least often (# nets)": [
            fits[0],
            len(nets[0]),
            solved[0],
        ],
        "XL are right beyond the training length most often (# nets)": [solved["xl"]],
        "# of the # nets are refuted by a string, and": [level(runs, "refuted"), len(runs)],
    }


def of_strings(runs: Runs) -> Values:
    """Return accuracies beyond 40 symbols: a limit for runs, rounded up, and means over seeds in whole percent."""
    nets = by_task(runs, lambda run: (label(run), run.spec["model"]["name"] + run.spec["model"].get("positions", "")))
    stacks = [nets["stack-manipulation", name] for name in ("lstm", "regular-gpt")]
    at_40 = min(p.accuracy for group in stacks for run in group for p in run.long.points if p.length == 40)
    means = sorted(score(group) for (name, _), group in nets.items() if name != "bucket-sort")
    best = max(score([run]) for run in runs if label(run) != "bucket-sort")
    return {
        "# models were trained with the budget": [len({name for _, name in nets})],
        "no mean over # seeds is above # %": [len(stacks[0]), cut(means[-1])],
        "no run is above # %": [math.ceil(best * 10_000) / 100],
        "Both have at least # % at 40 letters": [math.floor(100 * at_40)],
        "beyond 40, they have # and # %": [round(100 * score(group)) for group in stacks],
        "reversing strings (# % beyond 40)": [round(100 * score(nets["reverse-string", "regular-gpt"]))],
    }


def better(runs: Runs, letters: int, num_loops: int) -> list[float]:
    """Return how many points timestep is better than the plain loop on edit distances, with Student's interval."""
    nets = [run for run in with_model(runs, num_loops=num_loops) if label(run) == "edit-distance"]
    nets = [run for run in nets if run.spec["task"]["max_length"] == letters]
    pairs = zip(*(with_model(nets, variant=variant) for variant in ("timestep", "code")), strict=True)
    points = [100 * (first.dense.mean() - second.dense.mean()) for first, second in pairs]
    return [round(number, 2) for number in (mean(points), *mean_interval(points))]


def of_looped(runs: Runs) -> Values:
    """Count the nets that were trained or measured on a GPU, and compare timestep with the plain loop."""
    devices = [f"{run.training.device} {run.versions['device']}" for run in runs]
    long, short = ([-worse for worse in better(runs, letters, 5)] for letters in (12, 6))
    return {
        "and # of the looped nets of Table 1 were": [sum("cuda" in device for device in devices)],
        "The difference is # points (# to #) on strings": [long[0], long[2], long[1]],
        "12 letters, and # (# to #) on strings of 6.": [short[0], short[2], short[1]],
        "on strings of 6 letters, by # points (# to #).": better(runs, 6, 100),
    }


def of_baselines(runs: Runs) -> Values:
    """Choose a recipe for each baseline and task by the final loss, and count the nets that fit 40 symbols."""
    kinds = [json.dumps({**run.spec["model"], "num_layers": 0}) for run in runs]
    fits: dict[str, list[bool]] = defaultdict(list)
    for task, kind in sorted({(label(run), kind) for run, kind in zip(runs, kinds, strict=True)}):
        recipes = [run for run, other in zip(runs, kinds, strict=True) if other == kind and label(run) == task]
        fits[task].append(min(recipes, key=lambda run: run.final_loss).long.points[0].accuracy >= 0.99)
    assert not any(fits["sum"])
    return {
        "# [baselines] were trained": [len(set(kinds))],
        "# of them fit EvenPair(5) at 40 symbols": [sum(fits["equal-ends"])],
        "None of the # fits Sum(5)": [len(fits["sum"])],
    }


def of_language_models(runs: Runs) -> Values:
    """Return the smallest and largest growth of RegularGPT's perplexity where its tree gets a third level."""
    growth = []
    for run in with_model(runs, name="regular-gpt-lm", max_levels=None):
        two_levels = run.spec["model"]["chunk_size"] ** 2
        before, after = run.perplexity.at(two_levels), run.perplexity.at(2 * two_levels)
        growth += [100 * (after.perplexity / before.perplexity - 1)] if after else []
    return {"grows by # to # % at the first lengths": [round(min(growth)), round(max(growth))]}


COUNTS: dict[str, Callable[[Runs], Values]] = {
    "within-a-minute-tasks": of_proved_tasks,
    "linear-rnn-ours": lambda runs: {"All # nets are right at every length": [proved(runs)]},
    "linear-rnn-random-languages": lambda runs: {"# languages drawn at random": [proved(runs)]},
    "linear-rnn-table-2-paper": of_table_2,
    "regular-gpt-ours": of_regular_gpt,
    "regular-gpt-codebook": of_codebooks,
    "regular-gpt-groups": of_groups,
    "regular-gpt-chunks": of_chunks,
    "regular-gpt-medium": of_the_papers_width,
    "recurrent-proved": of_elman_networks,
    "recurrent-bounded": of_reflections,
    "grid-dynamic-programming": of_grids,
    "transformers-proved": of_bounded_transformers,
    "transformers-positions": of_positions,
    "leaderboard-strings": of_strings,
    "linear-rnn-baselines-search": of_baselines,
    "looped-table-1": of_looped,
    "regular-gpt-table-3": of_language_models,
}
"""The computations, by the name of the page whose records they get."""
