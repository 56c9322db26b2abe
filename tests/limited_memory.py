"""Run code in a process of its own whose memory is limited."""

import json
import subprocess
import sys
from collections.abc import Sequence

PRELUDE = """
import json, resource, sys
{imports}
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + {megabytes} * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for work in {works!r}:
    try:
        exec(work)
        outcome = "read"
    except ValueError as problem:
        outcome = f"refused: {{problem}}"
    except MemoryError:
        outcome = f"out of memory: {{work[:60]}}"
    print(json.dumps(outcome), flush=True)
"""


def run_limited(imports: str, works: Sequence[str], megabytes: int) -> list[str]:
    """Return for each piece of code "read", or "refused: " and the sentence, or "out of memory".

    The process has this much memory on top of its imports.
    """
    code = PRELUDE.format(imports=imports, works=list(works), megabytes=megabytes)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2_000:]
    return [json.loads(line) for line in done.stdout.splitlines()]
