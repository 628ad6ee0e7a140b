//! The programs of hosts. An old one knows the first level of what is stored, and a new one all levels.

use std::sync::Arc;

use periapt_host_api::{LEVEL, Level, Revision, command::Caller};
use periapt_log::{Announcement, Content, EntryId, Log as _, LogHead, NextEntry, Term};
use periapt_model::{
    Environment, Input, Root, WorkerCommand,
    entity::{Entity, EntityKey},
    evaluate,
};
use periapt_store::{
    Batch,
    codec::{self, Writes},
};

use super::{log::Archive, world::LOG};

/// The programs with which hosts begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Programs {
    New,
    /// They are upgraded one by one.
    Old,
    /// They are old, and tell that they know the newest level: a defect.
    OldThatTellNew,
}

impl Programs {
    /// Returns the level that they know.
    pub(super) fn first_level(self) -> Level {
        match self {
            Self::New => LEVEL,
            Self::Old | Self::OldThatTellNew => Level::FIRST,
        }
    }

    /// Returns the level that a program tells which knows this one.
    pub(super) fn told(self, known: Level) -> Level {
        match self {
            Self::New | Self::Old => known,
            Self::OldThatTellNew => LEVEL,
        }
    }
}

/// Appends the first entry of a log, as a program of the first level does. Returns its term and its position.
pub(super) async fn begin(archive: &Archive) -> (Term, Revision) {
    let member = archive.member();
    let leadership = member.acquire(Announcement::default()).await.unwrap();
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let environment = Environment { now, lease_now_ms: 0, seed: [9; 16] };
    let input = Input::Worker(WorkerCommand::Initialize { name: "home".to_owned() });
    let (mut changes, _) = evaluate(&Root::default(), &Caller::Worker, &input, &environment).unwrap();
    let Some(Some(Entity::Controller(controller))) = changes.puts.get_mut(&EntityKey::Controller) else {
        panic!("no controller is made");
    };
    Arc::make_mut(controller).level = Level::FIRST;
    let Batch { entities, records, .. } = codec::batch(Revision(0), [Writes::of(&changes).unwrap()]);
    let (id, term) = (EntryId(uuid::Uuid::from_u128(9)), leadership.term());
    let content = Content::Batch { entities, records };
    let next = LogHead::empty(LOG).next_entry((id, term), (now, Level::FIRST), content).unwrap();
    let NextEntry { position, bytes, .. } = next;
    member.append(term, position, bytes).await.unwrap();
    (term, position)
}
