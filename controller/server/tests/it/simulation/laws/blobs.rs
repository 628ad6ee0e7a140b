//! H7: a registered blob exists.

use std::collections::BTreeSet;

use periapt_host_api::{Digest, Revision};

use crate::simulation::witness::Event;

/// Checks that whenever the witness looked, each blob that is registered at the end of the log was on a disk.
///
/// # Errors
/// H7
pub(super) fn exist(
    events: &[Event],
    registered: impl Fn(Revision) -> BTreeSet<Digest>,
) -> Result<(), String> {
    for event in events {
        let Event::Blobs { at, held } = event else { continue };
        let lost = registered(*at).into_iter().find(|digest| !held.iter().any(|disk| disk.contains(digest)));
        if let Some(digest) = lost {
            return Err(format!("H7: blob {} is registered at {at}, and no disk has it", digest.short()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registered_blob_that_no_disk_has_is_found() {
        let (kept, lost) = (Digest::of(b"kept"), Digest::of(b"lost"));
        let seen = |held: Vec<BTreeSet<Digest>>| [Event::Blobs { at: Revision(4), held }];
        let registered = |at: Revision| -> BTreeSet<Digest> {
            if at == Revision(4) { [kept, lost].into() } else { BTreeSet::new() }
        };
        exist(&seen(vec![[kept].into(), [lost].into()]), registered).unwrap();
        let found = exist(&seen(vec![[kept].into(), BTreeSet::new()]), registered).unwrap_err();
        assert!(found.starts_with("H7: "), "{found}");
        assert!(found.contains(&lost.short().to_string()), "{found}");
    }
}
