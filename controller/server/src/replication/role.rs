//! The role of a controller among several.

use periapt_log::{LogLeader, Term};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The role of a controller at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// The controller's writer evaluates commands. A controller without a log always leads, in term 0.
    Leading(Term),
    /// Another controller leads, if one is known.
    Following(Option<LogLeader>),
}

/// The receiver of a controller's role.
pub(crate) type RoleReceiver = watch::Receiver<Role>;

impl Role {
    /// Returns true if this leader is known to lead, or no later one is known.
    pub(crate) fn is_led_by(&self, leader: &LogLeader) -> bool {
        match self {
            Self::Leading(_) => false,
            Self::Following(None) => true,
            Self::Following(Some(known)) => known == leader,
        }
    }

    /// Returns the term in which the controller leads.
    pub(crate) fn leads_in(&self) -> Option<Term> {
        match self {
            Self::Leading(term) => Some(*term),
            Self::Following(_) => None,
        }
    }
}

/// Runs a part whenever the controller leads, until the controller stops. `run` is called anew with the term of each
/// leadership, and ends when its token is cancelled.
pub(crate) async fn while_leading<F: Future<Output = ()>>(
    mut role: RoleReceiver,
    stop: CancellationToken,
    run: impl Fn(Term, CancellationToken) -> F,
) {
    loop {
        let term = tokio::select! {
            () = stop.cancelled() => return,
            leading = role.wait_for(|role| role.leads_in().is_some()) => {
                leading.ok().and_then(|role| role.leads_in())
            }
        };
        let Some(term) = term else { return };
        let until = stop.child_token();
        let mut run = std::pin::pin!(run(term, until.clone()));
        let ended = tokio::select! {
            () = &mut run => true,
            _ = role.wait_for(|role| role.leads_in() != Some(term)) => false,
        };
        if ended {
            return;
        }
        until.cancel();
        run.await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[tokio::test]
    async fn a_part_is_told_each_term_and_ends_before_it_runs_in_the_next() {
        let (role, stop) = (watch::Sender::new(Role::Following(None)), CancellationToken::new());
        let events = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&events);
        let part = move |term: Term, until: CancellationToken| {
            let noted = Arc::clone(&noted);
            async move {
                noted.lock().push(format!("{} begins", term.0));
                until.cancelled().await;
                noted.lock().push(format!("{} ends", term.0));
            }
        };
        let running = tokio::spawn(while_leading(role.subscribe(), stop.clone(), part));
        let roles = [
            (Role::Leading(Term(3)), 1),
            (Role::Following(None), 2),
            (Role::Leading(Term(5)), 3),
            (Role::Leading(Term(6)), 5),
        ];
        for (next, count) in roles {
            role.send_replace(next);
            while events.lock().len() < count {
                tokio::task::yield_now().await;
            }
        }
        stop.cancel();
        running.await.unwrap();
        let expected = ["3 begins", "3 ends", "5 begins", "5 ends", "6 begins", "6 ends"];
        assert_eq!(*events.lock(), expected);
    }
}
