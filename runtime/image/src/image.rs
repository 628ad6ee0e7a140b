//! Images in a file: which there are, and the choice of one.

mod archive;
mod docker;
mod documents;
mod places;
mod settings;

use std::{collections::BTreeSet, fs::File, path::Path};

use periapt_host_api::Digest;

pub(crate) use documents::{
    DocumentKind, digest_of, document_kind, layer_form, parsed, platform_of, read_configuration,
    read_manifest,
};
pub use settings::ImageSettings;

use crate::{
    error::ImageError,
    limits::{Budget, ImageLimits, MAX_LAYERS},
    platform::ImagePlatform,
    scan::{DiskTree, LayerForm, StoredLayer, scan},
    shown::shown,
    source::Source,
    table::{LayerTable, MergedTable, merge},
};

/// The most images or platforms that an error names.
const SHOWN_NAMES: usize = 8;

/// A file or directory with images, open.
#[derive(Debug)]
pub struct ImageSource {
    source: Source,
    form: ImageSourceForm,
    candidates: Vec<Candidate>,
    limits: ImageLimits,
}

/// The forms of files with images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSourceForm {
    /// An OCI image layout: a directory, or an archive of one.
    Layout,
    /// An archive that `docker save` writes.
    Docker,
}

/// The choice of one image among those of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageChoice {
    /// The name of the image in the file, such as `latest` or `example/web:1`; without one the file has one image for the
    /// platform.
    pub reference: Option<String>,
    /// The platform that the image is to run on.
    pub platform: ImagePlatform,
}

impl Default for ImageChoice {
    fn default() -> Self {
        Self { reference: None, platform: ImagePlatform::of_this_host() }
    }
}

/// An image whose documents were read. Its layers were not.
#[derive(Debug, Clone)]
pub struct Image {
    /// The digest of its manifest; of Docker's archive, which has none, that of its configuration.
    pub digest: Digest,
    /// The platform that it is for.
    pub platform: ImagePlatform,
    /// The names that the file gives it.
    pub references: Vec<String>,
    /// The settings for processes in it.
    pub settings: ImageSettings,
    /// The layers, the lowest first.
    pub layers: Vec<ImageLayer>,
}

/// A layer of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageLayer {
    /// The digest of the unpacked tar.
    pub diff_id: Digest,
    /// The digest of the stored bytes, if the image names it.
    pub digest: Option<Digest>,
    /// The number of stored bytes.
    pub size: u64,
    /// The compression.
    pub form: LayerForm,
    /// The member of the file that holds it.
    member: String,
}

/// An image of a file before it is chosen.
#[derive(Debug, Clone)]
struct Candidate {
    references: Vec<String>,
    /// The platform, if the file says it outside of the configuration.
    platform: Option<ImagePlatform>,
    place: Place,
}

/// The place of an image's documents.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Manifest { digest: Digest, size: u64 },
    Docker(docker::Entry),
}

/// The entries of a whole image, which was read to its end.
#[derive(Debug)]
pub struct ImageContent {
    /// The table of each layer, the lowest first.
    pub layers: Vec<LayerTable>,
    /// The layers as they lie on each other.
    pub merged: MergedTable,
}

impl ImageSource {
    /// Opens a file or directory, and reads which images it has.
    ///
    /// # Errors
    /// [`ImageError`] if it has none in a form that is read here, or its lists are damaged.
    pub fn open(path: &Path, limits: &ImageLimits) -> Result<Self, ImageError> {
        Self::of(Source::open(path)?, limits)
    }

    /// Reads which images an open file has, for a process that can open none itself.
    ///
    /// # Errors
    /// [`ImageError`] as of [`open`](Self::open).
    pub fn of_file(file: File, limits: &ImageLimits) -> Result<Self, ImageError> {
        Self::of(Source::of(file, Path::new("the image"))?, limits)
    }

    fn of(source: Source, limits: &ImageLimits) -> Result<Self, ImageError> {
        let (form, candidates) = if let Some(layout) = source.document("oci-layout")? {
            (ImageSourceForm::Layout, documents::candidates(&source, &layout)?)
        } else if let Some(manifest) = source.document("manifest.json")? {
            (ImageSourceForm::Docker, docker::candidates(&manifest)?)
        } else {
            return Err(ImageError::NotAnImage(
                "it has neither oci-layout nor manifest.json; an image is an OCI layout, an archive of one, or what \
                 `docker save` writes"
                    .into(),
            ));
        };
        Ok(Self { source, form, candidates, limits: limits.clone() })
    }

    /// Returns the form of the file.
    pub fn form(&self) -> ImageSourceForm {
        self.form
    }

    /// Returns the names of the images.
    pub fn references(&self) -> BTreeSet<&str> {
        self.candidates.iter().flat_map(|candidate| &candidate.references).map(String::as_str).collect()
    }

    /// Chooses an image, and reads its documents.
    ///
    /// # Errors
    /// [`ImageError`] if no image or several match, or its documents are damaged or of an unknown kind.
    pub fn choose(&self, choice: &ImageChoice) -> Result<Image, ImageError> {
        let named: Vec<&Candidate> = match &choice.reference {
            None => self.candidates.iter().collect(),
            Some(wanted) => self.candidates.iter().filter(|one| one.references.contains(wanted)).collect(),
        };
        if named.is_empty() {
            return Err(ImageError::Choice(match &choice.reference {
                None => "the file has no image".into(),
                Some(wanted) => format!("the file has no image {}; it has: {}", shown(wanted), self.names()),
            }));
        }
        let (mut found, mut matching) = (Vec::new(), Vec::<(&Candidate, Option<Image>)>::new());
        for candidate in named {
            let (platform, image) = match &candidate.platform {
                Some(platform) => (platform.clone(), None),
                None => {
                    let image = self.read(candidate)?;
                    (image.platform.clone(), Some(image))
                }
            };
            if !platform.runs_on(&choice.platform) {
                found.push(platform.to_string());
            } else if !matching.iter().any(|(other, _)| other.place == candidate.place) {
                matching.push((candidate, image));
            }
        }
        let image = match matching.as_mut_slice() {
            [] => {
                found.sort();
                found.dedup();
                found.truncate(SHOWN_NAMES);
                let wanted = choice.platform.clone();
                return Err(ImageError::Platform { found: found.join(", "), wanted });
            }
            [(candidate, image)] => match image.take() {
                Some(image) => image,
                None => self.read(candidate)?,
            },
            several => {
                return Err(ImageError::Choice(format!(
                    "the file has {} images for {}, and one must be named: {}",
                    several.len(),
                    choice.platform,
                    self.names()
                )));
            }
        };
        // An index may say otherwise than the configuration, which counts.
        match image.platform.runs_on(&choice.platform) {
            true => Ok(image),
            false => Err(ImageError::Platform {
                found: image.platform.to_string(),
                wanted: choice.platform.clone(),
            }),
        }
    }

    /// Reads all layers to their end and checks them, and writes nothing. An image that passes can be unpacked.
    ///
    /// # Errors
    /// [`ImageError`]
    pub fn inspect(&self, image: &Image) -> Result<ImageContent, ImageError> {
        let mut budget = Budget::new(&self.limits);
        let mut layers = Vec::new();
        for number in 1..=image.layers.len() {
            layers.push(self.layer(image, number, &mut budget, None)?);
        }
        let merged = merge(&layers).map_err(ImageError::Layers)?;
        Ok(ImageContent { layers, merged })
    }

    /// Reads a layer to its end, by its number from 1, and writes it to a directory if there is one.
    pub(crate) fn layer(
        &self,
        image: &Image,
        number: usize,
        budget: &mut Budget,
        target: Option<(&mut DiskTree, &Path)>,
    ) -> Result<LayerTable, ImageError> {
        let missing = || ImageError::Layers(format!("there is no layer {number}"));
        let layer = number.checked_sub(1).and_then(|index| image.layers.get(index)).ok_or_else(missing)?;
        let reader = self.source.part(&layer.member)?.ok_or_else(|| ImageError::Blob {
            part: "layer",
            digest: layer.digest.unwrap_or(layer.diff_id),
            reason: "it is missing".into(),
        })?;
        let (size, digest, form, diff_id) = (layer.size, layer.digest, layer.form, layer.diff_id);
        let (tree, path) = target.map_or((None, None), |(tree, path)| (Some(tree), Some(path)));
        let stored = StoredLayer { reader, digest, size, form, diff_id };
        scan(stored, budget, tree).map_err(|error| {
            ImageError::layer((number, diff_id), error, (&self.source.path, path.unwrap_or(Path::new("-"))))
        })
    }

    pub(crate) fn limits(&self) -> &ImageLimits {
        &self.limits
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.references().iter().take(SHOWN_NAMES).map(|name| shown(name)).collect();
        match names.is_empty() {
            true => "none has a name".to_owned(),
            false => names.join(", "),
        }
    }

    fn read(&self, candidate: &Candidate) -> Result<Image, ImageError> {
        let image = match &candidate.place {
            Place::Manifest { digest, size } => documents::image(&self.source, *digest, *size)?,
            Place::Docker(entry) => docker::image(&self.source, entry)?,
        };
        let limits = &self.limits;
        if image.layers.len() > MAX_LAYERS {
            return Err(ImageError::Layers(format!(
                "there are {}, and may be {MAX_LAYERS}",
                image.layers.len()
            )));
        }
        if let Some(layer) = image.layers.iter().find(|layer| layer.size > limits.layer) {
            let reason = format!("it has {} bytes, and a layer may have {}", layer.size, limits.layer);
            return Err(ImageError::Blob {
                part: "layer",
                digest: layer.digest.unwrap_or(layer.diff_id),
                reason,
            });
        }
        let stored = image.layers.iter().fold(0_u64, |sum, layer| sum.saturating_add(layer.size));
        if stored > limits.stored {
            return Err(ImageError::Layers(format!(
                "they have {stored} bytes, and may have {}",
                limits.stored
            )));
        }
        Ok(Image { references: candidate.references.clone(), ..image })
    }
}
