//! Workloads that run once, for as long as they like.

use std::fmt;

use periapt_host_api::workloads::WorkloadInterface;
use wasmtime_wasi::{I32Exit, p2::bindings::CommandPre};

use super::{
    engine::{CompiledWorkload, UnfitWorkload, WorkloadEngine},
    failure::{Bounds, reason},
    inputs::{Streams, WorkloadInputs},
    log::Form,
    state::WorkloadState,
};

/// A workload that is a command.
#[derive(Clone)]
pub struct CommandWorkload {
    engine: WorkloadEngine,
    command: CommandPre<WorkloadState>,
    inputs: WorkloadInputs,
}

/// The end of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEnd {
    /// It returned or exited, with this code.
    Exited(i32),
    /// It failed, for this reason, which is in its log, too.
    Failed(String),
}

impl CommandWorkload {
    /// Prepares a component for its run.
    ///
    /// # Errors
    /// The component is no command, or imports what there is not.
    pub fn new(
        engine: &WorkloadEngine,
        workload: &CompiledWorkload,
        inputs: WorkloadInputs,
    ) -> Result<Self, UnfitWorkload> {
        let instance = engine.link(workload, WorkloadInterface::Command)?;
        let command = CommandPre::new(instance).map_err(UnfitWorkload::Unfit)?;
        Ok(Self { engine: engine.clone(), command, inputs })
    }

    /// Runs the command with this process's standard input. Dropping the future ends it at any point. Its CPU time has
    /// no bound but the share of its process.
    pub async fn run(&self) -> CommandEnd {
        let streams = Streams::new(Form::Bytes, &self.inputs.log);
        let ended = self.call(&streams).await;
        streams.finish().await;
        if let CommandEnd::Failed(reason) = &ended {
            self.inputs.log.note(reason);
        }
        ended
    }

    async fn call(&self, streams: &Streams) -> CommandEnd {
        let store = self.inputs.context(streams).and_then(|mut context| {
            context.inherit_stdin();
            self.engine.store(context.build(), &self.inputs.outbound, u64::MAX)
        });
        let mut store = match store {
            Ok(store) => store,
            Err(error) => return CommandEnd::Failed(format!("it could not be started: {error:#}")),
        };
        let called = async {
            let command = self.command.instantiate_async(&mut store).await?;
            command.wasi_cli_run().call_run(&mut store).await
        };
        match called.await {
            Ok(Ok(())) => CommandEnd::Exited(0),
            Ok(Err(())) => CommandEnd::Exited(1),
            Err(error) => match error.downcast_ref() {
                Some(I32Exit(code)) => CommandEnd::Exited(*code),
                None => {
                    let bounds = Bounds { limiter: &store.data().limiter, cpu: None };
                    CommandEnd::Failed(reason(&error, &bounds))
                }
            },
        }
    }
}

impl fmt::Debug for CommandWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandWorkload").field("inputs", &self.inputs).finish_non_exhaustive()
    }
}
