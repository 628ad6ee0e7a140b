//! The view and the rights of a workload in a container.

use std::{fs, net::TcpStream};

use serde_json::json;

use crate::{
    container::{Container, Settings, skipped},
    files::{encoded, error, push},
    pod::until,
};

#[test]
fn a_container_has_its_own_processes_files_network_and_names() {
    let Some(container) = Container::start(Settings::default()) else { return };
    let host = container.directory().display().to_string();
    // The init, the shell and what the script starts.
    let processes = container.told("ls /proc | grep -c '^[0-9]*$'");
    assert!(processes.parse::<u32>().unwrap() <= 6, "{processes}");
    assert_eq!(container.told("hostname; cat /etc/hostname; echo $IMAGE"), "web-0\nweb-0\nyes");
    assert_eq!(
        container.told("ls /sys/class/net; cat /proc/sys/net/ipv4/conf/lo/forwarding | wc -l"),
        "lo\n1"
    );
    assert_eq!(container.told("grep -c . /proc/net/route"), "1");
    assert_eq!(container.told("ls /"), "bin\ndev\netc\nproc\nsrv\nsys\ntmp\nvar");
    assert_eq!(container.told("cat /srv/page; echo new > /srv/page; cat /srv/page"), "uppernew");
    assert_eq!(fs::read_to_string(container.directory().join("more/srv/page")).unwrap(), "upper");
    assert_eq!(container.told(&format!("test -e {host}/secret; echo $?")), "1");
    let hosts = container.told("cat /etc/hosts /etc/resolv.conf");
    for line in ["127.0.0.1\tlocalhost", "127.0.0.1\tweb-0", "10.77.0.9\tother", "nameserver 10.77.0.53"] {
        assert!(hosts.contains(line), "{hosts}");
    }
    let devices =
        container.told("ls /dev; stat -c %t:%T /dev/null; echo x > /dev/null; head -c 3 /dev/zero | wc -c");
    assert_eq!(
        devices,
        "fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n1:3\n3"
    );
    // Nothing but loopback is reached.
    assert_ne!(container.sh("wget -T 2 -q -O - http://10.77.0.9/").1, 0);
}

#[test]
fn a_workload_has_few_rights_and_cannot_get_more() {
    let Some(container) = Container::start(Settings::default()) else { return };
    let blocked = container.told("grep SigBlk /proc/self/status | cut -f 2");
    assert_eq!(blocked, "0".repeat(16), "signals that the init blocks");
    let status = container.told("grep -E '^(CapEff|CapBnd|CapInh|NoNewPrivs|Seccomp):' /proc/self/status");
    // CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE, SYS_CHROOT.
    let rights = "00000000000404fb";
    assert_eq!(
        status.replace('\t', " "),
        format!("CapInh: 0000000000000000\nCapEff: {rights}\nCapBnd: {rights}\nNoNewPrivs: 1\nSeccomp: 2")
    );
    for script in [
        "mount -t tmpfs tmpfs /tmp",
        "umount /proc",
        "unshare -U true",
        "unshare -r true",
        "mknod /tmp/disk b 8 0",
        "hostname other",
        "echo 1 > /proc/sys/kernel/panic",
        "echo b > /proc/sysrq-trigger",
        "cat /proc/kcore | head -c 1 | grep .",
        "cat /proc/1/environ",
        "readlink /proc/1/fd/3",
        "head -c 1 /proc/1/exe",
        "ls /sys/kernel | grep .",
        "ls /sys/fs | grep .",
        "ip link add name x type dummy",
        "date -s 2001-01-01 2>&1 | grep -q permitted && false",
        "swapoff -a && false; reboot -f",
    ] {
        let (text, code) = container.sh(script);
        assert_ne!(code, 0, "{script}: {text}");
    }
    // The first process has no handler of signals: none ends it.
    container.told("kill -9 1; kill -TERM 1; true");
    assert_eq!(container.told("cat /proc/1/comm | wc -l"), "1");
    assert_eq!(container.told("id -u"), "0");
}

#[test]
fn files_of_the_api_are_those_of_the_container_and_no_link_leads_out() {
    let Some(container) = Container::with_users(|_| ()) else { return };
    let client = container.client();
    let secret = container.directory().join("secret").display().to_string();
    container.told(&format!(
        "ln -s {secret} /srv/link; ln -s ../../../../../../{secret} /srv/far; ln -s / /srv/top"
    ));
    for path in ["/srv/link", "/srv/far", secret.as_str(), "/srv/top/../../../etc/shadow"] {
        let read = client.get(&format!("/v1/files?action=read&path={}", encoded(path)));
        assert!(String::from_utf8_lossy(&read.body).contains("not-found"), "{path}: {read:?}");
    }
    // A link to a place of the host is one to a place of the container.
    let (kind, _) = error(&push(&client, "/srv/link", json!({}), b"changed"));
    assert_eq!(kind, "not-found");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "of the host");
    let written =
        push(&client, "/srv/top/srv/new/file", json!({ "make-dirs": true, "user": "web" }), b"content");
    assert_eq!(written.json()["result"], json!([{ "path": "/srv/top/srv/new/file" }]));
    // The directory that was made for it has the same owner.
    let owners = container.told("cat /srv/new/file; stat -c ' %U:%g' /srv/new/file /srv/new");
    assert_eq!(owners, "content web:34\n web:34");
    let nested = json!({
        "action": "make-dirs", "dirs": [{ "path": "/srv/a/b", "make-parents": true, "user": "web" }],
    });
    assert_eq!(client.post("/v1/files", &nested).json()["result"], json!([{ "path": "/srv/a/b" }]));
    assert_eq!(container.told("stat -c %U /srv/a /srv/a/b"), "web\nweb");
    let listed = client.result("/v1/files?action=list&path=/srv/new/file&itself=true");
    assert_eq!((&listed[0]["user"], &listed[0]["group"]), (&json!("web"), &json!("www")));
    assert!(!container.directory().join("root/srv/new").exists());
    // A pipe in the place of the accounts makes nobody wait.
    container.told("rm /etc/passwd; mkfifo /etc/passwd");
    assert_eq!(container.told("echo it goes on"), "it goes on");
}

#[test]
fn commands_have_users_directories_and_terminals() {
    let Some(container) = Container::with_users(|_| ()) else { return };
    let run = |body| container.exec(body);
    assert_eq!(run(json!({ "command": ["id"], "user": "web" })).0, "uid=33(web) gid=34(www)\n");
    assert_eq!(run(json!({ "command": ["pwd"], "user": "web" })).0, "/srv\n");
    assert_eq!(run(json!({ "command": ["pwd"], "working-dir": "/etc" })).0, "/etc\n");
    assert_eq!(
        run(json!({ "command": ["sh", "-c", "grep CapEff /proc/self/status"], "user": "web" })).0,
        "CapEff:\t0000000000000000\n"
    );
    let (text, code) = run(
        json!({ "command": ["sh", "-c", "tty; stty size; exit 3"], "terminal": true, "width": 99, "height": 33 }),
    );
    assert_eq!((text.as_str(), code), ("/dev/pts/0\r\n33 99\r\n", 3));
    let refused = container.client().post("/v1/exec", &json!({ "command": ["true"], "user": "nobody-here" }));
    assert!(refused.message().contains("unknown user"), "{refused:?}");
    let refused = container.client().post("/v1/exec", &json!({ "command": ["python3"] }));
    assert!(refused.message().contains("cannot find executable"), "{refused:?}");
}

#[test]
fn what_names_no_user_is_the_containers_own() {
    let settings = Settings { inside: Some((45_678, 34)), ..Settings::default() };
    let Some(container) = Container::start(settings).filter(|it| it.gap("users").is_none()) else { return };
    let client = container.client();
    assert_eq!(container.told("id -u; id -g; echo $HOME"), "45678\n34\n/");
    let run = |body| container.exec(body).0;
    assert_eq!(run(json!({ "command": ["id"], "user": "web" })), "uid=33(web) gid=34(www)\n");
    assert_eq!(run(json!({ "command": ["id", "-u"], "user": "root" })), "0\n");
    // Storage of root is written by the group.
    client.add_layer(
        "services:\n  own: {override: replace, command: \"sh -c 'id -u > /var/lib/db/own; exec sleep 1000'\"}\n  \
         rooted: {override: replace, user: root, command: \"sh -c 'id -u > /srv/rooted; exec sleep 1000'\"}\n\
         checks:\n  own: {override: replace, period: 50ms, exec: {command: \
         \"sh -c 'test -s /var/lib/db/check || id -u > /var/lib/db/check'\"}}\n",
    );
    assert_eq!(client.act("start", &["own", "rooted"])["status"], "Done");
    let written = ["/var/lib/db/own", "/srv/rooted", "/var/lib/db/check"];
    until("services and the check have run", || {
        written.iter().all(|file| container.sh(&format!("grep -q . {file}")).1 == 0)
    });
    assert_eq!(container.told(&format!("cat {}", written.join(" "))), "45678\n0\n45678");
    assert_eq!(container.told("stat -c '%u:%g' /var/lib/db"), "0:34");
    assert_ne!(container.sh("echo x > /etc/passwd").1, 0, "files of root are not written");
    // New files of the API, the directories above them, and directories.
    push(&client, "/tmp/a/file", json!({ "make-dirs": true }), b"content");
    push(&client, "/tmp/web", json!({ "user": "web" }), b"content");
    push(&client, "/etc/passwd", json!({}), b"root:x:0:0::/:/bin/sh\n");
    client.post("/v1/files", &json!({ "action": "make-dirs", "dirs": [{ "path": "/tmp/b" }] }));
    assert_eq!(
        container.told("stat -c '%u:%g' /tmp/a /tmp/a/file /tmp/web /etc/passwd /tmp/b"),
        "45678:34\n45678:34\n33:34\n45678:34\n45678:34"
    );
}

#[test]
fn the_images_owners_and_modes_are_given() {
    let Some(container) = Container::with_users(|_| ()) else { return };
    let told = container.told("stat -c '%a %u %g' /srv /etc/key /dev /bin/busybox; cat /etc/key");
    assert_eq!(told, "2775 33 34\n600 584792 584792\n755 0 0\n755 0 0\nkey");
    let web = json!({ "command": ["sh", "-c", "echo x > /srv/own; cat /etc/key"], "user": "web" });
    let (text, code) = container.exec(web);
    assert!(code == 1 && text.contains("Permission denied"), "{text}");
    assert_eq!(container.told("stat -c '%u %g' /srv/own"), "33 34");
    for (owners, part) in [
        (b"755 0 0 srv\0x".as_slice(), "a record that is none"),
        (b"10000 0 0 srv\0", "a record that is none"),
        (b"755 4000000 0 srv\0", "which the container has not"),
    ] {
        let change = |at: &std::path::Path| fs::write(at.join("owners"), owners).unwrap();
        let reason = Container::launch(Settings::default(), change).unwrap().refusal();
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn directories_of_the_host_are_mounted_with_their_owners_and_through_no_link() {
    // A link of the image to another place of the image, where the mount comes to lie.
    let link =
        |at: &std::path::Path| std::os::unix::fs::symlink("../../../srv", at.join("root/var")).unwrap();
    let Some(container) = Container::with_users(link) else { return };
    assert_eq!(container.told("cat /srv/config/page; stat -c ' %u:%g' /srv/config/page"), "configured 0:0");
    assert_ne!(container.sh("echo x > /srv/config/page").1, 0);
    container.told("echo kept > /srv/lib/db/file; chown web /srv/lib/db/file");
    let kept = container.directory().join("storage/file");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "kept\n");
    if rustix::process::geteuid().is_root() {
        let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(&kept).unwrap());
        assert_eq!(owner, 33, "what the container's user 33 writes is user 33's on the host's disk");
    }
    let refused = Container::launch(Settings::default(), |at| {
        fs::write(at.join("root/var"), "no directory").unwrap();
    });
    let reason = refused.unwrap().refusal();
    assert!(reason.contains("/var is no place for a mount"), "{reason}");
}

#[test]
fn a_mount_whose_place_is_a_link_to_the_root_is_refused() {
    // The mount at /var/lib/db would cover the container's root with files that a workload has written.
    for target in ["/", "../../..", "/proc", "/sys"] {
        let refused = Container::launch(Settings::default(), |at| {
            fs::create_dir_all(at.join("root/var/lib")).unwrap();
            std::os::unix::fs::symlink(target, at.join("root/var/lib/db")).unwrap();
        });
        let Some(refused) = refused else { return };
        let reason = refused.refusal();
        if reason.contains("user namespace") {
            return skipped(&reason);
        }
        assert!(reason.contains("it leads to the root, to /proc or to /sys"), "{target}: {reason}");
    }
}

#[test]
fn services_serve_their_own_network_and_checks_reach_them_there() {
    let Some(container) = Container::with_users(|_| ()) else { return };
    let client = container.client();
    client.add_layer(
        "services: {web: {override: replace, command: httpd -f -p 8097 -h /srv, user: web}}\n\
         checks:\n  page: {override: replace, period: 50ms, threshold: 1, http: {url: 'http://localhost:8097/page'}}\n  \
         port: {override: replace, period: 50ms, threshold: 1, tcp: {port: 8097, host: web-0}}\n  \
         name: {override: replace, period: 50ms, threshold: 1, tcp: {port: 8097, host: no.such.name}}\n",
    );
    assert_eq!(client.act("start", &["web"])["status"], "Done");
    let status = |name: &str| client.result(&format!("/v1/checks?names={name}"))[0]["status"].clone();
    until("the server answers", || status("page") == "up" && status("port") == "up");
    until("a name that is unknown is an error", || status("name") == "down");
    assert_eq!(container.told("wget -q -O - http://web-0:8097/page"), "upper");
    assert!(TcpStream::connect("127.0.0.1:8097").is_err(), "the host's network is another one");
    assert_eq!(client.act("stop", &["web"])["status"], "Done");
    until("the server is gone", || status("page") == "down");
}

#[test]
fn orphans_are_reaped_and_end_with_their_service() {
    let Some(container) = Container::start(Settings::default()) else { return };
    container
        .told("for i in 1 2 3 4 5; do (true &) ; done; (sleep 0.2 &) ; setsid sleep 1000 >/dev/null 2>&1 &");
    until("no process waits for its parent", || {
        container.told("cat /proc/[0-9]*/stat | grep -c ' Z ' || true") == "0"
    });
    until("one process sleeps", || container.told("pidof sleep | wc -w") == "1");
}

#[test]
fn an_image_that_is_no_root_is_refused() {
    let refused =
        |change: fn(&std::path::Path)| Container::launch(Settings::default(), change).map(Container::refusal);
    let Some(reason) = refused(|at| {
        std::os::unix::fs::symlink("/srv", at.join("root/proc")).unwrap();
    }) else {
        return;
    };
    if reason.contains("user namespace") {
        return skipped(&reason);
    }
    assert!(reason.contains("the image's /proc is no directory"), "{reason}");
    let reason = refused(|at| fs::write(at.join("root/dev"), "x").unwrap()).unwrap();
    assert!(reason.contains("the image's /dev is no directory"), "{reason}");
    let reason = refused(|at| {
        fs::remove_dir_all(at.join("root/etc")).unwrap();
        std::os::unix::fs::symlink("/", at.join("root/etc")).unwrap();
    });
    assert!(reason.unwrap().contains("the image's /etc is no directory"));
    let reason = refused(|at| fs::create_dir_all(at.join("root/etc/hosts/x")).unwrap()).unwrap();
    assert!(reason.contains("cannot write the container's /etc/hosts"), "{reason}");
    let reason = refused(|at| fs::remove_dir_all(at.join("more")).unwrap()).unwrap();
    assert!(reason.contains("not an absolute path of a directory"), "{reason}");
}

#[test]
fn a_user_without_rights_has_containers_with_what_the_host_lacks_named() {
    if !rustix::process::geteuid().is_root() {
        // Then all other tests are this one.
        return;
    }
    let settings = Settings { user: Some(54_321), ..Settings::default() };
    let Some(container) = Container::start(settings.clone()) else { return };
    let gaps = container.gaps().join("\n");
    assert!(gaps.contains("users: the container has root alone"), "{gaps}");
    assert!(gaps.contains("limit of memory: ") && gaps.contains("limit of processes: "), "{gaps}");
    assert_eq!(container.told("id -u; cat /srv/page; echo x > /srv/x; hostname"), "0\nupperweb-0");
    let (_, code) = container.sh("cat /proc/1/environ || mount -t tmpfs tmpfs /tmp");
    assert_ne!(code, 0);
    let command = json!({ "command": ["true"], "user": "web" });
    let change = crate::commands::ended_change(&container.client(), &command);
    assert!(change["err"].as_str().unwrap().contains("the container has root alone"), "{change}");
    drop(container);
    let inside = Settings { inside: Some((45_678, 34)), ..settings.clone() };
    let container = Container::start(inside).unwrap();
    let change = crate::commands::ended_change(&container.client(), &json!({ "command": ["true"] }));
    assert!(change["err"].as_str().unwrap().contains("root alone and no user \"45678\""), "{change}");
    push(&container.client(), "/srv/file", json!({}), b"content");
    let by_root = json!({ "command": ["stat", "-c", "%u", "/srv/file"], "user": "root" });
    assert_eq!(container.exec(by_root).0, "0\n");
    drop(container);
    let required = Settings { require_confinement: true, ..settings };
    let refused = Container::launch(required, |_| ()).unwrap().refusal();
    assert!(refused.contains("cannot confine a container: ") && refused.contains("usermod"), "{refused}");
}
