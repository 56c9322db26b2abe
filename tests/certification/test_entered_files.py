"""The path of `certify` through the package is short, so that a reader can follow it."""

import inspect
import re
import sys
from pathlib import Path
from types import FrameType

import lengthwise
from lengthwise import certify

PACKAGE = Path(lengthwise.__file__).parent
README = PACKAGE.parent / "README.md"

MAX_FILES = 30
"""The largest number of files of the package whose functions run while the net of the README is certified."""


def test_certifying_the_net_of_the_readme_enters_few_files() -> None:
    code = re.search(
        r"^```python\n(.*?)^certificate = certify\(net, task\)\n",
        README.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    made: dict[str, object] = {}
    exec(re.sub(r"^for point in .*?^    print.*?\n", "", code[1], flags=re.MULTILINE | re.DOTALL), made)
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        # Bodies of modules and classes run once, at the first import. They do not have this flag.
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            entered.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        certificate = certify(made["net"], made["task"])
    finally:
        sys.setprofile(None)
    assert certificate.level == "refuted"
    files = sorted(file for file in entered if Path(file).is_relative_to(PACKAGE))
    assert 15 < len(files) <= MAX_FILES, files
