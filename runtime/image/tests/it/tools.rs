//! Images that other programs make: `umoci` and `skopeo`, which `tools/image-tools` finds or fetches.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use periapt_image::{
    ImageChoice, ImageLimits, ImagePlatform, ImageRecipe, ImageSettings, ImageSource, LayerCache, pack_image,
};

use crate::{
    made::{Work, work},
    unpack::listed,
};

/// Returns the path of a program of the repository's tools, which finds or fetches one.
pub(crate) fn found(tool: &str) -> PathBuf {
    let path = format!("{}/../../tools/{tool}", env!("CARGO_MANIFEST_DIR"));
    let found = Command::new(&path).stdin(Stdio::null()).output().unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    String::from_utf8(found.stdout).unwrap().trim().into()
}

fn tools() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| found("image-tools"))
}

/// Runs a program in the directory of a test.
fn ran(work: &Work, program: &str, arguments: &[&str]) {
    let mut command = Command::new(tools().join(program));
    command.args(arguments).current_dir(work.0.path()).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Copies an image by skopeo, with no policy of signatures.
pub(crate) fn copied(work: &Work, arguments: &[&str]) {
    ran(work, "skopeo", &[&["--insecure-policy", "copy", "--quiet"], arguments].concat());
}

/// Makes an image of two layers by umoci: `layout`, with the name `web`.
pub(crate) fn by_umoci(work: &Work) {
    ran(work, "umoci", &["init", "--layout", "layout"]);
    ran(work, "umoci", &["new", "--image", "layout:web"]);
    ran(work, "umoci", &["unpack", "--rootless", "--image", "layout:web", "bundle"]);
    let root = work.path("bundle/rootfs");
    fs::create_dir_all(root.join("usr/bin")).unwrap();
    fs::create_dir(root.join("srv")).unwrap();
    for (path, content) in
        [("usr/bin/web", "program"), ("srv/old", "old"), ("srv/page", "page"), ("gone", "x")]
    {
        fs::write(root.join(path), content).unwrap();
    }
    fs::hard_link(root.join("usr/bin/web"), root.join("usr/bin/again")).unwrap();
    symlink("usr/bin", root.join("bin")).unwrap();
    ran(work, "umoci", &["repack", "--refresh-bundle", "--image", "layout:web", "bundle"]);
    fs::remove_file(root.join("gone")).unwrap();
    fs::remove_dir_all(root.join("srv")).unwrap();
    fs::create_dir(root.join("srv")).unwrap();
    fs::write(root.join("srv/new"), "new").unwrap();
    ran(work, "umoci", &["repack", "--refresh-bundle", "--image", "layout:web", "bundle"]);
    ran(
        work,
        "umoci",
        &["config", "--image", "layout:web", "--config.entrypoint", "/bin/web", "--config.env", "A=1"],
    );
}

#[test]
fn what_umoci_made_is_what_umoci_unpacks_in_each_form_that_skopeo_writes() {
    let work = work();
    by_umoci(&work);
    copied(&work, &["oci:layout:web", "docker-archive:docker.tar:example/web:1"]);
    copied(&work, &["oci:layout:web", "oci-archive:archive.tar:web"]);
    copied(
        &work,
        &["--dest-compress", "--dest-compress-format", "zstd", "docker-archive:docker.tar", "oci:zstd:web"],
    );
    ran(&work, "umoci", &["unpack", "--rootless", "--image", "layout:web", "expected"]);
    let expected = listed(&work.path("expected/rootfs"));
    assert_eq!(expected.len(), 7, "{expected:?}");
    for name in ["layout", "docker.tar", "archive.tar", "zstd"] {
        let file = ImageSource::open(&work.path(name), &ImageLimits::default()).unwrap();
        let image = file.choose(&ImageChoice::default()).unwrap();
        assert_eq!(image.layers.len(), 2);
        assert_eq!(image.settings.entrypoint, ["/bin/web"]);
        let cache = LayerCache::open(&work.path("cache")).unwrap();
        let root = work.path(&format!("root-of-{name}"));
        cache.unpack(&file, &image).unwrap().assemble(&root).unwrap();
        assert_eq!(listed(&root), expected, "{name}");
        // All forms have the same layers.
        assert_eq!(cache.layers().unwrap().len(), 2);
    }
}

#[test]
fn what_is_packed_here_is_read_by_skopeo_and_unpacked_by_umoci() {
    let work = work();
    let root = work.path("own");
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::write(root.join("bin/web"), "program").unwrap();
    symlink("bin/web", root.join("web")).unwrap();
    let recipe = ImageRecipe {
        directory: root,
        settings: ImageSettings { entrypoint: vec!["/bin/web".into()], ..ImageSettings::default() },
        platform: ImagePlatform::of_this_host(),
        reference: Some("web".into()),
    };
    pack_image(&recipe, &work.path("own.tar"), &ImageLimits::default()).unwrap();
    copied(&work, &["oci-archive:own.tar:web", "oci:copy:web"]);
    ran(&work, "umoci", &["unpack", "--rootless", "--image", "copy:web", "bundle"]);
    assert_eq!(fs::read(work.path("bundle/rootfs/web")).unwrap(), b"program");
}
