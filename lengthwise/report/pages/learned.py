"""A page about a machine that was learned from examples."""

from html import escape
from pathlib import Path

from lengthwise.automata.drawing import drawing_obstacle
from lengthwise.display import capitalized, counted
from lengthwise.files import check_suffix, write_by_rename
from lengthwise.learning.folder import CONTRADICTED
from lengthwise.learning.learned import Learned
from lengthwise.report.pages.html import html_definitions, html_machine, html_note, html_page, html_table
from lengthwise.report.tables.certificate import certificate_lines
from lengthwise.report.tables.learned import (
    accuracy_table,
    attempt_table,
    contradiction_table,
    expressions,
    left_out,
    transition_table,
)


def write_learned_page(learned: Learned, page: Path) -> None:
    """Write a page about a learned machine: accuracy, labels that the machine contradicts, certificate and search.

    Raises:
        ValueError: the page is not named as an HTML file.
    """
    check_suffix("page", page, [".html"])
    counts, machine = learned.counts, learned.machine
    doubt = f"NOT CONFIRMED: {learned.doubt}. " if learned.doubt else ""
    summary = (
        f"{doubt}{counted(machine.num_states, 'state')}, learned from {counted(counts.num_rows, 'row')}. Level "
        f"{learned.certificate.level}: {learned.claim}."
    )
    sections = {
        "Machine": _machine(learned),
        "Accuracy": html_table(accuracy_table(learned))
        + html_note(
            "The search and the training do not use held-out strings. If prefixes have labels, a label in a held-out "
            "string counts only if no training string begins with the same prefix."
        ),
    }
    if learned.contradictions:
        count = len(learned.contradictions)
        sentence = (
            f"The machine contradicts {counted(count, 'label')} ({CONTRADICTED}). For the shortest strings, these are:"
        )
        sections["Contradicted labels"] = f"<p>{sentence}</p>{html_table(contradiction_table(learned))}"
    sections["Certificate"] = html_definitions(certificate_lines(learned.certificate))
    sections["Search"] = html_table(attempt_table(learned)) + html_note(
        f"{learned.search.num_alike or 'None'} of these attempts found the machine. Rows "
        f"{escape(left_out(learned))}. " + " ".join(escape(f"{capitalized(note)}.") for note in learned.notes)
    )
    page.parent.mkdir(parents=True, exist_ok=True)
    write_by_rename(page, html_page("A machine from examples", summary, sections, {}).encode())


def _machine(learned: Learned) -> str:
    why_not = drawing_obstacle(learned.machine)
    picture = html_note(f"Not drawn: {why_not}.") if why_not else html_machine(learned.machine, learned.classes)
    table = transition_table(learned)
    return "".join([picture, html_definitions(expressions(learned)), html_table(table) if table is not None else ""])
