//! Images that are made to do harm, as archives for an operator's commands.

use periapt_image::testing::{
    CraftedEntry, CraftedLayer, LayoutFiles, directory, entry, file, gzip_layer, hard_link, image, layer,
    link, members, pax, tar, zstd_layer,
};
use serde_json::{Value, json};

/// The bytes of zeros that a bomb unpacks to: more than a layer of its size may have.
const BOMB: usize = 64 << 20;

/// The names of what hostile images would write or change begin with this word.
pub const EVIL: &str = "periapt-evil";

/// An image that is made to do harm.
#[derive(Debug)]
pub struct HostileImage {
    /// The harm in words, which is the name of a file, too.
    pub name: &'static str,
    /// The archive.
    pub archive: Vec<u8>,
    /// The answer to it.
    pub fate: ImageFate,
}

/// The answer to a hostile image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFate {
    /// It is refused with one error that contains these words.
    Refused(&'static str),
    /// It is taken and does no harm.
    Harmless,
}

/// Returns the hostile images. Those that are taken have the directory `etc/NAME`, and a lower layer with `program` as
/// `/bin/busybox` and as each of `applets`.
pub fn hostile_images(program: &[u8], applets: &[&str]) -> Vec<HostileImage> {
    let mut images = hostile_paths();
    images.extend(hostile_sizes());
    images.extend(hostile_documents());
    images.extend(harmless(&programs(program, applets)));
    images
}

/// Returns an image that is refused.
fn refused(name: &'static str, error: &'static str, layers: &[CraftedLayer]) -> HostileImage {
    refused_files(name, error, &image(layers).files())
}

fn refused_files(name: &'static str, error: &'static str, files: &LayoutFiles) -> HostileImage {
    HostileImage { name, archive: tar(&members(files)), fate: ImageFate::Refused(error) }
}

/// Returns images whose paths and links would lead out of their root.
fn hostile_paths() -> Vec<HostileImage> {
    let one = |name, error, entries: &[CraftedEntry]| refused(name, error, &[layer(entries)]);
    let up = "../".repeat(20);
    let long = format!("{up}tmp/{EVIL}");
    let below = "there are files below it, and it is no directory";
    let impossible = "it is a whiteout of something that no layer can have";
    vec![
        one("parent", "its path has a part `..`", &[file(&format!("../{EVIL}"), "x")]),
        one("parents", "its path has a part `..`", &[pax(&[("path", &long)]), file("a", "x")]),
        one("hard-link", "leads out of the image", &[hard_link(EVIL, &format!("{up}etc/passwd"))]),
        one("through-a-link", below, &[link("a", "/tmp"), file(&format!("a/{EVIL}"), "x")]),
        refused(
            "through-an-earlier-link",
            "which is no directory in an earlier layer",
            &[layer(&[link("a", "/tmp")]), layer(&[file(&format!("a/{EVIL}"), "x")])],
        ),
        one("whiteout-of-the-parent", impossible, &[file("a/.wh...", "")]),
        one("whiteout-of-itself", impossible, &[file("a/.wh..", "")]),
        one("twice", "it is in the layer twice", &[file("a", "1"), file("./a", "2")]),
        one("link-and-file", "it is in the layer twice", &[link("a", "/etc/passwd"), file("a", "x")]),
        one("unknown-kind", "its kind 'Z' is unknown", &[entry("a", b'Z')]),
    ]
}

/// Returns images that would take a disk, memory or time.
fn hostile_sizes() -> Vec<HostileImage> {
    let bomb = tar(&[file(EVIL, vec![0; BOMB])]);
    let sparse =
        [("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "9999999999999")];
    let hole = file(EVIL, format!("0\n{}", "\0".repeat(510)));
    let claimed = CraftedEntry { size: Some(1 << 62), ..file(EVIL, "x") };
    let deep = format!("{}{EVIL}", "d/".repeat(128));
    let long = CraftedEntry { content: vec![b'a'; 2 << 20], ..entry("././@LongLink", b'L') };
    // All layers are one blob.
    let mut many = image(&vec![layer(&[]); 128]).files();
    many.dedup();
    let most = "a file may have 4294967296";
    vec![
        refused("gzip-bomb", "unpacks to more than", &[gzip_layer(&bomb)]),
        refused("zstd-bomb", "unpacks to more than", &[zstd_layer(&bomb)]),
        refused("sparse", most, &[layer(&[pax(&sparse), hole])]),
        refused("claimed", most, &[layer(&[claimed])]),
        refused(
            "deep",
            "its path has more than 128 parts",
            &[layer(&[pax(&[("path", &deep)]), file("a", "x")])],
        ),
        refused("long-name", "an extended header is larger than 1 MiB", &[layer(&[long, file("a", "x")])]),
        refused_files("many-layers", "there are 128, and may be 127", &many),
    ]
}

/// Replaces a part of an image's configuration.
fn set(configuration: &mut Value, part: &str, value: Value) {
    if let Some(place) = configuration.pointer_mut(part) {
        *place = value;
    }
}

/// Returns images whose parts do not belong together.
fn hostile_documents() -> Vec<HostileImage> {
    let honest = || image(&[layer(&[file("a", "x")])]);
    let mut other = honest();
    set(&mut other.configuration, "/rootfs/diff_ids", json!([format!("sha256:{}", "0".repeat(64))]));
    let mut foreign = honest();
    set(&mut foreign.configuration, "/architecture", json!("riscv64"));
    let made = honest();
    let manifest = made.manifest();
    let digest = manifest.pointer("/layers/0/digest").and_then(Value::as_str).unwrap_or_default();
    let is_layer = |name: &str| digest.strip_prefix("sha256:").is_some_and(|hex| name.ends_with(hex));
    let mut missing = made.files();
    missing.retain(|(name, _)| !is_layer(name));
    let mut damaged = made.files();
    for (_, content) in damaged.iter_mut().filter(|(name, _)| is_layer(name)) {
        // A byte of the file's content.
        if let Some(byte) = content.get_mut(512) {
            *byte ^= 0xff;
        }
    }
    let cut = {
        let mut archive = tar(&members(&made.files()));
        archive.truncate(archive.len() / 2);
        archive
    };
    vec![
        refused_files("another-digest", "it unpacks to another layer", &other.files()),
        refused_files("another-architecture", "the image is for linux/riscv64", &foreign.files()),
        refused_files("missing-layer", "it is missing", &missing),
        refused_files("damaged-layer", "layer 1", &damaged),
        HostileImage { name: "cut", archive: cut, fate: ImageFate::Refused("cut.tar: ") },
        HostileImage { name: "zeros", archive: vec![0; 1 << 20], fate: ImageFate::Refused("zeros.tar: ") },
        HostileImage {
            name: "text",
            archive: b"no image".to_vec(),
            fate: ImageFate::Refused("this is no image"),
        },
    ]
}

/// Returns the entries of a root with one program under several names.
fn programs(program: &[u8], applets: &[&str]) -> Vec<CraftedEntry> {
    let busybox = CraftedEntry { mode: 0o755, ..file("bin/busybox", program) };
    let names = applets.iter().map(|applet| link(&format!("bin/{applet}"), "busybox"));
    [directory("bin"), directory("etc"), busybox].into_iter().chain(names).collect()
}

/// Returns images that are taken, above a layer with programs.
fn harmless(programs: &[CraftedEntry]) -> Vec<HostileImage> {
    let one = |name: &'static str, entries: &[CraftedEntry]| {
        let marked = [&[directory("etc"), directory(&format!("etc/{name}"))][..], entries].concat();
        let made = image(&[gzip_layer(&tar(programs)), layer(&marked)]);
        HostileImage { name, archive: tar(&members(&made.files())), fate: ImageFate::Harmless }
    };
    let inside = |name: &str| format!("etc/{EVIL}-{name}");
    let special = |mode| CraftedEntry { mode, ..file(&inside("suid"), "x") };
    vec![
        one(
            "devices",
            &[entry(&inside("disk"), b'4'), entry(&inside("memory"), b'3'), entry(&inside("pipe"), b'6')],
        ),
        one("set-user-id", &[special(0o6755)]),
        one("absolute", &[file(&format!("/{}", inside("absolute")), "x")]),
        one(
            "links",
            &[
                link(&inside("link"), "../../../../../../etc/passwd"),
                hard_link(&inside("hard"), &inside("link")),
            ],
        ),
        one("whiteouts", &[file("etc/.wh.nothing", ""), file("etc/.wh..wh..opq", "")]),
        one("locked", &[CraftedEntry { mode: 0, ..directory(&inside("locked")) }]),
    ]
}
