//! `try-hook`: single hooks of a packed charm, without a controller.

use std::path::{Path, PathBuf};

use clap::Args;
use periapt_archive::MAX_ARCHIVE;
use periapt_host_api::excerpt;
use periapt_trial::{CompiledCache, NativeProgram, Scene, Trial, TrialError, TrialOutcome, TrialResult};
use serde::Serialize;

use crate::{
    commands::Verb,
    context::Context,
    data::DataDir,
    error::{Explain as _, Failure, Result, with_source},
    input,
    output::{Sink, to_json},
};

/// The largest scene, in bytes: it holds all that a hook may see.
const MAX_SCENE: u64 = 64 << 20;

/// Run one hook of a charm in the sandbox, over a scene in JSON
///
/// A scene holds the unit, its event, and all that the hook may see: config, relations with their settings, secrets,
/// storage, resources, leadership, stored state. The output is JSON: the hook's effects, statuses, log, result and
/// costs. Nothing else happens, and no controller is needed.
///
/// With files, it runs each and fails if a hook did. Without files, it reads scenes from standard input, one on each
/// line, and answers each with one line, `{"tried": …}` or `{"error": …}`, until the input ends. Tests of charms in
/// other languages drive it so.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  periapt try-hook ./mysql.charm scene.json
  echo '{\"unit\": \"mysql/0\", \"event\": {\"hook\": \"install\"}}' | periapt try-hook ./mysql.charm")]
pub(crate) struct TryHook {
    /// The charm's archive, as `pack` made it
    charm: PathBuf,
    /// Files of scenes; without one, lines of standard input
    #[arg(value_name = "SCENE")]
    scenes: Vec<PathBuf>,
    /// Run this program in the place of the charm's component, as in --native "python3 src/charm.py", with hook tools
    /// that answer as the sandbox's do. It is run as you, and nothing confines it
    #[arg(long, value_name = "COMMAND")]
    native: Option<String>,
    /// The directory that the program is run in: the charm's
    #[arg(long, value_name = "DIRECTORY", requires = "native", default_value = ".")]
    directory: PathBuf,
}

/// The handler of the hooks: a component or a native program.
struct Handler {
    trial: Trial,
    native: Option<NativeProgram>,
}

/// The answer to one line.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Tried(Box<TrialResult>),
    Error(String),
}

impl Verb for TryHook {
    async fn run(self, context: &Context) -> Result<()> {
        let archive = input::regular_bytes(&self.charm, MAX_ARCHIVE as u64)?;
        let cache =
            CompiledCache::open(&DataDir::cache_from_environment()?.join("compiled")).map_err(with_source)?;
        let trial = Trial::open(&archive, &cache)
            .map_err(|error| Failure::new(format!("{}: {error}", self.charm.display())))?;
        let native = self.native.map(|command| native(&command, &self.directory)).transpose()?;
        let handler = Handler { trial, native };
        let mut sink = Sink::new(None, context.color)?;
        match self.scenes.as_slice() {
            [] => answer_lines(&handler, &mut sink).await,
            scenes => play(&handler, scenes, &mut sink).await,
        }
    }
}

fn native(command: &str, directory: &Path) -> Result<NativeProgram> {
    let directory = directory.canonicalize().explain(|| format!("cannot use {}", directory.display()))?;
    // The tools run in other processes, which find this process's file by this path.
    let tool = format!("/proc/{}/exe", std::process::id()).into();
    Ok(NativeProgram { command: command.split_whitespace().map(Into::into).collect(), directory, tool })
}

async fn play(handler: &Handler, scenes: &[PathBuf], sink: &mut Sink) -> Result<()> {
    for path in scenes {
        let text = input::text_within(path, MAX_SCENE)?;
        let tried = tried(handler, &text)
            .await
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
        sink.write(&to_json(&tried)?)?;
        if let TrialOutcome::Failed { message, .. } = &tried.outcome {
            return Err(Failure::new(format!("{}: the hook failed: {message}", path.display())));
        }
    }
    Ok(())
}

async fn answer_lines(handler: &Handler, sink: &mut Sink) -> Result<()> {
    for line in input::lines(MAX_SCENE) {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let answer = match tried(handler, &line).await {
            Ok(tried) => Answer::Tried(Box::new(tried)),
            Err(error) => Answer::Error(error.to_string()),
        };
        sink.write(&to_json(&answer)?)?;
    }
    Ok(())
}

/// The reason why a scene was not run.
#[derive(Debug, thiserror::Error)]
enum SceneError {
    /// The text is no scene.
    #[error("scene: {0}")]
    Unreadable(String),
    /// The scene cannot be run.
    #[error(transparent)]
    Trial(#[from] TrialError),
}

async fn tried(handler: &Handler, scene: &str) -> Result<TrialResult, SceneError> {
    let scene: Scene = serde_json::from_str(scene)
        .map_err(|error| SceneError::Unreadable(excerpt::of_message(&error.to_string())))?;
    let tried = match &handler.native {
        Some(program) => handler.trial.run_native(&scene, program).await,
        None => handler.trial.run(&scene).await,
    };
    Ok(tried?)
}
