//! In-memory secrets of the unit. A hook reads its own changes at once; they become revisions when it succeeds.

use std::collections::BTreeMap;

use super::state::{State, current};
use crate::bindings::periapt::charm::{
    secrets::{Access, Details, Metadata, Owner, RevisionMode, RotatePolicy},
    types::Error,
};

type Pairs = Vec<(String, Vec<u8>)>;

/// All secrets that the unit may know.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    by_uri: BTreeMap<String, StoredSecret>,
    made: u32,
}

/// One secret.
#[derive(Clone)]
pub(crate) struct StoredSecret {
    /// The owner. `None` means another application, which granted the secret.
    owner: Option<Owner>,
    /// The content, by revision.
    pub(crate) revisions: BTreeMap<u32, Pairs>,
    /// New content from this hook.
    pending: Option<Pairs>,
    /// True if this hook made the secret.
    fresh: bool,
    metadata: Metadata,
    /// The relation of each reader's grant.
    pub(crate) access: BTreeMap<String, u32>,
    /// True if this unit may read another application's secret.
    granted: bool,
    tracked: Option<u32>,
    /// The consumer's own label.
    label: Option<String>,
}

impl Secrets {
    /// Adds a secret of another application, and grants it to the unit.
    pub(crate) fn grant(&mut self, content: Pairs) -> String {
        self.insert(StoredSecret::new(None, content))
    }

    pub(crate) fn of(&self, uri: &str) -> Option<&StoredSecret> {
        self.by_uri.get(&full(uri))
    }

    /// Adds a revision to another application's secret.
    pub(crate) fn revise(&mut self, uri: &str, content: Pairs) {
        if let Some(stored) = self.by_uri.get_mut(&full(uri)) {
            stored.revisions.insert(stored.latest() + 1, content);
        }
    }

    pub(crate) fn revoke(&mut self, uri: &str) {
        if let Some(stored) = self.by_uri.get_mut(&full(uri)) {
            stored.granted = false;
        }
    }

    /// Commits the hook's new content as revisions, if it differs from the latest.
    pub(crate) fn commit(&mut self) {
        for stored in self.by_uri.values_mut() {
            stored.fresh = false;
            if let Some(content) = stored.pending.take()
                && stored.revisions.get(&stored.latest()) != Some(&content)
            {
                stored.revisions.insert(stored.latest() + 1, content);
            }
        }
    }

    fn insert(&mut self, stored: StoredSecret) -> String {
        self.made += 1;
        let uri = format!("secret:{:020}", self.made);
        self.by_uri.insert(uri.clone(), stored);
        uri
    }
}

impl StoredSecret {
    fn new(owner: Option<Owner>, content: Pairs) -> Self {
        Self {
            granted: owner.is_none(),
            owner,
            revisions: BTreeMap::from([(1, content)]),
            pending: None,
            fresh: false,
            metadata: Metadata { label: None, description: None, rotate: None, expire: None },
            access: BTreeMap::new(),
            tracked: None,
            label: None,
        }
    }

    pub(crate) fn latest(&self) -> u32 {
        self.revisions.keys().next_back().copied().unwrap_or_default()
    }

    fn update_metadata(&mut self, metadata: &Metadata) {
        let Metadata { label, description, rotate, expire } = metadata.clone();
        self.metadata.label = label.or(self.metadata.label.take());
        self.metadata.description = description.or(self.metadata.description.take());
        self.metadata.rotate = rotate.or(self.metadata.rotate);
        self.metadata.expire = expire.or(self.metadata.expire.take());
    }
}

/// Returns a secret's URI without the model's UUID.
fn full(uri: &str) -> String {
    let id = uri.rsplit(['/', ':']).next().unwrap_or(uri);
    format!("secret:{id}")
}

fn bare(uri: &str) -> &str {
    uri.strip_prefix("secret:").unwrap_or(uri)
}

fn not_found(what: &str) -> Error {
    Error::NotFound(format!("secret {:?} not found", bare(what)))
}

fn parsed(uri: &str) -> Result<String, Error> {
    let id = uri.rsplit(['/', ':']).next().unwrap_or(uri);
    let valid =
        id.len() == 20 && id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'v').contains(&byte));
    if valid { Ok(full(uri)) } else { Err(Error::InvalidArgument(format!("secret URI {uri:?} not valid"))) }
}

fn checked(content: &[(String, Vec<u8>)]) -> Result<Pairs, Error> {
    if content.is_empty() {
        return Err(Error::InvalidArgument("empty secret value not valid".to_owned()));
    }
    for (key, _) in content {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let valid = key.len() >= 3
            && key.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
            && key.bytes().next_back().is_some_and(letter)
            && key.bytes().all(|byte| letter(byte) || byte == b'-')
            && !key.contains("--");
        if !valid {
            return Err(Error::InvalidArgument(format!("key {key:?} not valid")));
        }
    }
    let sorted: BTreeMap<_, _> = content.iter().cloned().collect();
    Ok(sorted.into_iter().collect())
}

/// Checks an expiry: a duration (`24h`, `1h30m`) or a time (`2026-03-04`, or with a time of day).
fn check_expire(metadata: &Metadata) -> Result<(), Error> {
    let Some(expire) = &metadata.expire else { return Ok(()) };
    let is_duration = |text: &str| {
        let units = text.split(|c: char| c.is_ascii_digit() || c == '.').filter(|unit| !unit.is_empty());
        text.starts_with(|c: char| c.is_ascii_digit())
            && text.ends_with(['h', 'm', 's'])
            && units.clone().all(|unit| ["h", "m", "s", "ms"].contains(&unit))
    };
    let is_time = || {
        let date = expire.get(..10).unwrap_or_default().split('-').map(str::len);
        date.eq([4, 2, 2]) && expire.starts_with(|c: char| c.is_ascii_digit())
    };
    match expire.strip_prefix('-') {
        Some(duration) if is_duration(duration) => {
            Err(Error::InvalidArgument(format!("negative expire duration {expire:?} not valid")))
        }
        None if is_duration(expire) || is_time() => Ok(()),
        _ => Err(Error::InvalidArgument(format!("expire time or duration {expire:?} not valid"))),
    }
}

fn label_free(state: &State, uri: Option<&str>, owner: Owner, label: Option<&str>) -> Result<(), Error> {
    let Some(label) = label else { return Ok(()) };
    let taken = state.durable.secrets.by_uri.iter().any(|(other, stored)| {
        Some(other.as_str()) != uri
            && stored.owner == Some(owner)
            && stored.metadata.label.as_deref() == Some(label)
    });
    match taken {
        true => Err(Error::AlreadyExists(format!("secret with label {label:?} already exists"))),
        false => Ok(()),
    }
}

fn lead(state: &State, owner: Option<Owner>) -> Result<(), Error> {
    match owner {
        Some(Owner::Application) => state.not_leader("this unit is not the leader"),
        _ => Ok(()),
    }
}

/// Returns a secret that the unit or its application owns.
fn own<'a>(state: &'a mut State, uri: &str) -> Result<(String, &'a mut StoredSecret), Error> {
    let key = parsed(uri)?;
    let owner = state.durable.secrets.by_uri.get(&key).and_then(|stored| stored.owner);
    let owner = owner.ok_or_else(|| not_found(&key))?;
    lead(state, Some(owner))?;
    let stored = state.durable.secrets.by_uri.get_mut(&key).ok_or_else(|| not_found(uri))?;
    Ok((key, stored))
}

pub(crate) fn add(owner: Owner, content: &[(String, Vec<u8>)], metadata: &Metadata) -> Result<String, Error> {
    current(|state| {
        check_expire(metadata)?;
        let content = checked(content)?;
        lead(state, Some(owner))?;
        label_free(state, None, owner, metadata.label.as_deref())?;
        let mut stored = StoredSecret { fresh: true, ..StoredSecret::new(Some(owner), content) };
        stored.update_metadata(metadata);
        Ok(state.durable.secrets.insert(stored))
    })
}

pub(crate) fn set(
    uri: &str,
    content: Option<&[(String, Vec<u8>)]>,
    metadata: &Metadata,
) -> Result<(), Error> {
    current(|state| {
        check_expire(metadata)?;
        let content = content.map(checked).transpose()?;
        // On a host the commit refuses another owner's secret. A harness has no commit, so the secret counts as not
        // found.
        let (key, owner) = {
            let (key, stored) = own(state, uri)?;
            (key, stored.owner)
        };
        if let Some(owner) = owner {
            label_free(state, Some(&key), owner, metadata.label.as_deref())?;
        }
        let (_, stored) = own(state, uri)?;
        stored.update_metadata(metadata);
        match content {
            Some(content) if stored.fresh => drop(stored.revisions.insert(1, content)),
            Some(content) => stored.pending = Some(content),
            None => {}
        }
        Ok(())
    })
}

pub(crate) fn get(uri: Option<&str>, label: Option<&str>, mode: RevisionMode) -> Result<Pairs, Error> {
    current(|state| {
        let all = &mut state.durable.secrets.by_uri;
        let by_label = |label: &str| {
            let named = |stored: &StoredSecret| match stored.owner {
                Some(_) => stored.metadata.label.as_deref() == Some(label),
                None => stored.label.as_deref() == Some(label),
            };
            all.iter().find(|(_, stored)| named(stored)).map(|(uri, _)| uri.clone())
        };
        let key = match (uri, label) {
            (None, None) => {
                return Err(Error::InvalidArgument("require either a secret URI or label".to_owned()));
            }
            (Some(uri), _) => parsed(uri)?,
            (None, Some(label)) => by_label(label)
                .ok_or_else(|| Error::NotFound(format!("consumer label {label:?} not found")))?,
        };
        if let (Some(_), Some(label)) = (uri, label)
            && by_label(label).is_some_and(|other| other != key)
        {
            return Err(Error::AlreadyExists(format!("secret with label {label:?} already exists")));
        }
        let stored = all.get_mut(&key).ok_or_else(|| not_found(&key))?;
        if stored.owner.is_none() && !stored.granted {
            return Err(Error::PermissionDenied("permission denied".to_owned()));
        }
        if uri.is_some() && stored.owner.is_none() {
            stored.label = label.map(str::to_owned).or(stored.label.take());
        }
        let latest = stored.latest();
        if mode == RevisionMode::Refresh || stored.tracked.is_none() {
            stored.tracked = Some(latest);
        }
        let pending = stored.pending.clone().filter(|_| mode != RevisionMode::Tracked);
        let shown = if mode == RevisionMode::Tracked { stored.tracked.unwrap_or(latest) } else { latest };
        Ok(pending.or_else(|| stored.revisions.get(&shown).cloned()).unwrap_or_default())
    })
}

pub(crate) fn info(uri: Option<&str>, label: Option<&str>) -> Result<Details, Error> {
    current(|state| {
        let key = match (uri, label) {
            (Some(uri), _) => parsed(uri)?,
            (None, Some(label)) => {
                let all = state.durable.secrets.by_uri.iter();
                let mut named = all.filter(|(_, stored)| stored.owner.is_some());
                let found = named.find(|(_, stored)| stored.metadata.label.as_deref() == Some(label));
                found.map(|(uri, _)| uri.clone()).ok_or_else(|| not_found(label))?
            }
            (None, None) => {
                return Err(Error::InvalidArgument("require either a secret URI or label".to_owned()));
            }
        };
        let leader = state.leader;
        let stored = state.durable.secrets.by_uri.get(&key).ok_or_else(|| not_found(&key))?;
        let owner = stored.owner.filter(|owner| *owner == Owner::Unit || leader);
        let access = stored
            .access
            .iter()
            .map(|(reader, relation)| Access { reader: reader.clone(), relation: *relation });
        Ok(Details {
            owner: owner.ok_or_else(|| not_found(&key))?,
            revision: stored.latest() + u32::from(stored.pending.is_some()),
            label: stored.metadata.label.clone(),
            description: stored.metadata.description.clone().unwrap_or_default(),
            rotation: stored.metadata.rotate.unwrap_or(RotatePolicy::Never),
            rotates: None,
            expiry: stored.metadata.expire.clone(),
            access: access.collect(),
            uri: key,
        })
    })
}

pub(crate) fn ids() -> Result<Vec<String>, Error> {
    current(|state| {
        let own = |stored: &StoredSecret| match stored.owner {
            Some(Owner::Unit) => true,
            Some(Owner::Application) => state.leader,
            None => false,
        };
        let all = state.durable.secrets.by_uri.iter();
        Ok(all.filter(|(_, stored)| own(stored)).map(|(uri, _)| uri.clone()).collect())
    })
}

pub(crate) fn grant(uri: &str, relation: u32, unit: Option<&str>) -> Result<(), Error> {
    current(|state| {
        own(state, uri)?;
        let remote = state.relation(relation)?.remote.clone();
        if let Some(unit) = unit.filter(|unit| !unit.starts_with(&format!("{remote}/"))) {
            let text = format!("unit {unit:?} is not in relation {relation}");
            return Err(Error::InvalidArgument(text));
        }
        let (key, stored) = own(state, uri)?;
        let reader = unit.map_or(remote.clone(), str::to_owned);
        if stored.access.contains_key(&remote) || stored.access.contains_key(&reader) {
            return Ok(());
        }
        let of_unit = stored.access.keys().find(|other| other.starts_with(&format!("{remote}/")));
        if let Some(other) = of_unit.filter(|_| unit.is_none()) {
            return Err(Error::Conflict(format!(
                "cannot grant secret {:?} to application {remote:?}: it is granted to unit {other:?} already",
                bare(&key)
            )));
        }
        stored.access.insert(reader, relation);
        Ok(())
    })
}

pub(crate) fn revoke(uri: &str, reader: &str) -> Result<(), Error> {
    current(|state| {
        let (_, stored) = own(state, uri)?;
        stored.access.remove(reader);
        Ok(())
    })
}

pub(crate) fn remove(uri: &str, revision: Option<u32>) -> Result<(), Error> {
    current(|state| {
        let (key, stored) = own(state, uri)?;
        match revision {
            Some(revision) => drop(stored.revisions.remove(&revision)),
            None => stored.revisions.clear(),
        }
        if stored.revisions.is_empty() {
            state.durable.secrets.by_uri.remove(&key);
        }
        Ok(())
    })
}
