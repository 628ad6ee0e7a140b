//! The places of layers in an archive.

use std::{cmp::Reverse, collections::BTreeMap};

use periapt_host_api::resource::{ArchiveLayer, MAX_ARCHIVE_LAYERS, MIN_ARCHIVE_LAYER};

use super::{Image, ImageSource};
use crate::error::ImageError;

impl ImageSource {
    /// Returns the places in an archive of an image's layers, in the order of the archive. Left out are small layers,
    /// the smallest ones of very many, and layers whose stored bytes the image does not name by their digest. A directory has
    /// none. The digests hold once the image was inspected.
    ///
    /// # Errors
    /// [`ImageError`] if a member of the archive is a link that leads nowhere.
    pub fn layer_places(&self, image: &Image) -> Result<Vec<ArchiveLayer>, ImageError> {
        let mut places = BTreeMap::new();
        for layer in &image.layers {
            let Some(digest) = layer.digest else { continue };
            let Some((at, size)) = self.source.place(&layer.member)? else { continue };
            if size >= MIN_ARCHIVE_LAYER {
                // Members may be links to one file: it lies in the archive once.
                places.insert(at, ArchiveLayer { at, size, digest });
            }
        }
        let mut places: Vec<ArchiveLayer> = places.into_values().collect();
        places.sort_by_key(|place| Reverse(place.size));
        places.truncate(MAX_ARCHIVE_LAYERS);
        places.sort_by_key(|place| place.at);
        Ok(places)
    }
}
