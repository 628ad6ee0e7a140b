//! The upload of a charm to a controller.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use futures_util::stream;
use periapt_archive::{COMPONENT, Inspected, MAX_ARCHIVE};
use periapt_client::Client;
use periapt_host_api::Digest;

use crate::{
    error::{Explain as _, Failure, Result, with_source},
    input,
    output::Progress,
};

/// The bytes that are handed to the connection at a time.
const PIECE: usize = 64 * 1024;

/// The hint for a charm whose `assumes` this controller does not meet.
pub(crate) const PASSES_OVER: &str = "--force passes over what a charm assumes; its hooks may then fail";

/// The treatment of a charm whose `assumes` this controller does not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Assumptions {
    /// Refuse it.
    Checked,
    /// Accept it: `--force` was given.
    PassedOver,
}

impl Assumptions {
    /// Converts `--force`.
    pub(crate) fn of_force(force: bool) -> Self {
        if force { Self::PassedOver } else { Self::Checked }
    }
}

/// A valid archive.
pub(crate) struct Charm {
    /// The archive's bytes.
    pub(crate) archive: Bytes,
    /// The archive's content.
    pub(crate) inspected: Inspected,
}

impl Charm {
    /// Reads an archive, or a charm's directory: it packs one with a component, and reads the one archive of
    /// another.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let metadata = fs::metadata(path).map_err(|error| nothing_at(path, &error))?;
        if !metadata.is_dir() {
            return Self::read_archive(path, metadata.len());
        }
        let component = path.join(COMPONENT);
        if component.exists() {
            let packed = periapt_archive::pack(path, &component).map_err(with_source)?;
            return Ok(Self { archive: packed.bytes.into(), inspected: packed.inspected });
        }
        let archive = only_archive(path)?;
        let length = fs::metadata(&archive).explain(|| format!("{}", archive.display()))?.len();
        Self::read_archive(&archive, length)
    }

    /// Adds a hint to a refusal caused by the charm's `assumes`.
    pub(crate) fn with_hint_of_force(&self, failure: Failure, assumptions: Assumptions) -> Failure {
        let unmet = self.inspected.meta.assumes.check().err().filter(|_| assumptions == Assumptions::Checked);
        match unmet.is_some_and(|unmet| failure.to_string().contains(&unmet.to_string())) {
            true => failure.with_hint(PASSES_OVER),
            false => failure,
        }
    }

    fn read_archive(path: &Path, length: u64) -> Result<Self> {
        if length > MAX_ARCHIVE as u64 {
            return Err(Failure::new(format!(
                "{} has {length} bytes; a charm has at most {MAX_ARCHIVE}",
                path.display()
            )));
        }
        let bytes = input::regular_bytes(path, MAX_ARCHIVE as u64)?;
        let inspected = periapt_archive::inspect(&bytes).explain(|| format!("{}", path.display()))?;
        Ok(Self { archive: bytes.into(), inspected })
    }

    /// Uploads it, unless the controller has it. Shows the progress on a terminal.
    pub(crate) async fn upload(&self, client: &Client) -> Result<Digest> {
        let digest = self.inspected.digest;
        if client.has_charm(&digest).await? {
            tracing::info!(%digest, "the controller has this charm");
            return Ok(digest);
        }
        let progress = Progress::of_upload(self.archive.len() as u64, &self.inspected.meta.name);
        let bar = progress.clone();
        let pieces = move || {
            bar.restart();
            let (mut rest, bar) = (self.archive.clone(), bar.clone());
            stream::iter(std::iter::from_fn(move || {
                let piece = rest.split_to(rest.len().min(PIECE));
                bar.advance(piece.len() as u64);
                (!piece.is_empty()).then_some(Ok(piece))
            }))
        };
        let uploaded = client.upload_charm_stream(&digest, pieces).await;
        progress.finish();
        Ok(uploaded?.digest)
    }
}

/// Returns the error for a missing charm. A bare name is one that a store would know.
fn nothing_at(path: &Path, error: &io::Error) -> Failure {
    let text = path.display().to_string();
    let name = text.strip_prefix("ch:").unwrap_or(&text);
    let is_name = !name.contains(['/', '.']) && error.kind() == io::ErrorKind::NotFound;
    match is_name {
        true => Failure::new(format!(
            "no charm or bundle at {text:?}: charms are deployed from paths, and not from a store"
        ))
        .with_hint(format!(
            "`periapt pack` makes a charm; name its file or its directory, such as ./{name}.charm"
        )),
        false => Failure::new(format!("{text}: {error}"))
            .with_hint("name a charm's directory or a .charm file on this machine, such as ./mysql"),
    }
}

fn only_archive(directory: &Path) -> Result<PathBuf> {
    let failed = || format!("cannot read {}", directory.display());
    let mut archives = Vec::new();
    for entry in fs::read_dir(directory).explain(failed)? {
        let path = entry.explain(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "charm") {
            archives.push(path);
        }
    }
    archives.sort();
    match archives.as_slice() {
        [only] => Ok(only.clone()),
        [] => {
            Err(Failure::new(format!("{} holds neither {COMPONENT} nor a .charm file", directory.display()))
                .with_hint(format!(
                    "build the charm for WebAssembly, then `periapt pack {} --wasm MODULE`",
                    directory.display()
                )))
        }
        several => {
            let names: Vec<_> = several.iter().map(|path| path.display().to_string()).collect();
            Err(Failure::new(format!("{} holds several charms: name one", directory.display()))
                .with_hint(names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &Path) -> String {
        Charm::read(path).err().unwrap().to_string()
    }

    #[test]
    fn a_directory_must_hold_a_component_or_one_archive() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path();
        assert!(refused(path).contains("neither charm.wasm nor a .charm file"), "{}", refused(path));
        fs::write(path.join("a.charm"), "").unwrap();
        fs::write(path.join("b.charm"), "").unwrap();
        assert!(refused(path).contains("several charms"), "{}", refused(path));
        fs::remove_file(path.join("b.charm")).unwrap();
        assert!(refused(path).contains("a.charm: not a charm archive"), "{}", refused(path));
    }

    #[test]
    fn a_path_that_leads_nowhere_is_told() {
        let text = refused(Path::new("/nonexistent/mysql"));
        assert!(text.starts_with("/nonexistent/mysql: "), "{text}");
    }

    #[test]
    fn a_name_that_a_store_would_know_is_told_where_charms_come_from() {
        for name in ["no-such-postgresql", "ch:no-such-postgresql"] {
            let text = refused(Path::new(name));
            assert!(text.contains("charms are deployed from paths"), "{text}");
            assert!(text.contains("such as ./no-such-postgresql.charm"), "{text}");
        }
    }
}
