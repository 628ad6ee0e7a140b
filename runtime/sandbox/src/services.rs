//! What a hook needs from whoever runs it: the agent, or a laboratory on virtual time.

use std::{fs::File, future::Future, pin::Pin, time::Duration};

use periapt_hook::{CallError, CallTime, LeaseState};
use periapt_host_api::{
    Timestamp,
    commit::EarlyEffect,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
};

/// A future in a box.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The world outside of one hook.
pub trait HookServices: Send + Sync + 'static {
    /// The time, for people and for leases. (The hook's own clocks are its own.)
    fn now(&self) -> CallTime;

    /// Renews the unit's lease, waiting for at most five seconds, and tells what is held after that.
    fn renew_lease(&self) -> BoxFuture<'_, LeaseState>;

    /// Fetches content that the unit may read, waiting for at most ten seconds.
    fn fetch_secret(&self, key: SecretKey) -> BoxFuture<'_, Result<SecretData, CallError>>;

    /// Fetches the content of a resource that the unit may read, and holds it open for the rest of the hook. Nobody
    /// does, unless it is overridden.
    fn fetch_resource(&self, key: ResourceKey) -> BoxFuture<'_, Result<File, CallError>> {
        Box::pin(std::future::ready(Err(CallError::NotReady(format!(
            "resource {:?} cannot be fetched here",
            key.name
        )))))
    }

    /// Takes what leaves the hook early, in order, as it is made. It must not block: what cannot be sent now
    /// is kept by the receiver, whose memory is bounded because the hook's early effects are.
    fn early(&self, items: Vec<(Timestamp, EarlyEffect)>);

    /// Waits until somebody wants the hook to stop, wherever it is. Nobody does, unless it is overridden.
    fn interrupted(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// Waits while the hook sleeps. On virtual time this moves the clock instead.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
