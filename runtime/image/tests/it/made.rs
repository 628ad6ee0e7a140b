//! Images that are made byte by byte, and what becomes of them.

use std::{
    fs,
    path::{Path, PathBuf},
};

pub(crate) use periapt_image::testing::{
    CraftedEntry as Entry, CraftedImage as Made, CraftedLayer as Layer, INDEX, LayoutFiles as Files,
    MANIFEST, descriptor, directory, entry, file, files_of, gzip, gzip_layer, hard_link, header, image,
    layer, link, members, own_architecture, pax, raw_layer, tar, zstd_layer,
};
use periapt_image::{
    Image, ImageChoice, ImageContent, ImageError, ImageLimits, ImageSource, LayerCache, UnpackedImage,
};
use tempfile::TempDir;

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
