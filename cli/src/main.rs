//! `periapt`: the one binary. Client commands, the controller, the agent, and `pack`.

mod agent_program;
mod args;
mod blobs_args;
mod commands;
mod complete;
mod context;
mod data;
mod error;
mod files;
mod follow;
mod grammar;
mod help;
mod input;
mod issuer;
mod join;
mod local;
mod log_args;
mod logging;
mod misuse;
mod output;
mod parse;
mod passphrase;
mod print;
mod process;
mod program;
mod prompt;
mod recipients;
mod secret_input;
mod service;
mod tls;
mod unsupported;
mod upload;
mod workload_args;

use std::process::ExitCode;

use args::Cli;
use commands::{Runtime, Verb as _};
use context::{Context, Environment, Used};
use data::DataDir;
use error::{Explain as _, Failure, Result};
use logging::Process;
use output::{Verbosity, note};
use tracing::{Instrument as _, Span};

/// Runs the command line. Its exit codes are: 0: success; 1: a failure or a refusal; 2: an invalid command line; 3: the
/// controller does not know the agent any more; 128 and a signal's number: that signal interrupted it. A dialogue with a
/// command in a container ends with that command's exit code.
fn main() -> ExitCode {
    if let Some(code) = periapt_trial::answer_as_hook_tool(std::env::args_os()) {
        return code.into();
    }
    program::name_process();
    program::called_by(std::env::args_os().next().as_deref());
    match complete::answered() {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(failure) => return failed(&failure),
    }
    let words = help::resolved(std::env::args_os().collect());
    let cli = match grammar::read(&words) {
        Ok(cli) => cli,
        Err(error) => {
            let arguments: Vec<String> =
                words.iter().skip(1).map(|text| text.to_string_lossy().into_owned()).collect();
            return match unsupported::answer(&error, &arguments) {
                Some(failure) => failed(&failure),
                None => misuse::answer(&error).unwrap_or_else(|failure| failed(&failure)),
            };
        }
    };
    // Before the log, whose export of spans has a thread.
    let gaps = match cli.command.runtime() {
        Runtime::Fenced(_, service) => service.raise_fence(),
        Runtime::OneThread | Runtime::TwoThreads | Runtime::AllCores(_) | Runtime::Own(..) => Ok(Vec::new()),
    };
    let gaps = match gaps {
        Ok(gaps) => gaps,
        Err(failure) => return failed(&failure),
    };
    let process = match cli.command.runtime() {
        Runtime::OneThread | Runtime::TwoThreads => Process::Verb,
        Runtime::AllCores(service) | Runtime::Fenced(service, _) => Process::Service(service),
        Runtime::Own(..) => Process::OfService,
    };
    let _last_spans = logging::start(process, cli.log_level(process));
    for gap in gaps {
        tracing::debug!(%gap, "the process lacks a part of the system's fence");
    }
    if let Runtime::Own(main, argument) = cli.command.runtime() {
        return main(argument);
    }
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(&failure),
    }
}

fn failed(failure: &Failure) -> ExitCode {
    if !matches!(failure, Failure::OutputClosed | Failure::PodNotBegun | Failure::Exited(_)) {
        note(format_args!("ERROR {failure}"));
    }
    failure.exit_code().into()
}

fn run(cli: Cli) -> Result<()> {
    let context = Context {
        data: DataDir::from_environment()?,
        environment: Environment::of_process(),
        color: cli.color(),
        verbosity: if cli.quiet { Verbosity::Quiet } else { Verbosity::Usual },
        used: Used::default(),
    };
    let mut runtime = match cli.command.runtime() {
        Runtime::TwoThreads | Runtime::AllCores(_) | Runtime::Fenced(..) => {
            tokio::runtime::Builder::new_multi_thread()
        }
        Runtime::OneThread | Runtime::Own(..) => tokio::runtime::Builder::new_current_thread(),
    };
    let span = match cli.command.runtime() {
        Runtime::OneThread | Runtime::TwoThreads => logging::verb_span(&cli.verb),
        // A service runs for months; what it does has spans of its own.
        Runtime::AllCores(_) | Runtime::Fenced(..) | Runtime::Own(..) => Span::none(),
    };
    if matches!(cli.command.runtime(), Runtime::TwoThreads) {
        runtime.worker_threads(1);
    }
    let runtime = runtime.enable_all().build().explain(|| "cannot start".to_owned())?;
    let is_verb = matches!(cli.command.runtime(), Runtime::OneThread | Runtime::TwoThreads);
    let result = runtime.block_on(cli.command.run(&context).instrument(span.clone()));
    runtime.block_on(context.used.remember(&context.data));
    span.record("outcome", if result.is_ok() { "ok" } else { "failed" });
    if is_verb && result.is_err() {
        // The resolver may look a name up for longer than a verb waits for it, and cannot be told to end.
        runtime.shutdown_background();
    }
    result
}
