//! Pending work of every kind.

use periapt_host_api::{
    MachineId, RelationId,
    command::{Force, Placement},
    secret::{SecretId, SecretReader},
    storage::UnitStorage,
};
use periapt_model::entity::{Work, WorkId, WorkItem};

use super::{Named, every, parse, time};

pub(crate) fn items() -> Named<WorkItem> {
    let force = Some(Force { max_wait: 45 });
    let work = every!(Work {
        "create-units": Work::CreateUnits { .. } => Work::CreateUnits {
            application: parse("wordpress"),
            next: 12,
            end: 400,
            placement: vec![Placement::Machine(MachineId(3)), Placement::Agent(parse("host-7.example"))],
        },
        "destroy-application": Work::DestroyApplication { .. } =>
            Work::DestroyApplication { application: parse("wordpress"), force, storage: UnitStorage::Destroy, after: None },
        "destroy-units-on": Work::DestroyUnitsOn { .. } => Work::DestroyUnitsOn {
            machine: MachineId(3),
            force: Force { max_wait: 45 },
            after: Some(parse("wordpress/10")),
        },
        "destroy-units": Work::DestroyUnits { .. } =>
            Work::DestroyUnits { units: vec![parse("wordpress/10"), parse("mysql/0")], force, storage: UnitStorage::Detach },
        "destroy-subordinates": Work::DestroySubordinates { .. } =>
            Work::DestroySubordinates { application: parse("logging") },
        "unit-scopes": Work::UnitScopes { .. } => Work::UnitScopes { unit: parse("wordpress/10") },
        "cancel-tasks": Work::CancelTasks { .. } => Work::CancelTasks { unit: parse("wordpress/10") },
        "force-unit": Work::ForceUnit { .. } => Work::ForceUnit { unit: parse("wordpress/10") },
        "force-relation": Work::ForceRelation { .. } => Work::ForceRelation { relation: RelationId(2) },
        "destroy-relations": Work::DestroyRelations { .. } =>
            Work::DestroyRelations { relations: vec![RelationId(2), RelationId(5)], force },
        "force-storage": Work::ForceStorage { .. } => Work::ForceStorage {
            storage: parse("data/3"),
            detachment: Some(2),
        },
        "provide-storage": Work::ProvideStorage { .. } => Work::ProvideStorage { application: parse("mysql") },
        "force-model": Work::ForceModel => Work::ForceModel,
        "remove-secrets": Work::RemoveSecrets { .. } =>
            Work::RemoveSecrets { secrets: vec![SecretId::from_bytes([7; 12])] },
        "prune-secrets": Work::PruneSecrets { .. } =>
            Work::PruneSecrets { secrets: vec![SecretId::from_bytes([7; 12])] },
        "forget-secret-reader": Work::ForgetSecretReader { .. } => Work::ForgetSecretReader {
            reader: SecretReader::Unit(parse("wordpress/10")),
            secrets: vec![SecretId::from_bytes([7; 12])],
        },
        "remove-bags": Work::RemoveBags { .. } => Work::RemoveBags { relation: RelationId(2) },
    });
    let mut items: Named<WorkItem> = work
        .into_iter()
        .map(|(name, work)| (name, WorkItem { id: WorkId(8), due: Some(time(50)), work }))
        .collect();
    let (application, storage) = (parse("wordpress"), UnitStorage::Detach);
    let unforced = Work::DestroyApplication { application, force: None, storage, after: None };
    let (application, after) = (parse("wordpress"), Some(parse("wordpress/10")));
    let going_on = Work::DestroyApplication { application, force, storage, after };
    items.push(("destroy-the-rest", WorkItem { id: WorkId(11), due: None, work: going_on }));
    let forget_all =
        Work::ForgetSecretReader { reader: SecretReader::Application(parse("mysql")), secrets: vec![] };
    items.push(("forget-all-of-a-reader", WorkItem { id: WorkId(10), due: None, work: forget_all }));
    items.push(("at-once-without-force", WorkItem { id: WorkId(9), due: None, work: unforced }));
    items
}
