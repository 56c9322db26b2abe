"""One process draws the pictures of all tests of a worker: starting one for each takes longer than drawing.

As a script it answers each line of its input, as `lengthwise.renderer` answers all of it.
"""

import base64
import json
import subprocess
import sys
from functools import cache

from lengthwise.renderer import render


@cache
def answer(kind: str, chart: str) -> str:
    return base64.b64encode(render(kind, json.loads(chart))).decode()


class OneRenderer:
    def __init__(self) -> None:
        self._process = subprocess.Popen([sys.executable, __file__], stdin=-1, stdout=-1, text=True)

    def __call__(self, requests: str) -> subprocess.CompletedProcess[str]:
        """What running the renderer with these requests gives, where all of them can be drawn."""
        reader, writer = self._process.stdout, self._process.stdin
        assert reader
        assert writer
        writer.write(requests + "\n")
        writer.flush()
        return subprocess.CompletedProcess(self._process.args, 0, stdout=reader.readline(), stderr="")

    def close(self) -> None:
        self._process.communicate()


if __name__ == "__main__":
    for line in sys.stdin:
        contents = [answer(kind, json.dumps(chart)) for kind, chart in json.loads(line)]
        sys.stdout.write(json.dumps(contents) + "\n")
        sys.stdout.flush()
