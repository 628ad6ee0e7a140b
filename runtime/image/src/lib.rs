//! OCI images: read from files and registries within bounds, unpacked below a directory, and made from directories.
//!
//! [`ImageSource`] reads an OCI layout, an archive of one, or an archive of `docker save`, and chooses an image for a
//! platform. [`LayerCache`] unpacks its layers, each once; [`UnpackedImage::assemble`] makes one directory of them.
//! [`pack_image`] makes an image. [`ImageRegistry`] pulls one.
//!
//! Every byte of an image is a stranger's. Unpacking needs no rights of root: owners, set-user-id and devices are kept in
//! a [`LayerTable`] and not written to the disk. Programs of the image are not run.

mod cache;
mod error;
mod image;
mod limits;
mod owners;
mod pack;
mod platform;
mod registry;
mod root;
mod scan;
mod shown;
mod source;
mod table;
mod tar;
#[cfg(feature = "testing")]
pub mod testing;
mod verified;

pub use cache::{LayerCache, UnpackedImage, UnpackedLayer, layer_files};
pub use error::ImageError;
pub use image::{Image, ImageChoice, ImageContent, ImageLayer, ImageSettings, ImageSource, ImageSourceForm};
pub use limits::{
    ImageLimits, MAX_ATTRIBUTES, MAX_DEPTH, MAX_DOCUMENT, MAX_EXTENSION, MAX_INDEXES, MAX_LAYERS,
    MAX_MEMBERS, MAX_NAME, MAX_PATH, MAX_PIECES,
};
pub use pack::{ImagePackError, ImageRecipe, PackedImage, pack_image};
pub use platform::ImagePlatform;
pub use registry::{
    ImageReference, ImageReferenceError, ImageRegistry, PlainHttp, PullError, PullOptions, PullProgress,
    PulledImage, RegistryCredentials,
};
pub use scan::LayerForm;
pub use table::{Below, DirectoryOrigin, EntryKind, LayerEntry, LayerTable, MergedTable};
