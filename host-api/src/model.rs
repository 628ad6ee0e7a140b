//! What a model holds beside its units: relations, offers, networks, secrets, storage, resources; and whole models as bundles.

pub mod bundle;
pub mod cloud;
pub mod firewall;
pub mod network;
pub mod offer;
pub mod ports;
pub mod relation;
pub mod resource;
pub mod secret;
pub mod ssh_key;
pub mod storage;
