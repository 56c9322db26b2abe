"""Chromium without a window, driven through its debugging pipe: no port and no package."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium, which shows the page, is not installed")


class Browser:
    """One page, 400 pixels wide, in a browser of its own; `close` ends it."""

    def __init__(self, folder: Path) -> None:
        read_by_browser, self._to = os.pipe()
        self._from, written_by_browser = os.pipe()
        flags = "--headless --no-sandbox --disable-gpu --remote-debugging-pipe"
        command = f'exec "$0" {flags} --user-data-dir="$1" 3<&{read_by_browser} 4>&{written_by_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, str(CHROMIUM), str(folder)],
            pass_fds=(read_by_browser, written_by_browser),
            stderr=subprocess.DEVNULL,
        )
        os.close(read_by_browser)
        os.close(written_by_browser)
        self._buffer, self._number, self._session = b"", 0, ""
        self.problems: list[str] = []

    def open(self, page: Path, fragment: str = "") -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=400, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=page.as_uri() + fragment)
        while self.evaluate("document.readyState") != "complete":
            pass

    def evaluate(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def text(self, element: str) -> str:
        return str(self.evaluate(f"document.getElementById({element!r}).textContent"))

    def write(self, text: str) -> None:
        """Type a text into whatever has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key: str, code: int) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def call(self, method: str, **params: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.problems.append(json.dumps(answer["params"]))
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._from, 1 << 16)
            assert part, "the browser ended"
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
