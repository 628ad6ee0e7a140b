//! `register`

use clap::Args;
use periapt_client::Identity;
use periapt_host_api::user::UseRegistration;

use super::{approval::approved, welcome::welcome};
use crate::{
    commands::Verb,
    context::{Context, client_as},
    data::{ClientData, ControllerEntry, ControllerName},
    error::{Failure, Result},
    input,
    parse::registration::{Registration, RegistrationError},
    secret_input::PasswordArg,
};

/// The longest text to register with, in bytes: it holds a certificate.
const MAX_REGISTRATION: u64 = 64 << 10;

/// Register with a controller as a new user
///
/// The text is the one that add-user or change-user-password --reset has printed. It can be used once. With the text of
/// an external user, which grant has printed, the command logs in as `login` does.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt register eyJ1c2VyIjoiamFuZSIs...\n  periapt register TEXT --name shop"
)]
pub(crate) struct Register {
    /// The text that the administrator has sent; - for standard input
    #[arg(value_name = "TEXT")]
    registration: String,
    /// This client's name for the controller, by default the administrator's
    #[arg(long, value_name = "NAME")]
    name: Option<ControllerName>,
    /// Replace a login to the same controller
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    password: PasswordArg,
}

impl Verb for Register {
    async fn run(self, context: &Context) -> Result<()> {
        let registration = match self.registration.as_str() {
            "-" => input::lines(MAX_REGISTRATION).next().transpose()?.unwrap_or_default(),
            text => text.to_owned(),
        };
        let registration: Registration =
            registration.parse().map_err(|error: RegistrationError| Failure::new(error.to_string()))?;
        let name = self.name.unwrap_or_else(|| registration.controller.clone());
        // Refused before the token is used up.
        let known = ClientData::read(&context.data)?;
        let same = |uuid: uuid::Uuid| uuid == registration.uuid;
        match known.controllers.get(&name) {
            Some(entry) if !same(entry.uuid) => {
                return Err(Failure::new(format!("controller \"{name}\" already exists"))
                    .with_hint("give this one another name by --name"));
            }
            Some(_) if !self.replace => {
                return Err(Failure::new(format!("controller \"{name}\" is registered already"))
                    .with_hint("--replace registers this client as another user"));
            }
            Some(_) | None => {}
        }
        let password = registration.token.as_ref().map(|_| self.password.new_password()).transpose()?;
        // The text has the controller's present address and authority. A client on the controller's host uses the socket.
        let entry = match known.controllers.get(&name) {
            Some(entry) if entry.local.is_some() => entry.clone(),
            Some(ControllerEntry { current_model, .. }) => {
                ControllerEntry { current_model: current_model.clone(), ..registration.entry() }
            }
            None => registration.entry(),
        };
        let client = client_as(&context.data, &name, &entry, Identity::Local)?;
        let issued = match (registration.token, password) {
            (Some(token), Some(password)) => {
                client.register_user(&UseRegistration { token, password }).await?
            }
            _ => approved(context, (&name, &entry), Some(&registration.user)).await?,
        };
        let session = context.client_as(&name, &entry, Identity::Token(issued.token.clone()))?;
        ClientData::update(&context.data, |data| {
            data.controllers.insert(name.clone(), entry);
            data.current_controller = Some(name.clone());
            Ok(())
        })?;
        welcome(context, &name, &session, issued).await
    }
}
