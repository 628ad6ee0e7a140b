//! The bytes of an image: its layer, and the archive around it.

use std::{
    fs::File,
    io::{self, BufWriter, Read as _, Write},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use flate2::{Compression, GzBuilder};
use periapt_host_api::Digest;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType};

use super::{
    ImagePackError, ImageRecipe,
    walk::{FoundKind, Walked},
};
use crate::tar::plain_header;

/// A layer that was written.
#[derive(Debug)]
pub(super) struct DescribedLayer {
    digest: Digest,
    size: u64,
    diff_id: Digest,
}

/// A writer that takes the digest of what passes.
struct Hashed<W> {
    writer: W,
    hash: Sha256,
    bytes: u64,
}

impl<W: Write> Hashed<W> {
    fn new(writer: W) -> Self {
        Self { writer, hash: Sha256::new(), bytes: 0 }
    }

    fn digest(self) -> (W, Digest, u64) {
        (self.writer, Digest::from_bytes(self.hash.finalize().into()), self.bytes)
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        self.bytes = self.bytes.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Writes a layer with all files of a directory.
pub(super) fn layer(
    directory: &Path,
    walked: &Walked,
    file: &mut File,
    output: &Path,
) -> Result<DescribedLayer, ImagePackError> {
    let failed = |source| ImagePackError::Write { path: output.to_owned(), source };
    let stored = Hashed::new(BufWriter::new(file));
    // The header of gzip has no name and no time.
    let gzip = GzBuilder::new().mtime(0).write(stored, Compression::default());
    let mut tar = Builder::new(Hashed::new(gzip));
    for (path, found) in &walked.entries {
        let (kind, size) = match &found.kind {
            FoundKind::Directory => (EntryType::Directory, 0),
            FoundKind::File { size } => (EntryType::Regular, *size),
            FoundKind::Link(_) => (EntryType::Symlink, 0),
            FoundKind::HardLink(_) => (EntryType::Link, 0),
        };
        let mut header = plain_header(kind, size, found.mode);
        match &found.kind {
            FoundKind::Directory => {
                tar.append_data(&mut header, format!("{path}/"), io::empty()).map_err(failed)?
            }
            FoundKind::Link(target) | FoundKind::HardLink(target) => {
                tar.append_link(&mut header, path, target).map_err(failed)?;
            }
            FoundKind::File { size } => {
                let at = directory.join(path);
                let read = |source| ImagePackError::Read { path: at.clone(), source };
                let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
                let flags = i32::try_from(flags.bits()).unwrap_or_default();
                let source = File::options().read(true).custom_flags(flags).open(&at).map_err(read)?;
                let metadata = source.metadata().map_err(read)?;
                if !metadata.is_file() || metadata.size() != *size {
                    return Err(read(io::Error::other("it changed while it was read")));
                }
                let mut content = Counted { reader: source.take(*size), left: *size };
                tar.append_data(&mut header, path, &mut content).map_err(|error| match content.left {
                    0 => failed(error),
                    _ => read(error),
                })?;
            }
        }
    }
    let gzip = tar.into_inner().map_err(failed)?;
    let (gzip, diff_id, _) = gzip.digest();
    let (mut writer, digest, size) = gzip.finish().map_err(failed)?.digest();
    writer.flush().map_err(failed)?;
    Ok(DescribedLayer { digest, size, diff_id })
}

/// A file that must have as many bytes as its header says.
struct Counted<R> {
    reader: R,
    left: u64,
}

impl<R: io::Read> io::Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        if read == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::Error::other("it changed while it was read"));
        }
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

/// Writes the archive of an OCI layout with one image. Returns the digest of its manifest.
pub(super) fn archive(
    recipe: &ImageRecipe,
    layer: &DescribedLayer,
    content: File,
    writer: &mut impl Write,
) -> io::Result<Digest> {
    let configuration = configuration(recipe, layer).to_string().into_bytes();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &configuration),
        "layers": [{
            "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
            "digest": format!("sha256:{}", layer.digest),
            "size": layer.size,
        }],
    });
    let manifest = manifest.to_string().into_bytes();
    let mut described = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    let mut platform = json!({ "architecture": recipe.platform.architecture, "os": recipe.platform.os });
    if let (Some(variant), Some(platform)) = (&recipe.platform.variant, platform.as_object_mut()) {
        platform.insert("variant".into(), json!(variant));
    }
    described.insert("platform".into(), platform);
    if let Some(reference) = &recipe.reference {
        described.insert("annotations".into(), json!({ "org.opencontainers.image.ref.name": reference }));
    }
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [described],
    });
    let mut tar = Builder::new(writer);
    let mut add = |name: &str, bytes: &[u8]| {
        tar.append_data(&mut plain_header(EntryType::Regular, bytes.len() as u64, 0o644), name, bytes)
    };
    add("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    add("index.json", index.to_string().as_bytes())?;
    let digest = Digest::of(&manifest);
    add(&format!("blobs/sha256/{digest}"), &manifest)?;
    add(&format!("blobs/sha256/{}", Digest::of(&configuration)), &configuration)?;
    let name = format!("blobs/sha256/{}", layer.digest);
    tar.append_data(
        &mut plain_header(EntryType::Regular, layer.size, 0o644),
        name,
        content.take(layer.size),
    )?;
    tar.finish()?;
    Ok(digest)
}

fn descriptor(media_type: &str, content: &[u8]) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("mediaType".into(), json!(media_type));
    map.insert("digest".into(), json!(format!("sha256:{}", Digest::of(content))));
    map.insert("size".into(), json!(content.len()));
    map
}

fn configuration(recipe: &ImageRecipe, layer: &DescribedLayer) -> Value {
    let settings = &recipe.settings;
    let mut config = Map::new();
    let mut set = |key: &str, value: Value| {
        let is_empty = match &value {
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::String(text) => text.is_empty(),
            other => other.is_null(),
        };
        if !is_empty {
            config.insert(key.into(), value);
        }
    };
    let set_of = |list: &[String]| Value::Object(list.iter().map(|one| (one.clone(), json!({}))).collect());
    set("User", json!(settings.user));
    set("ExposedPorts", set_of(&settings.ports));
    set("Env", json!(settings.environment));
    set("Entrypoint", json!(settings.entrypoint));
    set("Cmd", json!(settings.command));
    set("Volumes", set_of(&settings.volumes));
    set("WorkingDir", json!(settings.working_directory));
    set("Labels", json!(settings.labels));
    set("StopSignal", json!(settings.stop_signal));
    let mut configuration = json!({
        "created": "1970-01-01T00:00:00Z",
        "architecture": recipe.platform.architecture,
        "os": recipe.platform.os,
        "config": config,
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", layer.diff_id)] },
    });
    if let (Some(variant), Some(map)) = (&recipe.platform.variant, configuration.as_object_mut()) {
        map.insert("variant".into(), json!(variant));
    }
    configuration
}
