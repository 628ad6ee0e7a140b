//! The note of the table's name in the agent's directory. Two agents of a host may have one name, if they are of two
//! controllers; their tables must not.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use periapt_host_api::AgentName;

use crate::keeper::directories::DirectoryError;

/// The beginning of the names of all agents' tables.
const PREFIX: &str = "periapt-";

/// The longest name of a table.
const MAX_NAME: usize = 255;

/// Returns the name of the agent's table, which is noted once and for all.
pub(super) fn name_of_table(path: &Path, agent: &AgentName) -> Result<String, DirectoryError> {
    if let Some(name) = known(path) {
        return Ok(name);
    }
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(DirectoryError::NoRandom)?;
    let name = format!("{PREFIX}{agent}-{}", hex::encode(random));
    let unusable = |source| DirectoryError::Unusable { path: PathBuf::from(path), source };
    fs::write(path, format!("{name}\n")).map_err(unusable)?;
    Ok(name)
}

/// Returns the name that is noted, if it can be one.
pub(super) fn known(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let name = text.strip_suffix('\n')?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    let is_name = name.starts_with(PREFIX) && name.len() <= MAX_NAME && name.chars().all(plain);
    is_name.then(|| name.to_owned())
}

/// Deletes the note, once there is no such table any more.
pub(super) fn forget(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = %path.display(), "the note of the firewall's table could not be deleted");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_its_name_and_agents_of_one_name_have_two() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (directory.path().join("one"), directory.path().join("other"));
        let agent: AgentName = "worker-1".parse().unwrap();
        let name = name_of_table(&one, &agent).unwrap();
        assert!(name.starts_with("periapt-worker-1-"), "{name}");
        assert_eq!(name_of_table(&one, &agent).unwrap(), name);
        assert_ne!(name_of_table(&other, &agent).unwrap(), name);
        forget(&one);
        forget(&one);
        assert_eq!(known(&one), None);
    }

    #[test]
    fn a_note_that_is_cut_off_or_names_a_strangers_table_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("firewall");
        for text in ["", "periapt-a-1", "filter\n", "periapt-a b\n", "periapt-\u{e9}\n"] {
            fs::write(&path, text).unwrap();
            assert_eq!(known(&path), None, "{text:?}");
        }
    }
}
