//! The context of every command: the client's data, and the connection to the selected controller and model.

mod addresses;
mod environment;

use std::{fmt, str::FromStr, time::Duration};

use clap::Args;
use periapt_client::{Client, Identity, Options, Seen, StartAt, Trust};
use periapt_host_api::{
    UserName,
    api::ModelSelector,
    command::{Answer, Command, CommandResult, ModelSummary},
    user::FIRST_USER,
};

use crate::{
    data::{
        Account, Accounts, ClientData, ControllerDir, ControllerEntry, ControllerName, CurrentModel, DataDir,
        LastSeen,
    },
    error::{Failure, Result},
    logging::trace_context,
    output::{ColorChoice, Verbosity, note},
    parse::ParseError,
    program::spelled,
};

pub(crate) use addresses::{Used, listed, remember};
pub(crate) use environment::Environment;

use addresses::addresses_of;

/// The options of commands about one model.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ModelArg {
    /// The model, if not that of $PERIAPT_MODEL or the current one: NAME, USER/NAME, or either after CONTROLLER:
    #[arg(short, long, value_name = "[CONTROLLER:][USER/]MODEL")]
    pub(crate) model: Option<ModelRef>,
}

/// The options of commands about a controller.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ControllerArg {
    /// The controller, if not that of $PERIAPT_CONTROLLER or the current one
    #[arg(short, long, value_name = "NAME")]
    pub(crate) controller: Option<ControllerName>,
}

/// A reference to a model: `[CONTROLLER:][USER/]MODEL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelRef {
    /// The controller; none means the current one.
    pub(crate) controller: Option<ControllerName>,
    /// The model, by name or UUID.
    pub(crate) model: ModelSelector,
}

impl FromStr for ModelRef {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (controller, model) = match text.split_once(':') {
            Some((controller, model)) => (Some(controller.parse()?), model),
            None => (None, text),
        };
        Ok(Self { controller, model: model.parse()? })
    }
}

/// The context of a command.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// The client's data.
    pub(crate) data: DataDir,
    /// The selection by environment variables.
    pub(crate) environment: Environment,
    /// The choice of colours.
    pub(crate) color: ColorChoice,
    /// The amount of messages beside the output.
    pub(crate) verbosity: Verbosity,
    /// The clients that may have gone on to another address.
    pub(crate) used: Used,
}

/// A controller in the client's file, with a client for it.
#[derive(Debug, Clone)]
pub(crate) struct Controller {
    /// This client's name for it.
    pub(crate) name: ControllerName,
    /// The entry in the client's file.
    pub(crate) entry: ControllerEntry,
    /// The user who is logged in there.
    pub(crate) user: UserName,
    /// The client.
    pub(crate) client: Client,
}

/// A model, with its controller.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    /// Its controller.
    pub(crate) controller: Controller,
    /// The model's name or UUID.
    pub(crate) selector: ModelSelector,
}

impl Context {
    /// Prints a message for the operator, unless `--quiet` is given.
    pub(crate) fn say(&self, text: impl fmt::Display) {
        if self.verbosity == Verbosity::Usual {
            note(spelled(&text.to_string()));
        }
    }

    /// Returns the named controller, or the current one.
    pub(crate) fn controller(&self, named: Option<&ControllerName>) -> Result<Controller> {
        let data = ClientData::read(&self.data)?;
        let named = match named {
            Some(name) => Some(name.clone()),
            None => self.environment.controller()?,
        };
        let name = named.or_else(|| data.current_controller.clone());
        let name = name.ok_or_else(|| match data.controllers.is_empty() {
            true => Failure::new("there is no controller yet").with_hint("`periapt bootstrap` makes one"),
            false => Failure::new("no controller is selected")
                .with_hint("`periapt controllers` lists them, `periapt switch CONTROLLER` selects one"),
        })?;
        let entry = data.controllers.get(&name).cloned().ok_or_else(|| unknown_controller(&name))?;
        let account = Accounts::of(&self.data, &name)?;
        let user = user_of(account.as_ref())?;
        let identity = account.map_or(Identity::Local, |account| Identity::Token(account.token));
        let client = self.client_as(&name, &entry, identity)?;
        Ok(Controller { name, entry, user, client })
    }

    /// Creates a client of a controller with an identity. It begins with the newest state that commands have seen, and the
    /// next command begins with the newest that it sees.
    pub(crate) fn client_as(
        &self,
        name: &ControllerName,
        entry: &ControllerEntry,
        identity: Identity,
    ) -> Result<Client> {
        let seen = self.used.seen(&self.data, name);
        let client = client_that_saw(seen.clone(), &self.data, (name, entry), identity)?;
        self.used.add(name, entry, &client, seen)?;
        Ok(client)
    }

    /// Returns the model that an option names, or else the environment.
    pub(crate) fn named(&self, option: Option<&ModelRef>) -> Result<Option<ModelRef>> {
        match option {
            Some(named) => Ok(Some(named.clone())),
            None => self.environment.model(),
        }
    }

    /// Returns the named model, or the current one.
    pub(crate) fn model(&self, arg: &ModelArg) -> Result<Model> {
        let named = self.named(arg.model.as_ref())?;
        let controller = self.controller(named.as_ref().and_then(|named| named.controller.as_ref()))?;
        let selector = match (named, &controller.entry.current_model) {
            (Some(named), _) => named.model,
            (None, Some(current)) => current.selector(),
            (None, None) => {
                return Err(Failure::new(format!("no model of controller {} is selected", controller.name))
                    .with_hint("`periapt add-model NAME` makes one, `periapt switch MODEL` selects one"));
            }
        };
        Ok(Model { controller, selector })
    }
}

impl Controller {
    /// Makes a model the current one.
    pub(crate) fn select(&self, data: &DataDir, model: Option<CurrentModel>) -> Result<()> {
        ClientData::update(data, |known| {
            let entry =
                known.controllers.get_mut(&self.name).ok_or_else(|| unknown_controller(&self.name))?;
            entry.current_model = model;
            Ok(())
        })
    }
}

impl Model {
    /// Returns the client of its controller.
    pub(crate) fn client(&self) -> &Client {
        &self.controller.client
    }

    /// Sends one command.
    pub(crate) async fn command(&self, command: Command) -> Result<Answer> {
        Ok(self.client().command(&self.selector, command).await?)
    }

    /// Sends independent commands, and reports each. Fails if one was refused.
    pub(crate) async fn commands(
        &self,
        commands: Vec<Command>,
        mut report: impl FnMut(usize, Answer),
    ) -> Result<()> {
        let results = self.client().commands(&self.selector, commands).await?.results;
        let mut refusals = Vec::new();
        for (index, result) in results.into_iter().enumerate() {
            match result {
                CommandResult::Ok(answer) => report(index, answer),
                CommandResult::Error(refusal) => refusals.push(refusal),
            }
        }
        let last = refusals.pop().map(Failure::from);
        for refusal in refusals {
            note(format_args!("ERROR {}", Failure::from(refusal)));
        }
        last.map_or(Ok(()), Err)
    }
}

/// The longest wait for a busy controller: longer than it takes to check many uploads at once.
const BUSY_RETRY_TIMEOUT: Duration = Duration::from_secs(180);

/// The longest wait for the answer to a request whose connection broke: longer than it takes to start a controller again.
const UNANSWERED_RETRY_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the user of a login. Without one the controller takes its own host's operator as its first user.
fn user_of(account: Option<&Account>) -> Result<UserName> {
    match account {
        Some(account) => Ok(account.user.clone()),
        None => Ok(FIRST_USER.parse()?),
    }
}

/// Returns the user who is logged in to a controller.
pub(crate) fn logged_in(data: &DataDir, controller: Option<&ControllerName>) -> Result<UserName> {
    let account = controller.map(|name| Accounts::of(data, name)).transpose()?.flatten();
    user_of(account.as_ref())
}

/// Creates a client of a controller with an identity: on its socket if it was bootstrapped here, and else at its URL.
pub(crate) fn client_as(
    data: &DataDir,
    name: &ControllerName,
    entry: &ControllerEntry,
    identity: Identity,
) -> Result<Client> {
    client_that_saw(Seen::starting_with(LastSeen::of(data, name)), data, (name, entry), identity)
}

/// Creates a client of a controller with an identity, which has seen this state. No controller shows it an older one.
fn client_that_saw(
    seen: Seen,
    data: &DataDir,
    (name, entry): (&ControllerName, &ControllerEntry),
    identity: Identity,
) -> Result<Client> {
    if entry.local.is_some() {
        return connected(Options::new(socket_url(&data.controller(name))?, identity));
    }
    if entry.url.starts_with("http://") {
        let text = format!("controller {name} is known from an earlier version, whose address had no TLS");
        return Err(Failure::new(text).with_hint(
            "register once: on the controller's host, `periapt change-user-password USER --reset` prints the text \
             for `periapt register TEXT --replace` here",
        ));
    }
    // The URL that answered last is the first.
    let mut options = Options::new(addresses_of(entry)?, identity).with_start(StartAt::First).with_seen(seen);
    options.trust = entry.ca_cert.clone().map(Trust::Authority);
    connected(options)
}

/// Creates a client of a controller that was bootstrapped here.
pub(crate) fn local_client(directory: &ControllerDir) -> Result<Client> {
    connected(Options::new(socket_url(directory)?, Identity::Local))
}

/// Returns the URL of the socket of a controller that was bootstrapped here.
fn socket_url(directory: &ControllerDir) -> Result<String> {
    let socket = directory.socket();
    let path = socket.to_str().ok_or_else(|| {
        Failure::new(format!("{} is not UTF-8 text", socket.display()))
            .with_hint("choose another PERIAPT_DATA")
    })?;
    Ok(format!("unix://{path}"))
}

fn connected(options: Options) -> Result<Client> {
    let options = options
        .with_busy_retry_timeout(BUSY_RETRY_TIMEOUT)
        .with_unanswered_retry_timeout(UNANSWERED_RETRY_TIMEOUT);
    Ok(Client::new(options.with_trace(trace_context()))?)
}

/// Returns a controller's models, sorted by name.
pub(crate) async fn models_by_name(client: &Client) -> Result<Vec<ModelSummary>> {
    let mut models = client.models().await?;
    models.sort_by(|one, other| (&one.name, &one.owner).cmp(&(&other.name, &other.owner)));
    Ok(models)
}

/// Returns the error for an unknown controller.
pub(crate) fn unknown_controller(name: &ControllerName) -> Failure {
    Failure::new(format!("controller {name} not found")).with_hint("`periapt controllers` lists them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_named_with_or_without_its_controller() {
        let with: ModelRef = "local:blog".parse().unwrap();
        assert_eq!(with.controller.unwrap().as_str(), "local");
        assert_eq!(with.model.to_string(), "blog");
        assert_eq!("blog".parse::<ModelRef>().unwrap().controller, None);
        assert_eq!("local:jane/blog".parse::<ModelRef>().unwrap().model.to_string(), "jane/blog");
        for bad in ["", "local:", ":blog", "a b:blog", "local:a:b"] {
            assert!(bad.parse::<ModelRef>().is_err(), "{bad}");
        }
    }
}
