//! The options of a log in etcd.

use std::time::Duration;

use periapt_host_api::StoreId;

use crate::EtcdUrl;

/// The options by which [`EtcdLog::open`](crate::EtcdLog::open) finds a log, or makes it.
#[derive(Debug, Clone)]
pub struct EtcdOptions {
    /// The place of the log.
    pub url: EtcdUrl,
    /// The certificates; without them, a URL of TLS trusts the authorities that this host trusts.
    pub tls: Option<EtcdTls>,
    /// The identity of the log, if there is none yet.
    pub fresh_id: StoreId,
}

/// The options that only tests and unusual clusters change.
#[derive(Debug, Clone)]
pub struct EtcdTuning {
    /// The shard.
    pub shard: u16,
    /// The timeout of a call that carries little. A call that carries much has a second more for each MiB.
    pub timeout: Duration,
    /// The treatment of etcd's history.
    pub compaction: Compaction,
}

/// Certificates for connections to etcd, as PEM texts.
#[derive(Clone)]
pub struct EtcdTls {
    /// The authorities that have issued etcd's certificates.
    pub authority: String,
    /// This controller's certificate and its key; none if etcd asks for none.
    pub identity: Option<(String, String)>,
}

/// The treatment of etcd's history: the deleted and overwritten values that etcd keeps until a compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compaction {
    /// The log asks etcd for a compaction after it was trimmed, up to where it was at the trimming before.
    #[default]
    AfterTrim,
    /// Another program compacts, or etcd by itself. A compaction concerns all keys of an etcd, so this is right for an
    /// etcd that others use as well.
    ByOthers,
}

impl Default for EtcdTuning {
    fn default() -> Self {
        Self { shard: 0, timeout: Duration::from_secs(1), compaction: Compaction::default() }
    }
}

impl std::fmt::Debug for EtcdTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtcdTls").finish_non_exhaustive()
    }
}
