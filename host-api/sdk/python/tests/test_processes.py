"""Hook tools as a charm runs them, by everything that `subprocess` offers."""

import io
import os
import subprocess

import pytest

from periapt_ops import host


def test_a_tools_output_is_text_or_bytes_as_it_is_asked_for(tools):
    tools.answers["config-get"] = "{\"a\":\"ü\"}\r\n".encode()
    assert subprocess.check_output(["config-get", "--format=json"]) == "{\"a\":\"ü\"}\r\n".encode()
    assert subprocess.check_output(["config-get", "--format=json"], text=True) == '{"a":"ü"}\n'
    assert tools.calls[0] == ("config-get", ["--format=json"], None)


def test_input_reaches_the_tool_however_it_is_given(tools):
    subprocess.run(["relation-set", "--file", "-"], input="a: ü", text=True, check=True)
    subprocess.run(["relation-set", "--file", "-"], input=b"b: 1", check=True)
    with subprocess.Popen(["relation-set", "--file", "-"], stdin=subprocess.PIPE, text=True) as process:
        assert process.poll() is None
        process.stdin.write("c: 1")
        process.stdin.close()
        assert process.poll() == 0
    subprocess.run(["relation-set", "--file", "-"], stdin=io.BytesIO(b"d: 1"))
    assert [stdin for _, _, stdin in tools.calls] == ["a: ü".encode(), b"b: 1", b"c: 1", b"d: 1"]


def test_a_tool_that_fails_raises_as_a_process_would(tools):
    tools.answers["relation-get"] = host.ToolResult(2, b"", b"ERROR no relation id specified\n")
    with pytest.raises(subprocess.CalledProcessError) as raised:
        subprocess.run(["relation-get"], check=True, capture_output=True, text=True)
    assert (raised.value.returncode, raised.value.stderr) == (2, "ERROR no relation id specified\n")


def test_streams_go_where_they_are_sent(tools, tmp_path, capsys):
    tools.answers["status-get"] = host.ToolResult(0, b"out", b"err")
    both = subprocess.run(["status-get"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert (both.stdout, both.stderr) == (b"outerr", None)
    with open(tmp_path / "file", "wb") as file:
        subprocess.run(["status-get"], stdout=file, stderr=subprocess.DEVNULL)
    assert (tmp_path / "file").read_bytes() == b"out"
    subprocess.run(["status-get"])
    assert capsys.readouterr() == ("out", "err")


def test_what_is_no_hook_tool_is_not_installed(tools):
    for command in (["systemctl", "start"], ["/usr/bin/config-get"], "config-get --all"):
        with pytest.raises(FileNotFoundError):
            subprocess.run(command)
    assert not tools.calls


def test_a_tool_is_found_by_its_path_of_jujus(tools):
    subprocess.run(["/var/lib/juju/tools/is-leader"])
    assert tools.calls == [("is-leader", [], None)]


def test_a_shell_is_there_for_plain_commands_only(tools):
    subprocess.run("juju-log 'two words'", shell=True)
    assert tools.calls == [("juju-log", ["two words"], None)]
    for line in ("config-get | grep a", "config-get > file", "echo $HOME", "true"):
        with pytest.raises(FileNotFoundError, match="/bin/sh"):
            subprocess.run(line, shell=True)


def test_input_from_a_descriptor_is_read_to_its_end(tools):
    readable, writable = os.pipe()
    os.write(writable, b"e: 1")
    os.close(writable)
    subprocess.run(["state-set", "--file", "-"], stdin=readable)
    os.close(readable)
    assert tools.calls[0][2] == b"e: 1"


def test_a_process_is_annotated_and_its_input_closed_as_ever(tools):
    def log(process: "subprocess.Popen[str]") -> None:
        with process.stdin as stdin:
            stdin.write("e: 1")

    assert subprocess.Popen[str].__origin__ is subprocess.Popen
    with subprocess.Popen(["state-set", "--file", "-"], stdin=subprocess.PIPE, text=True) as process:
        log(process)
    assert (tools.calls, process.returncode) == ([("state-set", ["--file", "-"], b"e: 1")], 0)
