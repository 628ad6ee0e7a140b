//! The table of all kinds of entities: the only place where a kind is declared.

/// Hands the table of kinds to another macro. A kind is declared as
///
/// ```text
/// /// SUMMARY.
/// TYPE: KEY(FIELD: TYPE OF THE FIELD, ...) {
///     table TABLE: SHAPE;
///     seen TABLE as VIEW;
///     derive DERIVED by |entity| PARTS;
///     then FUNCTION;
/// }
/// ```
///
/// - `TYPE` is the entity's struct, and the name of its variant in [`Entity`](super::Entity).
/// - `KEY` is its variant in [`ModelKey`](super::ModelKey), made of the named fields of the struct. Both names are
///   stored, so a released name never changes. New kinds go to the end: keys are written in the order of their
///   variants.
/// - `TABLE` is the table of this kind in a model's state. `SHAPE` is `Flat` (a map by the key), or `Nested` (a map
///   of maps, for keys of two parts that are also looked up by the first part alone).
/// - `seen` marks a kind that runners see: the differences of its entities between two states are listed for views.
///   With `as VIEW`, the entity shows itself ([`Seen`](crate::view::Seen)) as the kind `VIEW` of
///   `periapt_host_api::view`. Kinds that are seen through others, such as a relation's members, are shown by
///   handwritten code (`view.rs`, `view/follow.rs`).
/// - `DERIVED` is a field of [`Derived`](crate::root::state::derived::Derived): an index, a set or a sum. `PARTS` are
///   the parts that one entity adds to it. Each put or delete removes the parts of the old entity and adds those of
///   the new one.
/// - `FUNCTION` is called with the state, the old entity and the new one, to update data that depends on several
///   kinds.
///
/// A kind that belongs to no model has only a map of the root, by its key.
macro_rules! kinds {
    ($generate:ident) => {
        $generate! {
            controller {
                /// An agent.
                Agent: Agent(name: AgentName) { table agents }
                /// An uploaded charm.
                Charm: Charm(digest: Digest) { table charms }
                /// Content that was uploaded for resources.
                ResourceContent: ResourceContent(digest: Digest) { table contents }
                /// A user.
                User: User(name: UserName) { table users }
                /// A session or API token of a user, by the digest of its token.
                Session: Session(token: Digest) { table sessions }
                /// The end of the audit log.
                AuditHead: AuditHead(log: u8) { table audit_heads }
                /// The enrolment of an agent.
                Enrolment: Enrolment(agent: AgentName) { table enrolments }
                /// A pool of agents that join with one token.
                AgentPool: Pool(name: AgentName) { table pools }
                /// The answer to a command of a request with an id.
                KeptAnswer: Answer(key: AnswerKey) { table answers }
            }
            model {
                /// A charm that the model uses.
                ModelCharm: Charm(digest: Digest) { table charms: Flat; seen charms; }
                /// A counter.
                Sequence: Sequence(key: SequenceKey) { table sequences: Flat; }
                /// An agent's runner of this model.
                Runner: Runner(agent: AgentName) { table runners: Flat; }
                /// An application.
                Application: Application(name: ApplicationName) { table applications: Flat; seen applications as Application; }
                /// An application that is offered to other models, by the offer's name.
                Offer: Offer(name: ApplicationName) { table offers: Flat; }
                /// An application of another model, by its name in this model.
                RemoteApplication: RemoteApplication(name: ApplicationName) { table remotes: Flat; }
                /// A machine.
                Machine: Machine(id: MachineId) {
                    table machines: Flat;
                    seen machines as Machine;
                    derive machines_of by |machine| [(machine.agent.clone(), machine.id)];
                    then hosted::machine_changed;
                }
                /// A unit.
                Unit: Unit(name: UnitName) {
                    table units: Flat;
                    seen units as Unit;
                    derive units_on by |unit| unit.machine.map(|machine| (machine, unit.name.clone()));
                    derive unplaced by |unit| unit.machine.is_none().then(|| unit.name.clone());
                    derive subordinates_of by |unit| unit.principal.clone().map(|of| (of, unit.name.clone()));
                    derive unit_counts by |unit| [(unit.name.application().clone(), 1)];
                    then hosted::unit_changed;
                }
                /// A relation. Its endpoints never change.
                Relation: Relation(id: RelationId) {
                    table relations: Flat;
                    seen relations;
                    derive relations_of by |relation| {
                        relation.endpoints.iter().map(|end| (end.application.clone(), relation.id))
                    };
                    derive crossings by |relation| relation.cross.as_ref().map(|cross| (cross.id, relation.id));
                }
                /// A unit in a relation's scope.
                Member: Member(relation: RelationId, unit: UnitName) {
                    table members: Nested;
                    seen members;
                    derive scopes_of by |member| [(member.unit.clone(), member.relation)];
                }
                /// A bag: the settings of a unit or an application in a relation.
                Bag: Bag(key: BagKey) {
                    table bags: Nested;
                    seen bags;
                    derive contained_bags by |bag| bag.container.clone().map(|unit| (unit, bag.key.clone()));
                }
                /// A key of a unit's state.
                StateEntry: State(key: StateKey) { table states: Nested; seen states as State; }
                /// The events that a unit waits for.
                PendingEvents: Events(unit: UnitName) { table events: Flat; seen events as Events; }
                /// A request to run an action, on one or more units.
                ActionOperation: ActionOperation(id: ActionOperationId) { table operations: Flat; }
                /// A run of an action on a unit.
                Task: Task(id: TaskId) {
                    table tasks: Flat;
                    seen tasks as Task;
                    derive open_tasks by |task| task.completed.is_none().then(|| (task.unit.clone(), task.id));
                    derive ended_tasks by |task| task.completed.map(|at| (at, task.id));
                    derive ended_memory by |task| task.completed.map(|_| task.memory());
                    derive ended_records by |task| task.completed.map(|_| task.record_bytes());
                }
                /// A storage instance.
                Storage: Storage(id: StorageId) {
                    table storages: Flat;
                    seen storages as Storage;
                    derive storages_of by |storage| storage.unit().map(|unit| (unit.clone(), storage.id.clone()));
                    derive storages_at by |storage| {
                        storage.agent.as_ref().map(|agent| (agent.clone(), storage.id.clone()))
                    };
                }
                /// A secret.
                Secret: Secret(id: SecretId) {
                    table secrets: Flat;
                    seen secrets;
                    derive secret_bytes by |secret| [size(secret.weight())];
                    derive owned_by by |secret| [(secret.owner.clone(), secret.id)];
                    derive granted_to by |secret| secret.access.keys().map(|reader| (reader.clone(), secret.id));
                    derive secrets_due by |secret| secret.rotates_at().map(|at| (at, secret.id, SecretDue::Rotate));
                }
                /// One revision of a secret.
                SecretContent: SecretContent(id: SecretId, revision: SecretRevision) {
                    table contents: Nested;
                    seen contents;
                    derive secret_bytes by |content| [size(content.weight())];
                    then secrets::content_changed;
                }
                /// The state of one revision's expiry.
                SecretExpiry: SecretExpiry(id: SecretId, revision: SecretRevision) {
                    table expiries: Nested;
                    seen expiries;
                    then secrets::expiry_changed;
                }
                /// The revision of a secret that a unit tracks.
                SecretConsumer: SecretConsumer(id: SecretId, unit: UnitName) {
                    table consumers: Nested;
                    seen consumers;
                    derive secret_bytes by |_| [size(PART_BYTES)];
                    derive consumed_by by |consumer| [(consumer.unit.clone(), consumer.id)];
                }
                /// A step that the controller has still to do.
                WorkItem: Work(id: WorkId) {
                    table work: Flat;
                    derive work_due by |item| [(item.due, item.id)];
                    derive unit_counts by |item| item.work.coming_units();
                }
                /// The access of a user to the model.
                ModelGrant: Grant(user: UserName) { table grants: Flat; }
                /// The state of a unit's workloads.
                ReportedWorkloads: Workloads(unit: UnitName) { table workloads: Flat; }
            }
        }
    };
}
pub(crate) use kinds;
