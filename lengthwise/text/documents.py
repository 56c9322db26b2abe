"""Documents streamed from a data set of Hugging Face."""

from itertools import islice

from pydantic import Field

from lengthwise.text.corpus import Texts, split_documents
from lengthwise.validation import FrozenRecord

WAY_OUT = "give text files instead, by task.files"


class DocumentSource(FrozenRecord):
    """A data set of Hugging Face, given by `name` (``owner/name``) and `config`.

    At most `max_documents` rows of its split `split` are streamed, and only these rows are downloaded. The text is in
    the column `column`; rows without text are left out.
    """

    name: str
    config: str | None = None
    split: str = "train"
    column: str = "text"
    max_documents: int = Field(10_000, ge=1)


def read_documents(source: DocumentSource, held_out: float) -> Texts:
    """Stream the documents of a data set, and hold out the last part of their text for validation and test.

    Raises:
        ValueError: the package `datasets` is not installed; or the data set cannot be reached, lacks the column, or
            has no text in this column.
    """
    try:
        import datasets
    except ImportError:
        raise ValueError(
            f"documents: expected the package `datasets`, which streams {source.name}, but it is not installed; "
            f"install lengthwise[datasets], or {WAY_OUT}"
        ) from None
    try:
        rows = datasets.load_dataset(source.name, source.config, split=source.split, streaming=True)
        documents = [str(row[source.column]) for row in islice(iter(rows), source.max_documents)]
    except KeyError:
        raise ValueError(
            f"documents.column: expected a column of {source.name}, got {source.column!r}; name another column"
        ) from None
    except Exception as error:  # datasets, its file systems and its HTTP client share no class of errors
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"documents: {source.name} cannot be streamed ({reason[:200]}); {WAY_OUT}") from None
    documents = [document for document in documents if document.strip()]
    if not documents:
        raise ValueError(
            f"documents: expected some text in column {source.column} of {source.name}, got none; {WAY_OUT}"
        )
    return Texts(split_documents(documents, held_out, ("test", "valid")), (source.name,))
