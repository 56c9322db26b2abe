"""The page's scripts under node, where there is one."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from lengthwise.playground.page import COMPUTING, part

NODE = shutil.which("node")

needs_node = pytest.mark.skipif(NODE is None, reason="node, which runs the page's scripts, is not installed")

WRITE = "process.stdout.write(JSON.stringify(result, (_, value) => ArrayBuffer.isView(value) ? [...value] : value));"


def run_script(code: str, given: Any) -> Any:
    """What `code`, which finds `given` and leaves a `result`, computes with the scripts of the page."""
    scripts = [part(name) for name in COMPUTING]
    program = "\n".join(['"use strict";', *scripts, f"const given = {json.dumps(given)};", code, WRITE])
    done = subprocess.run(
        [str(NODE), "-"],
        input=program,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
