"""The page about chunk sizes: the depth of trees, and the sizes that are chosen by pilot runs."""

from statistics import fmean

import altair as alt

from lengthwise.display import counted, listed
from lengthwise.report.charts.colors import PALETTE
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import NOTHING, percent
from lengthwise.studies.chi2023.experiments.chunks import DEPTHS_AT, SIZES, Choice, Chunks


@STUDY_PAGES.register("regular-gpt/chunks")
def chunks_page(study: Chunks, stem: str) -> StudyPage:
    """Return the study's page: tree levels by string length, losses of pilots, accuracy and cost of chosen sizes."""
    file = f"{stem}.svg"
    losses = (f"loss, C={size}" for size in SIZES)
    header = ["task", "seed", *losses, "chosen", "mean", "best of all", "CPU s", "pilots"]
    sections = [
        "## How deep the trees are",
        markdown_table(
            ["column", *(f"levels at {length:,}" for length in DEPTHS_AT)],
            [[column, *(f"{depths[length]}" for length in DEPTHS_AT)] for column, depths in study.depths.items()],
        ),
        "Entries are numbers of levels of the tree of a string. The head of a column has the length of this string, "
        "in symbols.",
        "## The size that pilots choose",
        f"![Training loss of pilots against chunk size]({file})\n\n*A filled marker shows the chosen size.*",
        markdown_table(header, map(_line, study.choices)),
        "*Loss*: the loss of the final weights of each pilot, at the training lengths. *Mean*: the mean accuracy at "
        "lengths 41-500 of the full net with the chosen size. *Best of all*: the highest accuracy of the three full "
        "nets with a fixed chunk size. Only a test can show which of these nets is the best. *CPU s*: CPU seconds of "
        "training the full net with the chosen size. *Pilots*: CPU seconds of the three pilots.",
    ]
    return StudyPage(sections, {file: _chart(study.choices).to_dict()}, headline=_headline(study.choices))


def _line(choice: Choice) -> list[str]:
    size, accuracies = choice.size, choice.accuracies
    return [
        choice.row,
        f"{choice.seed}",
        *(f"{choice.losses[size]:.2g}" if size in choice.losses else NOTHING for size in SIZES),
        f"C={size}",
        percent(accuracies[size]) if size in accuracies else NOTHING,
        percent(max(accuracies.values())) if accuracies else NOTHING,
        f"{choice.seconds[size]:.0f}" if size in choice.seconds else NOTHING,
        f"{choice.pilot_seconds:.0f}",
    ]


def _headline(choices: tuple[Choice, ...]) -> str:
    """Return the headline, or an empty text if no task and seed has results of all full nets.

    The headline has the mean accuracies with the chosen size and with each fixed size, and the cost of pilots.
    """
    complete = [choice for choice in choices if set(choice.accuracies) == set(SIZES)]
    if not complete:
        return ""
    fixed = [f"{percent(fmean(choice.accuracies[size] for choice in complete))} with C={size}" for size in SIZES]
    chosen = percent(fmean(choice.accuracies[choice.size] for choice in complete))
    pilots = sum(choice.pilot_seconds for choice in complete)
    nets = sum(choice.seconds[choice.size] for choice in complete)
    return (
        "If the training loss of short pilot runs decides how many states RegularGPT merges at a time (its chunk size "
        f"C), the mean accuracy over {len(complete)} nets on "
        f"{counted(len({choice.row for choice in complete}), 'task')} is {chosen}.\n"
        f"With a fixed chunk size, the mean accuracy is {listed(fixed)}.\n"
        f"Training the nets with the chosen sizes takes {nets:.0f} CPU seconds, and the pilots take another "
        f"{pilots:.0f}."
    )


def _chart(choices: tuple[Choice, ...]) -> alt.HConcatChart:
    """Draw a panel for each task: a line for each seed through the pilots' losses, filled at the chosen size."""
    panels = []
    for row in dict.fromkeys(choice.row for choice in choices):
        values = [
            {"C": size, "loss": loss, "seed": f"{choice.seed}", "chosen": size == choice.size}
            for choice in choices
            if choice.row == row
            for size, loss in choice.losses.items()
        ]
        x = alt.X("C:O", title="chunk size", axis=alt.Axis(labelAngle=0))
        y = alt.Y("loss:Q", title="training loss", scale=alt.Scale(type="log"))
        color = alt.Color("seed:N", title="seed", scale=alt.Scale(range=PALETTE))
        data = alt.Chart(alt.InlineData(values=values))
        chosen = data.mark_point(filled=True, size=90).transform_filter("datum.chosen")
        layers = [
            data.mark_line(point={"filled": False}).encode(x=x, y=y, color=color),
            chosen.encode(x=x, y=y, color=color),
        ]
        panels.append(alt.LayerChart(layer=layers, width=160, height=180, title=row))
    return alt.HConcatChart(hconcat=panels, config=alt.Config(background="white"))
