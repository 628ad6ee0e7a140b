"""The process that runs hooks: `periapt try-hook`, a scene on each line in, an answer on each line out."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any


class BenchError(Exception):
    """There is nothing to run hooks with, or a scene was refused."""


class Bench:
    """One packed charm, ready to run hooks; compiled once, whatever the number of tests."""

    def __init__(
        self,
        charm: str | Path,
        *,
        binary: str = "periapt",
        native: str | None = None,
        directory: str | Path = ".",
    ):
        """`charm`: the archive that `periapt pack` made. `binary`: the program, or where it lies.

        `native`: a command that handles the hooks in the component's place, in the charm's `directory`, with hook tools
        that answer alike. Nothing confines it.
        """
        self.charm = Path(charm)
        if not self.charm.is_file():
            raise BenchError(f"{self.charm} does not exist: make it with `periapt pack`")
        found = shutil.which(binary)
        if found is None:
            raise BenchError(f"{binary} is not there: name the program with --periapt-binary")
        self._command = [found, "try-hook", str(self.charm)]
        if native is not None:
            self._command += ["--native", native, "--directory", str(directory)]
        self._process: subprocess.Popen[str] | None = None

    def try_hook(self, scene: dict[str, Any]) -> dict[str, Any]:
        """Run one hook; return what it left behind. A hook that failed is an answer, too."""
        process = self._started()
        assert process.stdin and process.stdout
        try:
            process.stdin.write(json.dumps(scene) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._process = None
            _, said = process.communicate()
            raise BenchError(f"`periapt try-hook {self.charm}` ended: {said.strip()}")
        answer = json.loads(line)
        if "error" in answer:
            raise BenchError(answer["error"])
        return answer["tried"]

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            # It ends with its input.
            process.communicate()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
            )
        return self._process
