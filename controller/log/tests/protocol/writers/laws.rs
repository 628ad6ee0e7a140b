//! The laws of the model (`docs/design/replication.md`), and examples of what it reaches.

use stateright::Property;

use super::state::{CONTROLLERS, Request, State, Writers};

/// An answer leaves once its entry is in the log, or its term was confirmed after it was evaluated.
pub(super) const H2: &str = "H2";
/// A position has one entry; terms never fall, and no entry of a term is appended after a later term began.
pub(super) const H3: &str = "H3";
/// Each acknowledged request is in the log once, and nothing is there twice.
pub(super) const H4: &str = "H4";
/// Each trimmed entry is on the disks of two controllers.
pub(super) const H8: &str = "H8";

/// Returns all laws and examples.
pub(super) fn all(writers: &Writers) -> Vec<Property<Writers>> {
    let mut all = vec![
        Property::always(H2, |_, state: &State| state.seen.breach != Some(H2)),
        Property::always(H3, |_, state: &State| state.seen.breach != Some(H3)),
        Property::always(H4, once),
        Property::always(H8, |_, state: &State| {
            let trimmed = state.log.trimmed();
            (0..CONTROLLERS).all(|index| state.controllers[index].disk.head.position >= trimmed)
        }),
        Property::sometimes("all requests are answered after a takeover", |_, state: &State| {
            state.log.term().0 > 1 && state.clients.iter().all(|client| client.answered)
        }),
    ];
    if writers.trims {
        all.push(Property::sometimes("an entry is trimmed after a takeover", |_, state: &State| {
            state.log.trimmed() > periapt_host_api::Revision(1) && state.log.term().0 > 1
        }));
    } else {
        all.push(Property::sometimes(
            "a term begins after an append that nobody heard of",
            |_, state: &State| state.seen.tail.term.0 > 1 && state.losses > 1,
        ));
    }
    all
}

fn once(writers: &Writers, state: &State) -> bool {
    let requests = writers.requests.iter().zip(&state.clients).zip(&state.seen.written);
    requests.into_iter().all(|((request, client), written)| match request {
        Request::Write if client.answered => *written == 1,
        Request::Write => *written <= 1,
        Request::Read => *written == 0,
    })
}
