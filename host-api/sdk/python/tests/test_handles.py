"""What modules left open when the component's snapshot is taken."""

import os
import subprocess
import sys

import pytest

from periapt_ops import handles

SCRIPT = """
import io, os, sys
from periapt_ops import handles

own = handles.descriptors()
text, raw = open(sys.argv[1]), open(sys.argv[1], "rb", buffering=0)
written = open(sys.argv[2], "w")
written.write("all of it")
unreadable = io.StringIO("in memory")
descriptor = os.open(os.path.dirname(sys.argv[1]), os.O_RDONLY)
cycle = [open(sys.argv[1])]
cycle.append(cycle)
del cycle
handles.close_all_but(own)
assert handles.descriptors() == own, handles.descriptors()
for file in (text, raw, written):
    try:
        file.read()
    except ValueError as error:
        print(str(error).rstrip("."))
print(unreadable.read())
try:
    os.fstat(descriptor)
except OSError as error:
    print(error.strerror)
"""


def test_files_and_descriptors_are_closed_and_say_so(tmp_path):
    (tmp_path / "read").write_text("x")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SCRIPT, tmp_path / "read", tmp_path / "written"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout.splitlines() == ["I/O operation on closed file"] * 3 + ["in memory", "Bad file descriptor"], done.stderr
    assert (tmp_path / "written").read_text() == "all of it"


def test_what_pretends_to_be_a_file_is_left_alone(tmp_path):
    class Proxy:
        @property
        def __class__(self):
            pytest.fail("asked what it is")

    proxies = [Proxy()]
    before = handles.descriptors()
    file = open(tmp_path / "written", "w")
    handles.close_all_but(before)
    assert file.closed and len(proxies) == 1
