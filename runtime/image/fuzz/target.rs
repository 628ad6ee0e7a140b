//! The fuzz targets: strangers' bytes as documents, archives and layers of images. Each is read as a controller and an agent
//! read it, and refused with one short line, or is what its tables say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, Metadata},
    io::{Read, Seek as _, Write as _},
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use flate2::read::MultiGzDecoder;
use periapt_host_api::Digest;
use periapt_image::{
    EntryKind, ImageChoice, ImageContent, ImageError, ImageLimits, ImageSource, ImageSourceForm, LayerCache,
    LayerTable, MAX_DEPTH, MAX_LAYERS, MAX_NAME, MAX_PATH, MergedTable, UnpackedImage, layer_files,
    testing::{
        CONFIG, CraftedImage, CraftedLayer, INDEX, LayoutFiles, MANIFEST, descriptor, file, files_of, image,
        layer, members, tar,
    },
};
use tempfile::TempDir;

/// The bytes between two layers of an input.
pub(crate) const BETWEEN: &[u8] = b"<LAYER>";

/// The most layers of an input.
const LAYERS: usize = 8;

/// The longest error, in bytes: one that names several images, whose names are long.
const LONGEST: usize = 8 << 10;

/// Bounds that an input of some KiB can reach.
fn limits() -> ImageLimits {
    ImageLimits {
        file: 1 << 20,
        unpacked: 4 << 20,
        allowance: 1 << 20,
        entries: 200,
        ..ImageLimits::default()
    }
}

/// Returns the image that documents are read beside.
pub(crate) fn neighbour() -> CraftedImage {
    image(&[layer(&[file("bin/web", "program")])])
}

/// Reads bytes as each document that an image has. Returns true if an image with it can be unpacked.
pub(crate) fn documents(bytes: &[u8]) -> bool {
    let made = neighbour();
    let blob = |content: &[u8]| (format!("blobs/sha256/{}", Digest::of(content)), content.to_vec());
    let renamed = |name: &str| {
        let mut files = made.files();
        files.retain(|(other, _)| other != name);
        files.push((name.to_owned(), bytes.to_vec()));
        files
    };
    let described = |described| {
        let mut files = files_of(&[described]);
        files.push(blob(bytes));
        files.extend(made.files().into_iter().skip(2));
        files
    };
    let configured = {
        let mut manifest = made.manifest();
        manifest["config"] = descriptor(CONFIG, bytes);
        let mut files = made.files_with(&manifest);
        files.push(blob(bytes));
        files
    };
    let stored = made.layers.first().map(|layer| layer.stored.clone()).unwrap_or_default();
    let docker = |manifest: &[u8], configuration: &[u8]| -> LayoutFiles {
        vec![
            ("manifest.json".into(), manifest.to_vec()),
            ("config.json".into(), configuration.to_vec()),
            ("layer.tar".into(), stored.clone()),
        ]
    };
    let forms = [
        renamed("oci-layout"),
        renamed("index.json"),
        described(descriptor(INDEX, bytes)),
        described(descriptor(MANIFEST, bytes)),
        configured,
        docker(bytes, made.configuration.to_string().as_bytes()),
        docker(DOCKER, bytes),
    ];
    let read: Vec<bool> = forms.iter().map(|files| archive(&packed(files))).collect();
    read.contains(&true)
}

/// The manifest of `docker save`, with the image of the other files.
pub(crate) const DOCKER: &[u8] = br#"[{"Config":"config.json","RepoTags":["web:1"],"Layers":["layer.tar"]}]"#;

/// Returns the archive of files. Files that are there twice are the same.
fn packed(files: &LayoutFiles) -> Vec<u8> {
    let mut files = files.clone();
    files.sort();
    files.dedup();
    tar(&members(&files))
}

/// Reads bytes as the archive of an image. Returns true if the image can be unpacked.
pub(crate) fn archive(bytes: &[u8]) -> bool {
    let read = opened(bytes).and_then(|source| {
        let image = source.choose(&ImageChoice::default())?;
        assert!(image.layers.len() <= MAX_LAYERS, "{} layers", image.layers.len());
        let content = source.inspect(&image)?;
        check_tables(&content.layers, &content.merged);
        if source.form() == ImageSourceForm::Layout {
            // What a client sends of it is the same image.
            let mut sent = Vec::new();
            source.write_archive(&image, &mut sent, Path::new("the sent image")).unwrap();
            let source = opened(&sent).unwrap();
            let received = source.choose(&ImageChoice::default()).unwrap();
            assert_eq!((received.digest, &received.settings), (image.digest, &image.settings));
            let ImageContent { layers, merged } = source.inspect(&received).unwrap();
            assert_eq!((layers, merged), (content.layers, content.merged));
        }
        Ok(())
    });
    read.as_ref().map_err(check_error).is_ok()
}

fn opened(bytes: &[u8]) -> Result<ImageSource, ImageError> {
    let mut file = tempfile::tempfile_in(place()).unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    ImageSource::of_file(file, &limits())
}

/// Unpacks bytes as the layers of an image, which are tar or tar by gzip or zstd, and have [`BETWEEN`] between them. Returns
/// true if they can be unpacked.
pub(crate) fn layers(bytes: &[u8]) -> bool {
    let crafted: Vec<CraftedLayer> = pieces(bytes).into_iter().take(LAYERS).map(crafted).collect();
    let digests: BTreeSet<Digest> = crafted.iter().map(|layer| layer.diff_id).collect();
    let work = TempDir::new_in(place()).unwrap();
    let (outside, directory) = (work.path().join("outside"), work.path().join("cache"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    let source = opened(&packed(&image(&crafted).files())).unwrap();
    let chosen = source.choose(&ImageChoice::default()).unwrap();
    let cache = LayerCache::open(&directory).unwrap();
    let (read, unpacked) = (source.inspect(&chosen), cache.unpack(&source, &chosen));
    // A layer that is there a second time is not read again, and then has fewer entries than its tar.
    match (&read, &unpacked) {
        (Ok(read), Ok(unpacked)) => {
            let tables = unpacked.layers.iter().map(|layer| &layer.table);
            assert!(
                read.layers.iter().eq(tables) && read.merged == unpacked.merged,
                "{read:?}, {unpacked:?}"
            );
            check_tables(&read.layers, &read.merged);
        }
        (Err(read), Err(unpacked)) if digests.len() == crafted.len() => {
            assert_eq!(read.to_string(), unpacked.to_string());
        }
        _ => assert!(digests.len() < crafted.len(), "{read:?}, and {unpacked:?}"),
    }
    for error in [read.as_ref().err(), unpacked.as_ref().err()].into_iter().flatten() {
        check_error(error);
    }
    if let Ok(unpacked) = &unpacked {
        check_files(&directory, unpacked);
        let again = cache.unpack(&source, &chosen).unwrap();
        assert!(again.merged == unpacked.merged, "{again:?}, {unpacked:?}");
        let root = work.path().join("root");
        unpacked.assemble(&root).unwrap();
        check_root(&root, &unpacked.merged);
        fs::remove_dir_all(root).unwrap();
    }
    // Only whole layers stay, and nothing is written beside them.
    assert_eq!(names(work.path()), ["cache", "outside"]);
    assert_eq!(names(&outside), ["kept"]);
    assert_eq!(fs::read(outside.join("kept")).unwrap(), b"kept");
    assert_eq!(fs::metadata(outside.join("kept")).unwrap().nlink(), 1);
    for name in names(&directory).iter().filter(|name| *name != ".lock") {
        assert!(name.parse().is_ok_and(|digest| digests.contains(&digest)), "{name} is in the cache");
        assert_eq!(names(&directory.join(name)), ["files", "table.json"]);
    }
    unpacked.is_ok()
}

/// Returns the pieces of an input.
fn pieces(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while let Some(at) = bytes.windows(BETWEEN.len()).position(|window| window == BETWEEN) {
        pieces.push(&bytes[..at]);
        bytes = &bytes[at + BETWEEN.len()..];
    }
    pieces.push(bytes);
    pieces
}

/// Returns a layer of stored bytes, with the digest of what they unpack to.
fn crafted(stored: &[u8]) -> CraftedLayer {
    let (form, tar) = match stored {
        [0x1f, 0x8b, ..] => ("+gzip", decoded(MultiGzDecoder::new(stored))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            ("+zstd", zstd::Decoder::new(stored).map(decoded).unwrap_or_default())
        }
        _ => ("", stored.to_vec()),
    };
    let media_type = format!("application/vnd.oci.image.layer.v1.tar{form}");
    CraftedLayer { media_type, stored: stored.to_vec(), diff_id: Digest::of(&tar) }
}

/// Returns what a decoder reads until it fails, if that is not too much.
fn decoded(decoder: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = decoder.take(2 * limits().unpacked).read_to_end(&mut bytes);
    bytes
}

/// Returns a directory for files: in memory, if layers can be unpacked there. Unpacking waits for the disk.
pub(crate) fn place() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        match TempDir::new_in(memory).is_ok_and(|probe| LayerCache::open(probe.path()).is_ok()) {
            true => memory.to_owned(),
            false => std::env::temp_dir(),
        }
    })
}

fn check_error(error: &ImageError) {
    let text = error.to_string();
    assert!(!error.is_of_host(), "{text}");
    assert!(text.len() < LONGEST && !text.contains(char::is_control), "{text:?}");
}

/// Checks that an image is within its bounds.
fn check_tables(layers: &[LayerTable], merged: &MergedTable) {
    let limits = limits();
    // A layer without any entry has its root.
    let entries: usize = layers.iter().map(|table| table.entries.len()).sum();
    assert!(entries as u64 <= limits.entries + layers.len() as u64, "{entries} entries");
    let content = layers.iter().map(LayerTable::content).sum::<u64>();
    assert!(content <= limits.unpacked, "{content} bytes");
    assert!(merged.is_whole(), "{merged:?}");
    for (path, entry) in layers.iter().flat_map(|table| &table.entries) {
        let parts: Vec<&str> = path.split('/').collect();
        assert!(path.len() <= MAX_PATH && parts.len() <= MAX_DEPTH && !path.contains('\0'), "{path:?}");
        let is_name = |part: &&str| !matches!(*part, "" | "." | "..") && part.len() <= MAX_NAME;
        assert!(path.is_empty() || parts.iter().all(is_name), "{path:?}");
        if let EntryKind::File { size } | EntryKind::HardLink { size, .. } = entry.kind {
            assert!(size <= limits.file, "{path:?} has {size} bytes");
        }
    }
}

/// Checks that the directories of layers have what their tables say and nothing else, and no device but whiteouts.
fn check_files(cache: &Path, unpacked: &UnpackedImage) {
    for layer in &unpacked.layers {
        let directory = layer_files(cache, layer.diff_id);
        assert_eq!(layer.files, directory);
        for (path, found) in listed(&directory) {
            let entry = layer.table.entries.get(&path).unwrap();
            let is_whiteout = found.file_type().is_char_device() && found.rdev() == 0;
            let is_nothing = matches!(entry.kind, EntryKind::Whiteout | EntryKind::Skipped { .. });
            assert_eq!(is_whiteout, is_nothing, "{path:?}: {entry:?}");
            assert!(found.mode() & 0o6000 == 0, "{path:?} gives rights");
        }
    }
}

/// Checks that a root has what the table says, and nothing else.
fn check_root(root: &Path, merged: &MergedTable) {
    let mut found = listed(root);
    for (path, (_, entry)) in merged.entries.iter().filter(|(path, _)| !path.is_empty()) {
        let there = found.remove(path);
        let is_right = match (&entry.kind, &there) {
            (EntryKind::Whiteout | EntryKind::Skipped { .. }, None) => true,
            (EntryKind::File { size } | EntryKind::HardLink { size, .. }, Some(there)) => {
                there.is_file() && there.len() == *size
            }
            (EntryKind::Directory { .. }, Some(there)) => there.is_dir(),
            (EntryKind::Link { target }, Some(there)) => {
                there.is_symlink() && fs::read_link(root.join(path)).unwrap() == Path::new(target)
            }
            _ => false,
        };
        assert!(is_right, "{path:?}: {entry:?}, and on the disk {there:?}");
        assert!(there.is_none_or(|there| there.mode() & 0o6000 == 0), "{path:?} gives rights");
    }
    assert!(found.is_empty(), "beside the image: {found:?}");
}

/// Returns what is below a directory, by path. No link is followed.
fn listed(directory: &Path) -> BTreeMap<String, Metadata> {
    let (mut found, mut directories) = (BTreeMap::new(), vec![String::new()]);
    while let Some(above) = directories.pop() {
        for name in names(&directory.join(&above)) {
            let path = if above.is_empty() { name } else { format!("{above}/{name}") };
            let metadata = fs::symlink_metadata(directory.join(&path)).unwrap();
            if metadata.is_dir() {
                directories.push(path.clone());
            }
            found.insert(path, metadata);
        }
    }
    found
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
