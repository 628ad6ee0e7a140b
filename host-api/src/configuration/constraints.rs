//! Constraints in Juju's form: the agents on which units may be placed, and the limits on their workloads or hooks.
//!
//! `mem` and `cpu-power` limit the workloads of an application that has some, as Juju does on Kubernetes; of another
//! one, `mem` limits the hooks. `arch` is accepted and has no effect, as a component runs on any. A sandbox has no disks
//! or instance types: keys for them are kept and have no effect. Cores are those of the agent's host, which all its
//! units share.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

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

/// The most tags or zones in constraints, and the most tags of an agent.
pub const MAX_TAGS: usize = 32;

/// The longest name of a zone, in bytes.
const MAX_ZONE: usize = 256;

/// The constraints of an application or a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Constraints {
    /// Bytes of memory that a hook may use: the setting `hook-memory-limit` under Juju's name. Of an application with
    /// workloads, it is `workload-memory-limit`, and `kept.mem` has the bytes if they are more than a hook may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mem: Option<u64>,
    /// Constraints on the agents of units.
    pub agents: AgentConstraints,
    /// Constraints that are kept and have no effect.
    #[serde(skip_serializing_if = "KeptConstraints::is_empty")]
    pub kept: KeptConstraints,
}

/// The parts of an application or a model that `mem` and `cpu-power` limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// Hooks: those of an application without workloads.
    Hooks,
    /// Workloads: those of an application that has some.
    Workloads,
    /// The hooks and the workloads of a model's applications that have no limits of their own.
    Both,
}

/// Constraints on the agents of units.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct AgentConstraints {
    /// The least number of cores of the agent's host. `None` means any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Tags that the agent must have or must not have. `None` means any tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Tags>,
    /// Zones, in one of which the agent must be. `None` means any zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zones: Option<BTreeSet<String>>,
}

/// Tags that an agent must have, and tags that it must not have (`^TAG`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Tags {
    /// Tags that the agent must have.
    pub with: BTreeSet<TagName>,
    /// Tags that the agent must not have.
    pub without: BTreeSet<TagName>,
}

/// A text that is no valid constraint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintsError {
    /// A text without `KEY=VALUE`.
    #[error("malformed constraint {0:?}: write KEY=VALUE, such as mem=512M or tags=ssd")]
    Malformed(String),
    /// A key that is given twice.
    #[error("bad {0:?} constraint: already set")]
    Twice(String),
    /// A key of Juju's that Periapt refuses.
    #[error("constraint {key:?} is not supported, because {because}")]
    NotHere {
        /// The key.
        key: String,
        /// The reason, and the alternative.
        because: &'static str,
    },
    /// A key that neither Juju nor Periapt knows.
    #[error("unknown constraint {0:?}; known are cores, mem, tags and zones")]
    Unknown(String),
    /// A value that the key cannot have.
    #[error("bad {key:?} constraint: {reason}")]
    Value {
        /// The key.
        key: &'static str,
        /// The reason.
        reason: String,
    },
}

/// Juju's key for spaces. Spaces exist here, but no placement heeds such a constraint.
const NOT_HERE: (&str, &str) = ("spaces", "endpoints are bound to spaces; `deploy --bind` says which");

impl Constraints {
    /// Returns true if there are no constraints.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Parses `KEY=VALUE` pairs. A text may hold several pairs with blanks between them. An empty value sets no
    /// constraint, and hides an inherited one.
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
            // `cpu-cores` is Juju's older name, which is still in use.
            "cores" | "cpu-cores" => self.agents.cores = Some(cores(value)?),
            "tags" => self.agents.tags = Some(value.parse()?),
            "zones" => self.agents.zones = Some(zones(value)?),
            "arch" => architecture(value)?,
            key => match KeptConstraint::named(key) {
                // An empty value sets no constraint, as for the other keys.
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

    /// Returns constraints with the limits. A larger `mem` that was given to hooks counts only while their limit is at
    /// its maximum.
    pub fn of(
        agents: &AgentConstraints,
        kept: &KeptConstraints,
        budgets: &BudgetSettings,
        limited: Limited,
    ) -> Self {
        let most = BudgetKey::HookMemoryLimit.most();
        let (mem, larger) = match limited {
            Limited::Hooks | Limited::Both => {
                let mem = budgets.get(BudgetKey::HookMemoryLimit);
                (mem, kept.mem.filter(|_| mem == Some(most)))
            }
            Limited::Workloads => {
                let mem = budgets.get(BudgetKey::WorkloadMemoryLimit);
                (mem.map(|bytes| bytes.min(most)), mem.filter(|bytes| *bytes > most))
            }
        };
        let mut others = kept.others.clone();
        match budgets.get(BudgetKey::WorkloadCpuLimit) {
            Some(cpu) => drop(others.insert(KeptConstraint::CpuPower, cpu.to_string())),
            None if limited == Limited::Workloads => drop(others.remove(&KeptConstraint::CpuPower)),
            None => {}
        }
        Self { mem, agents: agents.clone(), kept: KeptConstraints { mem: larger, others } }
    }

    /// Returns the limits that these constraints set; those that are none are to be inherited.
    ///
    /// # Errors
    /// [`ConstraintsError::Value`], if workloads cannot have such a limit.
    pub fn limits(&self, limited: Limited) -> Result<BTreeMap<BudgetKey, Option<u64>>, ConstraintsError> {
        let mut limits = BTreeMap::new();
        if limited != Limited::Workloads {
            limits.insert(BudgetKey::HookMemoryLimit, self.mem);
        }
        if limited != Limited::Hooks {
            // What is asked of a machine may be more than any workload can use.
            let within = |key: BudgetKey, value: u64| {
                let value = value.min(key.most());
                let read = key.parse(&key.show(value));
                let wrong = |error: crate::budget::BudgetError| ConstraintsError::Value {
                    key: if key == BudgetKey::WorkloadCpuLimit { "cpu-power" } else { "mem" },
                    reason: error.to_string(),
                };
                read.map_err(wrong)
            };
            let cpu: Option<u64> =
                self.kept.others.get(&KeptConstraint::CpuPower).and_then(|text| text.parse().ok());
            for (key, value) in
                [(BudgetKey::WorkloadMemoryLimit, self.asked_mem()), (BudgetKey::WorkloadCpuLimit, cpu)]
            {
                limits.insert(key, value.map(|value| within(key, value)).transpose()?);
            }
        }
        Ok(limits)
    }

    /// Returns the given bytes of memory, even if no hook may have so many.
    pub fn asked_mem(&self) -> Option<u64> {
        self.kept.mem.or(self.mem)
    }

    /// Lists the constraints without effect, each with the reason, for people.
    pub fn without_effect(&self) -> Vec<String> {
        let most = BudgetKey::HookMemoryLimit;
        let mem = self.kept.mem.map(|bytes| {
            let most = most.show(most.most());
            format!("{} (a hook has at most {most} of memory, and a workload all of it)", show_mem(bytes))
        });
        // It limits containers.
        let others = self.kept.others.iter().filter(|(key, _)| **key != KeptConstraint::CpuPower);
        let others = others.map(|(key, value)| format!("{}={value} ({})", key.as_str(), key.because()));
        mem.into_iter().chain(others).collect()
    }

    /// Checks constraints that came as values by the rules for texts.
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
    /// Returns true if there are no constraints.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns these constraints, and those of `outer` for unset ones.
    pub fn or(&self, outer: &Self) -> Self {
        Self {
            cores: self.cores.or(outer.cores),
            tags: self.tags.clone().or_else(|| outer.tags.clone()),
            zones: self.zones.clone().or_else(|| outer.zones.clone()),
        }
    }

    /// Returns true if an agent with these tags, in this zone, on a host with so many cores, meets the constraints.
    pub fn admit(&self, tags: &BTreeSet<TagName>, zone: &str, cores: u32) -> bool {
        let tagged = self
            .tags
            .as_ref()
            .is_none_or(|asked| asked.with.is_subset(tags) && asked.without.is_disjoint(tags));
        let zoned = self.zones.as_ref().is_none_or(|zones| zones.is_empty() || zones.contains(zone));
        tagged && zoned && self.cores.is_none_or(|asked| cores >= asked)
    }
}

/// The names of Juju's architectures.
const ARCHITECTURES: [&str; 7] = ["amd64", "arm64", "armhf", "i386", "ppc64el", "riscv64", "s390x"];

/// Checks the name of an architecture. It constrains nothing, as a component runs on each. Juju's clients name the
/// architecture of their own machine.
fn architecture(text: &str) -> Result<(), ConstraintsError> {
    if text.is_empty() || ARCHITECTURES.contains(&text) {
        return Ok(());
    }
    let reason =
        format!("{:?} is none of {}", text.chars().take(64).collect::<String>(), ARCHITECTURES.join(", "));
    Err(ConstraintsError::Value { key: "arch", reason })
}

/// Parses a size of memory in bytes, in the setting's form (`512K`) or in Juju's, where a bare number is in
/// mebibytes. An empty text and 0 mean no constraint.
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

/// Writes memory in mebibytes, as Juju does, if they divide it.
fn show_mem(bytes: u64) -> String {
    match bytes % (1 << 20) {
        0 => format!("mem={}M", bytes >> 20),
        _ => format!("mem={}", BudgetKey::HookMemoryLimit.show(bytes)),
    }
}

/// Parses a number of cores. An empty text means no constraint.
fn cores(text: &str) -> Result<u32, ConstraintsError> {
    let wrong = || {
        let reason = format!("invalid number of cores {:?}", text.chars().take(64).collect::<String>());
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

/// Reads `a,^b`.
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
    /// Returns `a`, `^b`.
    pub fn to_texts(&self) -> Vec<String> {
        let with = self.with.iter().map(ToString::to_string);
        let without = self.without.iter().map(|tag| format!("^{tag}"));
        with.chain(without).collect()
    }
}

/// Writes `a,^b`.
impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_texts().join(","))
    }
}

/// Writes `mem=512M tags=ssd,^slow zones=a,b root-disk=8192M`, as [`Constraints::parse`] reads it.
impl fmt::Display for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mem = self.asked_mem().map(show_mem);
        let parts = [mem, Some(self.agents.to_string()), Some(self.kept.to_string())];
        let parts = parts.into_iter().flatten().filter(|text| !text.is_empty());
        f.write_str(&parts.collect::<Vec<_>>().join(" "))
    }
}

/// Writes `cores=4 tags=ssd,^slow zones=a,b`.
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
