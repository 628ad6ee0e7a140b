#!/bin/sh
# `peer-relation-changed` of the bench charm, as a shell hook in which each tool is a process.
set -eu
for key in address database password port replicas role user version zone; do
  value=$(relation-get "$key" "$JUJU_REMOTE_UNIT")
  [ -n "$value" ]
done
count=$(relation-get count "$JUJU_UNIT_NAME")
relation-set "count=$((${count:-0} + 1))"
