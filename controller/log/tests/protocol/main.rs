//! The protocol of several controllers on one log, as models whose every reachable state is visited.
//!
//! The models are small, and made of the code's own parts: the log's state, entries and ends, the steps of a
//! writer, the rule of trimming, and the controller's model for leases. What is left to them is the order in
//! which controllers, clients, the network and time act. Each law has mutations of the protocol that break
//! it, which the same search must find.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, as it should"
)]
#![expect(
    clippy::print_stdout,
    reason = "a reader of the tests sees how much was visited, and what breaks a law"
)]

mod blobs;
mod leases;
mod writers;

use std::{fmt::Debug, hash::Hash};

use stateright::{Checker, HasDiscoveries, Model};

/// Visits every reachable state, and returns their number. No law may be broken, and each example that a
/// model names must occur.
fn explored<M>(model: M) -> usize
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + PartialEq + Debug,
    M::Action: Clone + PartialEq + Debug,
{
    let checker = model.checker().spawn_bfs().join();
    checker.assert_properties();
    println!("{} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
    checker.unique_state_count()
}

/// Searches a mutated model until these laws are broken, and says by which steps.
fn breaks<M>(model: M, laws: &[&'static str])
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + PartialEq + Debug,
    M::Action: Clone + PartialEq + Debug,
{
    let all = HasDiscoveries::AllOf(laws.iter().copied().collect());
    let checker = model.checker().finish_when(all).spawn_bfs().join();
    for law in laws {
        assert!(checker.model().property(law).expectation.discovery_is_failure(), "{law} is no law");
        let Some(path) = checker.discovery(law) else { panic!("{law} holds in spite of the mutation") };
        println!("{law} is broken by: {:#?}", path.into_actions());
    }
}
