//! The pods that a model's units on this agent need, from the frames that the keeper forwards.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use periapt_host_api::{
    ApplicationName, ContainerName, Digest, UnitName,
    budget::BudgetSettings,
    charm::ContainerMeta,
    record::WorkloadRecord,
    status::Life,
    view::{ApplicationView, CharmView, FrameLine, UnitView, ViewEntity, ViewKey},
};

use super::{
    PodId, PodSoftware,
    limits::SetLimits,
    needs::{ChangedNeeds, ModelFiles, PodMounts, PodNeeds},
};

/// The units of one model on this agent, with the containers that their charms declare.
#[derive(Debug, Default, Clone)]
pub(crate) struct WantedPods {
    /// The units that are there.
    units: BTreeMap<UnitName, WantedUnit>,
    /// The charms of applications, which new units will run.
    applications: BTreeMap<ApplicationName, Digest>,
    containers: BTreeMap<Digest, BTreeMap<ContainerName, PodSoftware>>,
    users: CharmUsers,
    /// The limits that are set in the model, and those of applications.
    model_limits: BudgetSettings,
    limits: BTreeMap<ApplicationName, BudgetSettings>,
    /// The parts of the view that the needs of pods in containers depend on.
    files: ModelFiles,
    /// The replacement from a full view whose last line has not arrived.
    coming: Option<Box<WantedPods>>,
    /// The units for which the lines of an unfinished frame changed what is wanted.
    changed: BTreeSet<UnitName>,
}

/// The units whose pods a frame may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChangedPods {
    /// Some units. Others may be among them that are not there.
    Of(BTreeSet<UnitName>),
    /// All units: the frame is the whole view.
    All,
}

/// The units that run each charm, and the applications whose new units will.
#[derive(Debug, Default, Clone)]
struct CharmUsers {
    units: BTreeMap<Digest, BTreeSet<UnitName>>,
    applications: BTreeMap<Digest, BTreeSet<ApplicationName>>,
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
    /// Records the changes of a frame's line. Returns the units after the last line of a frame that changed what is wanted. The
    /// cost of all but a whole view depends on these units.
    pub(super) fn observe(&mut self, line: &FrameLine) -> Option<ChangedPods> {
        let coming = self.coming.take();
        if line.from.is_some() {
            self.note(line);
            let is_over = line.is_last() && !line.is_heartbeat() && !self.changed.is_empty();
            return is_over.then(|| ChangedPods::Of(std::mem::take(&mut self.changed)));
        }
        let mut coming = coming.filter(|_| !line.is_first()).unwrap_or_default();
        coming.note(line);
        if line.is_last() {
            *self = *coming;
            self.changed.clear();
            return Some(ChangedPods::All);
        }
        self.coming = Some(coming);
        None
    }

    /// Returns the units that are there.
    pub(super) fn units(&self) -> impl Iterator<Item = &UnitName> {
        self.units.keys()
    }

    /// Returns the containers of a unit with what runs in them.
    pub(super) fn pods_of(&self, unit: &UnitName) -> BTreeMap<ContainerName, PodSoftware> {
        let charm = self.units.get(unit).and_then(|_| self.charm(unit));
        charm.and_then(|charm| self.containers.get(&charm)).cloned().unwrap_or_default()
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

    /// Records a line, and adds the units for which it changes what is wanted.
    fn note(&mut self, line: &FrameLine) {
        let mut needs = ChangedNeeds::default();
        self.files.note(line, &mut needs);
        for key in &line.deletes {
            match key {
                ViewKey::Unit(unit) => self.forget(unit),
                ViewKey::Application(application) => {
                    self.limits.remove(application);
                    if let Some(charm) = self.applications.remove(application) {
                        unlink(&mut self.users.applications, &charm, application);
                        needs.applications.insert(application.clone());
                    }
                }
                ViewKey::Charm(charm) if self.containers.remove(charm).is_some() => {
                    needs.charms.insert(*charm);
                }
                _ => {}
            }
        }
        for entity in &line.puts {
            match entity {
                ViewEntity::Unit(unit) if has_workloads(unit) => self.put_unit(unit),
                ViewEntity::Unit(unit) => self.forget(&unit.name),
                ViewEntity::Application(application) => {
                    let changed = self.put_application(application).then(|| application.name.clone());
                    needs.applications.extend(changed);
                }
                ViewEntity::Model(model) => {
                    let before = std::mem::replace(&mut self.model_limits, model.workload_limits.clone());
                    if before != self.model_limits {
                        self.changed.extend(self.units.keys().cloned());
                    }
                }
                ViewEntity::Charm(charm) => {
                    let containers = declared(charm);
                    if self.containers.get(&charm.digest) != Some(&containers) {
                        self.containers.insert(charm.digest, containers);
                        needs.charms.insert(charm.digest);
                    }
                }
                _ => {}
            }
        }
        self.note_users(needs);
    }

    /// Adds the units whose needs have changed, by what these depend on.
    fn note_users(&mut self, ChangedNeeds { units, mut applications, charms }: ChangedNeeds) {
        self.changed.extend(units);
        for charm in &charms {
            self.changed.extend(self.users.units.get(charm).into_iter().flatten().cloned());
            applications.extend(self.users.applications.get(charm).into_iter().flatten().cloned());
        }
        for application in applications {
            let [first, last] = [0, u32::MAX].map(|number| UnitName::new(application.clone(), number));
            self.changed.extend(self.units.range(first..=last).map(|(unit, _)| unit.clone()));
        }
    }

    fn put_unit(&mut self, unit: &UnitView) {
        let (name, charm) = (&unit.name, unit.record.charm.map(|charm| charm.digest));
        let boot = |(name, told): (&ContainerName, &WorkloadRecord)| (name.clone(), told.boot_id.clone());
        let told = unit.record.workloads.iter().map(boot).collect();
        let before = self.units.insert(name.clone(), WantedUnit { charm, told }).map(|before| before.charm);
        if before == Some(charm) {
            return;
        }
        if let Some(before) = before.flatten() {
            unlink(&mut self.users.units, &before, name);
        }
        if let Some(charm) = charm {
            self.users.units.entry(charm).or_default().insert(name.clone());
        }
        self.changed.insert(name.clone());
    }

    fn forget(&mut self, unit: &UnitName) {
        let Some(before) = self.units.remove(unit) else { return };
        if let Some(charm) = before.charm {
            unlink(&mut self.users.units, &charm, unit);
        }
        self.changed.insert(unit.clone());
    }

    /// Records an application, and returns true if its units may want something else.
    fn put_application(&mut self, application: &ApplicationView) -> bool {
        let (name, charm) = (&application.name, application.charm.digest);
        let limits = &application.workload_limits;
        let limits_differ = self.limits.get(name).unwrap_or(&BudgetSettings::default()) != limits;
        if limits_differ {
            self.limits.insert(name.clone(), limits.clone());
        }
        let before = self.applications.insert(name.clone(), charm);
        if before == Some(charm) {
            return limits_differ;
        }
        if let Some(before) = before {
            unlink(&mut self.users.applications, &before, name);
        }
        self.users.applications.entry(charm).or_default().insert(name.clone());
        true
    }
}

/// Removes a user of a charm.
fn unlink<T: Ord>(users: &mut BTreeMap<Digest, BTreeSet<T>>, charm: &Digest, user: &T) {
    if let Some(of_charm) = users.get_mut(charm) {
        of_charm.remove(user);
        if of_charm.is_empty() {
            users.remove(charm);
        }
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
impl WantedPods {
    /// Records a line, and returns true if some units may want something else.
    pub(super) fn sees(&mut self, line: &FrameLine) -> bool {
        self.observe(line).is_some()
    }

    fn pods(&self) -> BTreeMap<PodId, PodSoftware> {
        let of_unit = |unit: &UnitName| {
            let unit = unit.clone();
            let pods = self.pods_of(&unit).into_iter();
            pods.map(move |(container, software)| ((unit.clone(), container), software))
        };
        self.units().flat_map(of_unit).collect()
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{
        budget::BudgetKey,
        charm::{CharmFiles, CharmMeta, WorkloadMeta},
        record::CharmRef,
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
        assert!(wanted.sees(&frame(None, 5, puts)));
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
        assert!(wanted.sees(&frame(None, 5, puts)));
        let app: UnitName = "app/0".parse().unwrap();
        assert_eq!(wanted.limits(&app), SetLimits::of(&limits(&[(memory, 1 << 30)])));
        assert!(wanted.sees(&frame(Some(5), 6, vec![application(&[(memory, 1 << 26)])])));
        assert!(wanted.sees(&frame(Some(6), 7, vec![model(&[(memory, 1 << 31), (cpu, 50)])])));
        assert_eq!(wanted.limits(&app), SetLimits::of(&limits(&[(memory, 1 << 26), (cpu, 50)])));
        let same = vec![model(&[(memory, 1 << 31), (cpu, 50)]), application(&[(memory, 1 << 26)])];
        assert!(!wanted.sees(&frame(Some(7), 8, same)));
        assert!(wanted.sees(&frame(Some(8), 9, vec![application(&[])])));
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
        assert!(wanted.sees(&frame(None, 5, puts)));
        assert_eq!(names(&wanted), ["app/0 side", "app/0 web", "app/1 side", "app/1 web"]);
        let mut line = frame(Some(5), 6, vec![unit("app/1", Life::Dead)]);
        line.deletes = vec![ViewKey::Unit("app/0".parse().unwrap())];
        assert!(wanted.sees(&line));
        assert!(names(&wanted).is_empty());
        // A frame about other things costs no look at all units.
        assert!(!wanted.sees(&frame(Some(6), 7, vec![led_by("app", "app/1"), charm("web: {}, side: {}")])));
    }

    #[test]
    fn a_replacement_in_lines_counts_once_it_is_whole() {
        let mut wanted = WantedPods::default();
        let whole = || vec![led_by("app", "app/0"), charm("web: {}"), unit("app/0", Life::Alive)];
        assert!(wanted.sees(&frame(None, 5, whole())));
        let mut first = frame(None, 9, vec![led_by("app", "app/0"), charm("web: {}")]);
        first.line = Some(LineNumber { number: 1, of: 2 });
        let mut last = frame(None, 9, vec![unit("app/1", Life::Alive)]);
        last.line = Some(LineNumber { number: 2, of: 2 });
        assert!(!wanted.sees(&first));
        assert_eq!(names(&wanted), ["app/0 web"], "units that are to come are not gone");
        assert!(wanted.sees(&last));
        assert_eq!(names(&wanted), ["app/1 web"]);
    }

    /// Returns the units that a frame changes.
    fn changed(wanted: &mut WantedPods, puts: Vec<ViewEntity>, deletes: Vec<ViewKey>) -> Vec<String> {
        let mut line = frame(Some(5), 6, puts);
        line.deletes = deletes;
        match wanted.observe(&line) {
            Some(ChangedPods::Of(units)) => units.iter().map(UnitName::to_string).collect(),
            Some(ChangedPods::All) => vec!["all".to_owned()],
            None => Vec::new(),
        }
    }

    #[test]
    fn a_frame_names_the_units_that_it_changes_however_many_others_there_are() {
        let mut wanted = WantedPods::default();
        let mut puts = vec![led_by("app", "app/0"), led_by("few", "few/0"), charm("web: {}")];
        puts.extend((0..10_000).map(|number| unit(&format!("app/{number}"), Life::Alive)));
        puts.extend((0..3).map(|number| unit(&format!("few/{number}"), Life::Alive)));
        assert_eq!(wanted.observe(&frame(None, 5, puts)), Some(ChangedPods::All));
        let runs = |name: &str, charm: Digest| {
            let ViewEntity::Unit(mut unit) = unit(name, Life::Alive) else { panic!() };
            unit.record.charm = Some(CharmRef { digest: charm, modified_version: 0 });
            ViewEntity::Unit(unit)
        };
        let (first, other) = (Digest::of(b"charm"), Digest::of(b"other"));
        assert_eq!(changed(&mut wanted, vec![runs("app/7000", first)], vec![]), ["app/7000"]);
        assert_eq!(changed(&mut wanted, vec![runs("app/7000", first)], vec![]), [""; 0], "it is no news");
        assert_eq!(changed(&mut wanted, vec![unit("app/10000", Life::Alive)], vec![]), ["app/10000"]);
        let gone = vec![ViewKey::Unit("app/10000".parse().unwrap())];
        assert_eq!(changed(&mut wanted, vec![], gone), ["app/10000"]);
        // An application and a charm concern the units that have them.
        let few = |charm: Digest| {
            let ViewEntity::Application(mut application) = led_by("few", "few/0") else { panic!() };
            application.charm.digest = charm;
            ViewEntity::Application(application)
        };
        assert_eq!(changed(&mut wanted, vec![few(other)], vec![]), ["few/0", "few/1", "few/2"]);
        assert_eq!(changed(&mut wanted, vec![runs("few/1", first)], vec![]), ["few/1"]);
        assert_eq!(changed(&mut wanted, vec![runs("app/3", other)], vec![]), ["app/3"]);
        let ViewEntity::Charm(mut view) = charm("web: {}, side: {}") else { panic!() };
        view.digest = other;
        let users = ["app/3", "few/0", "few/1", "few/2"];
        assert_eq!(changed(&mut wanted, vec![ViewEntity::Charm(view)], vec![]), users);
        let name = |unit: &str| wanted.pods_of(&unit.parse().unwrap()).len();
        assert_eq!(["app/2", "app/3", "few/0", "few/1"].map(name), [1, 2, 2, 1]);
    }
}
