//! Images that are made to do harm. Each is refused with one line, and nothing of it stays, outside least of all.

use std::{
    fs,
    time::{Duration, Instant},
};

use periapt_image::{EntryKind, ImageLimits};

use crate::{
    made::{
        Entry, Files, Layer, directory, entry, file, gzip_layer, hard_link, image, inspected, layer, link,
        pax, raw_layer, refused, refused_layers, tar, unpacked, work, zstd_layer,
    },
    unpack::listed,
};

/// Returns the error of an image with one layer, within bounds that are small.
fn refused_within(layer: Layer, limits: &ImageLimits) -> String {
    let work = work();
    let error = unpacked(&work, &image(&[layer]).files(), limits).unwrap_err().to_string();
    error.split_once("): ").unwrap().1.to_owned()
}

#[test]
fn no_path_leads_out_of_the_root() {
    for path in ["..", "../x", "a/../../x", "./../x", "/../x", "a/.."] {
        assert_eq!(refused(&[file(path, "x")]), format!("{path}: its path has a part `..`"));
    }
    assert_eq!(refused(&[pax(&[("path", "../x")]), file("a", "x")]), "../x: its path has a part `..`");
    let long = Entry { content: b"../x\0".to_vec(), ..entry("././@LongLink", b'L') };
    assert_eq!(refused(&[long, file("a", "x")]), "../x: its path has a part `..`");
    assert_eq!(refused(&[file("", "x")]), ": the root is no directory");
    // An absolute path begins at the image's root.
    let work = work();
    let files = image(&[layer(&[file("/etc/passwd", "mine")])]).files();
    let unpacked = unpacked(&work, &files, &ImageLimits::default()).unwrap();
    assert_eq!(fs::read(unpacked.layers[0].files.join("etc/passwd")).unwrap(), b"mine");
}

#[test]
fn nothing_is_written_through_a_link() {
    let below = "there are files below it, and it is no directory";
    let outside = work();
    let target = outside.0.path().display().to_string();
    for target in [target.as_str(), "..", ".", "/", "b", "/proc/self/root", "a"] {
        assert_eq!(refused(&[link("a", target), file("a/x", "x")]), format!("a: {below}"));
        assert_eq!(
            refused(&[directory("b"), link("b/a", target), file("b/a/c/x", "x")]),
            format!("b/a: {below}")
        );
        assert_eq!(refused(&[link("a", target), file("a/.wh.x", "")]), format!("a: {below}"));
        assert_eq!(refused(&[link("a", target), hard_link("a/x", "a")]), format!("a: {below}"));
        // In another layer, it is found when the layers lie on each other.
        let layers = [layer(&[link("a", target)]), layer(&[file("a/x", "x")])];
        let expected = "the layers: layer 2 has files below a, which is no directory in an earlier layer";
        assert_eq!(refused_layers(&layers), expected);
    }
    // A chain of links, each to the next.
    let mut chain: Vec<Entry> =
        (0..50).map(|number| link(&format!("l{number}"), &format!("l{}", number + 1))).collect();
    chain.push(link("l50", &target));
    chain.push(file("l0/x", "x"));
    assert_eq!(refused(&chain), format!("l0: {below}"));
    assert_eq!(fs::read_dir(outside.0.path()).unwrap().count(), 0);
}

#[test]
fn hard_links_name_files_that_came_before_in_the_layer() {
    let missing = "it links to something that is not before it in the layer";
    assert_eq!(refused(&[hard_link("a", "/etc/passwd")]), format!("a: {missing}"));
    assert_eq!(refused(&[hard_link("a", "b"), file("b", "x")]), format!("a: {missing}"));
    assert_eq!(refused(&[hard_link("a", "a")]), format!("a: {missing}"));
    assert_eq!(refused(&[hard_link("a", "../../etc/passwd")]), "a: its link leads out of the image");
    assert_eq!(refused(&[directory("b"), hard_link("a", "b")]), "a: it links to a directory");
    assert_eq!(
        refused_layers(&[layer(&[file("b", "x")]), layer(&[hard_link("a", "b")])]),
        format!("a: {missing}")
    );
    // A link to a link is one more name of that link, and not of its target.
    let outside = work();
    fs::write(outside.path("victim"), "untouched").unwrap();
    let victim = outside.path("victim").display().to_string();
    let inside = work();
    let entries = [link("a", &victim), hard_link("b", "a")];
    let unpacked = unpacked(&inside, &image(&[layer(&entries)]).files(), &ImageLimits::default()).unwrap();
    assert!(unpacked.layers[0].files.join("b").symlink_metadata().unwrap().is_symlink());
    assert_eq!(
        refused(&[link("a", &victim), hard_link("b", "a"), file("b", "changed")]),
        "b: it is in the layer twice"
    );
    assert_eq!(fs::read(outside.path("victim")).unwrap(), b"untouched");
}

#[test]
fn nothing_is_in_a_layer_twice_but_directories() {
    let twice = "it is in the layer twice";
    for entries in [
        [file("a", "1"), file("a", "2")],
        [file("a", "1"), file("./a", "2")],
        [file("a", "1"), link("a", "/etc")],
        [link("a", "/etc"), directory("a")],
        [directory("a"), file("a", "1")],
        [file("a/b", "1"), file("a", "2")],
        [entry("a", b'3'), file("a", "1")],
        [file(".wh.a", ""), file(".wh.a", "")],
    ] {
        let error = refused(&entries);
        assert!(error.ends_with(twice), "{error}");
    }
    assert_eq!(
        refused(&[file("a", "1"), file("a/b", "2")]),
        "a: there are files below it, and it is no directory"
    );
    let work = work();
    let entries = [directory("a"), Entry { mode: 0o700, ..directory("a/") }];
    let unpacked = unpacked(&work, &image(&[layer(&entries)]).files(), &ImageLimits::default()).unwrap();
    assert_eq!(unpacked.layers[0].table.entries["a"].mode, 0o700);
}

#[test]
fn whiteouts_name_one_thing_of_an_earlier_layer() {
    let impossible = "it is a whiteout of something that no layer can have";
    for name in [".wh.", ".wh..", ".wh...", ".wh..wh.", ".wh..wh.plnk", ".wh..wh..wh..opq", ".wh..wh.aufs"] {
        assert_eq!(refused(&[file(&format!("a/{name}"), "")]), format!("a/{name}: {impossible}"));
    }
    assert_eq!(refused(&[file(".wh.a/b", "")]), ".wh.a/b: it lies in a whiteout");
    assert_eq!(refused(&[file(".wh..wh..opq/b", "")]), ".wh..wh..opq/b: it lies in a whiteout");
    for entry in [file(".wh.a", "x"), directory(".wh.a"), link(".wh.a", "/etc"), entry(".wh.a", b'3')] {
        assert_eq!(refused(&[entry]), ".wh.a: it is a whiteout and no empty file");
    }
    // A device with the number 0 is an overlay's own whiteout: it hides nothing but its own path.
    let work = work();
    let layers = [layer(&[file("a", "1"), file("b", "1")]), layer(&[entry("a", b'3')])];
    let unpacked = unpacked(&work, &image(&layers).files(), &ImageLimits::default()).unwrap();
    assert!(matches!(unpacked.merged.entries["a"].1.kind, EntryKind::Skipped { .. }));
    assert!(unpacked.merged.entries.contains_key("b"));
}

#[test]
fn extended_attributes_of_overlays_are_not_written() {
    let work = work();
    let names = [("SCHILY.xattr.user.overlay.opaque", "y"), ("SCHILY.xattr.user.overlay.redirect", "/etc")];
    let layers = [layer(&[file("a/x", "1")]), layer(&[pax(&names), directory("a")])];
    let unpacked = unpacked(&work, &image(&layers).files(), &ImageLimits::default()).unwrap();
    let mut value = [0; 16];
    let path = unpacked.layers[1].files.join("a");
    for name in ["user.overlay.opaque", "user.overlay.redirect"] {
        assert!(rustix::fs::getxattr(&path, name, &mut value).is_err(), "{name}");
    }
    assert!(unpacked.merged.entries.contains_key("a/x"));
}

#[test]
fn what_programs_would_read_in_different_ways_is_refused() {
    let cases: Vec<(&str, Vec<Entry>)> = vec![
        ("a: it has two sizes", vec![pax(&[("size", "7")]), file("a", "x")]),
        (
            "an entry's extended headers say the same thing twice",
            vec![pax(&[("path", "b"), ("path", "c")]), file("a", "x")],
        ),
        (
            "an entry's extended headers say the same thing twice",
            vec![pax(&[("path", "b")]), pax(&[("uid", "1")]), file("a", "x")],
        ),
        (
            "an entry's extended headers say the same thing twice",
            vec![
                pax(&[("path", "b")]),
                Entry { content: b"c\0".to_vec(), ..entry("././@LongLink", b'L') },
                file("a", "x"),
            ],
        ),
        (
            "a global extended header has more than a comment",
            vec![Entry { kind: b'g', ..pax(&[("path", "b")]) }, file("a", "x")],
        ),
        ("it ends after an extended header", vec![pax(&[("path", "b")])]),
        (
            "an extended header is damaged",
            vec![Entry { content: b"99 path=b\n".to_vec(), ..entry("x", b'x') }, file("a", "x")],
        ),
        ("an extended header has a value that is none", vec![pax(&[("uid", "-1")]), file("a", "x")]),
        ("an extended header has a value that is none", vec![pax(&[("mtime", "soon")]), file("a", "x")]),
        (
            "a: its user or group is larger than 4294967295",
            vec![Entry { owner: (1 << 40, 0), ..file("a", "x") }],
        ),
        ("a: it is no file and has content", vec![Entry { content: b"x".to_vec(), ..directory("a") }]),
        (
            "a: it is no file and has content",
            vec![file("b", "x"), Entry { content: b"x".to_vec(), ..hard_link("a", "b") }],
        ),
        ("a: its link names nothing, or too much", vec![link("a", "")]),
        ("a: its kind 'Z' is unknown", vec![entry("a", b'Z')]),
        ("a: its kind 'M' is unknown", vec![entry("a", b'M')]),
        (
            "b: it is sparse in a form other than pax's 1.0",
            vec![pax(&[("GNU.sparse.name", "b"), ("GNU.sparse.map", "0,1")]), file("a", "x")],
        ),
        (
            "a: its map of pieces is damaged",
            vec![
                pax(&[("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "1")]),
                file("a", "x".repeat(512)),
            ],
        ),
        (
            "a: its pieces are more or less than its content",
            vec![
                pax(&[("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "99")]),
                file("a", format!("1\n0\n99\n{}", "\0".repeat(512 - 7))),
            ],
        ),
        (
            "a: it is sparse and has more than 10000 pieces",
            vec![
                pax(&[("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "99")]),
                file("a", format!("99999999999\n{}", "\0".repeat(512))),
            ],
        ),
    ];
    for (expected, entries) in cases {
        assert_eq!(refused(&entries), expected);
    }
    let not_text = Entry { path: b"a\xff".to_vec(), ..file("", "x") };
    assert_eq!(refused(&[not_text]), "a\u{fffd}: its path is not UTF-8");
    assert!(refused(&[file("a\u{1b}[31m", "x"), file("a\u{1b}[31m", "x")]).starts_with("a\\u{1b}[31m: "));
}

#[test]
fn a_tar_that_is_cut_off_or_goes_on_behind_its_end_is_refused() {
    let whole = tar(&[file("a", "x".repeat(1000)), file("b", "y")]);
    // The end may be missing, as some programs write it.
    let end = whole.len() - 1024;
    for length in [end, end + 512] {
        assert!(
            inspected(&image(&[raw_layer(whole[..length].to_vec())]).files(), &ImageLimits::default())
                .is_ok()
        );
    }
    for length in [1, 511, 512, 700, 1535, 1537, end - 1, end + 1] {
        let error = refused_layers(&[raw_layer(whole[..length].to_vec())]);
        assert!(error.starts_with("it ends within a "), "{length}: {error}");
    }
    let behind = [&whole[..], &tar(&[file("c", "z")])].concat();
    assert_eq!(refused_layers(&[raw_layer(behind)]), "there is data behind its end");
    let mut wrong = whole.clone();
    wrong[0] = b'z';
    assert_eq!(
        refused_layers(&[raw_layer(wrong)]),
        "a header has a wrong checksum: it is no tar, or damaged"
    );
}

#[test]
fn compressed_streams_that_are_cut_off_damaged_or_go_on_are_refused() {
    let whole = tar(&[file("a", "x".repeat(100_000))]);
    for made in [gzip_layer(&whole), zstd_layer(&whole)] {
        let change = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut layer = made.clone();
            change(&mut layer.stored);
            refused_layers(&[layer])
        };
        for error in [
            change(&|stored| stored.truncate(stored.len() - 3)),
            change(&|stored| stored.extend_from_slice(b"behind")),
            change(&|stored| stored.clear()),
            change(&|stored| stored[..2].fill(0)),
        ] {
            assert!(!error.is_empty());
        }
    }
    // Two streams after each other are one, in both forms.
    let (one, two) = whole.split_at(700);
    for (mut made, rest) in [(gzip_layer(one), gzip_layer(two)), (zstd_layer(one), zstd_layer(two))] {
        made.stored.extend(rest.stored);
        made.diff_id = periapt_host_api::Digest::of(&whole);
        assert!(inspected(&image(&[made]).files(), &ImageLimits::default()).is_ok());
    }
}

#[test]
fn bombs_end_at_their_bound() {
    let zeros = vec![0; 64 << 20];
    let bomb = tar(&[file("a", zeros)]);
    let limits = ImageLimits { ratio: 10, allowance: 1 << 20, ..ImageLimits::default() };
    for made in [gzip_layer(&bomb), zstd_layer(&bomb)] {
        let (stored, most) = (made.stored.len() as u64, (1 << 20) + 10 * made.stored.len() as u64);
        let error = refused_within(made, &limits);
        assert_eq!(error, format!("it has {stored} bytes and unpacks to more than {most}"));
    }
    // Zeros behind the end of a tar, and an extended header that never ends.
    let mut padded = tar(&[file("a", "x")]);
    padded.resize(64 << 20, 0);
    assert!(refused_within(gzip_layer(&padded), &limits).contains("unpacks to more than"));
    let long = Entry { content: vec![b'a'; 2 << 20], ..entry("././@LongLink", b'L') };
    assert_eq!(refused(&[long, file("a", "x")]), "an extended header is larger than 1 MiB");
    let claimed = Entry { size: Some(1 << 62), ..entry("x", b'x') };
    assert_eq!(refused(&[claimed]), "an extended header is larger than 1 MiB");
    let claimed = Entry { size: Some(1 << 62), ..file("a", "x") };
    assert_eq!(
        refused(&[claimed]),
        format!("a: it has {} bytes, and a file may have 4294967296", 1_u64 << 62)
    );
    // A hole of any size takes no bytes of the layer, and counts all the same.
    let names =
        [("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "9999999999999")];
    let error = refused(&[pax(&names), file("a", format!("0\n{}", "\0".repeat(510)))]);
    assert_eq!(error, "a: it has 9999999999999 bytes, and a file may have 4294967296");
    // A window of zstd that takes 2 GiB of memory.
    let frame = [&b"\x28\xb5\x2f\xfd\x00\xa8"[..], &[1, 0, 0]].concat();
    let mut made = zstd_layer(&bomb);
    made.stored = frame;
    assert!(!refused_within(made, &limits).is_empty());
}

#[test]
fn a_million_entries_are_refused_by_their_number_and_their_blocks() {
    let limits = ImageLimits { entries: 2000, ..ImageLimits::default() };
    let many: Vec<Entry> = (0..4000).map(|number| file(&format!("d/{number}"), "")).collect();
    let error = refused_within(gzip_layer(&tar(&many)), &limits);
    assert!(error.ends_with("the image has more than 2000 entries"), "{error}");
    let whiteouts: Vec<Entry> = (0..4000).map(|number| file(&format!(".wh.{number}"), "")).collect();
    assert!(refused_within(gzip_layer(&tar(&whiteouts)), &limits).ends_with("more than 2000 entries"));
    // Directories that paths alone name are entries, too.
    let deep: Vec<Entry> =
        (0..40).map(|number| pax(&[("path", &format!("{number}/{}x", "d/".repeat(100)))])).collect();
    let deep: Vec<Entry> = deep.into_iter().flat_map(|header| [header, file("x", "")]).collect();
    assert!(refused_within(gzip_layer(&tar(&deep)), &limits).ends_with("more than 2000 entries"));
    let limits = ImageLimits { unpacked: 1 << 20, ..ImageLimits::default() };
    let error = refused_within(gzip_layer(&tar(&many[..300])), &limits);
    assert!(error.ends_with("unpacks to more than 1048576 bytes"), "{error}");
}

#[test]
fn paths_and_attributes_have_bounds() {
    let path = |path: &str| refused(&[pax(&[("path", path)]), file("a", "x")]);
    assert!(path(&format!("{}x", "a/".repeat(128))).ends_with("its path has more than 128 parts"));
    assert!(path(&"a".repeat(256)).ends_with("its path has a part of more than 255 bytes"));
    assert!(path(&format!("{}x", "abcdefg/".repeat(600))).ends_with("its path is longer than 4095 bytes"));
    let link = refused(&[pax(&[("linkpath", &"a".repeat(4096))]), entry("a", b'2')]);
    assert_eq!(link, "a: its link names nothing, or too much");
    let names: Vec<String> = (0..65).map(|number| format!("SCHILY.xattr.user.{number}")).collect();
    let records: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    assert_eq!(refused(&[pax(&records), file("a", "x")]), "an entry has more than 64 extended attributes");
}

#[test]
fn whiteouts_of_much_cost_no_more_than_what_they_remove() {
    let count = 10_000;
    let lower: Vec<Entry> = (0..count)
        .flat_map(|number| [directory(&format!("{number}")), file(&format!("{number}/x"), "")])
        .collect();
    let upper: Vec<Entry> = (0..count).map(|number| file(&format!(".wh.{number}"), "")).collect();
    let files = image(&[gzip_layer(&tar(&lower)), gzip_layer(&tar(&upper))]).files();
    let begun = Instant::now();
    let content = inspected(&files, &ImageLimits::default()).unwrap();
    assert_eq!(content.merged.entries.len(), 1);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn an_image_that_takes_too_long_is_refused() {
    let limits = ImageLimits { time: Duration::ZERO, ..ImageLimits::default() };
    assert_eq!(refused_within(gzip_layer(&tar(&[file("a", "x")])), &limits), "it took longer than 0 s");
}

#[test]
fn an_image_whose_last_layer_is_refused_leaves_its_valid_layers_alone() {
    let work = work();
    let first = layer(&[file("a", "1"), Entry { mode: 0o000, ..directory("locked") }, file("locked/x", "1")]);
    let files: Files = image(&[first, layer(&[file("a", "2"), file("../x", "2")])]).files();
    assert!(unpacked(&work, &files, &ImageLimits::default()).is_err());
    let kept: Vec<_> = fs::read_dir(work.path("cache")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let layers: Vec<_> = kept.iter().filter(|path| path.is_dir()).collect();
    assert_eq!(layers.len(), 1, "{kept:?}");
    assert_eq!(listed(&layers[0].join("files")).len(), 3);
}
