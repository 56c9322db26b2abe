"""Sentences about everything that limits the result of a search for a machine."""

import numpy as np

from lengthwise.display import counted
from lengthwise.learning.baselines import merged_states
from lengthwise.learning.contradictions import contradictions_of
from lengthwise.learning.description_length import constant_description_length
from lengthwise.learning.held_out import Part
from lengthwise.learning.merging_search import unseen_transitions
from lengthwise.learning.search import NET, RPNI, SearchResult
from lengthwise.learning.separators import are_characters
from lengthwise.tasks.given.examples import Examples


def notes_on_search(parts: dict[Part, Examples], result: SearchResult, separator: str, exact: bool) -> tuple[str, ...]:
    """Return sentences about everything that limits the result of a search."""
    trained_on, notes = parts["trained on"], []
    known = {int(v) for v in np.unique(trained_on.ids)}
    if unknown := [symbol for v, symbol in enumerate(trained_on.symbols) if v not in known]:
        notes.append(f"symbols only in held-out strings, about which nothing was learned: {' '.join(unknown[:20])}")
    if " " in trained_on.symbols and are_characters(trained_on):
        notes.append("each character is read as a symbol, also spaces; if symbols are words, give a separator")
    if separator and all((examples.lengths == 1).all() for examples in parts.values()):
        notes.append(f"no string contains {separator!r}, so each string is one symbol: leave the separator out")
    if trained_on.empty_label and trained_on.empty_label not in trained_on.classes:
        notes.append(f"the machine leaves out the label {trained_on.empty_label}, which only the empty string has")
    if result.best.num_bits >= constant_description_length(trained_on):
        notes.append(
            "the labels are too few to support this machine: a constant answer and its errors have a "
            "description that is not longer; give more examples"
        )
    if result.num_alike == 0:
        has_errors = exact and min(attempt.num_errors for attempt in result.attempts)
        lack = "a machine without errors" if has_errors else "a machine with so short a description"
        theirs = min(attempt.num_bits for attempt in result.attempts)
        bits = f"{result.best.num_bits:,.0f} bits; the best attempt has {theirs:,.0f}"
        notes.append(f"no attempt found {lack}, so this is RPNI's machine (AALpy) with a net ({bits})")
    is_sure = result.best.method not in (NET, RPNI) and not result.best.num_errors
    if result.num_alike == 1 and not is_sure:
        notes.append("no other attempt found this machine: give a larger budget, or more examples")
    if exact and result.best.num_errors:
        also = "" if merged_states(trained_on) else ", or install AALpy (extra lstar)"
        notes.append(f"no machine without errors was learned: give a larger budget{also}")
    if unseen := unseen_transitions(result.machine, trained_on):
        notes.append(
            f"no training example takes {counted(len(unseen), 'transition')} of "
            f"{result.machine.semiautomaton.table.size:,}; their targets are guesses"
        )
    if contradicted := contradictions_of(result.machine, trained_on, separator):
        way_out = "" if exact else "; set exact if all labels are right"
        notes.append(f"the machine contradicts {counted(len(contradicted), 'label')} of the training examples{way_out}")
    return tuple(notes)
