"""Users, groups and locks."""

import pytest

from periapt_ops.stand_ins import locks, users


def test_root_is_all_there_is():
    pwd, grp = users.pwd_module(), users.grp_module()
    assert pwd.getpwuid(0).pw_name == pwd.getpwnam("root").pw_name == "root"
    assert grp.getgrgid(0).gr_name == "root"
    with pytest.raises(KeyError, match="getpwnam"):
        pwd.getpwnam("ubuntu")
    with pytest.raises(KeyError, match="getgrgid"):
        grp.getgrgid(1000)


def test_a_lock_is_had_at_once_and_nothing_else_is_done_to_a_descriptor():
    fcntl = locks.fcntl_module()
    assert fcntl.flock(3, fcntl.LOCK_EX | fcntl.LOCK_NB) is None
    with pytest.raises(OSError):
        fcntl.fcntl(3, fcntl.F_GETFL)
