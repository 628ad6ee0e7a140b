//! The service whose program is replaced, as far as its replacement depends on it.

use std::future::Future;

/// A service whose program is replaced: a controller or an agent.
pub trait ReplaceableService {
    /// The policy for a program that was taken, and ends by itself later.
    const AFTER_TRIAL: AfterTrial;

    /// Asks, as the program that runs, for what the service needs to come up. Returns false if it gets none of that: then
    /// a program on trial that is not up is not to blame. Takes some seconds at most.
    fn is_answered(&self) -> impl Future<Output = bool>;
}

/// The policy for a program that was taken, and ends by itself later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterTrial {
    /// The service goes back to the program before: both read the same data.
    GoesBack,
    /// The service stays: the program before may not read what the new one has stored.
    Stays,
}
