//! Archives that `docker save` writes: `manifest.json` names configurations and layers by their members.

use periapt_host_api::Digest;
use serde::Deserialize;

use super::{
    Candidate, Image, ImageLayer, Place,
    documents::{parsed, read_configuration},
};
use crate::{
    error::ImageError, limits::MAX_LAYERS, scan::LayerForm, shown::shown, source::Source, tar::relative,
};

/// The most images of an archive.
const MAX_IMAGES: usize = 256;

/// An image in `manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Entry {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

pub(super) fn candidates(manifest: &[u8]) -> Result<Vec<Candidate>, ImageError> {
    let entries: Vec<Entry> = parsed("manifest.json", manifest)?;
    if entries.len() > MAX_IMAGES {
        return Err(ImageError::Choice(format!("the file has more than {MAX_IMAGES} images")));
    }
    let candidate = |entry: Entry| Candidate {
        references: entry.repo_tags.clone().unwrap_or_default(),
        platform: None,
        place: Place::Docker(entry),
    };
    Ok(entries.into_iter().map(candidate).collect())
}

pub(super) fn image(source: &Source, entry: &Entry) -> Result<Image, ImageError> {
    let missing = |name: &str| {
        ImageError::document("manifest.json", format!("the archive has no member {}", shown(name)))
    };
    let content = source.document(&member(&entry.config)?)?.ok_or_else(|| missing(&entry.config))?;
    let digest = Digest::of(&content);
    // The name is the digest, in both forms that Docker has written.
    let name = entry.config.rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(".json").unwrap_or(name);
    if let Ok(named) = name.parse::<Digest>()
        && named != digest
    {
        let reason = format!("its bytes have the digest sha256:{digest}");
        return Err(ImageError::Blob { part: "configuration", digest: named, reason });
    }
    let (platform, settings, diff_ids) = read_configuration(&entry.config, &content)?;
    if diff_ids.len() != entry.layers.len() {
        let (layers, ids) = (entry.layers.len(), diff_ids.len());
        return Err(ImageError::document(
            "manifest.json",
            format!("it has {layers} layers, and its configuration {ids}"),
        ));
    }
    if diff_ids.len() > MAX_LAYERS {
        return Err(ImageError::Layers(format!("there are {}, and may be {MAX_LAYERS}", diff_ids.len())));
    }
    let mut layers = Vec::new();
    for (name, diff_id) in entry.layers.iter().zip(diff_ids) {
        let member = member(name)?;
        let part = source.part(&member)?.ok_or_else(|| missing(name))?;
        let read = || ImageError::read(&source.path);
        let form = match (part.is_gzip().map_err(read())?, part.is_zstd().map_err(read())?) {
            (true, _) => LayerForm::Gzip,
            (_, true) => LayerForm::Zstd,
            _ => LayerForm::Tar,
        };
        let digest = (form == LayerForm::Tar).then_some(diff_id);
        layers.push(ImageLayer { diff_id, digest, size: part.size, form, member });
    }
    Ok(Image { digest, platform, references: Vec::new(), settings, layers })
}

fn member(name: &str) -> Result<String, ImageError> {
    relative(name)
        .map_err(|reason| ImageError::document("manifest.json", format!("{}: {reason}", shown(name))))
}
