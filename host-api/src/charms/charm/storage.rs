//! Storage that a charm declares (`docs/hook-model.md` 6.1, M-4).

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    StorageId, StorageName,
    resource::RESOURCES,
    rule::BrokenRule,
    storage::{DEFAULT_SIZE, MAX_PER_UNIT, StorageKind, parse_size},
};

/// The location of storage whose charm declares none: Juju's path, because charms know it.
const DEFAULT_LOCATION: &str = "/var/lib/juju/storage";

/// The use of the resources' path in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResourcesPath {
    /// The charm declares no resources: storage may use the path.
    Free,
    /// The charm declares resources, which use the path.
    Taken,
}

/// Paths that the sandbox itself uses.
const TAKEN: [&str; 2] = ["/charm", "/tmp"];

/// The longest location, in bytes.
const MAX_LOCATION: usize = 1_024;

/// A storage as the charm declares it. It is always a filesystem of one unit; other kinds are refused at parsing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageMeta {
    /// The description of the storage.
    pub description: String,
    /// True if hooks may only read the storage.
    pub read_only: bool,
    /// The number of instances that a unit may have.
    pub count: CountRange,
    /// The least size of each instance, in mebibytes; 0 means any.
    pub minimum_size: u64,
    /// The path of the instance in the sandbox; with several instances, the path of their directory.
    pub location: Option<String>,
}

/// The number of instances of a storage that a unit may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CountRange {
    /// The least number. A new unit gets so many.
    pub min: u32,
    /// The largest number. `None` means no limit.
    pub max: Option<u32>,
}

impl Default for CountRange {
    /// Returns exactly one (M-4).
    fn default() -> Self {
        Self { min: 1, max: Some(1) }
    }
}

impl CountRange {
    /// Returns true if a unit may have so many instances.
    pub fn admits(self, count: u32) -> bool {
        count >= self.min && self.max.is_none_or(|max| count <= max)
    }

    /// Parses `m`, `m-n`, `m+` or `m-`.
    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|_| !text.starts_with('+'));
        if let Some(min) = text.strip_suffix(['+', '-']) {
            return Some(Self { min: number(min)?, max: None });
        }
        let (min, max) = text.split_once('-').unwrap_or((text, text));
        let (min, max) = (number(min)?, number(max)?);
        (min <= max && max > 0).then_some(Self { min, max: Some(max) })
    }
}

impl fmt::Display for CountRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            Some(max) if max == self.min => write!(f, "{max}"),
            Some(max) => write!(f, "{}-{max}", self.min),
            None => write!(f, "{}+", self.min),
        }
    }
}

impl StorageMeta {
    /// Returns the path of an instance in the sandbox (M-4): the location itself for a single instance, and a path
    /// below it, by id, for one of several.
    pub fn location_of(&self, id: &StorageId) -> String {
        match &self.location {
            Some(location) if self.is_single() => location.clone(),
            Some(location) => format!("{location}/{id}"),
            None => format!("{DEFAULT_LOCATION}/{id}"),
        }
    }

    /// Returns the size of an instance without a directive, in mebibytes.
    pub fn default_size(&self) -> u64 {
        self.minimum_size.max(DEFAULT_SIZE)
    }

    fn is_single(&self) -> bool {
        self.count.max == Some(1)
    }
}

/// A storage as the metadata file writes it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct RawStorage {
    r#type: Option<StorageKind>,
    description: Option<String>,
    shared: bool,
    read_only: bool,
    multiple: Option<RawMultiple>,
    minimum_size: Option<Value>,
    location: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawMultiple {
    range: Option<Value>,
}

/// Parses and checks the section `storage`. The error names the storage and the mistake.
pub(super) fn declared(
    raw: BTreeMap<String, RawStorage>,
    resources: ResourcesPath,
) -> Result<BTreeMap<StorageName, StorageMeta>, BrokenRule> {
    let mut declared = BTreeMap::new();
    for (text, raw) in raw {
        let name = StorageName::new(&text).map_err(BrokenRule::of)?;
        let meta = raw.check().map_err(|broken| broken.at(format_args!("storage {text:?}")))?;
        declared.insert(name, meta);
    }
    let least: u32 = declared.values().fold(0, |sum, meta: &StorageMeta| sum.saturating_add(meta.count.min));
    if least > MAX_PER_UNIT {
        return Err(format!(
            "each unit would have {least} instances of storage, at most {MAX_PER_UNIT} are allowed"
        )
        .into());
    }
    check_locations(&declared, resources)?;
    Ok(declared)
}

impl RawStorage {
    fn check(self) -> Result<StorageMeta, BrokenRule> {
        match self.r#type {
            Some(StorageKind::Filesystem) => {}
            Some(StorageKind::Block) => {
                return Err(
                    "type block is not supported: a sandboxed charm has no devices; declare a filesystem"
                        .into(),
                );
            }
            None => return Err("a type is required: filesystem".into()),
        }
        if self.shared {
            return Err("shared storage is not supported: it lies on the disk of one unit's agent".into());
        }
        let count = match self.multiple {
            None => CountRange::default(),
            Some(RawMultiple { range }) => {
                let text = text_of(range.as_ref()).ok_or("multiple: range is missing")?;
                let range = CountRange::parse(&text);
                range.ok_or_else(|| format!("invalid range {text:?}: m, m+, m- or m-n is expected"))?
            }
        };
        let minimum_size = match self.minimum_size.as_ref() {
            None => 0,
            given => {
                let text = text_of(given).ok_or("minimum-size is not a size")?;
                parse_size(&text).map_err(|error| format!("minimum-size: {error}"))?
            }
        };
        if let Some(location) = &self.location {
            check_location(location)?;
        }
        Ok(StorageMeta {
            description: self.description.unwrap_or_default(),
            read_only: self.read_only,
            count,
            minimum_size,
            location: self.location,
        })
    }
}

/// Returns a text, or a number as text.
fn text_of(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Checks that a location is a plain absolute path, so that two locations can be compared as texts.
fn check_location(location: &str) -> Result<(), BrokenRule> {
    let wrong = |reason: &str| Err(format!("invalid location {location:?}: {reason}").into());
    let Some(path) = location.strip_prefix('/') else { return wrong("it must be an absolute path") };
    if location.len() > MAX_LOCATION {
        return Err(format!("the location is longer than {MAX_LOCATION} bytes").into());
    }
    if location.chars().any(char::is_control) {
        return wrong("it holds control characters");
    }
    if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return wrong("it must be a plain path, without a slash at its end");
    }
    Ok(())
}

/// The paths of a storage's instances.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MountPaths {
    /// The path of the only instance.
    At(String),
    /// The directory of the instances, each in a directory named after its number.
    Below(String),
}

impl MountPaths {
    fn of(name: &StorageName, meta: &StorageMeta) -> Self {
        match &meta.location {
            Some(location) if meta.is_single() => Self::At(location.clone()),
            Some(location) => Self::Below(format!("{location}/{name}")),
            None => Self::Below(format!("{DEFAULT_LOCATION}/{name}")),
        }
    }

    /// Returns true if an instance of one storage and an instance of the other could have the same path.
    fn meet(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::At(one), Self::At(other)) | (Self::Below(one), Self::Below(other)) => one == other,
            (Self::At(at), Self::Below(below)) | (Self::Below(below), Self::At(at)) => {
                let number = at.strip_prefix(below.as_str()).and_then(|rest| rest.strip_prefix('/'));
                number.is_some_and(|text| text.parse::<u32>().is_ok_and(|number| number.to_string() == text))
            }
        }
    }
}

/// Refuses a location that collides with a path of the sandbox, or equals another location. A location may be below
/// another, as with mounts: the innermost wins.
fn check_locations(
    declared: &BTreeMap<StorageName, StorageMeta>,
    resources: ResourcesPath,
) -> Result<(), BrokenRule> {
    let taken = TAKEN.into_iter().chain((resources == ResourcesPath::Taken).then_some(RESOURCES));
    let holds = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    for (name, meta) in declared {
        let place = meta.location.as_deref().unwrap_or(DEFAULT_LOCATION);
        let collides = |with: &str, whose: &str| {
            Err(format!("storage {name:?}: location {place} collides with {with} of {whose}").into())
        };
        if let Some(other) = taken.clone().find(|other| holds(other, place) || holds(place, other)) {
            return collides(other, "the sandbox");
        }
        let paths = MountPaths::of(name, meta);
        for (earlier, other) in declared.range::<StorageName, _>(..name) {
            let whose = format!("storage {earlier:?}");
            if meta.location.is_some() && meta.location == other.location {
                return collides(place, &whose);
            }
            if paths.meet(&MountPaths::of(earlier, other)) {
                return collides("an instance", &whose);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charm::{CharmFiles, CharmMeta};

    fn check(storage: &str) -> Result<BTreeMap<StorageName, StorageMeta>, String> {
        let text = format!("name: x\nsummary: s\ndescription: d\nstorage:\n{storage}");
        let files = CharmFiles { charmcraft: Some(text), ..CharmFiles::default() };
        CharmMeta::parse(&files).map(|meta| meta.storage).map_err(|error| error.to_string())
    }

    fn one(storage: &str) -> StorageMeta {
        check(&format!("  data: {{type: filesystem, {storage}}}\n")).unwrap().into_values().next().unwrap()
    }

    fn refused(storage: &str) -> String {
        check(&format!("  data: {{{storage}}}\n")).unwrap_err()
    }

    #[test]
    fn m4_ranges_are_read_in_all_forms_and_one_is_the_default() {
        assert_eq!(one("description: d").count, CountRange::default());
        for (range, min, max) in [("3", 3, Some(3)), ("0+", 0, None), ("2-", 2, None), ("1-4", 1, Some(4))] {
            assert_eq!(
                one(&format!("multiple: {{range: {range}}}")).count,
                CountRange { min, max },
                "{range}"
            );
        }
        for range in ["x", "4-1", "0", "-1", "1-2-3", "''"] {
            assert!(
                refused(&format!("type: filesystem, multiple: {{range: {range}}}")).contains("range"),
                "{range}"
            );
        }
    }

    #[test]
    fn m4_a_single_instance_lies_at_the_location_and_several_below_it() {
        let id: StorageId = "data/3".parse().unwrap();
        assert_eq!(one("location: /srv/data").location_of(&id), "/srv/data");
        assert_eq!(one("location: /srv, multiple: {range: 0+}").location_of(&id), "/srv/data/3");
        assert_eq!(one("read-only: true").location_of(&id), "/var/lib/juju/storage/data/3");
    }

    #[test]
    fn what_a_sandbox_has_not_is_refused_by_name() {
        assert!(refused("type: block").contains("storage \"data\": type block is not supported"));
        assert!(refused("type: filesystem, shared: true").contains("shared storage is not supported"));
        assert!(refused("description: x").contains("a type is required"));
        assert!(refused("type: tape").contains("charmcraft.yaml"));
        assert!(refused("type: filesystem, multiple: {range: 13}").contains("at most 12"));
    }

    #[test]
    fn locations_are_plain_and_leave_the_sandboxs_own_places_alone() {
        for bad in ["srv", "/", "/srv/", "/srv/../etc", "/srv//x", "/./x", "\"/a\\u0000b\""] {
            assert!(refused(&format!("type: filesystem, location: {bad}")).contains("location"), "{bad}");
        }
        for taken in ["/charm", "/tmp/x", "/charm/data"] {
            let error = refused(&format!("type: filesystem, location: {taken}"));
            assert!(error.contains("collides with"), "{error}");
        }
    }

    #[test]
    fn storage_may_lie_beneath_other_storage_and_not_at_the_same_place() {
        let two = |a: &str, b: &str| {
            check(&format!("  a: {{type: filesystem, {a}}}\n  b: {{type: filesystem, {b}}}\n")).map(drop)
        };
        let single = |a: &str, b: &str| two(&format!("location: {a}"), &format!("location: {b}"));
        for (a, b) in [
            ("/srv/a", "/srv/b"),
            ("/srv/a", "/srv/ab"),
            ("/srv", "/srv/b"),
            ("/srv/b/c", "/srv/b"),
            ("/var/lib/juju/storage", "/var/lib/juju/storage/a/0"),
        ] {
            assert_eq!(single(a, b), Ok(()), "{a} {b}");
        }
        let error = single("/srv", "/srv").unwrap_err();
        assert!(
            error.ends_with("storage \"b\": location /srv collides with /srv of storage \"a\""),
            "{error}"
        );
        // Several instances are in directories named after their numbers.
        let many = |location: &str| format!("location: {location}, multiple: {{range: 0+}}");
        assert_eq!(two(&many("/srv"), "location: /srv/a"), Ok(()));
        assert_eq!(two(&many("/srv"), "location: /srv/a/x"), Ok(()));
        assert_eq!(two(&many("/srv"), "location: /srv/a/03"), Ok(()));
        assert_eq!(two(&many("/srv"), &many("/srv/a/3")), Ok(()));
        assert!(
            two(&many("/srv"), &many("/srv")).unwrap_err().contains("collides with /srv of storage \"a\"")
        );
        for (a, b) in [
            (many("/srv"), "location: /srv/a/3"),
            ("description: x".to_owned(), "location: /var/lib/juju/storage/a/0"),
        ] {
            let error = two(&a, b).unwrap_err();
            assert!(error.ends_with("collides with an instance of storage \"a\""), "{error}");
        }
    }

    #[test]
    fn a_minimum_size_is_kept_and_raises_the_default() {
        assert_eq!(
            (one("minimum-size: 100M").minimum_size, one("minimum-size: 100M").default_size()),
            (100, 1024)
        );
        assert_eq!(one("minimum-size: 2G").default_size(), 2048);
        assert!(refused("type: filesystem, minimum-size: big").contains("minimum-size"));
    }
}
