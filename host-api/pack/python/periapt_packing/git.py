"""Repositories of git: one commit is fetched into a directory, and nothing of it is run."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pathlib
import re
import subprocess
import tempfile

from . import bounds, unpacked
from .lines import RequirementError
from .locks import Commit
from .projects import is_commit

#: Addresses that are fetched from. Others are files of the packer's, or run programs.
_ADDRESS = re.compile(r"(?:https|ssh)://[A-Za-z0-9][A-Za-z0-9@:._~/%+-]*")

#: No hooks, no filters, no submodules, no links, no other programs of the repository's or by its word.
_SAFE = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.symlinks=false", "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false",
    "-c", "protocol.ext.allow=never", "-c", "filter.lfs.smudge=", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false",
    "-c", "advice.detachedHead=false", "-c", "init.defaultBranch=main", "-c", "gc.auto=0",
)  # fmt: skip

#: Bytes of a list of files, of which a charm may bring 10,000 along.
_MOST_LISTED = 8 << 20

#: Bytes of the answer to what a branch or a tag means, which is three lines.
_MOST_REFERENCES = 64 << 10

#: The name of a branch or a tag.
_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}")

#: Seconds for one repository, which mostly waits for the network.
_MOST_TIME = 300


class Checkouts:
    """Commits that were fetched while a charm is packed, below one directory."""

    def __init__(self, directory: pathlib.Path, allowed: bool):
        self._directory = directory
        self._allowed = allowed
        #: What branches and tags meant, with the place and the message by which that is told.
        self._meant: dict[Commit, tuple[Commit, str, str]] = {}

    @property
    def told(self) -> list[tuple[str, str]]:
        """Which commits branches and tags meant: places and messages."""
        return [(place, message) for _, place, message in self._meant.values()]

    def commit_of(self, name: str, named: Commit, place: str) -> Commit:
        """The commit that is taken: the one that is named in full, or what a branch or a tag means now."""
        shown = _shown(name, named, place)
        if not self._allowed:
            raise RequirementError(
                f"{shown}, and none is asked: periapt pack --allow-git takes the sources of its commit, and builds nothing"
            )
        if _ADDRESS.fullmatch(named.url) is None:
            raise RequirementError(f"{shown}: only https:// and ssh:// addresses are fetched from")
        if is_commit(named.commit):
            return named
        if named not in self._meant:
            commit = dataclasses.replace(named, commit=_meant_by(named, shown))
            said = named.commit or "its default branch"
            taken = f"{name} is taken from {_plain(named.url)} at {commit.commit}, which {said} means now"
            self._meant[named] = commit, place, f"{taken}: write that commit to get the same again"
        return self._meant[named][0]

    def of(self, name: str, commit: Commit, place: str) -> pathlib.Path:
        """The directory of a project in a repository, at a commit that `commit_of` has answered."""
        shown = _shown(name, commit, place)
        fetched = self.root_of(commit)
        if not fetched.exists():
            self._fetch(commit, fetched, shown)
        project = pathlib.Path(os.path.realpath(fetched / commit.subdirectory)) if commit.subdirectory.isprintable() else fetched.parent
        if not project.is_relative_to(fetched.resolve()) or not os.path.isdir(project):
            raise RequirementError(f"{shown}: it has no directory {commit.subdirectory[:80]!r}")
        return project

    def root_of(self, commit: Commit) -> pathlib.Path:
        """Where a commit is checked out."""
        return self._directory / hashlib.sha256(f"{commit.url}#{commit.commit}".encode()).hexdigest()

    def _fetch(self, commit: Commit, place: pathlib.Path, shown: str) -> None:
        place.mkdir(parents=True)
        _git(shown, "init", "--quiet", str(place))
        _git(
            shown,
            "-C",
            str(place),
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--no-recurse-submodules",
            "--",
            commit.url,
            commit.commit,
        )
        self._measure(commit, place, shown)
        _git(shown, "-C", str(place), "checkout", "--quiet", "--force", commit.commit, "--")
        if (place / ".gitmodules").exists():
            raise RequirementError(
                f"{shown}: it has submodules, and these are not fetched: name their packages as requirements of their own"
            )


    def _measure(self, commit: Commit, place: pathlib.Path, shown: str) -> None:
        """See that the files of a commit are no more than a charm may bring along, before any is written."""
        with tempfile.TemporaryFile() as listed:
            _git(shown, "-C", str(place), "ls-tree", "-r", "--long", "-z", commit.commit, output=listed)
            # What is longer than that are more files than it may have.
            files, size = (unpacked.MOST_FILES + 1 if listed.seek(0, os.SEEK_END) > _MOST_LISTED else 0), 0
            listed.seek(0)
            for entry in listed.read(_MOST_LISTED).split(b"\0")[:-1]:
                words = entry.split(None, 4)
                size += int(words[3]) if len(words) > 3 and words[3].isdigit() else 0
                files += 1
        if size > unpacked.MOST_BYTES or files > unpacked.MOST_FILES:
            raise RequirementError(f"{shown}: it has more than {unpacked.MOST_BYTES >> 20} MiB, or more than {unpacked.MOST_FILES} files")


def _shown(name: str, commit: Commit, place: str) -> str:
    return f"{place}: {name} comes from a repository ({_plain(commit.url)})"


def _meant_by(named: Commit, shown: str) -> str:
    """The commit that a branch or a tag means, or else the default branch; the repository is asked."""
    if named.commit and _REFERENCE.fullmatch(named.commit) is None:
        raise RequirementError(f"{shown}: {named.commit[:80]!r} is no commit, branch or tag")
    # Of a tag with a message the commit that it is of is listed besides.
    tag = f"refs/tags/{named.commit}"
    references = [f"refs/heads/{named.commit}", f"{tag}^{{}}", tag] if named.commit else ["HEAD"]
    with tempfile.TemporaryFile() as listed:
        _git(shown, "ls-remote", "--quiet", "--", named.url, *references, output=listed)
        listed.seek(0)
        lines = listed.read(_MOST_REFERENCES).decode("utf-8", errors="replace").splitlines()
    found = {reference: commit for commit, _, reference in (line.partition("\t") for line in lines)}
    commit = next((found[reference] for reference in references if reference in found), "")
    if not is_commit(commit):
        said = f"branch or tag {named.commit}" if named.commit else "default branch"
        raise RequirementError(f"{shown}: it has no {said}; a commit is named by all of its 40 digits")
    return commit


def _git(shown: str, *arguments: str, output=subprocess.DEVNULL) -> None:
    command = ["git", *_SAFE, *arguments]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, timeout=_MOST_TIME, env=_environment())
    except FileNotFoundError:
        raise RequirementError(f"{shown}, and this machine has no git to fetch it") from None
    except subprocess.TimeoutExpired:
        raise RequirementError(f"{shown}: git was stopped after {_MOST_TIME} s") from None
    if done.returncode != 0:
        said = done.stderr[-bounds.MOST_SAID :].decode("utf-8", errors="replace").strip().splitlines()
        raise RequirementError(f"{shown}: git: {said[-1][:300] if said else f'exit code {done.returncode}'}")


def _environment() -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")}
    # It asks nobody for a password.
    return {**own, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C"}


def _plain(url: str) -> str:
    """An address without a user name and a password."""
    return re.sub(r"//[^/@]*@", "//", url)
