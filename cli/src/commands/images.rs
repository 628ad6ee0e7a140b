//! Images of containers.

mod image;

use super::{Verb, verbs};

verbs! {
    /// Images of containers.
    Images {
        /// Make an image of a directory, or show one
        ///
        /// Charms cannot use images yet: a resource of type oci-image is refused.
        #[command(subcommand)]
        image::Image,
    }
}
