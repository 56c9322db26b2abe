"""The index that the catalogue reads in place of the package is up to date."""

from lengthwise.cli.index import INDEX, index_text
from lengthwise.cli.members import own_index


def test_the_stored_index_is_what_the_registries_say() -> None:
    stored = INDEX.read_text(encoding="utf-8")
    assert stored == index_text(own_index()), "run `python -m lengthwise.cli.members`, and commit members.json"
