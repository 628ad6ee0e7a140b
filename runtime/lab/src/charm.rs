//! Charms of a laboratory: metadata as authors write it, and code that is a script, a closure or a component.

use std::{fmt, rc::Rc, time::Duration};

use periapt_hook::{CallError, CallTime, Gathered, HookContext, LeaseState};
use periapt_host_api::{
    Digest, Timestamp,
    charm::{CharmFiles, CharmMeta},
    commit::EarlyEffect,
    name::ApplicationName,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
};
use periapt_model::UploadedCharm;

use crate::{LabError, trace::ToolCall};

mod script;

pub use script::{Action, Hook};
pub(crate) use script::{exec, play};

/// How a charm's handler ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It returned ok.
    Handled,
    /// There is no handler for the event (A09).
    Unhandled,
    /// It was a script that an operator ran, and this is its exit code (C-9).
    Exited(u8),
    /// It failed, trapped, or ran out of a budget.
    Failed(String),
}

/// A hook that ran, with all that it leaves behind.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// How it ended.
    pub ending: Ending,
    /// What it asked for.
    pub gathered: Gathered,
    /// The hook tools that it ran, as far as they are known.
    pub tools: Vec<ToolCall>,
}

/// What a charm's code needs of the world, as the agent's executor gives it.
pub trait HookHost {
    /// The time.
    fn now(&self) -> CallTime;

    /// Where the hook's randomness comes from: the same at each call.
    fn seed(&self) -> [u8; 32];

    /// Renews the unit's lease, and tells what is held after that.
    fn renew_lease(&mut self) -> LeaseState;

    /// Fetches content that the unit may read.
    fn fetch_secret(&mut self, key: SecretKey) -> Result<SecretData, CallError>;

    /// Whether the unit may read a resource: a laboratory holds no content.
    fn fetch_resource(&mut self, key: &ResourceKey) -> Result<(), CallError>;

    /// Takes what leaves the hook early, as it is made.
    fn early(&mut self, items: Vec<(Timestamp, EarlyEffect)>);

    /// Time passes while the hook runs: for the whole laboratory, as it is the only time there is.
    fn sleep(&mut self, duration: Duration);
}

/// What plays a charm's component.
pub trait CharmCode: fmt::Debug {
    /// Runs one hook to its end.
    fn run(&self, context: HookContext, host: &mut dyn HookHost) -> Ran;
}

/// A charm: what it declares, and its code. Two charms with equal texts are the same archive.
#[derive(Debug, Clone)]
pub struct Charm {
    digest: Digest,
    meta: CharmMeta,
    code: Rc<dyn CharmCode>,
    unusable: Option<String>,
}

impl Charm {
    /// A charm of a `charmcraft.yaml` whose every hook succeeds and does nothing.
    ///
    /// # Errors
    /// The metadata makes no charm.
    pub fn new(charmcraft: &str) -> Result<Self, LabError> {
        let files = CharmFiles { charmcraft: Some(charmcraft.to_owned()), ..CharmFiles::default() };
        let meta = CharmMeta::parse(&files)?;
        let code = Rc::new(Quiet(Ending::Handled));
        Ok(Self { digest: Digest::of(charmcraft.as_bytes()), meta, code, unusable: None })
    }

    /// The same charm without a handler for any event (A09).
    #[must_use]
    pub fn without_handlers(self) -> Self {
        Self { code: Rc::new(Quiet(Ending::Unhandled)), ..self }
    }

    /// The same charm with code of its own.
    #[must_use]
    pub fn with_code(self, code: impl CharmCode + 'static) -> Self {
        Self { code: Rc::new(code), ..self }
    }

    /// The same charm with one handler for all events. An error is a failed hook.
    #[must_use]
    pub fn with_handler(self, handler: impl Fn(&mut Hook<'_>) -> Result<(), String> + 'static) -> Self {
        self.with_code(script::Handler::new(handler))
    }

    /// Another archive with the same metadata and code, as a new revision of the charm would be.
    #[must_use]
    pub fn revised(&self, note: &str) -> Self {
        let digest = Digest::of(format!("{}{note}", self.digest).as_bytes());
        Self { digest, ..self.clone() }
    }

    /// The same archive, which no agent can bring into place for the reason given (U-33).
    #[must_use]
    pub fn unusable(&self, reason: &str) -> Self {
        Self { unusable: Some(reason.to_owned()), ..self.clone() }
    }

    /// By this it is deployed.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What it declares.
    pub fn meta(&self) -> &CharmMeta {
        &self.meta
    }

    /// The name that an application of it gets by default.
    pub(crate) fn application(&self) -> Result<ApplicationName, LabError> {
        Ok(ApplicationName::new(&self.meta.name)?)
    }

    pub(crate) fn code(&self) -> &dyn CharmCode {
        self.code.as_ref()
    }

    /// Why it cannot be brought into place; none: it can.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.unusable.as_deref()
    }

    /// What the controller keeps of it.
    pub(crate) fn uploaded(&self) -> UploadedCharm {
        UploadedCharm { digest: self.digest, component: self.digest, meta: self.meta.clone(), size: 1 }
    }
}

/// Code that does nothing and always ends alike.
#[derive(Debug)]
struct Quiet(Ending);

impl CharmCode for Quiet {
    fn run(&self, context: HookContext, _host: &mut dyn HookHost) -> Ran {
        Ran { ending: self.0.clone(), gathered: context.finish(), tools: Vec::new() }
    }
}
