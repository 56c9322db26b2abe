"""Scripts run as their users run them, but in processes forked from one that has imported torch already."""

import multiprocessing
import os
import runpy
import sys
import warnings
from pathlib import Path

from fewer_strings import draw_fewer_strings

from lengthwise.runs.pools.local import PRELOADED


def run_script(script: Path, *arguments: str, folder: Path, fewer_strings: bool = False) -> str:
    """What `python -W error script arguments` prints, run in `folder`; a status other than 0 fails the test.

    With `fewer_strings`, its certificates are made as those of tests with the fixture of this name.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)  # there is one server
    printed = folder / f"{script.stem}.printed"
    process = context.Process(target=_run, args=(script, arguments, folder, printed, fewer_strings))
    process.start()
    process.join()
    output = printed.read_text(encoding="utf-8")
    assert process.exitcode == 0, output
    return output


def _run(script: Path, arguments: tuple[str, ...], folder: Path, printed: Path, fewer_strings: bool) -> None:
    with printed.open("w") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    os.chdir(folder)
    if fewer_strings:
        draw_fewer_strings(lengths=(40, 500))  # the net of the README errs on longer strings only
    warnings.simplefilter("error")
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")
