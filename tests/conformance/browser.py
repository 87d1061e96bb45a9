"""A real browser for tests: the headless Chromium of the ``kaleido`` wheel, which needs no system package.

That program was written to export plots: it loads ``js/kaleido_scopes.js`` from its working directory into an empty
page. For each line of JSON on its standard input it calls ``kaleido_scopes.plotly`` and prints the result of the
promise. The script that this module puts there instead runs the JavaScript that a test sends. A page under test is
opened in its own window, by its ``file://`` address, and is `page` in that JavaScript. The network log records all
network requests.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any, Final

_SCOPE: Final = """
window.kaleido_scopes = { plotly: async ({ script, variables }) => {
  try {
    const value = await (0, eval)(`(async (page, variables) => { ${script} })`)(window.opened, variables);
    return { format: "json", result: JSON.stringify(value === undefined ? null : value) };
  } catch (error) { return { format: "json", error: String(error.stack || error) }; }
} };
window.until = async (holds) => { // a test's condition, at most 10 s
  for (const end = Date.now() + 10000; !holds(); await new Promise((next) => setTimeout(next, 5))) {
    if (Date.now() > end) throw new Error("waited 10 s in vain for " + holds);
  }
};
"""
_OPEN: Final = """
window.opened?.close();
const page_ = window.opened = window.open(variables.address);
await until(() => page_.location.href === variables.address && page_.document.readyState === "complete");
"""
_RECORDER: Final = """<script>
window.problems = [];
const complain = (kind) => (...what) => { window.problems.push([kind, ...what.map(String)].join(" ")); };
console.error = complain("console.error");
console.warn = complain("console.warn");
addEventListener("error", (event) => complain("error")(event.message || event.target.outerHTML), true);
addEventListener("unhandledrejection", (event) => complain("rejection")(event.reason));
document.addEventListener("securitypolicyviolation", (event) => complain("policy")(event.blockedURI));
</script>"""


class Browser:
    """A headless browser with one page open at a time. Its files are in `folder`."""

    def __init__(self, folder: Path) -> None:
        (folder / "js").mkdir()
        (folder / "js" / "kaleido_scopes.js").write_text(_SCOPE, encoding="utf-8")
        nothing = folder / "nothing.js"  # This replaces the plotting library, which the program would download.
        nothing.write_text("", encoding="utf-8")
        self._network_log = folder / "network.json"
        for timeout in (60, 180, 600):  # In rare cases the program starts and then prints nothing.
            self._process = self._started(folder, nothing, self._network_log, folder / f"profile-{timeout}")
            if line := self._line(timeout):
                assert json.loads(line)["code"] == 0, line
                return
            self._process.communicate()
        raise AssertionError("the browser does not start")

    @classmethod
    def _started(cls, folder: Path, nothing: Path, log: Path, profile: Path) -> subprocess.Popen[bytes]:
        """Start the browser process and wait for its first line, which says that it is ready."""
        home = cls._home()
        return subprocess.Popen(
            [
                home / "bin" / "kaleido",
                "plotly",
                f"--plotlyjs={nothing.as_uri()}",
                "--no-sandbox",  # Containers rarely support the sandbox, and all pages are our own.
                "--disable-gpu",
                "--disable-breakpad",
                "--disable-dev-shm-usage",
                "--disable-popup-blocking",
                "--disable-web-security",  # Allow one file:// page to access another.
                "--allow-file-access-from-files",
                f"--user-data-dir={profile}",
                f"--log-net-log={log}",
            ],
            cwd=folder,
            env=os.environ
            | {"LD_LIBRARY_PATH": str(home / "lib"), "FONTCONFIG_PATH": str(home / "etc" / "fonts")}
            | {"XDG_DATA_HOME": str(home / "xdg"), "HOME": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    @staticmethod
    def _home() -> Path:
        found = importlib.util.find_spec("kaleido")
        assert found is not None, "the dependency group `test` brings kaleido, and with it the browser"
        assert found.origin is not None
        return Path(found.origin).parent / "executable"

    def open(self, page: Path, fragment: str = "") -> None:
        """Open the file `page` unchanged."""
        self.run(_OPEN, address=page.as_uri() + fragment)

    def open_recorded(self, page: Path, fragment: str = "") -> None:
        """Open a copy of the file with a recorder of errors and warnings at its start; see ``problems``."""
        copy = page.with_name(f"recorded-{page.name}")
        text = page.read_text(encoding="utf-8")
        assert text.count("<head>") == 1
        copy.write_text(text.replace("<head>", "<head>" + _RECORDER), encoding="utf-8")
        self.open(copy, fragment)

    def problems(self) -> list[str]:
        """Return the errors, the warnings and the violations of the page's policy since ``open_recorded``."""
        found: list[str] = self.run("return page.problems;")
        return found

    def run(self, script: str, **variables: Any) -> Any:
        """Run `script`, the body of an asynchronous function, and return its result. An exception in it is raised
        here.

        The script can use `page` (the window of the open page), the names in `variables`, and ``until(condition)``.
        """
        assert self._process.stdin is not None
        line = json.dumps({"operation": "export", "format": "json", "script": script, "variables": variables})
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return json.loads(answer["result"])

    def _answer(self) -> dict[str, Any]:
        """Return the next line of JSON that the browser prints."""
        line = self._line(600)
        assert line, "the browser died, or did not answer within ten minutes"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _line(self, timeout: float) -> bytes:
        """Return the next line, without the empty line after an answer. A browser that is too slow is terminated."""
        assert self._process.stdout is not None
        watch = threading.Timer(timeout, self._process.kill)
        watch.start()
        try:
            line = self._process.stdout.readline()
            return self._process.stdout.readline() if line == b"\n" else line
        finally:
            watch.cancel()

    def close(self) -> list[str]:
        """Close the browser, and return the addresses that it requested from the network."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(600)
        self._process.stdout.close()
        log = json.loads(self._network_log.read_text(encoding="utf-8"))
        params = [event.get("params", {}) for event in log["events"]]
        return [each["url"] for each in params if "url" in each]
