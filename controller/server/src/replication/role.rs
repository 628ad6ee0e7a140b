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

/// Runs a part whenever the controller leads, until the controller stops. `run` is called anew with each leadership, and
/// ends when its token is cancelled.
pub(crate) async fn while_leading<F: Future<Output = ()>>(
    mut role: RoleReceiver,
    stop: CancellationToken,
    run: impl Fn(CancellationToken) -> F,
) {
    loop {
        let leading = tokio::select! {
            () = stop.cancelled() => return,
            leading = role.wait_for(|role| role.leads_in().is_some()) => match leading {
                Ok(role) => role.clone(),
                Err(_) => return,
            },
        };
        let until = stop.child_token();
        let mut run = std::pin::pin!(run(until.clone()));
        let ended = tokio::select! {
            () = &mut run => true,
            _ = role.wait_for(|role| *role != leading) => false,
        };
        if ended {
            return;
        }
        until.cancel();
        run.await;
    }
}
