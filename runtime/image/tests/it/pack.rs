//! Images that are made from directories.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        net::UnixListener,
    },
    path::Path,
    time::{Duration, SystemTime},
};

use periapt_image::{
    EntryKind, ImageLimits, ImagePackError, ImagePlatform, ImageRecipe, ImageSettings, LayerCache,
    PackedImage, pack_image,
};

use crate::made::{Work, chosen, work};

fn recipe(directory: &Path) -> ImageRecipe {
    ImageRecipe {
        directory: directory.to_owned(),
        settings: ImageSettings {
            entrypoint: vec!["/bin/web".into()],
            environment: vec!["A=1".into(), "B=".into()],
            ports: vec!["8080/tcp".into()],
            labels: ["b", "a", "c"].map(|key| (key.to_owned(), "x".to_owned())).into(),
            ..ImageSettings::default()
        },
        platform: ImagePlatform::of_this_host(),
        reference: Some("1.0".into()),
    }
}

/// Makes a directory with a file of each kind.
fn tree(work: &Work, name: &str) -> std::path::PathBuf {
    let root = work.path(name);
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::write(root.join("bin/web"), "program").unwrap();
    fs::set_permissions(root.join("bin/web"), fs::Permissions::from_mode(0o4755)).unwrap();
    fs::hard_link(root.join("bin/web"), root.join("bin/again")).unwrap();
    symlink("bin/web", root.join("link")).unwrap();
    symlink("/etc/passwd", root.join("out")).unwrap();
    let long = format!("{}/{}", "d".repeat(120), "f".repeat(120));
    fs::create_dir(root.join("d".repeat(120))).unwrap();
    fs::write(root.join(&long), "long").unwrap();
    drop(UnixListener::bind(root.join("socket")).unwrap());
    root
}

fn packed(work: &Work, recipe: &ImageRecipe, name: &str) -> Result<PackedImage, ImagePackError> {
    pack_image(recipe, &work.path(name), &ImageLimits::default())
}

#[test]
fn the_same_directory_gives_the_same_bytes_which_are_read_back() {
    let work = work();
    let first = tree(&work, "first");
    let second = tree(&work, "second");
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    fs::File::open(second.join("bin/web")).unwrap().set_modified(old).unwrap();
    let one = packed(&work, &recipe(&first), "one.tar").unwrap();
    let two = packed(&work, &recipe(&second), "two.tar").unwrap();
    assert_eq!(one, two);
    assert!(fs::read(work.path("one.tar")).unwrap() == fs::read(work.path("two.tar")).unwrap());
    assert_eq!((one.entries, one.skipped.as_slice()), (7, &["socket".to_owned()][..]));

    let (file, image) = chosen(&work.path("one.tar"), &ImageLimits::default()).unwrap();
    assert_eq!(image.digest, one.digest);
    assert_eq!(image.references, ["1.0"]);
    assert_eq!(image.settings, recipe(&first).settings);
    let cache = LayerCache::open(&work.path("cache")).unwrap();
    let unpacked = cache.unpack(&file, &image).unwrap();
    let table = &unpacked.layers[0].table.entries;
    assert_eq!(table["bin/again"].kind, EntryKind::File { size: 7 });
    assert_eq!(table["bin/web"].kind, EntryKind::HardLink { of: "bin/again".into(), size: 7 });
    assert_eq!(table["bin/web"].mode, 0o4755);
    assert!(table.values().all(|entry| (entry.uid, entry.gid, entry.time) == (0, 0, (0, 0))));
    let root = work.path("root");
    unpacked.assemble(&root).unwrap();
    assert_eq!(fs::read(root.join("bin/web")).unwrap(), b"program");
    assert_eq!(fs::read_link(root.join("out")).unwrap(), Path::new("/etc/passwd"));
}

#[test]
fn what_no_image_can_have_is_refused_and_an_older_file_stays() {
    let work = work();
    let root = work.path("root");
    fs::create_dir(&root).unwrap();
    fs::write(work.path("image.tar"), "older").unwrap();
    let refused = |recipe: &ImageRecipe| {
        let error = packed(&work, recipe, "image.tar").unwrap_err().to_string();
        assert_eq!(fs::read(work.path("image.tar")).unwrap(), b"older");
        error
    };
    let own = recipe(&root);
    fs::write(root.join(".wh.x"), "").unwrap();
    assert!(refused(&own).ends_with("names that begin with .wh. mark what is gone in images"));
    fs::remove_file(root.join(".wh.x")).unwrap();
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff");
    fs::write(root.join(name), "").unwrap();
    assert!(refused(&own).ends_with("its name is not UTF-8"));
    fs::remove_file(root.join(name)).unwrap();

    let mut other = own.clone();
    other.settings.environment = vec!["A".into()];
    assert_eq!(refused(&other), "the image: its environment has an entry that is not KEY=VALUE");
    let mut other = own.clone();
    other.platform.architecture = "x86-64".into();
    assert_eq!(refused(&other), "the platform linux/x86-64 is none of linux, such as linux/amd64");
    assert!(refused(&recipe(&work.path("nothing"))).contains("cannot read"));
    // Bytes that the reader takes for a bomb.
    fs::File::create(root.join("zeros")).unwrap().set_len(64 << 20).unwrap();
    let error = refused(&own);
    assert!(error.starts_with("the image would be refused: layer 1 "), "{error}");
    fs::remove_file(root.join("zeros")).unwrap();

    let inside = pack_image(&own, &root.join("image.tar"), &ImageLimits::default()).unwrap_err();
    assert!(inside.to_string().ends_with("write it outside of the directory"), "{inside}");
    let device = pack_image(&own, Path::new("/dev/null"), &ImageLimits::default()).unwrap_err();
    assert!(device.to_string().ends_with("it exists and is no file"), "{device}");
    let few = ImageLimits { entries: 1, ..ImageLimits::default() };
    fs::create_dir_all(root.join("a/b")).unwrap();
    let many = pack_image(&own, &work.path("image.tar"), &few).unwrap_err();
    assert!(many.to_string().ends_with("it has more than 1 files and directories"), "{many}");
    let left: Vec<_> = fs::read_dir(work.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}
