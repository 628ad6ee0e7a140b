"""pydantic answers in the sandbox as it does natively, whatever it is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from periapt_scenario import Bench

HERE = Path(__file__).parent
BINARY = os.environ.get("PERIAPT_BINARY", "periapt")
GUESTS = Path(os.environ.get("PERIAPT_GUESTS", HERE.parents[1] / "target/guests"))
CACHE = Path(os.environ["PERIAPT_CACHE"])

#: The packages of each release of pydantic.
PACKAGES = {
    line.split()[0].removeprefix("pydantic=="): line.split()
    for line in (HERE / "releases").read_text().splitlines()
    if not line.startswith("#")
}


@pytest.mark.parametrize("release", PACKAGES)
def test_answers_are_the_same_as_of_a_process(release: str):
    ours, theirs = in_the_sandbox(release), natively(release)
    assert len(theirs) > 1_600
    assert [(one, other) for one, other in zip(ours, theirs, strict=True) if one != other] == []


def natively(release: str) -> list[str]:
    """Returns the answers of pydantic's native code in this Python."""
    place = CACHE / "python/packages" / "_".join(PACKAGES[release])
    assert place.is_dir(), f"{place} is not there: run tools/python pydantic"
    environment = {**os.environ, "PYTHONPATH": f"{place}:{HERE / 'charm/src'}"}
    program = "import cases\nprint('\\n'.join(cases.lines()), end='')"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def in_the_sandbox(release: str) -> list[str]:
    """Returns the answers of a packed charm, read in parts."""
    bench = Bench(GUESTS / f"pydantic-{release}.charm", binary=BINARY)
    try:
        text = ""
        while True:
            scene = {"unit": "validating/0", "event": {"hook": "answer", "kind": "action"}, "parameters": {"start": len(text)}}
            tried = bench.try_hook(scene)
            assert tried["outcome"] == "handled", tried
            text += tried["action"]["stdout"]
            if len(text) >= int(tried["action"]["results"]["length"]):
                return text.split("\n")
    finally:
        bench.close()
