//! The services that a hook needs from its caller: a runner, or the laboratory with virtual time.

use std::{fs::File, future::Future, os::unix::net::UnixStream, pin::Pin, time::Duration};

use periapt_hook::{CallError, CallTime, LeaseState, WorkloadTarget};
use periapt_host_api::{
    Timestamp,
    commit::EarlyEffect,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The services for one hook.
pub trait HookServices: Send + Sync + 'static {
    /// Returns the time for logs and leases. The hook's own clocks are separate.
    fn now(&self) -> CallTime;

    /// Renews the unit's lease, within five seconds, and returns its state.
    fn renew_lease(&self) -> BoxFuture<'_, LeaseState>;

    /// Fetches the content of a secret that the unit may read, within ten seconds.
    fn fetch_secret(&self, key: SecretKey) -> BoxFuture<'_, Result<SecretData, CallError>>;

    /// Fetches the content of a resource that the unit may read, and keeps it open for the rest of the hook. By
    /// default it fails.
    fn fetch_resource(&self, key: ResourceKey) -> BoxFuture<'_, Result<File, CallError>> {
        Box::pin(std::future::ready(Err(CallError::NotReady(format!(
            "resource {:?} cannot be fetched here",
            key.name
        )))))
    }

    /// Opens a stream to a workload of the unit. By default nobody listens.
    fn connect(&self, _target: WorkloadTarget) -> BoxFuture<'_, Result<UnixStream, CallError>> {
        let nobody = "nobody listens: no workloads run here".to_owned();
        Box::pin(std::future::ready(Err(CallError::NotReady(nobody))))
    }

    /// Accepts early effects, in order. It must not block. The receiver keeps effects that it cannot send yet; the
    /// limits on early effects bound its memory.
    fn early(&self, items: Vec<(Timestamp, EarlyEffect)>);

    /// Waits for an interruption of the hook. By default none comes.
    fn interrupted(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// Waits while the hook sleeps. With virtual time it advances the clock instead.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
