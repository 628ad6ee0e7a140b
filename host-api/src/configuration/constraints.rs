//! Constraints: which agents units may be placed on, and the memory of their hooks, in Juju's words.
//!
//! `arch` is taken and asks nothing, as a component runs on any. A sandbox has no disks or instance types to choose
//! from: keys that ask for these are kept and have no effect. Cores are those of the agent's host, which all that runs
//! there shares.

use std::{collections::BTreeSet, fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod kept;
#[cfg(test)]
mod tests;

pub use kept::{KeptConstraint, KeptConstraints};

use crate::{
    budget::{BudgetKey, BudgetSettings},
    name::TagName,
    storage::parse_size,
};

/// The most tags or zones that constraints name, and the most tags that an agent has.
pub const MAX_TAGS: usize = 32;

/// The longest name of a zone, in bytes.
const MAX_ZONE: usize = 256;

/// What is asked of agents and hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Constraints {
    /// Bytes of memory that a hook may use: the setting `hook-memory-limit` under Juju's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mem: Option<u64>,
    /// On which agents units are placed.
    pub agents: AgentConstraints,
    /// What is kept and has no effect.
    #[serde(skip_serializing_if = "KeptConstraints::is_empty")]
    pub kept: KeptConstraints,
}

/// On which agents units are placed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct AgentConstraints {
    /// How many cores its host has at least; none: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Tags that the agent has; none: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Tags>,
    /// Zones of which it is in one; none: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zones: Option<BTreeSet<String>>,
}

/// Tags that an agent is to have, and tags that it is not to have (`^TAG`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Tags {
    /// All of these.
    pub with: BTreeSet<TagName>,
    /// None of these.
    pub without: BTreeSet<TagName>,
}

/// Why texts are no constraints.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintsError {
    /// No `KEY=VALUE`.
    #[error("malformed constraint {0:?}: write KEY=VALUE, such as mem=512M or tags=ssd")]
    Malformed(String),
    /// A key twice.
    #[error("bad {0:?} constraint: already set")]
    Twice(String),
    /// A key of Juju's that means nothing here.
    #[error("constraint {key:?} is not here, because {because}")]
    NotHere {
        /// Which.
        key: String,
        /// Why, and what there is instead.
        because: &'static str,
    },
    /// Nobody's key.
    #[error("unknown constraint {0:?}; known are cores, mem, tags and zones")]
    Unknown(String),
    /// A value that the key cannot have.
    #[error("bad {key:?} constraint: {reason}")]
    Value {
        /// Which.
        key: &'static str,
        /// What would be right.
        reason: String,
    },
}

/// Juju's key that is about something that is here, and asks for what would not be done.
const NOT_HERE: (&str, &str) = ("spaces", "endpoints are bound to spaces; `deploy --bind` says which");

impl Constraints {
    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads `KEY=VALUE` pairs, each text of which may hold several with blanks between them. An empty value asks
    /// nothing, and hides what is inherited.
    ///
    /// # Errors
    /// [`ConstraintsError`]
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, ConstraintsError> {
        let mut seen = BTreeSet::new();
        let mut constraints = Self::default();
        for pair in texts.into_iter().flat_map(str::split_whitespace) {
            let short = || pair.chars().take(64).collect::<String>();
            let (key, value) = pair.split_once('=').ok_or_else(|| ConstraintsError::Malformed(short()))?;
            if !seen.insert(key) {
                return Err(ConstraintsError::Twice(key.chars().take(64).collect()));
            }
            constraints.set(key, value)?;
        }
        Ok(constraints)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ConstraintsError> {
        match key {
            "mem" => {
                let asked = memory(value)?;
                let most = BudgetKey::HookMemoryLimit.most();
                self.mem = asked.map(|bytes| bytes.min(most));
                self.kept.mem = asked.filter(|bytes| *bytes > most);
            }
            // Juju's older name is still written.
            "cores" | "cpu-cores" => self.agents.cores = Some(cores(value)?),
            "tags" => self.agents.tags = Some(value.parse()?),
            "zones" => self.agents.zones = Some(zones(value)?),
            "arch" => architecture(value)?,
            key => match KeptConstraint::named(key) {
                // As with the others, nothing asks nothing.
                Some(_) if value.is_empty() => {}
                Some(kept) => drop(self.kept.others.insert(kept, kept.read(value)?)),
                None => {
                    let short = key.chars().take(64).collect();
                    return Err(match NOT_HERE {
                        (name, because) if name == key => ConstraintsError::NotHere { key: short, because },
                        _ => ConstraintsError::Unknown(short),
                    });
                }
            },
        }
        Ok(())
    }

    /// These with the memory that budgets give. More than that was asked as long as they give all that there is.
    pub fn of(agents: &AgentConstraints, kept: &KeptConstraints, budgets: &BudgetSettings) -> Self {
        let mem = budgets.get(BudgetKey::HookMemoryLimit);
        let is_most = mem == Some(BudgetKey::HookMemoryLimit.most());
        let kept = KeptConstraints { mem: kept.mem.filter(|_| is_most), others: kept.others.clone() };
        Self { mem, agents: agents.clone(), kept }
    }

    /// The bytes of memory that are asked, whether or not a hook may have so many.
    pub fn asked_mem(&self) -> Option<u64> {
        self.kept.mem.or(self.mem)
    }

    /// What of these has no effect, each with the reason, for people.
    pub fn without_effect(&self) -> Vec<String> {
        let most = BudgetKey::HookMemoryLimit;
        let mem = self.kept.mem.map(|bytes| {
            format!("{} (a hook has at most {} of memory)", show_mem(bytes), most.show(most.most()))
        });
        let others = self.kept.others.iter();
        let others = others.map(|(key, value)| format!("{}={value} ({})", key.as_str(), key.because()));
        mem.into_iter().chain(others).collect()
    }

    /// Refuses what would have been refused as text: constraints also come as values.
    ///
    /// # Errors
    /// [`ConstraintsError`]
    pub fn check(&self) -> Result<(), ConstraintsError> {
        if let Some(bytes) = self.mem {
            let wrong = |error: crate::budget::BudgetError| ConstraintsError::Value {
                key: "mem",
                reason: error.to_string(),
            };
            BudgetKey::HookMemoryLimit.parse(&BudgetKey::HookMemoryLimit.show(bytes)).map_err(wrong)?;
        }
        if let Some(bytes) = self.kept.mem.filter(|_| self.mem != Some(BudgetKey::HookMemoryLimit.most())) {
            let reason = format!("{bytes} bytes are asked, and hooks are given others");
            return Err(ConstraintsError::Value { key: "mem", reason });
        }
        self.kept.check()?;
        let Tags { with, without } = self.agents.tags.clone().unwrap_or_default();
        checked_tags(with, without)?;
        let zones = self.agents.zones.iter().flatten().map(String::as_str);
        checked_zones(zones.collect()).map(drop)
    }
}

impl AgentConstraints {
    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These, and for what is not said here what `outer` says.
    pub fn or(&self, outer: &Self) -> Self {
        Self {
            cores: self.cores.or(outer.cores),
            tags: self.tags.clone().or_else(|| outer.tags.clone()),
            zones: self.zones.clone().or_else(|| outer.zones.clone()),
        }
    }

    /// Whether an agent with these tags, in this zone, on a host with so many cores, is as it is asked to be.
    pub fn admit(&self, tags: &BTreeSet<TagName>, zone: &str, cores: u32) -> bool {
        let tagged = self
            .tags
            .as_ref()
            .is_none_or(|asked| asked.with.is_subset(tags) && asked.without.is_disjoint(tags));
        let zoned = self.zones.as_ref().is_none_or(|zones| zones.is_empty() || zones.contains(zone));
        tagged && zoned && self.cores.is_none_or(|asked| cores >= asked)
    }
}

/// The architectures that Juju knows.
const ARCHITECTURES: [&str; 7] = ["amd64", "arm64", "armhf", "i386", "ppc64el", "riscv64", "s390x"];

/// An architecture, which asks nothing: a component runs on each. Juju's clients name that of the machine they run on.
fn architecture(text: &str) -> Result<(), ConstraintsError> {
    if text.is_empty() || ARCHITECTURES.contains(&text) {
        return Ok(());
    }
    let reason =
        format!("{:?} is none of {}", text.chars().take(64).collect::<String>(), ARCHITECTURES.join(", "));
    Err(ConstraintsError::Value { key: "arch", reason })
}

/// A size of memory, in bytes: as the setting (`512K`), and as Juju's, where a bare number is in mebibytes. Nothing asks
/// nothing, and so does 0.
fn memory(text: &str) -> Result<Option<u64>, ConstraintsError> {
    let wrong = |reason: String| ConstraintsError::Value { key: "mem", reason };
    let number = text.strip_suffix(['K', 'M', 'G', 'T', 'P']).unwrap_or(text);
    let is_zero = !number.is_empty() && number.bytes().all(|byte| byte == b'0');
    if text.is_empty() || is_zero {
        return Ok(None);
    }
    match text.ends_with('K') {
        true => BudgetKey::HookMemoryLimit.parse(text).map_err(|error| wrong(error.to_string())),
        false => parse_size(text).map(|size| size << 20).map_err(|error| wrong(error.to_string())),
    }
    .map(Some)
}

/// In mebibytes, as Juju writes it, where it can be.
fn show_mem(bytes: u64) -> String {
    match bytes % (1 << 20) {
        0 => format!("mem={}M", bytes >> 20),
        _ => format!("mem={}", BudgetKey::HookMemoryLimit.show(bytes)),
    }
}

/// A number; nothing asks nothing.
fn cores(text: &str) -> Result<u32, ConstraintsError> {
    let wrong = || {
        let reason = format!("{:?} is no number of cores", text.chars().take(64).collect::<String>());
        ConstraintsError::Value { key: "cores", reason }
    };
    if text.is_empty() { Ok(0) } else { text.parse().map_err(|_| wrong()) }
}

fn zones(text: &str) -> Result<BTreeSet<String>, ConstraintsError> {
    checked_zones(text.split(',').filter(|zone| !zone.is_empty()).collect())
}

fn checked_zones(zones: BTreeSet<&str>) -> Result<BTreeSet<String>, ConstraintsError> {
    let wrong = |reason: String| ConstraintsError::Value { key: "zones", reason };
    if zones.len() > MAX_TAGS {
        return Err(wrong(format!("at most {MAX_TAGS} zones")));
    }
    let odd = |zone: &&&str| {
        zone.is_empty()
            || zone.len() > MAX_ZONE
            || zone.contains(|c: char| c.is_control() || c.is_whitespace() || c == ',')
    };
    match zones.iter().find(odd) {
        Some(zone) => Err(wrong(format!("{:?} is no zone", zone.chars().take(64).collect::<String>()))),
        None => Ok(zones.into_iter().map(str::to_owned).collect()),
    }
}

fn checked_tags(with: BTreeSet<TagName>, without: BTreeSet<TagName>) -> Result<Tags, ConstraintsError> {
    let wrong = |reason: String| ConstraintsError::Value { key: "tags", reason };
    if with.len().saturating_add(without.len()) > MAX_TAGS {
        return Err(wrong(format!("at most {MAX_TAGS} tags")));
    }
    match with.intersection(&without).next() {
        Some(tag) => Err(wrong(format!("{tag} is wanted, and not wanted"))),
        None => Ok(Tags { with, without }),
    }
}

/// `a,^b`
impl FromStr for Tags {
    type Err = ConstraintsError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mut with, mut without) = (BTreeSet::new(), BTreeSet::new());
        for tag in text.split(',').filter(|tag| !tag.is_empty()) {
            let (set, name) = match tag.strip_prefix('^') {
                Some(name) => (&mut without, name),
                None => (&mut with, tag),
            };
            let wrong =
                |error: crate::NameError| ConstraintsError::Value { key: "tags", reason: error.to_string() };
            set.insert(TagName::new(name).map_err(wrong)?);
        }
        checked_tags(with, without)
    }
}

impl Tags {
    /// `a`, `^b`
    pub fn to_texts(&self) -> Vec<String> {
        let with = self.with.iter().map(ToString::to_string);
        let without = self.without.iter().map(|tag| format!("^{tag}"));
        with.chain(without).collect()
    }
}

/// `a,^b`
impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_texts().join(","))
    }
}

/// `mem=512M tags=ssd,^slow zones=a,b root-disk=8192M`, as [`Constraints::parse`] reads it.
impl fmt::Display for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mem = self.asked_mem().map(show_mem);
        let parts = [mem, Some(self.agents.to_string()), Some(self.kept.to_string())];
        let parts = parts.into_iter().flatten().filter(|text| !text.is_empty());
        f.write_str(&parts.collect::<Vec<_>>().join(" "))
    }
}

/// `cores=4 tags=ssd,^slow zones=a,b`
impl fmt::Display for AgentConstraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tags = self.tags.as_ref().map(|tags| format!("tags={tags}"));
        let zones = self
            .zones
            .iter()
            .map(|zones| format!("zones={}", zones.iter().map(String::as_str).collect::<Vec<_>>().join(",")));
        let cores = self.cores.map(|cores| match cores {
            0 => "cores=".to_owned(),
            cores => format!("cores={cores}"),
        });
        f.write_str(&cores.into_iter().chain(tags).chain(zones).collect::<Vec<_>>().join(" "))
    }
}
