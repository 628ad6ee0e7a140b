//! Images that are made byte by byte, valid or not.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use periapt_host_api::Digest;
use periapt_image::{
    Image, ImageChoice, ImageContent, ImageError, ImageLimits, ImageSource, LayerCache, UnpackedImage,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// An entry of a tar, with each field as it is to stand there.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) path: Vec<u8>,
    pub(crate) kind: u8,
    pub(crate) link: Vec<u8>,
    pub(crate) content: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) owner: (u64, u64),
    pub(crate) time: u64,
    /// The size in the header, if it is not that of the content.
    pub(crate) size: Option<u64>,
}

pub(crate) fn entry(path: &str, kind: u8) -> Entry {
    let mode = if kind == b'5' { 0o755 } else { 0o644 };
    Entry {
        path: path.into(),
        kind,
        link: Vec::new(),
        content: Vec::new(),
        mode,
        owner: (0, 0),
        time: 1_700_000_000,
        size: None,
    }
}

pub(crate) fn file(path: &str, content: impl Into<Vec<u8>>) -> Entry {
    Entry { content: content.into(), ..entry(path, b'0') }
}

pub(crate) fn directory(path: &str) -> Entry {
    entry(path, b'5')
}

pub(crate) fn link(path: &str, target: &str) -> Entry {
    Entry { link: target.into(), ..entry(path, b'2') }
}

pub(crate) fn hard_link(path: &str, target: &str) -> Entry {
    Entry { link: target.into(), ..entry(path, b'1') }
}

/// Returns an extended header of pax for the next entry.
pub(crate) fn pax(records: &[(&str, &str)]) -> Entry {
    let mut content = String::new();
    for (key, value) in records {
        let rest = format!(" {key}={value}\n");
        let mut length = rest.len() + 1;
        while length != rest.len() + length.to_string().len() {
            length = rest.len() + length.to_string().len();
        }
        content.push_str(&format!("{length}{rest}"));
    }
    Entry { content: content.into(), ..entry("pax", b'x') }
}

/// Returns the header of an entry.
pub(crate) fn header(entry: &Entry) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::new(entry.kind));
    header.set_size(entry.size.unwrap_or(entry.content.len() as u64));
    header.set_mode(entry.mode);
    header.set_uid(entry.owner.0);
    header.set_gid(entry.owner.1);
    header.set_mtime(entry.time);
    let old = header.as_old_mut();
    old.name[..entry.path.len()].copy_from_slice(&entry.path);
    old.linkname[..entry.link.len()].copy_from_slice(&entry.link);
    header.set_cksum();
    header
}

/// Returns a tar with its end.
pub(crate) fn tar(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        bytes.extend_from_slice(header(entry).as_bytes());
        bytes.extend_from_slice(&entry.content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

/// A layer: its media type, its stored bytes, and the digest that the configuration has for it.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) media_type: String,
    pub(crate) stored: Vec<u8>,
    pub(crate) diff_id: Digest,
}

pub(crate) fn layer(entries: &[Entry]) -> Layer {
    raw_layer(tar(entries))
}

pub(crate) fn raw_layer(tar: Vec<u8>) -> Layer {
    Layer { media_type: media_type(""), diff_id: Digest::of(&tar), stored: tar }
}

pub(crate) fn gzip_layer(tar: &[u8]) -> Layer {
    Layer { media_type: media_type("+gzip"), diff_id: Digest::of(tar), stored: gzip(tar) }
}

pub(crate) fn zstd_layer(tar: &[u8]) -> Layer {
    Layer { media_type: media_type("+zstd"), diff_id: Digest::of(tar), stored: zstd(tar) }
}

fn media_type(form: &str) -> String {
    format!("application/vnd.oci.image.layer.v1.tar{form}")
}

/// An image whose documents can be changed before they are written.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) layers: Vec<Layer>,
    pub(crate) configuration: Value,
    pub(crate) reference: Option<String>,
    pub(crate) platform: Option<Value>,
}

pub(crate) fn image(layers: &[Layer]) -> Made {
    let ids: Vec<String> = layers.iter().map(|layer| format!("sha256:{}", layer.diff_id)).collect();
    let configuration = json!({
        "architecture": own_architecture(),
        "os": "linux",
        "config": { "Entrypoint": ["/bin/web"], "Env": ["PATH=/bin"], "WorkingDir": "/srv", "User": "web" },
        "rootfs": { "type": "layers", "diff_ids": ids },
    });
    Made { layers: layers.to_vec(), configuration, reference: Some("latest".into()), platform: None }
}

pub(crate) fn own_architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

pub(crate) fn descriptor(media_type: &str, content: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": format!("sha256:{}", Digest::of(content)), "size": content.len() })
}

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// The files of a layout, by name.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

fn blob(content: Vec<u8>) -> (String, Vec<u8>) {
    (format!("blobs/sha256/{}", Digest::of(&content)), content)
}

impl Made {
    pub(crate) fn manifest(&self) -> Value {
        let layers = self.layers.iter().map(|layer| descriptor(&layer.media_type, &layer.stored));
        let config = self.configuration.to_string();
        json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor(CONFIG, config.as_bytes()),
            "layers": layers.collect::<Vec<_>>(),
        })
    }

    pub(crate) fn files(&self) -> Files {
        self.files_with(&self.manifest())
    }

    /// Returns the files of a layout with a manifest of any content.
    pub(crate) fn files_with(&self, manifest: &Value) -> Files {
        let manifest = manifest.to_string().into_bytes();
        let mut files = files_of(&[self.described(&manifest)]);
        files.push(blob(manifest));
        files.extend(self.blobs());
        files
    }

    /// Returns the descriptor of the manifest in an index.
    pub(crate) fn described(&self, manifest: &[u8]) -> Value {
        let mut described = descriptor(MANIFEST, manifest);
        if let Some(reference) = &self.reference {
            described["annotations"] = json!({ "org.opencontainers.image.ref.name": reference });
        }
        if let Some(platform) = &self.platform {
            described["platform"] = platform.clone();
        }
        described
    }

    /// Returns the blobs without the manifest.
    pub(crate) fn blobs(&self) -> Files {
        let mut files = vec![blob(self.configuration.to_string().into_bytes())];
        files.extend(self.layers.iter().map(|layer| blob(layer.stored.clone())));
        files
    }

    /// Returns the members of an archive of `docker save`, in its older form.
    pub(crate) fn docker(&self, tag: &str) -> Vec<Entry> {
        let configuration = self.configuration.to_string();
        let name = format!("{}.json", Digest::of(configuration.as_bytes()));
        let mut entries = vec![file(&name, configuration)];
        let mut layers = Vec::new();
        for (number, layer) in self.layers.iter().enumerate() {
            let name = format!("{number}/layer.tar");
            entries.push(directory(&format!("{number}/")));
            entries.push(file(&name, layer.stored.clone()));
            layers.push(name);
        }
        let manifest = json!([{ "Config": name, "RepoTags": [tag], "Layers": layers }]);
        entries.push(file("manifest.json", manifest.to_string()));
        entries
    }
}

/// Returns the files of a layout whose index has these descriptors.
pub(crate) fn files_of(manifests: &[Value]) -> Files {
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
    vec![
        ("oci-layout".into(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()),
        ("index.json".into(), index.to_string().into_bytes()),
    ]
}

/// A directory for a test, in which images are written.
#[derive(Debug)]
pub(crate) struct Work(pub(crate) TempDir);

pub(crate) fn work() -> Work {
    Work(TempDir::new().unwrap())
}

impl Work {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a layout as a directory.
    pub(crate) fn layout(&self, files: &Files) -> PathBuf {
        let path = self.path("layout");
        for (name, content) in files {
            let path = path.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        path
    }

    /// Writes an archive.
    pub(crate) fn archive(&self, entries: &[Entry]) -> PathBuf {
        let path = self.path("image.tar");
        fs::write(&path, tar(entries)).unwrap();
        path
    }
}

/// Returns the members of an archive of a layout.
pub(crate) fn members(files: &Files) -> Vec<Entry> {
    files.iter().map(|(name, content)| file(name, content.clone())).collect()
}

/// Opens a file with images, and chooses the one of this host.
pub(crate) fn chosen(path: &Path, limits: &ImageLimits) -> Result<(ImageSource, Image), ImageError> {
    let file = ImageSource::open(path, limits)?;
    let image = file.choose(&ImageChoice::default())?;
    Ok((file, image))
}

/// Reads the image of a layout to its end.
pub(crate) fn inspected(files: &Files, limits: &ImageLimits) -> Result<ImageContent, ImageError> {
    let work = work();
    let (file, image) = chosen(&work.layout(files), limits)?;
    file.inspect(&image)
}

/// Unpacks the image of a layout. What is refused leaves no layer, and is refused by a reading alone, too.
pub(crate) fn unpacked(
    work: &Work,
    files: &Files,
    limits: &ImageLimits,
) -> Result<UnpackedImage, ImageError> {
    let (file, image) = chosen(&work.layout(files), limits)?;
    let read = file.inspect(&image);
    let cache = LayerCache::open(&work.path("cache")).unwrap();
    let unpacked = cache.unpack(&file, &image);
    match (&read, &unpacked) {
        (Ok(read), Ok(unpacked)) => {
            let tables: Vec<_> = unpacked.layers.iter().map(|layer| layer.table.clone()).collect();
            assert_eq!(read.layers, tables);
            assert_eq!(read.merged, unpacked.merged);
        }
        (Err(read), Err(unpacked)) => assert_eq!(read.to_string(), unpacked.to_string()),
        (read, unpacked) => assert_eq!(read.is_ok(), unpacked.is_ok(), "{read:?}, and {unpacked:?}"),
    }
    for entry in fs::read_dir(work.path("cache")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.starts_with(".new-"), "{name} was left");
    }
    unpacked
}

/// Returns the error of an image with one layer of these entries.
pub(crate) fn refused(entries: &[Entry]) -> String {
    refused_layers(&[layer(entries)])
}

/// Returns the error of an image with these layers, without the layer's digest.
pub(crate) fn refused_layers(layers: &[Layer]) -> String {
    let work = work();
    let error = unpacked(&work, &image(layers).files(), &ImageLimits::default()).unwrap_err();
    assert!(!error.is_of_host(), "{error}");
    let error = error.to_string();
    assert!(!error.contains('\n') && error.len() < 600, "{error}");
    match error.split_once("): ") {
        Some((before, reason)) if before.starts_with("layer ") => reason.to_owned(),
        _ => error,
    }
}
