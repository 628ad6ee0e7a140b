//! The end of streams whose user loses the right to them: a session that is closed, a user who is disabled, a grant that
//! is revoked.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
};

use axum::{body::Body, response::Response};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use periapt_host_api::{ModelUuid, Timestamp, UserName, command::Caller};
use periapt_model::{Right, Root, Subject, active_user, authenticate};
use tokio_util::sync::CancellationToken;

use crate::{
    api::{caller::RequestCaller, streams::is_stream},
    bounds::PatientStream,
    clock::Clock,
    published::{Published, Subscription},
};

/// The open streams of users. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guards(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    streams: BTreeMap<u64, Guarded>,
    of_user: BTreeMap<UserName, BTreeSet<u64>>,
    of_model: BTreeMap<ModelUuid, BTreeSet<u64>>,
}

/// One stream of a user.
#[derive(Debug, Clone)]
struct Guarded {
    who: RequestCaller,
    user: UserName,
    right: Right,
    /// The model that the stream is about, if it is about one.
    model: Option<ModelUuid>,
    /// Ends the stream.
    end: CancellationToken,
}

impl Guarded {
    fn holds(&self, root: &Root, now: Timestamp) -> bool {
        let known = match &self.who.session {
            Some(session) => authenticate(root, &session.token, now).is_some(),
            None => active_user(root, &self.who.caller).is_some(),
        };
        let may = match &self.model {
            Some(model) => root
                .model_or_remains(model)
                .is_some_and(|state| self.who.may(root, self.right, Subject::Model(state))),
            None => self.who.may(root, self.right, Subject::Controller),
        };
        known && may
    }
}

impl Open {
    fn add(&mut self, stream: Guarded) -> u64 {
        let number = self.next;
        self.next += 1;
        self.of_user.entry(stream.user.clone()).or_default().insert(number);
        if let Some(model) = stream.model {
            self.of_model.entry(model).or_default().insert(number);
        }
        self.streams.insert(number, stream);
        number
    }

    fn remove(&mut self, number: u64) {
        let Some(stream) = self.streams.remove(&number) else { return };
        remove_from(&mut self.of_user, &stream.user, number);
        if let Some(model) = &stream.model {
            remove_from(&mut self.of_model, model, number);
        }
    }

    /// Returns the streams that a change may end.
    fn concerned(&self, change: &Change) -> Vec<Guarded> {
        let Change::Of { users, models } = change else { return self.streams.values().cloned().collect() };
        let of_users = users.iter().filter_map(|user| self.of_user.get(user));
        let of_models = models.iter().filter_map(|model| self.of_model.get(model));
        let numbers: BTreeSet<u64> = of_users.chain(of_models).flatten().copied().collect();
        numbers.iter().filter_map(|number| self.streams.get(number).cloned()).collect()
    }
}

fn remove_from<K: Ord>(index: &mut BTreeMap<K, BTreeSet<u64>>, key: &K, number: u64) {
    let Some(numbers) = index.get_mut(key) else { return };
    numbers.remove(&number);
    if numbers.is_empty() {
        index.remove(key);
    }
}

/// The entry of a stream among the open ones. It is removed when it is dropped.
struct OpenStream {
    open: Weak<Mutex<Open>>,
    number: u64,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if let Some(open) = self.open.upgrade() {
            open.lock().remove(self.number);
        }
    }
}

impl Guards {
    /// Returns a response whose stream ends when the caller loses the right to it. Other responses, and those to agents,
    /// are returned as they are.
    pub(crate) fn guard(
        &self,
        response: Response,
        (who, right, model): (RequestCaller, Right, Option<ModelUuid>),
        holds: impl FnOnce(&dyn Fn(&Root, Timestamp) -> bool) -> bool,
    ) -> Response {
        let user = match &who.caller {
            Caller::User(user) if is_stream(&response) => user.clone(),
            _ => return response,
        };
        let patient = response.extensions().get::<PatientStream>();
        let end = patient.map_or_else(CancellationToken::new, |patient| patient.revoked.clone());
        let guarded = Guarded { who, user, right, model, end };
        let entry = self.enter(guarded.clone());
        // The right may have been lost between the admission and the entry.
        if !holds(&|root, now| guarded.holds(root, now)) {
            guarded.end.cancel();
        }
        let (parts, body) = response.into_parts();
        let lines = body.into_data_stream().take_until(guarded.end.cancelled_owned()).map(move |line| {
            let _ = &entry;
            line
        });
        Response::from_parts(parts, Body::from_stream(lines))
    }

    fn enter(&self, guarded: Guarded) -> OpenStream {
        let number = self.0.lock().add(guarded);
        OpenStream { open: Arc::downgrade(&self.0), number }
    }

    /// Ends the streams whose users lost the right to them, commit by commit, until the controller stops.
    pub(crate) async fn run(self, mut state: Subscription, clock: Arc<dyn Clock>, stop: CancellationToken) {
        let mut seen = state.seen();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                alive = state.changed() => if !alive { return },
            }
            let now = state.seen();
            self.check(&Change::between(&seen, &now), &now.root, clock.now());
            seen = now;
        }
    }

    /// Ends those of the concerned streams whose users lost the right. Returns the number of streams that were checked.
    fn check(&self, change: &Change, root: &Root, now: Timestamp) -> usize {
        // Checked without the lock: a stream that ends takes it.
        let concerned = self.0.lock().concerned(change);
        for guarded in concerned.iter().filter(|guarded| !guarded.holds(root, now)) {
            guarded.end.cancel();
        }
        concerned.len()
    }
}

/// The change between two states that may take rights away.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    /// Rights of these users, or to these models.
    Of { users: BTreeSet<UserName>, models: BTreeSet<ModelUuid> },
    /// Any right: the store was replaced, or too much was written between the states.
    Any,
}

impl Change {
    fn between(old: &Published, new: &Published) -> Self {
        if old.store != new.store {
            return Self::Any;
        }
        let Some(written) = new.changed.written_since(&old.changed) else { return Self::Any };
        Self::of(&old.root, &new.root, written)
    }

    /// Returns the change between two states, between which these models were written.
    fn of(old: &Root, new: &Root, written: impl IntoIterator<Item = ModelUuid>) -> Self {
        let (mut users, mut models) = (old.users_who_lost(new), BTreeSet::new());
        for model in written {
            match (old.model(&model), new.model(&model)) {
                (Some(old), Some(new)) => users.extend(old.users_who_lost(new)),
                (Some(old), None) => {
                    users.extend(old.granted_users().cloned());
                    models.insert(model);
                }
                (None, _) => {}
            }
        }
        Self::Of { users, models }
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{
        access::ModelAccess,
        command::{Command, ControllerCommand},
        user::SessionId,
    };
    use periapt_model::Input;

    use super::*;
    use crate::api::test_state::State;

    /// Opens a stream of a model.
    fn open(guards: &Guards, who: &RequestCaller, model: ModelUuid) -> (OpenStream, CancellationToken) {
        let end = CancellationToken::new();
        let user = who.user().unwrap().clone();
        let (right, model) = (Right::ReadModel, Some(model));
        let guarded = Guarded { who: who.clone(), user, right, model, end: end.clone() };
        (guards.enter(guarded), end)
    }

    /// Runs a change, and returns the number of streams that were checked after it.
    fn checked(
        guards: &Guards,
        state: &mut State,
        written: &[ModelUuid],
        change: impl FnOnce(&mut State),
    ) -> usize {
        let before = state.root.clone();
        change(state);
        let change = Change::of(&before, &state.root, written.iter().copied());
        guards.check(&change, &state.root, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_change_checks_the_streams_of_those_who_may_lose_by_it_however_many_there_are() {
        let (mut state, guards) = (State::new(), Guards::default());
        let (blog, shop) = (state.add_model("admin", "blog"), state.add_model("admin", "shop"));
        for name in ["jane", "joe"] {
            state.add_user(name);
            state.grant(blog, name);
        }
        let (jane, joe) = (state.log_in("jane", "1"), state.log_in("joe", "2"));
        let many: Vec<_> = (0..500).map(|_| open(&guards, &joe, blog)).collect();
        let (entry, end) = open(&guards, &jane, blog);

        let logged_in = checked(&guards, &mut state, &[], |state| drop(state.log_in("jane", "3")));
        assert_eq!(logged_in, 0, "a login takes no right away");
        let granted = checked(&guards, &mut state, &[shop], |state| state.grant(shop, "joe"));
        assert_eq!(granted, 0, "neither does a grant");
        let revoke =
            |name: &str| Command::RevokeModel { user: name.parse().unwrap(), access: ModelAccess::Read };
        let revoked =
            checked(&guards, &mut state, &[blog], |state| state.operate(Input::Model(blog, revoke("jane"))));
        assert_eq!(revoked, 1);
        assert!(end.is_cancelled() && many.iter().all(|(_, end)| !end.is_cancelled()));
        drop(entry);

        let disable = ControllerCommand::DisableUser { user: "joe".parse().unwrap() };
        let disabled = checked(&guards, &mut state, &[], |state| state.operate(Input::Controller(disable)));
        assert_eq!(disabled, 500);
        assert!(many.iter().all(|(_, end)| end.is_cancelled()));
        drop(many);
        let open = guards.0.lock();
        assert!(open.streams.is_empty() && open.of_user.is_empty() && open.of_model.is_empty());
    }

    #[test]
    fn the_end_of_a_session_ends_its_streams_alone() {
        let (mut state, guards) = (State::new(), Guards::default());
        let blog = state.add_model("admin", "blog");
        let (one, other) = (state.log_in("admin", "1"), state.log_in("admin", "2"));
        let ((_one, first), (_other, second)) = (open(&guards, &one, blog), open(&guards, &other, blog));
        let session = SessionId::of(&one.session.as_ref().unwrap().token);
        let close = Input::Controller(ControllerCommand::CloseSession { session });
        assert_eq!(checked(&guards, &mut state, &[], |state| state.operate(close)), 2);
        assert!(first.is_cancelled() && !second.is_cancelled());
    }
}
