"""The page about attacks on transformers: how many nets err, and the string that each net answers wrongly."""

from collections.abc import Sequence
from statistics import median

from lengthwise.certification.attacks.attack import FAMILIES
from lengthwise.display import in_powers
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import NOTHING
from lengthwise.studies.leaderboard.experiments.attacked import Attacked, AttackedNet


@STUDY_PAGES.register("transformers/attacked")
def attacked_page(study: Attacked, stem: str) -> StudyPage:
    """Return the study's page: number of nets that err, by task and by family of strings, and a line for each net."""
    attacked = [net for net in study.nets if net.attack.is_refuted]
    wrong = [net for net in study.nets if net.errs]
    rows = dict.fromkeys(net.row for net in study.nets)
    by_task = [_summary(row, [net for net in study.nets if net.row == row]) for row in rows]
    by_family = [
        [family.name, f"{sum(net.attack.family == family.name for net in attacked)} of {len(study.nets)}"]
        for family in FAMILIES
    ]
    names = ["task", "nets", "nets that err", "nets that err in the attack", "symbols of the attack's string", "CPU s"]
    header = ["task", "positions", "seed", "string", "symbols", "family", "logit margin", "CPU s", "in `certify`"]
    return StudyPage(
        [
            markdown_table(names, by_task),
            "*Nets that err*: nets for which the attack or `certify` found a string with a wrong answer. *Symbols of "
            "the attack's string*: the smallest and the largest number of symbols, over nets that err in the attack. "
            "*CPU s*: the median time of an attack.",
            "## The families of the attacks' shortest strings",
            "The attack tries the families of strings in the order of the table. In their names, x is a symbol, and "
            "u, v and w are short words. The strings of the *W-method* tell the task's machine from other machines. "
            "*Hill climbing* changes strings so that the logit of the right answer falls relative to the largest "
            "other logit. *Nets*: the number of nets for which the shortest string with a wrong answer is from this "
            "family.",
            markdown_table(["family", "nets"], by_family),
            "## Every net",
            '*String*: the shortest string with a wrong answer that the attack found, or "-". *Logit margin*: the '
            "logit of the right answer minus the largest other logit. *In `certify`*: the number of symbols of the "
            "string with a wrong answer that `certify` found. The command `certify` also tries random and structured "
            "strings that are longer than the strings of the attack.",
            markdown_table(header, [_line(net) for net in study.nets]),
            *_without_error([net for net in study.nets if not net.errs]),
        ],
        {},
        headline=(
            f"{len(wrong)} of {len(study.nets)} transformers that made no error on random strings give a wrong answer "
            "to another string."
        ),
    )


def _without_error(nets: Sequence[AttackedNet]) -> list[str]:
    """Return the table of nets without a known error, with the bound and the reason of their certificates."""
    if not nets:
        return []
    lines = [
        [net.row, net.column, f"{net.seed}", NOTHING if net.bound is None else f"{net.bound:,}", net.reason]
        for net in nets
    ]
    return [
        "## Nets without a wrong string",
        '*Right up to*: the number of symbols up to which the net is proved right, or "-" if nothing is proved. *Not '
        "higher, because*: the reason why the certificate has no higher level.",
        markdown_table(["task", "positions", "seed", "right up to", "not higher, because"], lines),
    ]


def _summary(row: str, nets: Sequence[AttackedNet]) -> list[str]:
    lengths = [len(net.attack.string) for net in nets if net.attack.string is not None]
    seconds = median(net.attack.seconds for net in nets)
    lengths_text = f"{min(lengths)}-{max(lengths)}" if lengths else NOTHING
    num_wrong = sum(net.errs for net in nets)
    return [row, f"{len(nets)}", f"{num_wrong}", f"{len(lengths)}", lengths_text, f"{seconds:.1f}"]


def _line(net: AttackedNet) -> list[str]:
    result = net.attack
    about = [net.row, net.column, f"{net.seed}"]
    in_certificate = NOTHING if net.counterexample_length is None else f"{net.counterexample_length:,}"
    if result.string is None:
        return [*about, NOTHING, NOTHING, NOTHING, NOTHING, f"{result.seconds:.1f}", in_certificate]
    margin = NOTHING if result.margin is None else f"{result.margin:.2g}"
    return [
        *about,
        f"`{in_powers(result.string)}`",
        f"{len(result.string)}",
        str(result.family),
        margin,
        f"{result.seconds:.1f}",
        in_certificate,
    ]
