"""`python3 wheels.py install ...`: pip, which here unpacks wheels and runs nothing.

Told to take wheels alone pip still builds what a requirement names by a directory, an archive or a repository, what such
a package names in turn, and whatever a requirements file excepts. To build is to run a stranger's program on the machine
of the operator who packs. pip does it in processes of their own, so it is given none.
"""

import os
import re
import runpy
import sys
from collections.abc import Callable

#: What begins another program.
_PROGRAMS = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn"}
)


#: What markers of requirements are judged by: the sandbox's interpreter, and else the machine that charmcraft packs on,
#: which is what those have in mind who write them. Nothing of the packer's own.
ENVIRONMENT = {
    "implementation_name": "cpython",
    "implementation_version": "3.14.0",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_release": "",
    "platform_system": "Linux",
    "platform_version": "",
    "python_full_version": "3.14.0",
    "python_version": "3.14",
    "sys_platform": "linux",
}


def _refuse(event: str, _arguments: tuple) -> None:
    if event in _PROGRAMS:
        # Without a number: pip has explanations of its own for those.
        raise OSError("a requirement is no wheel, and nothing is built while a charm is packed: require a release with one")


def with_older(supported_by: Callable[..., list]) -> Callable[..., list]:
    """Wraps pip's function that lists the tags of the wheels that an interpreter takes, in its order of preference.

    The list goes on with the wheels of older interpreters, if pip is told several ABIs (`--python-version=3.14 --abi=cp314
    --abi=cp312`). Their native code is left out or replaced, and CPython 3.14 runs what is Python in them. By itself pip takes no
    such wheel.
    """

    def supported(version=None, platforms=None, impl=None, abis=None):
        tags = list(supported_by(version, platforms, impl, abis))
        for abi in abis or ():
            if version and abi.startswith("cp3") and abi != f"cp{version}":
                tags += [tag for tag in supported_by(abi[2:], platforms, impl, [abi]) if tag.interpreter == tag.abi == abi]
        return tags

    return supported


def version_of(file: str, name: str) -> str:
    """The version in the name of a source archive, `NAME-VERSION.tar.gz` or `.zip`; empty if it is none of that package."""
    whole = re.sub(r"\.(tar\.gz|zip)$", "", file)
    for end in (place for place, sign in enumerate(whole) if sign == "-"):
        if re.sub(r"[-_.]+", "-", whole[:end]).lower() == re.sub(r"[-_.]+", "-", name).lower():
            return whole[end + 1 :] if whole != file else ""
    return ""


def leave_archives_as_they_are() -> None:
    """Has pip fetch source archives and look into none.

    By itself it unpacks each one, and runs the program in it that tells its metadata: even to fetch it.
    """
    from pip._internal.distributions.sdist import SourceDistribution
    from pip._internal.operations import prepare

    def tell_metadata(self, *_arguments, **_options) -> None:
        # Its file's name says what pip compares.
        version = version_of(self.req.link.filename, self.req.name)
        info = f"{re.sub('[-_.]+', '_', self.req.name)}-{version}.dist-info"
        self.req.metadata_directory = os.path.join(self.req.source_dir, info)
        os.makedirs(self.req.metadata_directory)
        with open(os.path.join(self.req.metadata_directory, "METADATA"), "w", encoding="utf-8") as metadata:
            metadata.write(f"Metadata-Version: 2.1\nName: {self.req.name}\nVersion: {version}\n")

    SourceDistribution.prepare_distribution_metadata = tell_metadata
    prepare.unpack_file = lambda *_arguments, **_options: None


def main() -> None:
    """Be pip."""
    # The directory of this file.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path = [place for place in sys.path if place and os.path.abspath(place) != here]
    sys.addaudithook(_refuse)
    from pip._vendor.packaging import markers

    if sum(argument.startswith("--abi=cp3") for argument in sys.argv) > 1:
        from pip._internal.models import target_python

        target_python.get_supported = with_older(target_python.get_supported)
    if "--no-binary=:all:" in sys.argv:
        leave_archives_as_they_are()
    markers.default_environment = lambda: dict(ENVIRONMENT)
    runpy.run_module("pip", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
