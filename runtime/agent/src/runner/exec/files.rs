//! The files of a script, which are those of a hook. The runner prepares them at the script's first file operation,
//! so scripts without files run even if the unit's charm is not available.

use std::fs::File;

use periapt_hook::{CallError, FileError, FileRequest};
use periapt_host_api::{Timestamp, view::View};
use periapt_sandbox::{Budgets, ResourcesMount, UnitFile, UnitFiles};
use periapt_shell::{FileAnswer, FileCall, FileKind, FileStat};
use periapt_uniter::HookRun;

use super::super::{RunnerContext, hook::NotBegun};

/// The files, once prepared.
pub(super) struct ExecFiles<'a> {
    runner: &'a RunnerContext,
    view: &'a View,
    run: &'a HookRun,
    budgets: &'a Budgets,
    resources: ResourcesMount,
    found: Option<UnitFiles>,
}

impl<'a> ExecFiles<'a> {
    pub(super) fn new(
        runner: &'a RunnerContext,
        view: &'a View,
        run: &'a HookRun,
        budgets: &'a Budgets,
        resources: ResourcesMount,
    ) -> Self {
        Self { runner, view, run, budgets, resources, found: None }
    }

    async fn files(&mut self) -> Result<&mut UnitFiles, NotBegun> {
        let files = match self.found.take() {
            Some(files) => files,
            None => {
                let loaded = self.runner.charms.get(self.run.charm.digest).await?;
                let storage = self.runner.storages.mounts(self.view, &self.run.unit).await?;
                let Self { resources, budgets, .. } = *self;
                UnitFiles::new(&loaded.prepared, storage, resources, budgets, Timestamp::now())
            }
        };
        Ok(self.found.insert(files))
    }

    /// Carries out a file operation of the script.
    pub(super) async fn answer(&mut self, call: FileCall) -> Result<FileAnswer, FileError> {
        let unit = self.run.unit.clone();
        let files = self.files().await.map_err(|error| {
            tracing::info!(%unit, %error, "a script finds no files");
            FileError::NoFiles
        })?;
        let kind = |file| match file {
            UnitFile::File { .. } => FileKind::File,
            UnitFile::Directory => FileKind::Directory,
        };
        match call {
            FileCall::Read { path, at_most } => files.read(&path, at_most).map(FileAnswer::Content),
            FileCall::Write { path, content, append: false } => files.write(&path, &content).map(done),
            FileCall::Write { path, content, append: true } => files.append(&path, &content).map(done),
            FileCall::List { path, at_most } => {
                let names = files.list(&path, at_most)?;
                Ok(FileAnswer::Names(names.into_iter().map(|(name, file)| (name, kind(file))).collect()))
            }
            FileCall::Stat { path } => files.stat(&path).map(|file| {
                let size = if let UnitFile::File { size } = file { size } else { 0 };
                let writable = files.is_writable(&path);
                FileAnswer::Found(FileStat { kind: kind(file), size, writable })
            }),
            FileCall::MakeDirectory { path } => files.make_directory(&path).map(done),
            FileCall::Remove { path, directory: false } => files.remove(&path).map(done),
            FileCall::Remove { path, directory: true } => files.remove_directory(&path).map(done),
        }
    }

    /// Carries out a hook tool's request.
    pub(super) async fn tool(&mut self, request: &FileRequest) -> Result<Vec<u8>, FileError> {
        self.files().await.map_err(|_| FileError::NoFiles)?.answer(request)
    }

    /// Adds the content of a resource at its usual path.
    pub(super) async fn show_resource(
        &mut self,
        name: &str,
        filename: &str,
        file: File,
    ) -> Result<(), CallError> {
        let files = self.files().await.map_err(|error| CallError::Failed(error.to_string()))?;
        files.show_resource(name, filename, file)
    }
}

fn done((): ()) -> FileAnswer {
    FileAnswer::Done
}
