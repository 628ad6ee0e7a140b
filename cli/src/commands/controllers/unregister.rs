//! `unregister`: removes a controller from the client's file; the controller keeps running.

use clap::Args;

use crate::{
    commands::Verb,
    context::{Context, unknown_controller},
    data::{ClientData, ControllerName, LastSeen},
    error::{Failure, Result},
    prompt::PromptArg,
};

/// Unregister a controller that runs elsewhere
///
/// The controller itself keeps running. A controller that was bootstrapped on this machine is refused: no command
/// could end it later.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt unregister staging --no-prompt")]
pub(crate) struct Unregister {
    /// The controller
    name: ControllerName,
    #[command(flatten)]
    prompt: PromptArg,
}

impl Verb for Unregister {
    async fn run(self, context: &Context) -> Result<()> {
        let known = ClientData::read(&context.data)?;
        let entry = known.controllers.get(&self.name).ok_or_else(|| unknown_controller(&self.name))?;
        if entry.local.is_some() {
            return Err(Failure::new(format!("controller {} runs on this machine", self.name))
                .with_hint(format!("`periapt destroy-controller {}` ends it", self.name)));
        }
        self.prompt.confirm(&format!(
            "This command will remove connection information for controller \"{}\".",
            self.name
        ))?;
        ClientData::update(&context.data, |data| {
            data.controllers.remove(&self.name);
            data.current_controller = data.current_controller.take().filter(|current| *current != self.name);
            Ok(())
        })?;
        LastSeen::forget(&context.data, &self.name);
        Ok(())
    }
}
