"""Names that are known before anything runs: to the packer, which checks sources by them, and to the stand-ins."""

#: Modules of the standard library that WASI's CPython lacks, or has no more, and that there are stand-ins for.
STAND_INS = frozenset(
    {"_interpchannels", "_interpqueues", "_interpreters", "_lzma", "_ssl", "cgi", "fcntl", "grp", "pwd"}
)

#: The module of protobuf that imports `ctypes` for numbers of four bytes, which it gets (`floats`).
ASKS_FOR_FLOATS = "google.protobuf.internal.type_checkers"

#: The tools that the sandbox knows, those that only answer why they are not there included.
HOOK_TOOLS = frozenset(
    """
    action-fail action-get action-log action-set add-metric application-version-set close-port config-get
    credential-get emit-cancel emit-later emit-list goal-state is-leader juju-log juju-reboot k8s-raw-get k8s-raw-set
    k8s-spec-get k8s-spec-set leader-get leader-set network-get open-port opened-ports payload-register
    payload-status-set payload-unregister pod-spec-get pod-spec-set relation-batch relation-get relation-ids
    relation-list relation-model-get relation-set resource-get secret-add secret-get secret-grant secret-ids
    secret-info-get secret-remove secret-revoke secret-set state-delete state-get state-set status-get status-set
    storage-add storage-get storage-list unit-get
    """.split()
)
