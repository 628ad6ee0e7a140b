"""Stand-ins for what WASI's CPython lacks and `ops` charms need; one module each, with the reason in front.

None knows `ops`: they stand in for parts of the standard library, so that any version of `ops` runs with them.
"""

from . import files, floats, hashing, headers, hosts, interpreters, locks, network, pipes, pools, processes, resolver, threads, tls, users, xz


def install() -> None:
    """Put all of them in place, once, before the charm is imported."""
    users.install()
    files.install()
    resolver.install()
    floats.install()
    hashing.install()
    locks.install()
    # What imports the standard library's `socket` comes after it.
    network.install()
    hosts.install()
    interpreters.install()
    threads.install()
    pipes.install()
    pools.install()
    processes.install()
    tls.install()
    xz.install()
    headers.install()
