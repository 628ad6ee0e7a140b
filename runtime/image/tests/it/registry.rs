//! Images of registries.
