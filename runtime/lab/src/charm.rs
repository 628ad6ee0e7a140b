//! Charms of a laboratory: metadata as authors write it, and code that is a script, a closure or a component.

use std::{fmt, rc::Rc, time::Duration};

use periapt_hook::{CallError, CallTime, HookContext, HookResults, LeaseState, ToolOutput};
use periapt_host_api::{
    ContainerName, Digest, Timestamp,
    charm::{CharmFiles, CharmMeta},
    commit::EarlyEffect,
    name::ApplicationName,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
};
use periapt_model::{UploadedCharm, entity::MetaReader};
use periapt_pebble::{PodAnswer, PodRequest};

use crate::LabError;

mod script;

pub use script::{Action, Hook};
pub(crate) use script::{exec, play};

/// The end of a charm's handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The handler returned ok.
    Handled,
    /// The charm has no handler for the event (A09).
    Unhandled,
    /// An operator's script ended with this exit code (C-9).
    Exited(u8),
    /// The handler failed, trapped, or exceeded a budget.
    Failed(String),
}

/// The outcome of a hook.
#[derive(Debug, Clone, PartialEq)]
pub struct LabHookReport {
    /// The end of its handler.
    pub ending: Ending,
    /// Its gathered effects.
    pub gathered: HookResults,
    /// The hook tools that it ran, as far as they are known.
    pub tools: Vec<ToolCall>,
}

/// One hook tool that a script ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The time of the call, on both clocks.
    pub at: CallTime,
    /// Its name and arguments.
    pub argv: Vec<String>,
    /// The output.
    pub output: ToolOutput,
}

/// The services of the agent's executor for a charm's code.
pub trait HookHost {
    /// Returns the time.
    fn now(&self) -> CallTime;

    /// Returns the seed of the hook's randomness, the same at each call.
    fn seed(&self) -> [u8; 32];

    /// Renews the unit's lease, and returns its leadership after that.
    fn renew_lease(&mut self) -> LeaseState;

    /// Fetches content that the unit may read.
    fn fetch_secret(&mut self, key: SecretKey) -> Result<SecretData, CallError>;

    /// Checks that the unit may read a resource. A laboratory holds no content.
    fn fetch_resource(&mut self, key: &ResourceKey) -> Result<(), CallError>;

    /// Takes the early effects as the hook makes them.
    fn early(&mut self, items: Vec<(Timestamp, EarlyEffect)>);

    /// Asks the Pebble of a container, at once and outside of the hook's commit. Waits while Pebble lets its client
    /// wait.
    fn pebble(&mut self, container: &ContainerName, request: PodRequest) -> Result<PodAnswer, LabError>;

    /// Lets time pass for the whole laboratory while the hook runs.
    fn sleep(&mut self, duration: Duration);
}

/// A stand-in for a charm's component.
pub trait CharmCode: fmt::Debug {
    /// Runs one hook to its end.
    fn run(&self, context: HookContext, host: &mut dyn HookHost) -> LabHookReport;
}

/// A charm: its metadata and its code. Charms with equal texts are the same archive.
#[derive(Debug, Clone)]
pub struct LabCharm {
    digest: Digest,
    meta: CharmMeta,
    code: Rc<dyn CharmCode>,
    unusable: Option<String>,
}

impl LabCharm {
    /// Creates a charm from a `charmcraft.yaml`. Each hook of it succeeds and does nothing.
    ///
    /// # Errors
    /// The metadata is invalid.
    pub fn new(charmcraft: &str) -> Result<Self, LabError> {
        let files = CharmFiles { charmcraft: Some(charmcraft.to_owned()), ..CharmFiles::default() };
        let meta = CharmMeta::parse(&files)?;
        let code = Rc::new(NoOpCode(Ending::Handled));
        Ok(Self { digest: Digest::of(charmcraft.as_bytes()), meta, code, unusable: None })
    }

    /// Returns the charm without any handler (A09).
    #[must_use]
    pub fn without_handlers(self) -> Self {
        Self { code: Rc::new(NoOpCode(Ending::Unhandled)), ..self }
    }

    /// Returns the charm with other code.
    #[must_use]
    pub fn with_code(self, code: impl CharmCode + 'static) -> Self {
        Self { code: Rc::new(code), ..self }
    }

    /// Returns the charm with one handler for all events. An error is a failed hook.
    #[must_use]
    pub fn with_handler(self, handler: impl Fn(&mut Hook<'_>) -> Result<(), String> + 'static) -> Self {
        self.with_code(script::Handler::new(handler))
    }

    /// Returns another archive with the same metadata and code, as a new revision of the charm.
    #[must_use]
    pub fn revised(&self, note: &str) -> Self {
        let digest = Digest::of(format!("{}{note}", self.digest).as_bytes());
        Self { digest, ..self.clone() }
    }

    /// Returns the same archive, which no agent can install, for this reason (U-33).
    #[must_use]
    pub fn unusable(&self, reason: &str) -> Self {
        Self { unusable: Some(reason.to_owned()), ..self.clone() }
    }

    /// Returns the digest by which the charm is deployed.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the metadata.
    pub fn meta(&self) -> &CharmMeta {
        &self.meta
    }

    /// Returns the default name of an application of it.
    pub(crate) fn application(&self) -> Result<ApplicationName, LabError> {
        Ok(ApplicationName::new(&self.meta.name)?)
    }

    pub(crate) fn code(&self) -> &dyn CharmCode {
        self.code.as_ref()
    }

    /// Returns the reason why it cannot be installed, if any.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.unusable.as_deref()
    }

    /// Returns the controller's record of the charm.
    pub(crate) fn uploaded(&self) -> UploadedCharm {
        let (digest, meta, reader) = (self.digest, self.meta.clone(), MetaReader::NEWEST);
        UploadedCharm { digest, component: digest, meta, size: 1, reader }
    }
}

/// Code that does nothing and always ends alike.
#[derive(Debug)]
struct NoOpCode(Ending);

impl CharmCode for NoOpCode {
    fn run(&self, context: HookContext, _host: &mut dyn HookHost) -> LabHookReport {
        LabHookReport { ending: self.0.clone(), gathered: context.finish(), tools: Vec::new() }
    }
}
