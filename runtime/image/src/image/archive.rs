//! One image of a layout as an archive: what a controller keeps of an image.

use std::{
    collections::BTreeSet,
    io::{self, Write},
    path::Path,
};

use oci_spec::image::MediaType;
use periapt_host_api::Digest;
use serde_json::json;
use tar::{Builder, EntryType};

use super::{Image, ImageSource, ImageSourceForm, digest_of, read_manifest};
use crate::{
    error::{ImageError, is_of_host},
    tar::plain_header,
    verified::VerifiedBlob,
};

impl ImageSource {
    /// Writes one image of a layout as the archive of a layout of its own. The same image gives the same bytes. Each blob
    /// is checked against its digest while it is copied. `target` names the writer in errors.
    ///
    /// # Errors
    /// [`ImageError`] if a part is missing or damaged, cannot be written, or the image is one of Docker's archive, which
    /// has no manifest. What was written is of no use then.
    pub fn write_archive(&self, image: &Image, writer: impl Write, target: &Path) -> Result<(), ImageError> {
        if self.form != ImageSourceForm::Layout {
            return Err(ImageError::NotAnImage("it is no OCI image layout".into()));
        }
        let manifest_size = self.source.blob("manifest", image.digest)?.size;
        let content = self.source.verified("manifest", image.digest, manifest_size)?;
        let manifest = read_manifest(&format!("manifest sha256:{}", image.digest.short()), &content)?;
        let media_type = manifest.media_type().clone().unwrap_or(MediaType::ImageManifest);
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [{
                "mediaType": media_type.to_string(),
                "digest": format!("sha256:{}", image.digest),
                "size": manifest_size,
            }],
        });
        let mut archive = ArchiveWriter { tar: Builder::new(writer), written: BTreeSet::new(), target };
        archive.document("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        archive.document("index.json", index.to_string().as_bytes())?;
        archive.blob(self, "manifest", image.digest, manifest_size)?;
        archive.blob(self, "configuration", digest_of(manifest.config())?, manifest.config().size())?;
        for layer in manifest.layers() {
            archive.blob(self, "layer", digest_of(layer)?, layer.size())?;
        }
        archive.tar.into_inner().and_then(|mut writer| writer.flush()).map_err(ImageError::write(target))
    }
}

/// An archive that is being written.
struct ArchiveWriter<'a, W: Write> {
    tar: Builder<W>,
    /// The blobs that are in it. Images may have a layer twice.
    written: BTreeSet<Digest>,
    target: &'a Path,
}

impl<W: Write> ArchiveWriter<'_, W> {
    fn document(&mut self, name: &str, content: &[u8]) -> Result<(), ImageError> {
        let mut header = plain_header(EntryType::Regular, content.len() as u64, 0o644);
        self.tar.append_data(&mut header, name, content).map_err(ImageError::write(self.target))
    }

    fn blob(
        &mut self,
        source: &ImageSource,
        part: &'static str,
        digest: Digest,
        size: u64,
    ) -> Result<(), ImageError> {
        if !self.written.insert(digest) {
            return Ok(());
        }
        let mut blob = VerifiedBlob::new(source.source.blob(part, digest)?, Some(digest), size);
        let mut header = plain_header(EntryType::Regular, size, 0o644);
        let name = format!("blobs/sha256/{digest}");
        let copied = self.tar.append_data(&mut header, name, &mut blob);
        // A blob that is too short or too long is told by its own check, which is at its end.
        match copied.and_then(|()| io::copy(&mut blob, &mut io::sink()).map(drop)) {
            Ok(()) => Ok(()),
            Err(error) if is_of_host(&error) => Err(ImageError::write(self.target)(error)),
            Err(error) => Err(ImageError::Blob { part, digest, reason: error.to_string() }),
        }
    }
}
