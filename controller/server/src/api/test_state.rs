//! A state of the controller for tests, which commands change without a store.

use periapt_host_api::{
    Digest, ModelUuid, Revision, Timestamp,
    access::ModelAccess,
    command::{Caller, Command, ControllerCommand},
};
use periapt_model::{
    Environment, IdentityCommand, Input, NewSession, Root, WorkerCommand,
    entity::{Registration, SessionKind},
    evaluate,
};

use crate::api::caller::{RequestCaller, RequestSession};

/// A state, changed by one command after the other.
pub(crate) struct State {
    pub(crate) root: Root,
    seed: u128,
}

/// Returns a user as a caller.
pub(crate) fn user(name: &str) -> Caller {
    Caller::User(name.parse().unwrap())
}

impl State {
    /// Returns the state of a controller after its first start.
    pub(crate) fn new() -> Self {
        let mut state = Self { root: Root::default(), seed: 0 };
        state.run(&Caller::Worker, Input::Worker(WorkerCommand::Initialize { name: "home".to_owned() }));
        state
    }

    fn run(&mut self, caller: &Caller, input: Input) {
        self.seed += 1;
        let (now, seed) = (Timestamp::UNIX_EPOCH, self.seed.to_be_bytes());
        let env = Environment { now, lease_now_ms: 0, seed };
        let (changes, _) = evaluate(&self.root, caller, &input, &env).unwrap();
        self.root = self.root.apply(&changes, Revision(0));
    }

    /// Runs a command of the operator.
    pub(crate) fn operate(&mut self, input: Input) {
        self.run(&user("admin"), input);
    }

    /// Adds a user who has not registered.
    pub(crate) fn add_user(&mut self, name: &str) {
        let registration = Registration { token: Digest::of(name.as_bytes()), expires_at: Timestamp::MAX };
        let (name, display_name) = (name.parse().unwrap(), String::new());
        self.operate(Input::Identity(IdentityCommand::AddUser { name, display_name, registration }));
    }

    /// Makes a user a superuser.
    pub(crate) fn promote(&mut self, name: &str) {
        let (user, access) = (name.parse().unwrap(), periapt_host_api::access::ControllerAccess::Superuser);
        self.operate(Input::Controller(ControllerCommand::GrantController { user, access }));
    }

    /// Opens a session, and returns the caller with it.
    pub(crate) fn log_in(&mut self, name: &str, token: &str) -> RequestCaller {
        let token = Digest::of(token.as_bytes());
        let (kind, expires_at) = (SessionKind::Login, Timestamp::MAX);
        let session = NewSession { token, kind, expires_at, address: String::new() };
        self.run(&user(name), Input::Identity(IdentityCommand::OpenSession { session }));
        let session = Some(RequestSession { token, scope: None });
        RequestCaller { caller: user(name), session, address: None, request: None }
    }

    /// Adds a model of a superuser.
    pub(crate) fn add_model(&mut self, owner: &str, name: &str) -> ModelUuid {
        let add = ControllerCommand::add_model(name.parse().unwrap());
        self.run(&user(owner), Input::Controller(add));
        let (owner, name) = (owner.parse().unwrap(), name.parse().unwrap());
        self.root.model_named(&owner, &name).unwrap().model().uuid
    }

    /// Grants a user read access to a model.
    pub(crate) fn grant(&mut self, model: ModelUuid, name: &str) {
        let grant = Command::GrantModel { user: name.parse().unwrap(), access: ModelAccess::Read };
        self.operate(Input::Model(model, grant));
    }
}
