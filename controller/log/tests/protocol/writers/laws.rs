//! The laws of the model (`docs/design/replication.md`), and examples of what it reaches.

use periapt_host_api::Revision;
use stateright::Property;

use super::state::{Request, State, Trimming, Writers};

/// An answer leaves once its entry is in the log, or its term was confirmed after it was evaluated.
pub(super) const H2: &str = "H2";
/// A position has one entry; terms never fall, and no entry of a term is appended after a later term began.
pub(super) const H3: &str = "H3";
/// Each acknowledged request is in the log once, and nothing is there twice.
pub(super) const H4: &str = "H4";
/// Each trimmed entry is on the disk of a controller, and on those of two unless it did not fit into the bound of the
/// log.
pub(super) const H8: &str = "H8";

/// Returns all laws and examples.
pub(super) fn all(writers: &Writers) -> Vec<Property<Writers>> {
    let mut all = vec![
        Property::always(H2, |_, state: &State| state.seen.breach != Some(H2)),
        Property::always(H3, |_, state: &State| state.seen.breach != Some(H3)),
        Property::always(H4, once),
        Property::always(H8, is_kept),
        Property::sometimes("all requests are answered after a takeover", |_, state: &State| {
            state.log.term().0 > 1 && state.clients.iter().all(|client| client.answered)
        }),
    ];
    if writers.trimming != Trimming::Never {
        all.push(Property::sometimes("an entry is trimmed after a takeover", |_, state: &State| {
            state.log.trimmed() > Revision(1) && state.log.term().0 > 1
        }));
    } else {
        all.push(Property::sometimes(
            "a term begins after an append that nobody heard of",
            |_, state: &State| state.seen.tail.term.0 > 1 && state.losses > 1,
        ));
    }
    if let Trimming::Bounded(_) = writers.trimming {
        all.push(Property::sometimes(
            "a controller that was cut off has the whole log",
            |_, state: &State| {
                let end = state.log.end();
                state.seen.was_cut_off
                    && state.controllers.iter().all(|controller| controller.store.head.position == end)
            },
        ));
    }
    all
}

fn is_kept(writers: &Writers, state: &State) -> bool {
    let disks = state.controllers.iter().map(|controller| controller.disk.head.position);
    let (on_one, on_two) = (disks.clone().max().unwrap_or_default(), disks.min().unwrap_or_default());
    let trimmed = state.log.trimmed();
    match writers.trimming {
        Trimming::Never | Trimming::Unneeded => trimmed <= on_two,
        Trimming::Bounded(fit) => {
            let beyond = Revision(state.log.end().0.saturating_sub(fit));
            trimmed <= on_one && trimmed <= on_two.max(beyond)
        }
    }
}

fn once(writers: &Writers, state: &State) -> bool {
    let requests = writers.requests.iter().zip(&state.clients).zip(&state.seen.written);
    requests.into_iter().all(|((request, client), written)| match request {
        Request::Write if client.answered => *written == 1,
        Request::Write => *written <= 1,
        Request::Read => *written == 0,
    })
}
