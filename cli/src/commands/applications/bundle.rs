//! Bundles: `deploy` of one, and `export-bundle`.

mod deploy;
pub(crate) mod export;
mod model;

pub(crate) use self::deploy::{Asked, BundleArgs, deploy, path_of};
