//! The layers of images in the archives of one model on this host. A list beside each archive says where it has them, so
//! that the next image's layers are taken from there.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use periapt_client::KnownLayer;
use periapt_host_api::{
    Digest,
    resource::{ArchiveLayer, MAX_PARTIAL_HEAD},
};

/// The end of the name of a list.
const LIST: &str = ".layers";

/// Returns the digest of the content that a file is, or is the list of.
pub(super) fn content_of(name: &str) -> Option<Digest> {
    name.strip_suffix(LIST).unwrap_or(name).parse().ok()
}

/// Returns true if a content is an archive with a list.
pub(super) fn is_listed(directory: &Path, content: &Digest) -> bool {
    list_of(directory, content).exists()
}

/// Writes the list of an archive.
pub(super) fn write_list(directory: &Path, content: &Digest, layers: &[ArchiveLayer]) -> io::Result<()> {
    fs::write(list_of(directory, content), serde_json::to_vec(layers)?)
}

/// Returns those of the wanted layers that an archive in the directory has, in their order.
pub(super) fn known(directory: &Path, wanted: &[ArchiveLayer]) -> io::Result<Vec<KnownLayer>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut known: BTreeMap<u64, KnownLayer> = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(archive) = name.and_then(|name| name.strip_suffix(LIST)) else { continue };
        // A list that was cut short is of no use, and one may be removed meanwhile.
        let Ok(layers) = read_list(&path) else { continue };
        for place in wanted {
            let same = layers.iter().find(|layer| layer.digest == place.digest && layer.size == place.size);
            if let Some(layer) = same.filter(|_| !known.contains_key(&place.at))
                && let Ok(file) = File::open(directory.join(archive))
            {
                known.insert(place.at, KnownLayer { place: *place, file, from: layer.at });
            }
        }
    }
    Ok(known.into_values().collect())
}

fn list_of(directory: &Path, content: &Digest) -> PathBuf {
    directory.join(format!("{content}{LIST}"))
}

fn read_list(path: &Path) -> io::Result<Vec<ArchiveLayer>> {
    let mut text = Vec::new();
    File::open(path)?.take(MAX_PARTIAL_HEAD as u64).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
