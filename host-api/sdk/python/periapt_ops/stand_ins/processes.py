"""Processes: WASI starts none, and hook tools are processes to a charm.

A `subprocess.Popen` of a hook tool asks the sandbox, which runs the tool's own code without a process; `run`, `call`,
`check_output` and the rest build on it unchanged. Every other program is one that is not installed.
"""

import errno
import io
import os
import posixpath
import shlex
import shutil
import subprocess
import sys
import types

from .. import host
from .names import HOOK_TOOLS

#: Where `shutil.which` finds them, as on a machine of Juju's.
TOOLS_DIRECTORY = "/var/lib/juju/tools"

#: What a shell would have to interpret. A command line without these is the same to us as to a shell.
_SHELL_SYNTAX = frozenset("|&;<>()$`\\*?[]#~=%!{}\n")


def install() -> None:
    """Put them in the places of the real ones."""
    subprocess.Popen = HookToolProcess
    # Otherwise `subprocess.run` says before it tries that this platform has no processes.
    subprocess._can_fork_exec = True
    if not hasattr(os, "kill"):
        os.kill = _no_process
    if not hasattr(os, "getppid"):
        os.getppid = lambda: 1
    real_which = shutil.which

    def which(cmd, mode=os.F_OK | os.X_OK, path=None):
        if path is None and cmd in HOOK_TOOLS:
            return posixpath.join(TOOLS_DIRECTORY, cmd)
        return real_which(cmd, mode, path)

    shutil.which = which


class HookToolProcess:
    """`subprocess.Popen` of a hook tool; it runs to its end as soon as its input is known."""

    #: `subprocess.Popen[str]`, as annotations have it.
    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(
        self,
        args,
        bufsize=-1,
        executable=None,
        stdin=None,
        stdout=None,
        stderr=None,
        preexec_fn=None,
        close_fds=True,
        shell=False,
        cwd=None,
        env=None,
        universal_newlines=None,
        startupinfo=None,
        creationflags=0,
        restore_signals=True,
        start_new_session=False,
        pass_fds=(),
        *,
        user=None,
        group=None,
        extra_groups=None,
        encoding=None,
        errors=None,
        text=None,
        umask=-1,
        pipesize=-1,
        process_group=None,
    ):
        self.args = args
        self.pid = os.getpid()
        self.returncode = None
        self._name, self._arguments = _command(args, shell)
        self._text = bool(text or universal_newlines or encoding or errors)
        self._encoding, self._errors = encoding or "utf-8", errors or "strict"
        self._targets = (stdout, stderr)
        self.stdin = self.stdout = self.stderr = None
        if stdin == subprocess.PIPE:
            self.stdin = _Input(io.StringIO if self._text else io.BytesIO)
        else:
            self._finish(_read_all(stdin))

    def _finish(self, stdin):
        if isinstance(stdin, str):
            stdin = stdin.encode(self._encoding, self._errors)
        result = host.current().run_tool(self._name, self._arguments, stdin)
        self.returncode = result.exit_code
        stdout, stderr = self._targets
        if stderr == subprocess.STDOUT:
            self.stdout = self._deliver(stdout, result.stdout + result.stderr, sys.stdout)
        else:
            self.stdout = self._deliver(stdout, result.stdout, sys.stdout)
            self.stderr = self._deliver(stderr, result.stderr, sys.stderr)

    def _deliver(self, target, content, inherited):
        """Bring a stream's content where it belongs; what is piped is returned as a file."""
        if target == subprocess.PIPE:
            if self._text:
                text = content.decode(self._encoding, self._errors)
                return io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"))
            return io.BytesIO(content)
        if target is None:
            inherited.write(content.decode("utf-8", "replace"))
        elif isinstance(target, int):
            if target != subprocess.DEVNULL:
                os.write(target, content)
        else:
            os.write(target.fileno(), content)
        return None

    def communicate(self, input=None, timeout=None):
        """Give the tool its input, and return what it printed."""
        if self.returncode is None:
            self._finish(input if input is not None else self.stdin.getvalue())
        return tuple(None if stream is None else stream.read() for stream in (self.stdout, self.stderr))

    def wait(self, timeout=None):
        """Run the tool, if it has not run, with the input that it was given."""
        if self.returncode is None:
            self._finish(self.stdin.getvalue())
        return self.returncode

    def poll(self):
        """Return the exit code; none as long as its input is open."""
        if self.returncode is None and self.stdin.closed:
            self.wait()
        return self.returncode

    def send_signal(self, sig):
        """Do nothing: a tool is over before the charm can signal it."""

    def terminate(self):
        """Do nothing, as `send_signal`."""

    def kill(self):
        """Do nothing, as `send_signal`."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.wait()


class _Input:
    """What is written to a tool's standard input; closing it keeps it."""

    def __init__(self, make):
        self._buffer = make()
        self.closed = False
        self.write = self._buffer.write
        self.writelines = self._buffer.writelines
        self.getvalue = self._buffer.getvalue

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def flush(self):
        """Do nothing: all is kept until the tool runs."""

    def close(self):
        """Say that there is no more."""
        self.closed = True


def _command(args, shell):
    """The tool and its arguments; FileNotFoundError if it is something else."""
    if shell:
        line = os.fsdecode(args if isinstance(args, (str, bytes)) else args[0])
        if _SHELL_SYNTAX.intersection(line):
            raise _not_found("/bin/sh")
        words = shlex.split(line)
        if not words or words[0] not in HOOK_TOOLS:
            raise _not_found("/bin/sh")
    elif isinstance(args, (str, bytes, os.PathLike)):
        words = [os.fsdecode(args)]
    else:
        words = [os.fsdecode(word) for word in args]
    directory, name = posixpath.split(words[0])
    if directory not in ("", TOOLS_DIRECTORY) or name not in HOOK_TOOLS:
        raise _not_found(words[0])
    return name, words[1:]


def _no_process(pid, sig):
    raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))


def _not_found(program):
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


def _read_all(stdin):
    """What a process would read from a descriptor or a file; none from nothing."""
    if stdin is None or stdin == subprocess.DEVNULL:
        return None
    if not isinstance(stdin, int):
        return stdin.read()
    pieces = []
    while piece := os.read(stdin, 1 << 16):
        pieces.append(piece)
    return b"".join(pieces)
