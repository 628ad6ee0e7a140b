//! The operator's steps: drawn at random from the possible ones, so that a seed determines them.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    Digest,
    command::{Command, Deploy, EndpointSelector, RefreshWith, RelationSelector, ResolveMode},
};

use crate::random::RandomNumbers;

/// The permanent applications, with their first units.
pub(crate) const LASTING: [(&str, u32); 2] = [("alpha", 2), ("beta", 1)];
/// The application that comes and goes.
pub(crate) const PASSING: &str = "gamma";
/// Requirer and provider of each relation that comes and goes.
const PAIRS: [(&str, &str); 3] =
    [("alpha:sink", "beta:db"), ("beta:sink", "alpha:db"), ("gamma:sink", "alpha:db")];
/// The most units of one application.
const MOST_UNITS: usize = 3;

/// One change of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Sets a script by which all units write this number into all their bags and into their statuses.
    Note(&'static str, u64),
    /// Sets such a script that also fails config-changed: all units end in hook error.
    Break(&'static str, u64),
    /// Sets a script without failures, and resolves the failed hooks in this mode: before the change with `NoRetry`,
    /// after it with `Retry`.
    Mend(&'static str, u64, ResolveMode),
    /// Refreshes to the other charm, or back. With force, units in error upgrade, too.
    Refresh(&'static str, Edition, bool),
    /// Adds a unit, which gets this number.
    AddUnit(&'static str, u32),
    /// Removes a unit.
    RemoveUnit(&'static str, u32),
    /// Relates two applications.
    Integrate(&'static str, &'static str),
    /// Removes a relation.
    Part(&'static str, &'static str),
    /// Exposes an application, or ends the exposure.
    Expose(&'static str, bool),
    /// Deploys the application that comes and goes.
    Deploy(u64),
    /// Removes that application.
    Remove,
}

/// One of two archives of the same charm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Edition {
    #[default]
    First,
    Second,
}

/// The digests of the two archives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Editions {
    pub(crate) first: Digest,
    pub(crate) second: Digest,
}

impl Editions {
    pub(crate) fn digest(self, edition: Edition) -> Digest {
        match edition {
            Edition::First => self.first,
            Edition::Second => self.second,
        }
    }
}

/// The expected state of a model.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The applications, by name.
    pub(crate) applications: BTreeMap<&'static str, ExpectedApplication>,
    /// Requirer and provider of each relation.
    pub(crate) relations: BTreeSet<(&'static str, &'static str)>,
    notes: u64,
}

/// The expected state of an application.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExpectedApplication {
    /// The number in the script.
    pub(crate) note: u64,
    /// True if the script makes a hook fail.
    pub(crate) broken: bool,
    /// The charm.
    pub(crate) edition: Edition,
    /// The units, by number; unknown for the application that comes and goes.
    pub(crate) units: BTreeSet<u32>,
    /// True if the application is exposed.
    pub(crate) exposed: bool,
    added: u32,
}

impl Default for Plan {
    /// Returns the initial plan.
    fn default() -> Self {
        let wanted = |units| ExpectedApplication {
            units: (0..units).collect(),
            added: units,
            ..ExpectedApplication::default()
        };
        let applications = LASTING.map(|(name, units)| (name, wanted(units))).into();
        Self { applications, relations: BTreeSet::new(), notes: 0 }
    }
}

impl Plan {
    /// Draws a step that is possible now.
    pub(crate) fn next(&self, random: &mut RandomNumbers) -> Step {
        loop {
            let (name, _) = *random.pick(&LASTING);
            let application = &self.applications[name];
            let (requirer, provider) = *random.pick(&PAIRS);
            let passing = self.applications.contains_key(PASSING);
            let other = match application.edition {
                Edition::First => Edition::Second,
                Edition::Second => Edition::First,
            };
            match random.below(15) {
                // Units in error do not wind down: a removal would wait for the operator.
                0..8 if application.broken => return self.mend(name, random),
                12 => return Step::Refresh(name, other, random.below(2) == 0),
                _ if self.anything_broken() => {}
                13..15 => return Step::Break(name, self.notes + 1),
                0..4 => return Step::Note(name, self.notes + 1),
                4 if application.units.len() < MOST_UNITS => return Step::AddUnit(name, application.added),
                5 if application.units.len() > 1 => {
                    let units: Vec<_> = application.units.iter().copied().collect();
                    return Step::RemoveUnit(name, *random.pick(&units));
                }
                6..9 if requirer.starts_with(PASSING) && !passing => {}
                6..9 if self.relations.contains(&(requirer, provider)) => {
                    return Step::Part(requirer, provider);
                }
                6..9 => return Step::Integrate(requirer, provider),
                9 => return Step::Expose(name, !application.exposed),
                10 if passing => return Step::Remove,
                10 => return Step::Deploy(self.notes + 1),
                _ => {}
            }
        }
    }

    /// Returns a step that repairs an application.
    fn mend(&self, name: &'static str, random: &mut RandomNumbers) -> Step {
        let mode = *random.pick(&[ResolveMode::Retry, ResolveMode::NoRetry]);
        Step::Mend(name, self.notes + 1, mode)
    }

    /// Returns the next step that the model needs to settle.
    pub(crate) fn last(&self, random: &mut RandomNumbers) -> Option<Step> {
        let broken = LASTING.iter().find(|(name, _)| self.applications[name].broken)?;
        Some(self.mend(broken.0, random))
    }

    fn anything_broken(&self) -> bool {
        self.applications.values().any(|application| application.broken)
    }

    /// Applies a step to the plan.
    pub(crate) fn apply(&mut self, step: &Step) {
        match *step {
            Step::Note(name, note) => {
                self.notes = note;
                self.application(name).note = note;
            }
            Step::Break(name, note) | Step::Mend(name, note, _) => {
                self.notes = note;
                let application = self.application(name);
                application.note = note;
                application.broken = matches!(step, Step::Break(..));
            }
            Step::Refresh(name, edition, _) => self.application(name).edition = edition,
            Step::AddUnit(name, number) => {
                let application = self.application(name);
                application.units.insert(number);
                application.added = number + 1;
            }
            Step::RemoveUnit(name, number) => {
                self.application(name).units.remove(&number);
            }
            Step::Integrate(requirer, provider) => {
                self.relations.insert((requirer, provider));
            }
            Step::Part(requirer, provider) => {
                self.relations.remove(&(requirer, provider));
            }
            Step::Expose(name, exposed) => self.application(name).exposed = exposed,
            Step::Deploy(note) => {
                self.notes = note;
                self.applications
                    .insert(PASSING, ExpectedApplication { note, ..ExpectedApplication::default() });
            }
            Step::Remove => {
                self.applications.remove(PASSING);
                self.relations.retain(|(requirer, _)| !requirer.starts_with(PASSING));
            }
        }
    }

    fn application(&mut self, name: &'static str) -> &mut ExpectedApplication {
        self.applications.entry(name).or_default()
    }
}

impl Step {
    /// Returns the step's command, without the resolving of failed hooks.
    pub(crate) fn command(&self, charms: Editions) -> anyhow::Result<Command> {
        let set_script = |name: &str, script: String| {
            let set = BTreeMap::from([("script".to_owned(), script)]);
            anyhow::Ok(Command::SetConfig { application: name.parse()?, set, reset: Vec::new() })
        };
        Ok(match self {
            Self::Note(name, note) | Self::Mend(name, note, _) => set_script(name, script(*note, false))?,
            Self::Break(name, note) => set_script(name, script(*note, true))?,
            Self::Refresh(name, edition, force) => {
                let (application, charm) = (name.parse()?, charms.digest(*edition));
                Command::Refresh { application, charm, force: *force, with: RefreshWith::default() }
            }
            Self::AddUnit(name, _) => Command::AddUnits {
                application: name.parse()?,
                count: 1,
                placement: Vec::new(),
                attach_storage: vec![],
            },
            Self::RemoveUnit(name, number) => Command::RemoveUnit {
                unit: format!("{name}/{number}").parse()?,
                force: None,
                storage: Default::default(),
            },
            Self::Integrate(requirer, provider) => {
                Command::Integrate { first: selector(requirer)?, second: selector(provider)?, via: vec![] }
            }
            Self::Part(requirer, provider) => Command::RemoveRelation {
                relation: RelationSelector::Endpoints(selector(requirer)?, selector(provider)?),
                force: None,
            },
            Self::Expose(name, true) => {
                Command::Expose { application: name.parse()?, endpoints: Default::default() }
            }
            Self::Expose(name, false) => {
                Command::Unexpose { application: name.parse()?, endpoints: Vec::new() }
            }
            Self::Deploy(note) => deploy(charms.first, PASSING, 1, [("script", script(*note, false))])?,
            Self::Remove => Command::RemoveApplication {
                application: PASSING.parse()?,
                force: None,
                storage: Default::default(),
            },
        })
    }
}

/// Returns the command that deploys an application of the charm.
pub(crate) fn deploy<const N: usize>(
    charm: Digest,
    application: &str,
    units: u32,
    config: [(&str, String); N],
) -> anyhow::Result<Command> {
    Ok(Command::Deploy(Deploy {
        application: Some(application.parse()?),
        config: config.map(|(key, value)| (key.to_owned(), value)).into(),
        ..Deploy::of(charm, units)
    }))
}

/// The message of the hook that is made to fail.
pub(crate) const FAILURE: &str = "out of luck";

/// Returns a script whose last hook, in any order of hooks, leaves the last note everywhere: each config-changed
/// writes to all bags. The writes of a failed hook are discarded.
pub(crate) fn script(note: u64, broken: bool) -> String {
    let fails = if broken { format!("\nconfig-changed: fail {FAILURE}") } else { String::new() };
    format!("*: set note={note}\n*: status active {}{fails}", message(note))
}

/// Returns the message of a unit that has followed its script.
pub(crate) fn message(note: u64) -> String {
    format!("note {note}")
}

/// Parses `APPLICATION:ENDPOINT`.
pub(crate) fn selector(text: &str) -> anyhow::Result<EndpointSelector> {
    let (application, endpoint) = text.split_once(':').unwrap_or((text, ""));
    Ok(EndpointSelector { application: application.parse()?, endpoint: Some(endpoint.parse()?) })
}
