//! The parts of a model beside its units: relations, offers, networks, secrets, storage, resources; and bundles of
//! whole models.

pub mod bundle;
pub mod cloud;
pub mod connections;
pub mod egress;
pub mod firewall;
pub mod network;
pub mod offer;
pub mod ports;
pub mod relation;
pub mod resource;
pub mod secret;
pub mod ssh_key;
pub mod storage;
