//! Images that are made byte by byte, valid or not, for tests of this crate and of others.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]
#![expect(clippy::indexing_slicing, reason = "a test with a name that does not fit into a header has failed")]

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use periapt_host_api::Digest;
use serde_json::{Value, json};

/// An entry of a tar, with each field as it is to stand there.
#[derive(Debug, Clone)]
pub struct CraftedEntry {
    /// The path.
    pub path: Vec<u8>,
    /// The kind, as a tar has it: `b'0'` for a file, `b'5'` for a directory.
    pub kind: u8,
    /// The target of a link.
    pub link: Vec<u8>,
    /// The content.
    pub content: Vec<u8>,
    /// The mode, without the kind.
    pub mode: u32,
    /// The user and the group.
    pub owner: (u64, u64),
    /// The time of the last change, in seconds since 1970.
    pub time: u64,
    /// The size in the header, if it is not that of the content.
    pub size: Option<u64>,
}

/// Returns an empty entry of a kind, of root.
pub fn entry(path: &str, kind: u8) -> CraftedEntry {
    let mode = if kind == b'5' { 0o755 } else { 0o644 };
    CraftedEntry {
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

/// Returns a file.
pub fn file(path: &str, content: impl Into<Vec<u8>>) -> CraftedEntry {
    CraftedEntry { content: content.into(), ..entry(path, b'0') }
}

/// Returns a directory.
pub fn directory(path: &str) -> CraftedEntry {
    entry(path, b'5')
}

/// Returns a symbolic link.
pub fn link(path: &str, target: &str) -> CraftedEntry {
    CraftedEntry { link: target.into(), ..entry(path, b'2') }
}

/// Returns a hard link.
pub fn hard_link(path: &str, target: &str) -> CraftedEntry {
    CraftedEntry { link: target.into(), ..entry(path, b'1') }
}

/// Returns an extended header of pax for the next entry.
pub fn pax(records: &[(&str, &str)]) -> CraftedEntry {
    let mut content = String::new();
    for (key, value) in records {
        let rest = format!(" {key}={value}\n");
        let mut length = rest.len() + 1;
        while length != rest.len() + length.to_string().len() {
            length = rest.len() + length.to_string().len();
        }
        content.push_str(&format!("{length}{rest}"));
    }
    CraftedEntry { content: content.into(), ..entry("pax", b'x') }
}

/// Returns the header of an entry.
pub fn header(entry: &CraftedEntry) -> tar::Header {
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
pub fn tar(entries: &[CraftedEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        bytes.extend_from_slice(header(entry).as_bytes());
        bytes.extend_from_slice(&entry.content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// Compresses bytes by gzip.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Compresses bytes by zstd.
pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

/// A layer: its media type, its stored bytes, and the digest that the configuration has for it.
#[derive(Debug, Clone)]
pub struct CraftedLayer {
    /// The media type.
    pub media_type: String,
    /// The stored bytes.
    pub stored: Vec<u8>,
    /// The digest of the unpacked layer, as the configuration has it.
    pub diff_id: Digest,
}

/// Returns an uncompressed layer of these entries.
pub fn layer(entries: &[CraftedEntry]) -> CraftedLayer {
    raw_layer(tar(entries))
}

/// Returns an uncompressed layer of these bytes.
pub fn raw_layer(tar: Vec<u8>) -> CraftedLayer {
    CraftedLayer { media_type: media_type(""), diff_id: Digest::of(&tar), stored: tar }
}

/// Returns a layer that is compressed by gzip.
pub fn gzip_layer(tar: &[u8]) -> CraftedLayer {
    CraftedLayer { media_type: media_type("+gzip"), diff_id: Digest::of(tar), stored: gzip(tar) }
}

/// Returns a layer that is compressed by zstd.
pub fn zstd_layer(tar: &[u8]) -> CraftedLayer {
    CraftedLayer { media_type: media_type("+zstd"), diff_id: Digest::of(tar), stored: zstd(tar) }
}

fn media_type(form: &str) -> String {
    format!("application/vnd.oci.image.layer.v1.tar{form}")
}

/// An image whose documents can be changed before they are written.
#[derive(Debug)]
pub struct CraftedImage {
    /// The layers, the lowest one first.
    pub layers: Vec<CraftedLayer>,
    /// The configuration.
    pub configuration: Value,
    /// The name by which the index has the image.
    pub reference: Option<String>,
    /// The platform that the index names.
    pub platform: Option<Value>,
}

/// Returns an image for this host with these layers.
pub fn image(layers: &[CraftedLayer]) -> CraftedImage {
    let ids: Vec<String> = layers.iter().map(|layer| format!("sha256:{}", layer.diff_id)).collect();
    let configuration = json!({
        "architecture": own_architecture(),
        "os": "linux",
        "config": { "Entrypoint": ["/bin/web"], "Env": ["PATH=/bin"], "WorkingDir": "/srv", "User": "web" },
        "rootfs": { "type": "layers", "diff_ids": ids },
    });
    CraftedImage { layers: layers.to_vec(), configuration, reference: Some("latest".into()), platform: None }
}

/// Returns the architecture of this host, as images name it.
pub fn own_architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

/// Returns the descriptor of a blob.
pub fn descriptor(media_type: &str, content: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": format!("sha256:{}", Digest::of(content)), "size": content.len() })
}

/// The media type of a manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of an index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The media type of a configuration.
pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// The files of a layout, by name.
pub type LayoutFiles = Vec<(String, Vec<u8>)>;

fn blob(content: Vec<u8>) -> (String, Vec<u8>) {
    (format!("blobs/sha256/{}", Digest::of(&content)), content)
}

impl CraftedImage {
    /// Returns the manifest.
    pub fn manifest(&self) -> Value {
        let layers = self.layers.iter().map(|layer| descriptor(&layer.media_type, &layer.stored));
        let config = self.configuration.to_string();
        json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor(CONFIG, config.as_bytes()),
            "layers": layers.collect::<Vec<_>>(),
        })
    }

    /// Returns the files of a layout.
    pub fn files(&self) -> LayoutFiles {
        self.files_with(&self.manifest())
    }

    /// Returns the files of a layout with a manifest of any content.
    pub fn files_with(&self, manifest: &Value) -> LayoutFiles {
        let manifest = manifest.to_string().into_bytes();
        let mut files = files_of(&[self.described(&manifest)]);
        files.push(blob(manifest));
        files.extend(self.blobs());
        files
    }

    /// Returns the descriptor of the manifest in an index.
    pub fn described(&self, manifest: &[u8]) -> Value {
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
    pub fn blobs(&self) -> LayoutFiles {
        let mut files = vec![blob(self.configuration.to_string().into_bytes())];
        files.extend(self.layers.iter().map(|layer| blob(layer.stored.clone())));
        files
    }

    /// Returns the members of an archive of `docker save`, in its older form.
    pub fn docker(&self, tag: &str) -> Vec<CraftedEntry> {
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
pub fn files_of(manifests: &[Value]) -> LayoutFiles {
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
    vec![
        ("oci-layout".into(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()),
        ("index.json".into(), index.to_string().into_bytes()),
    ]
}

/// Returns the members of an archive of a layout.
pub fn members(files: &LayoutFiles) -> Vec<CraftedEntry> {
    files.iter().map(|(name, content)| file(name, content.clone())).collect()
}
