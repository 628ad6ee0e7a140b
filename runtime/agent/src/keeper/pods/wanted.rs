//! The pods that a model's units on this agent need, from the frames that the keeper forwards.

use std::{collections::BTreeMap, path::Path};

use periapt_host_api::{
    ApplicationName, ContainerName, Digest, UnitName,
    budget::BudgetSettings,
    charm::ContainerMeta,
    record::WorkloadRecord,
    status::Life,
    view::{CharmView, FrameLine, UnitView, ViewEntity, ViewKey},
};

use super::{
    PodId, PodSoftware,
    limits::SetLimits,
    needs::{ModelFiles, PodMounts, PodNeeds},
};

/// The units of one model on this agent, with the containers that their charms declare.
#[derive(Debug, Default, Clone)]
pub(crate) struct WantedPods {
    /// The units that are there.
    units: BTreeMap<UnitName, WantedUnit>,
    /// The charms of applications, which new units will run.
    applications: BTreeMap<ApplicationName, Digest>,
    containers: BTreeMap<Digest, BTreeMap<ContainerName, PodSoftware>>,
    /// The limits that are set in the model, and those of applications.
    model_limits: BudgetSettings,
    limits: BTreeMap<ApplicationName, BudgetSettings>,
    /// The parts of the view that the needs of pods in containers depend on.
    files: ModelFiles,
    /// The replacement from a full view whose last line has not arrived.
    coming: Option<Box<WantedPods>>,
    /// True if the lines of an unfinished frame changed what is wanted.
    changed: bool,
}

/// A unit that is there.
#[derive(Debug, Clone)]
struct WantedUnit {
    /// The charm that it runs; none before its first.
    charm: Option<Digest>,
    /// The starts of pods of which its charm was told.
    told: BTreeMap<ContainerName, String>,
}

impl WantedPods {
    /// Records the changes of a frame's line. Returns true after the last line of a frame that changed what is wanted.
    pub(crate) fn observe(&mut self, line: &FrameLine) -> bool {
        let coming = self.coming.take();
        if line.from.is_some() {
            self.changed |= self.note(line);
            return line.is_last() && !line.is_heartbeat() && std::mem::take(&mut self.changed);
        }
        let mut coming = coming.filter(|_| !line.is_first()).unwrap_or_default();
        coming.note(line);
        if line.is_last() {
            *self = *coming;
            return true;
        }
        self.coming = Some(coming);
        false
    }

    /// Returns the pods with what runs in them.
    pub(crate) fn pods(&self) -> BTreeMap<PodId, PodSoftware> {
        let of_unit = |(unit, wanted): (&UnitName, &WantedUnit)| {
            let charm = wanted.charm.or_else(|| self.applications.get(unit.application()).copied());
            let containers = charm.and_then(|charm| self.containers.get(&charm));
            let unit = unit.clone();
            containers
                .into_iter()
                .flatten()
                .map(move |(container, software)| ((unit.clone(), container.clone()), software.clone()))
        };
        self.units.iter().flat_map(of_unit).collect()
    }

    /// Returns the needs of one of the pods, if it runs in a container. Storage is below `directory`.
    pub(crate) fn needs(&self, pod: &PodId, directory: &Path) -> PodNeeds {
        match self.charm(&pod.0) {
            Some(charm) => self.files.of(pod, &charm, directory),
            None => PodNeeds::Unmet("its charm is not known yet".to_owned()),
        }
    }

    /// Returns the storage of a unit's WebAssembly workloads, or what they wait for. Storage is below `directory`.
    pub(crate) fn mounts(&self, unit: &UnitName, directory: &Path) -> Result<PodMounts, String> {
        match self.charm(unit) {
            Some(charm) => self.files.mounts(unit, &charm, directory),
            None => Err("its charm is not known yet".to_owned()),
        }
    }

    /// Returns the start of a pod of which its unit's charm was told.
    pub(crate) fn told(&self, (unit, container): &PodId) -> Option<&String> {
        self.units.get(unit)?.told.get(container)
    }

    /// Returns the limits of a unit's pods.
    pub(crate) fn limits(&self, unit: &UnitName) -> SetLimits {
        let own = self.limits.get(unit.application());
        SetLimits::of(&own.map_or_else(|| self.model_limits.clone(), |own| own.or(&self.model_limits)))
    }

    /// Returns the charm that a unit runs, or will.
    fn charm(&self, unit: &UnitName) -> Option<Digest> {
        let charm = self.units.get(unit).and_then(|wanted| wanted.charm);
        charm.or_else(|| self.applications.get(unit.application()).copied())
    }

    /// Records a line, and returns true if it changes what is wanted.
    fn note(&mut self, line: &FrameLine) -> bool {
        let mut changed = self.files.note(line);
        for key in &line.deletes {
            changed |= match key {
                ViewKey::Unit(unit) => self.units.remove(unit).is_some(),
                ViewKey::Application(application) => {
                    self.limits.remove(application);
                    self.applications.remove(application).is_some()
                }
                ViewKey::Charm(charm) => self.containers.remove(charm).is_some(),
                _ => false,
            };
        }
        for entity in &line.puts {
            changed |= match entity {
                ViewEntity::Unit(unit) if has_workloads(unit) => {
                    let charm = unit.record.charm.map(|charm| charm.digest);
                    let boot = |(name, told): (&ContainerName, &WorkloadRecord)| {
                        (name.clone(), told.boot_id.clone())
                    };
                    let told = unit.record.workloads.iter().map(boot).collect();
                    let before = self.units.insert(unit.name.clone(), WantedUnit { charm, told });
                    before.map(|before| before.charm) != Some(charm)
                }
                ViewEntity::Unit(unit) => self.units.remove(&unit.name).is_some(),
                ViewEntity::Application(application) => {
                    let (name, digest) = (&application.name, application.charm.digest);
                    let limits = &application.workload_limits;
                    let limits_differ = self.limits.get(name).unwrap_or(&BudgetSettings::default()) != limits;
                    if limits_differ {
                        self.limits.insert(name.clone(), limits.clone());
                    }
                    self.applications.insert(name.clone(), digest) != Some(digest) || limits_differ
                }
                ViewEntity::Model(model) => {
                    let before = std::mem::replace(&mut self.model_limits, model.workload_limits.clone());
                    before != self.model_limits
                }
                ViewEntity::Charm(charm) => {
                    let containers = declared(charm);
                    let is_new = self.containers.get(&charm.digest) != Some(&containers);
                    self.containers.insert(charm.digest, containers);
                    is_new
                }
                _ => false,
            };
        }
        changed
    }
}

/// Returns the containers and workloads that a charm declares.
fn declared(charm: &CharmView) -> BTreeMap<ContainerName, PodSoftware> {
    let software = |container: &ContainerMeta| match &container.workload {
        None => PodSoftware::Container,
        Some(workload) => PodSoftware::Workload {
            charm: charm.digest,
            workload: workload.clone(),
            mounts: Ok(BTreeMap::new()),
        },
    };
    charm.meta.containers.iter().map(|(name, container)| (name.clone(), software(container))).collect()
}

/// Returns true until a unit has run its last hook.
fn has_workloads(unit: &UnitView) -> bool {
    unit.life != Life::Dead && !unit.record.removed
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{
        budget::BudgetKey,
        charm::{CharmFiles, CharmMeta, WorkloadMeta},
        settings::ModelConfig,
        view::{LineNumber, ModelView},
    };

    use super::*;
    use crate::keeper::tests::fake::{frame, led_by, unit};

    /// Returns the charm of the applications of these tests.
    fn charm(containers: &str) -> ViewEntity {
        let text = format!("name: c\nsummary: s\ndescription: d\ncontainers: {{{containers}}}\n");
        let files = CharmFiles { charmcraft: Some(text), ..CharmFiles::default() };
        let digest = Digest::of(b"charm");
        let meta = CharmMeta::parse(&files).unwrap();
        ViewEntity::Charm(CharmView { digest, component: digest, revision: 0, meta })
    }

    #[test]
    fn a_workload_runs_the_component_of_the_charm_that_its_unit_runs() {
        let text =
            "name: c\nsummary: s\ndescription: d\nx-periapt: {workloads: {job: {component: job.wasm}}}\n";
        let files = CharmFiles { charmcraft: Some(text.to_owned()), ..CharmFiles::default() };
        let digest = Digest::of(b"charm");
        let meta = CharmMeta::parse(&files).unwrap();
        let charm = ViewEntity::Charm(CharmView { digest, component: digest, revision: 0, meta });
        let mut wanted = WantedPods::default();
        let puts = vec![led_by("app", "app/0"), charm, unit("app/0", Life::Alive)];
        assert!(wanted.observe(&frame(None, 5, puts)));
        let workload = WorkloadMeta { component: "job.wasm".to_owned(), http: None };
        let pod = ("app/0".parse().unwrap(), "job".parse().unwrap());
        let software = PodSoftware::Workload { charm: digest, workload, mounts: Ok(BTreeMap::new()) };
        assert_eq!(wanted.pods(), [(pod, software)].into());
    }

    #[test]
    fn limits_are_those_of_the_application_and_else_of_its_model() {
        let limits = |pairs: &[(BudgetKey, u64)]| BudgetSettings(pairs.iter().copied().collect());
        let (memory, cpu) = (BudgetKey::WorkloadMemoryLimit, BudgetKey::WorkloadCpuLimit);
        let model = |pairs: &[(BudgetKey, u64)]| {
            ViewEntity::Model(ModelView {
                uuid: "11111111-2222-4333-8444-555555555555".parse().unwrap(),
                name: "m".parse().unwrap(),
                life: Life::Alive,
                config: ModelConfig::default(),
                workload_limits: limits(pairs),
                spaces: Default::default(),
            })
        };
        let application = |pairs: &[(BudgetKey, u64)]| {
            let ViewEntity::Application(mut application) = led_by("app", "app/0") else { panic!() };
            application.workload_limits = limits(pairs);
            ViewEntity::Application(application)
        };
        let mut wanted = WantedPods::default();
        let puts = vec![model(&[(memory, 1 << 30)]), application(&[]), unit("app/0", Life::Alive)];
        assert!(wanted.observe(&frame(None, 5, puts)));
        let app: UnitName = "app/0".parse().unwrap();
        assert_eq!(wanted.limits(&app), SetLimits::of(&limits(&[(memory, 1 << 30)])));
        assert!(wanted.observe(&frame(Some(5), 6, vec![application(&[(memory, 1 << 26)])])));
        assert!(wanted.observe(&frame(Some(6), 7, vec![model(&[(memory, 1 << 31), (cpu, 50)])])));
        assert_eq!(wanted.limits(&app), SetLimits::of(&limits(&[(memory, 1 << 26), (cpu, 50)])));
        let same = vec![model(&[(memory, 1 << 31), (cpu, 50)]), application(&[(memory, 1 << 26)])];
        assert!(!wanted.observe(&frame(Some(7), 8, same)));
        assert!(wanted.observe(&frame(Some(8), 9, vec![application(&[])])));
        assert_eq!(wanted.limits(&app), SetLimits::of(&limits(&[(memory, 1 << 31), (cpu, 50)])));
    }

    fn names(wanted: &WantedPods) -> Vec<String> {
        wanted.pods().into_keys().map(|(unit, container)| format!("{unit} {container}")).collect()
    }

    #[test]
    fn each_container_of_each_unit_that_is_not_dead_has_a_pod() {
        let mut wanted = WantedPods::default();
        let units = [("app/0", Life::Alive), ("app/1", Life::Dying), ("app/2", Life::Dead)];
        let mut puts = vec![led_by("app", "app/0"), charm("web: {}, side: {}")];
        puts.extend(units.map(|(name, life)| unit(name, life)));
        assert!(wanted.observe(&frame(None, 5, puts)));
        assert_eq!(names(&wanted), ["app/0 side", "app/0 web", "app/1 side", "app/1 web"]);
        let mut line = frame(Some(5), 6, vec![unit("app/1", Life::Dead)]);
        line.deletes = vec![ViewKey::Unit("app/0".parse().unwrap())];
        assert!(wanted.observe(&line));
        assert!(names(&wanted).is_empty());
        // A frame about other things costs no look at all units.
        assert!(!wanted.observe(&frame(
            Some(6),
            7,
            vec![led_by("app", "app/1"), charm("web: {}, side: {}")]
        )));
    }

    #[test]
    fn a_replacement_in_lines_counts_once_it_is_whole() {
        let mut wanted = WantedPods::default();
        let whole = || vec![led_by("app", "app/0"), charm("web: {}"), unit("app/0", Life::Alive)];
        assert!(wanted.observe(&frame(None, 5, whole())));
        let mut first = frame(None, 9, vec![led_by("app", "app/0"), charm("web: {}")]);
        first.line = Some(LineNumber { number: 1, of: 2 });
        let mut last = frame(None, 9, vec![unit("app/1", Life::Alive)]);
        last.line = Some(LineNumber { number: 2, of: 2 });
        assert!(!wanted.observe(&first));
        assert_eq!(names(&wanted), ["app/0 web"], "units that are to come are not gone");
        assert!(wanted.observe(&last));
        assert_eq!(names(&wanted), ["app/1 web"]);
    }
}
