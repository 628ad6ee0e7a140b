//! The log of a set of controllers in etcd, 3.5 or newer (decision 69).
//!
//! Below a prefix, `periapt/` by default, [`EtcdLog`] keeps:
//!
//! | key | value |
//! | --- | --- |
//! | `id` | the form of the log and its identity, made once |
//! | `SHARD/term` | the present term |
//! | `SHARD/leader` | the controller that leads, with the lease that it renews |
//! | `SHARD/end` | the last position |
//! | `SHARD/trimmed` | the last position that was deleted |
//! | `SHARD/log/POSITION` | an entry, or for a large one the name of its parts |
//! | `SHARD/part/POSITION/DIGEST/N` | a part of a large entry, written before the entry itself |
//!
//! Each write is one transaction that compares the term. So a controller that lost the leadership writes nothing,
//! whatever it believes; the lease only decides when another one may lead. This is the only crate that names the client
//! of etcd.

mod answers;
mod append;
mod connect;
mod error;
mod failure;
mod follow;
mod keys;
mod lead;
mod leaders;
mod log;
mod open;
mod options;
mod pool;
mod read;
mod remove;
mod shared;
#[cfg(feature = "testing")]
pub mod testing;
mod trim;
mod url;
mod value;

pub use error::OpenError;
pub use log::EtcdLog;
pub use options::{Compaction, EtcdOptions, EtcdTls, EtcdTuning};
pub use remove::{BegunLog, RemoveError};
pub use url::{Encryption, EtcdUrl, EtcdUrlError};
