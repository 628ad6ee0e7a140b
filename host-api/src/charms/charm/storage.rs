//! What a charm declares of storage (`hook-model.md` 6.1, M-4).

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

/// Where storage lies for charms that do not say: Juju's place, because charms know it.
const DEFAULT_LOCATION: &str = "/var/lib/juju/storage";

/// Whether the charm has something else at the place of its resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It declares none: storage may lie there.
    Free,
    /// It declares some.
    Taken,
}

/// What the sandbox itself puts before a hook.
const TAKEN: [&str; 2] = ["/charm", "/tmp"];

/// The longest location.
const MAX_LOCATION: usize = 1_024;

/// A storage as declared. It is always a filesystem of one unit; anything else is refused when the charm is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageMeta {
    /// What it is for.
    pub description: String,
    /// Whether hooks may only read it.
    pub read_only: bool,
    /// How many instances a unit may have.
    pub count: CountRange,
    /// The least size of each, in mebibytes; 0: any.
    pub minimum_size: u64,
    /// Where hooks find it; with more than one instance, in which directory.
    pub location: Option<String>,
}

/// How many instances of a storage a unit may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CountRange {
    /// At least: so many each unit has from its beginning.
    pub min: u32,
    /// At most; none: no limit.
    pub max: Option<u32>,
}

impl Default for CountRange {
    /// Exactly one (M-4).
    fn default() -> Self {
        Self { min: 1, max: Some(1) }
    }
}

impl CountRange {
    /// Whether a unit may have so many.
    pub fn admits(self, count: u32) -> bool {
        count >= self.min && self.max.is_none_or(|max| count <= max)
    }

    /// `m`, `m-n`, `m+` or `m-`.
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
    /// Where hooks find an instance (M-4): a single one at the location itself, several below it by their ids.
    pub fn location_of(&self, id: &StorageId) -> String {
        match &self.location {
            Some(location) if self.is_single() => location.clone(),
            Some(location) => format!("{location}/{id}"),
            None => format!("{DEFAULT_LOCATION}/{id}"),
        }
    }

    /// How large an instance is if nobody says so, in mebibytes.
    pub fn default_size(&self) -> u64 {
        self.minimum_size.max(DEFAULT_SIZE)
    }

    fn is_single(&self) -> bool {
        self.count.max == Some(1)
    }
}

/// A storage as it stands in the file.
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

/// Reads and checks the section `storage`; an error says which storage is wrong, and how.
pub(super) fn declared(
    raw: BTreeMap<String, RawStorage>,
    resources: Place,
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
    check_places(&declared, resources)?;
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
                let text = text_of(given).ok_or("minimum-size is no size")?;
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

/// Numbers are as good as texts here.
fn text_of(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A plain absolute path, so that two of them can be compared as text.
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

/// Where the instances of a storage lie.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Places {
    /// The only one lies here.
    At(String),
    /// Each lies beneath, in a directory named after its number.
    Below(String),
}

impl Places {
    fn of(name: &StorageName, meta: &StorageMeta) -> Self {
        match &meta.location {
            Some(location) if meta.is_single() => Self::At(location.clone()),
            Some(location) => Self::Below(format!("{location}/{name}")),
            None => Self::Below(format!("{DEFAULT_LOCATION}/{name}")),
        }
    }

    /// Whether an instance of one and an instance of the other could lie at the same place.
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

/// No location may lie in what the sandbox has there already, nor be another's. One may lie beneath another, as mounts
/// do: the innermost counts.
fn check_places(declared: &BTreeMap<StorageName, StorageMeta>, resources: Place) -> Result<(), BrokenRule> {
    let taken = TAKEN.into_iter().chain((resources == Place::Taken).then_some(RESOURCES));
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
        let places = Places::of(name, meta);
        for (earlier, other) in declared.range::<StorageName, _>(..name) {
            let whose = format!("storage {earlier:?}");
            if meta.location.is_some() && meta.location == other.location {
                return collides(place, &whose);
            }
            if places.meet(&Places::of(earlier, other)) {
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
        // Several instances lie at their numbers.
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
