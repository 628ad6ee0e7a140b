//! The seeds of the fuzz targets, by the builders of tests and by what packs images. Those in `seeds` come on top.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use periapt_image::{
    ImageLimits, ImagePlatform, ImageRecipe, ImageSettings, pack_image,
    testing::{
        CraftedEntry, CraftedImage, directory, entry, file, files_of, gzip_layer, hard_link, image, link,
        members, pax, raw_layer, tar, zstd_layer,
    },
};
use tempfile::TempDir;

use super::target;

/// Returns documents: each kind that an image has.
pub(crate) fn documents() -> Vec<Vec<u8>> {
    let made = target::neighbour();
    let manifest = made.manifest().to_string().into_bytes();
    let index = files_of(&[made.described(&manifest)]).pop().unwrap().1;
    let configuration = made.configuration.to_string().into_bytes();
    vec![
        br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec(),
        index,
        manifest,
        configuration,
        target::DOCKER.to_vec(),
    ]
}

/// Returns archives: of a layout and of Docker, and one that was packed.
pub(crate) fn archive() -> Vec<Vec<u8>> {
    let compressed = image(&[gzip_layer(&lower()), zstd_layer(&upper())]);
    let plain = image(&[raw_layer(lower()), raw_layer(upper())]);
    vec![layout(&compressed), layout(&plain), tar(&plain.docker("web:1")), packed()]
}

/// Returns layers in each form.
pub(crate) fn layers() -> Vec<Vec<u8>> {
    let (lower, upper) = (lower(), upper());
    let compressed = [gzip_layer(&lower).stored, zstd_layer(&upper).stored];
    let alone = [lower.clone(), upper.clone()].into_iter().chain(compressed.clone());
    alone.chain([[lower, upper].join(target::BETWEEN), compressed.join(target::BETWEEN)]).collect()
}

/// Returns a layer with entries of each kind.
fn lower() -> Vec<u8> {
    let long = "long/".repeat(30) + "path";
    tar(&[
        directory("bin/"),
        file("bin/a", "program"),
        hard_link("bin/b", "bin/a"),
        CraftedEntry { mode: 0o4755, ..file("bin/su", "root's") },
        link("sbin", "bin"),
        pax(&[("path", long.as_str()), ("mtime", "1.5"), ("uid", "3000000"), ("SCHILY.xattr.user.x", "y")]),
        file("x", "content"),
        CraftedEntry { content: b"named/by/gnu\0".to_vec(), ..entry("././@LongLink", b'L') },
        file("x", "content"),
        entry("dev/null", b'3'),
        entry("run/pipe", b'6'),
        CraftedEntry { mode: 0o1777, owner: (1000, 1000), ..directory("srv/") },
        file("srv/page", "<p>a page</p>"),
    ])
}

/// Returns a layer that changes what is below it.
fn upper() -> Vec<u8> {
    tar(&[
        file("bin/.wh.a", ""),
        file("srv/.wh..wh..opq", ""),
        file("srv/other", "another page"),
        file("sbin", "no link any more"),
        directory("run/pipe/"),
    ])
}

fn layout(made: &CraftedImage) -> Vec<u8> {
    tar(&members(&made.files()))
}

/// Returns what `image pack` makes of a directory.
fn packed() -> Vec<u8> {
    let work = TempDir::new_in(target::place()).unwrap();
    let (tree, output) = (work.path().join("tree"), work.path().join("image.tar"));
    fs::create_dir_all(tree.join("srv/pages")).unwrap();
    fs::write(tree.join("srv/web"), "program").unwrap();
    fs::set_permissions(tree.join("srv/web"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(tree.join("srv/pages/first"), "<p>a page</p>").unwrap();
    fs::hard_link(tree.join("srv/pages/first"), tree.join("srv/pages/second")).unwrap();
    symlink("srv/pages", tree.join("pages")).unwrap();
    let settings = ImageSettings {
        entrypoint: vec!["/srv/web".into()],
        environment: vec!["A=b".into()],
        ..ImageSettings::default()
    };
    let (platform, reference) = (ImagePlatform::of_this_host(), Some("web:1".into()));
    let recipe = ImageRecipe { directory: tree, settings, platform, reference };
    pack_image(&recipe, &output, &ImageLimits::default()).unwrap();
    fs::read(output).unwrap()
}
