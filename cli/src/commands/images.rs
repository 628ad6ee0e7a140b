//! Images of containers.

mod image;

use super::{Verb, verbs};

verbs! {
    /// Images of containers.
    Images {
        /// Make an image of a directory, or show one
        ///
        /// A charm's containers run images: `periapt deploy ./charm --resource NAME=./image.tar`.
        #[command(subcommand)]
        image::Image,
    }
}
