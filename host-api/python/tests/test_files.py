"""Files that are made without being written."""

import os

from periapt_ops.stand_ins import files


def test_what_is_created_is_opened_for_writing_and_nothing_else_is(tmp_path):
    asked = []

    def real(path, flags, mode, *, dir_fd):
        asked.append(flags)
        return os.open(path, flags, mode, dir_fd=dir_fd)

    opened = files.creating(real)
    path = str(tmp_path / "lock")
    os.close(opened(path, os.O_CREAT | os.O_EXCL, 0o600))
    os.close(opened(path, os.O_RDONLY))
    os.close(opened(path, os.O_CREAT | os.O_WRONLY))
    assert asked == [os.O_CREAT | os.O_EXCL | os.O_RDWR, os.O_RDONLY, os.O_CREAT | os.O_WRONLY]
