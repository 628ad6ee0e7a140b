//! Layers on the disk: what is written, what is kept in tables, and what is in the cache.

use std::{
    fs,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::Path,
    process::Command,
};

use periapt_image::{Below, EntryKind, ImageLimits, LayerCache};

use crate::made::{
    Entry, chosen, directory, entry, file, gzip_layer, hard_link, image, layer, link, pax, tar, unpacked,
    work,
};

/// Returns what is on the disk below a directory, a line for each entry.
pub(crate) fn listed(directory: &Path) -> Vec<String> {
    let (mut lines, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let (metadata, shown) = (path.symlink_metadata().unwrap(), path.strip_prefix(directory).unwrap());
            let (kind, mode) = (metadata.file_type(), metadata.mode() & 0o7777);
            let what = if kind.is_dir() {
                open.push(path.clone());
                "directory".to_owned()
            } else if kind.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap().display())
            } else if kind.is_char_device() {
                format!("device {}", metadata.rdev())
            } else {
                format!("{:?}", String::from_utf8_lossy(&fs::read(&path).unwrap()))
            };
            lines.push(format!("{} {mode:o} {} {what}", shown.display(), metadata.mtime()));
        }
    }
    lines.sort();
    lines
}

#[test]
fn files_links_modes_and_times_are_on_the_disk_and_owners_in_the_table() {
    let entries = [
        directory("./"),
        Entry { mode: 0o1777, owner: (7, 8), ..directory("./tmp/") },
        Entry { mode: 0o4755, owner: (0, 42), time: 5, ..file("usr/bin/su", "su") },
        hard_link("usr/bin/su2", "usr/bin/su"),
        link("bin", "usr/bin"),
        link("out", "../../../../etc/passwd"),
        hard_link("out2", "out"),
        Entry { mode: 0o000, ..file("/secret", "s") },
        Entry { mode: 0o555, ..directory("fixed") },
        file("fixed/x", "x"),
        entry("dev/null", b'3'),
        hard_link("dev/zero", "dev/null"),
        entry("run/pipe", b'6'),
    ];
    let work = work();
    let unpacked = unpacked(&work, &image(&[layer(&entries)]).files(), &ImageLimits::default()).unwrap();
    let time = 1_700_000_000;
    let expected = [
        format!("bin 777 {time} -> usr/bin"),
        "dev 755 0 directory".into(),
        "dev/null 0 ".into(),
        format!("fixed 755 {time} directory"),
        format!("fixed/x 644 {time} \"x\""),
        format!("out 777 {time} -> ../../../../etc/passwd"),
        format!("out2 777 {time} -> ../../../../etc/passwd"),
        "run 755 0 directory".into(),
        "run/pipe 0 ".into(),
        format!("secret 400 {time} \"s\""),
        format!("tmp 1777 {time} directory"),
        "usr 755 0 directory".into(),
        "usr/bin 755 0 directory".into(),
        "usr/bin/su 755 5 \"su\"".into(),
        "usr/bin/su2 755 5 \"su\"".into(),
    ];
    // Of what is not root's or not on the disk as it is in the image, what a runtime must give its owner and mode.
    assert_eq!(
        String::from_utf8(unpacked.owners()).unwrap().split_terminator('\0').collect::<Vec<_>>(),
        ["555 0 0 fixed", "0 0 0 secret", "1777 7 8 tmp"]
    );
    let found = listed(&unpacked.layers[0].files);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(&expected) {
        assert!(found.starts_with(expected), "{found}, and {expected} is expected");
    }
    let table = &unpacked.layers[0].table.entries;
    let of = |path: &str| (table[path].mode, table[path].uid, table[path].gid);
    assert_eq!(of("tmp"), (0o1777, 7, 8));
    assert_eq!(of("usr/bin/su"), (0o4755, 0, 42));
    assert_eq!(of("usr/bin/su2"), (0o4755, 0, 42));
    assert_eq!(of("secret"), (0, 0, 0));
    assert_eq!(of("fixed").0, 0o555);
    assert_eq!(table["dev/null"].kind, EntryKind::Skipped { what: "a character device".into() });
    assert_eq!(table["usr/bin/su2"].kind, EntryKind::HardLink { of: "usr/bin/su".into(), size: 2 });
    let inode = |path: &str| unpacked.layers[0].files.join(path).symlink_metadata().unwrap().ino();
    assert_eq!(inode("usr/bin/su"), inode("usr/bin/su2"));

    let root = work.path("root");
    unpacked.assemble(&root).unwrap();
    let found = listed(&root);
    assert_eq!(found.len(), expected.len() - 2, "{found:#?}");
    let inode = |path: &str| root.join(path).symlink_metadata().unwrap().ino();
    assert_eq!(inode("usr/bin/su"), inode("usr/bin/su2"));
    assert!(unpacked.assemble(&root).unwrap_err().to_string().ends_with("it exists already"));
}

#[test]
fn layers_lie_on_each_other_in_order() {
    let layers = [
        layer(&[
            directory("a"),
            file("a/x", "1"),
            file("a/y", "1"),
            directory("b"),
            file("b/z", "1"),
            file("c", "1"),
            link("d", "a"),
        ]),
        layer(&[
            directory("a"),
            file("a/.wh.x", ""),
            file("b/.wh..wh..opq", ""),
            file("b/new", "2"),
            file(".wh.c", ""),
        ]),
        layer(&[file("c", "3"), directory("d"), file("d/w", "3"), file(".wh.a", ""), file("a/again", "3")]),
    ];
    let work = work();
    let unpacked = unpacked(&work, &image(&layers).files(), &ImageLimits::default()).unwrap();
    let root = work.path("root");
    unpacked.assemble(&root).unwrap();
    let files: Vec<String> = listed(&root).into_iter().filter(|line| line.ends_with('"')).collect();
    let names: Vec<&str> = files.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["a/again", "b/new", "c", "d/w"]);
    // On the disk, as overlays expect it.
    let second = &unpacked.layers[1];
    let gone = second.files.join("a/x").symlink_metadata().unwrap();
    assert!(gone.file_type().is_char_device() && gone.rdev() == 0);
    assert_eq!(second.table.entries["a/x"].kind, EntryKind::Whiteout);
    assert!(matches!(second.table.entries["b"].kind, EntryKind::Directory { below: Below::Hidden, .. }));
    assert!(matches!(
        unpacked.layers[2].table.entries["a"].kind,
        EntryKind::Directory { below: Below::Hidden, .. }
    ));
    assert_eq!(unpacked.merged.shadowed.iter().collect::<Vec<_>>(), ["", "b"]);
}

#[test]
fn an_overlay_of_the_layers_shows_what_one_directory_has() {
    let layers = [
        layer(&[
            directory("a"),
            file("a/x", "1"),
            file("a/y", "1"),
            directory("b"),
            file("b/z", "1"),
            file("c", "1"),
        ]),
        layer(&[
            directory("a"),
            file("a/.wh.x", ""),
            directory("b"),
            file("b/.wh..wh..opq", ""),
            file("b/new", "2"),
        ]),
        layer(&[entry("c", b'3'), file(".wh.a", ""), directory("a"), file("a/again", "3"), link("l", "/a")]),
    ];
    let work = work();
    let unpacked = unpacked(&work, &image(&layers).files(), &ImageLimits::default()).unwrap();
    let root = work.path("root");
    unpacked.assemble(&root).unwrap();
    let lower: Vec<_> = unpacked.layers.iter().rev().map(|layer| layer.files.display().to_string()).collect();
    fs::create_dir(work.path("seen")).unwrap();
    fs::create_dir(work.path("overlay")).unwrap();
    let script = "mount -t overlay overlay -o \"userxattr,lowerdir=$1\" \"$2\" && cp -a \"$2/.\" \"$3\"";
    let ran = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", &lower.join(":")])
        .args([work.path("overlay"), work.path("seen")])
        .output()
        .unwrap();
    if !ran.status.success() {
        // Without namespaces of users, or overlays in them, there is nothing to compare with.
        let reason = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(reason.contains("unshare") || reason.contains("mount"), "{reason}");
        return;
    }
    assert_eq!(listed(&work.path("seen")), listed(&root));
}

#[test]
fn long_paths_and_times_of_both_forms_of_tar_are_read() {
    let long = format!("{}/file", "d".repeat(200));
    let other = format!("{}/file", "e".repeat(200));
    let mut target = "t".repeat(300).into_bytes();
    target.push(0);
    let entries = [
        pax(&[
            ("path", &long),
            ("mtime", "1600000000.25"),
            ("uid", "3000000"),
            ("SCHILY.xattr.security.capability", "\u{1}"),
        ]),
        file("short", "1"),
        Entry { content: format!("{other}\0").into_bytes(), ..entry("././@LongLink", b'L') },
        Entry { content: target, ..entry("././@LongLink", b'K') },
        entry("short", b'2'),
        Entry { content: pax(&[("comment", "made by hand")]).content, ..entry("pax_global_header", b'g') },
        file("last", "3"),
    ];
    let work = work();
    let unpacked = unpacked(&work, &image(&[layer(&entries)]).files(), &ImageLimits::default()).unwrap();
    let table = &unpacked.layers[0].table.entries;
    assert_eq!((table[&long].uid, table[&long].time), (3_000_000, (1_600_000_000, 250_000_000)));
    assert_eq!(table[&long].attributes, ["security.capability"]);
    assert_eq!(table[&other].kind, EntryKind::Link { target: "t".repeat(300) });
    let files = &unpacked.layers[0].files;
    assert_eq!(fs::read(files.join(&long)).unwrap(), b"1");
    assert_eq!(files.join(&long).metadata().unwrap().mtime_nsec(), 250_000_000);
    let mut name = [0; 64];
    let found = rustix::fs::getxattr(files.join(&long), "security.capability", &mut name);
    assert!(found.is_err(), "extended attributes of images are not written");
}

#[test]
fn sparse_files_have_their_holes() {
    let (first, second) = ([b'a'; 512], [b'b'; 512]);
    let mut map = b"2\n0\n512\n1048576\n512\n".to_vec();
    map.resize(512, 0);
    let stored = [&map[..], &first, &second].concat();
    let names = [
        ("GNU.sparse.major", "1"),
        ("GNU.sparse.minor", "0"),
        ("GNU.sparse.name", "by-pax"),
        ("GNU.sparse.realsize", "2097152"),
    ];
    let mut gnu = crate::made::header(&Entry { content: [first, second].concat(), ..entry("by-gnu", b'S') });
    let own = gnu.as_gnu_mut().unwrap();
    for (piece, (offset, length)) in own.sparse.iter_mut().zip([(0, 512), (1_048_576, 512)]) {
        piece.set_offset(offset);
        piece.set_length(length);
    }
    own.set_real_size(2_097_152);
    gnu.set_cksum();
    let mut bytes = gnu.as_bytes().to_vec();
    bytes.extend([first, second].concat());
    bytes.extend(tar(&[pax(&names), file("GNUSparseFile.1/by-pax", stored), file("last", "1")]));
    let work = work();
    let made = image(&[gzip_layer(&bytes)]);
    let unpacked = unpacked(&work, &made.files(), &ImageLimits::default()).unwrap();
    for name in ["by-gnu", "by-pax"] {
        let content = fs::read(unpacked.layers[0].files.join(name)).unwrap();
        assert_eq!(content.len(), 2_097_152);
        assert!(content[..512] == first && content[1_048_576..1_049_088] == second);
        assert_eq!(content.iter().filter(|byte| **byte != 0).count(), 1024);
    }
}

#[test]
fn a_layer_is_unpacked_once_and_always_to_the_same_files() {
    let lower = layer(&[file("a", "1"), directory("b")]);
    let first = image(&[lower.clone(), layer(&[file("c", "2")])]);
    let second = image(&[lower.clone(), layer(&[file("d", "3")])]);
    let work = work();
    let limits = ImageLimits::default();
    let cache = LayerCache::open(&work.path("layers")).unwrap();
    let (one, own) = chosen(&work.layout(&first.files()), &limits).unwrap();
    let before = cache.unpack(&one, &own).unwrap();
    let inode = |path: &Path| path.join("a").metadata().unwrap().ino();
    let (at, listing) = (inode(&before.layers[0].files), listed(&before.layers[0].files));
    let (two, other) = chosen(&work.layout(&second.files()), &limits).unwrap();
    let after = cache.unpack(&two, &other).unwrap();
    assert_eq!(inode(&after.layers[0].files), at);
    assert_eq!(after.layers[0].table, before.layers[0].table);
    assert_eq!(cache.layers().unwrap().len(), 3);
    assert!(
        LayerCache::open(&work.path("layers")).unwrap_err().to_string().ends_with("another process uses it")
    );

    assert_eq!(cache.retain(|diff_id| diff_id != own.layers[1].diff_id).unwrap(), 1);
    assert_eq!(cache.layers().unwrap().len(), 2);
    let again = work.path("again");
    let cache = LayerCache::open(&again).unwrap();
    assert_eq!(listed(&cache.unpack(&one, &own).unwrap().layers[0].files), listing);
    // A table of another version of the program: the layer is unpacked again.
    let table = again.join(own.layers[0].diff_id.to_string()).join("table.json");
    fs::write(&table, r#"{"form":0,"entries":{}}"#).unwrap();
    assert_eq!(listed(&cache.unpack(&one, &own).unwrap().layers[0].files), listing);
    assert!(fs::read_to_string(&table).unwrap().starts_with(r#"{"form":1,"#));
}

#[test]
fn what_an_interrupted_process_left_is_removed_at_the_next_start() {
    let work = work();
    let cache = work.path("layers");
    drop(LayerCache::open(&cache).unwrap());
    let left = cache.join(".new-x/files/a/b");
    fs::create_dir_all(&left).unwrap();
    fs::set_permissions(left.parent().unwrap(), std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    std::os::unix::fs::symlink(work.0.path(), cache.join(".new-x/link")).unwrap();
    let opened = LayerCache::open(&cache).unwrap();
    assert!(!cache.join(".new-x").exists() && work.0.path().exists());
    assert_eq!(opened.layers().unwrap(), []);
    assert_eq!(cache.metadata().unwrap().mode() & 0o777, 0o700);
}
