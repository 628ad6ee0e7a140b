//! Redirections, patterns of names, and the commands that change files.

use crate::world::{World, fail, say};

#[test]
fn redirections_lead_to_files_and_between_streams() {
    say(&[
        ("echo a > /tmp/x; echo b >> /tmp/x; cat /tmp/x", "a\nb\n"),
        ("echo a >/tmp/x; cat </tmp/x; : >/tmp/x; cat /tmp/x; echo end", "a\nend\n"),
        ("curl x > /dev/null 2>&1; echo $?", "127\n"),
        ("curl x &>/tmp/x; grep -c found /tmp/x", "1\n"),
        ("{ echo a; echo b >&2; } 2>/tmp/err >/tmp/out; cat /tmp/out /tmp/err", "a\nb\n"),
        ("echo a 2>&1 >/tmp/x | wc -l; cat /tmp/x", "0\na\n"),
        ("for i in 1 2; do echo $i; done > /tmp/x; wc -l < /tmp/x", "2\n"),
        ("cd /tmp; echo a > x; cat ./../tmp/x", "a\n"),
        (
            "echo a | tee /tmp/x | cat; cat /tmp/x; echo b | tee -a /tmp/x >/dev/null; tail -n 1 /tmp/x",
            "a\na\nb\n",
        ),
        ("(exit 4) > /tmp/x; echo $?", "4\n"),
    ]);
    fail(&[
        ("echo a > /charm/x", 1, "/charm/x: Read-only file system\n"),
        ("echo a > /none/x", 1, "/none/x: No such file or directory\n"),
        ("cat < /none", 1, "/none: No such file or directory\n"),
        ("echo a > /tmp", 1, "/tmp: Is a directory\n"),
        ("echo a >&2", 0, "a\n"),
    ]);
}

#[test]
fn patterns_become_the_names_that_match() {
    say(&[
        ("cd /srv/data; echo *.txt", "a.txt b.txt\n"),
        ("echo /srv/data/?.txt /srv/d*/[b-z]*", "/srv/data/a.txt /srv/data/b.txt /srv/data/b.txt\n"),
        ("echo '*' \"*\" \\* /none/*", "* * * /none/*\n"),
        ("cd /srv/data; x='*.txt'; echo $x \"$x\"", "a.txt b.txt *.txt\n"),
        ("set -f; echo /srv/data/*", "/srv/data/*\n"),
        ("touch /tmp/.hidden; echo /tmp/*; echo /tmp/.h*", "/tmp/*\n/tmp/.hidden\n"),
        ("for f in /srv/data/*; do cat $f | head -n 1; done", "one\ntwo\n"),
    ]);
}

#[test]
fn files_are_listed_made_and_removed() {
    say(&[
        ("ls", "charmcraft.yaml\nsrc\n"),
        ("ls /", "charm\nsrv\ntmp\n"),
        ("ls /srv/data/a.txt /tmp", "/srv/data/a.txt\n\n/tmp:\n"),
        ("ls -d /srv; ls -a /tmp", "/srv\n.\n..\n"),
        ("mkdir -p /tmp/a/b/c && touch /tmp/a/b/x && ls /tmp/a/b", "c\nx\n"),
        ("mkdir /tmp/a; mkdir /tmp/a || echo there", "there\n"),
        ("mkdir -p /tmp/a/b; touch /tmp/a/x; rm -rf /tmp/a; ls /tmp; echo gone", "gone\n"),
        ("rm -f /none && echo fine", "fine\n"),
        ("touch /srv/data/new; test -f /srv/data/new && echo made", "made\n"),
    ]);
    fail(&[
        ("ls /none", 2, "ls: cannot access '/none': No such file or directory\n"),
        ("cat /none /srv", 1, "cat: /none: No such file or directory\ncat: /srv: Is a directory\n"),
        ("mkdir /none/a", 1, "mkdir: cannot create directory ‘/none/a’: No such file or directory\n"),
        ("rm /srv", 1, "rm: cannot remove '/srv': Is a directory\n"),
        ("rm /none", 1, "rm: cannot remove '/none': No such file or directory\n"),
        ("touch /charm/x", 1, "touch: cannot touch '/charm/x': Read-only file system\n"),
        ("cd /none", 1, "cd: /none: No such file or directory\n"),
    ]);
    let mut world = World::new();
    world.run("rm -r /srv/data");
    assert!(!world.files.keys().any(|path| path.starts_with("/srv/data")));
}
