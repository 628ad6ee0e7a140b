//! The controller's model: the state that the controller keeps ([`entity`]), the commands that change it
//! ([`evaluate`]), the views of each caller, and the derived statuses. Pure: time and seeds are arguments, and the
//! same input gives the same output.

mod access;
mod action;
mod agent;
mod answer;
mod application;
mod audit;
mod charm;
mod commit;
mod controller;
pub mod entity;
mod evaluate;
mod input;
mod leadership;
mod machine;
mod migration;
mod model;
mod network;
mod offer;
mod once;
mod relation;
mod resource;
mod root;
mod secret;
mod status;
mod storage;
mod transaction;
mod unit;
mod user;
mod view;
mod work;

pub use access::check::{
    Subject, active_user, is_allowed, is_superuser, may_fetch_charm, may_know_resource, model_access,
    models_with_offers, offer_access, readable_models, require,
};
pub use access::command::{
    CONTROLLER_COMMANDS, MODEL_COMMANDS, right_of_command, right_of_controller_command,
};
pub use access::request::{is_visible, scope_admits_request};
pub use access::scope::scope_admits;
pub use access::table::{AccessRow, Holder, Right, SubjectKind, TABLE};
pub use agent::assignments::{assignment, assignments, program_within, released_program};
pub use agent::enrolment::check_join;
pub use answer::keep::has_kept_answer;
pub use application::constraints::limited;
pub use application::plan::{RefreshRequest, plan_refresh};
pub use audit::entry::{Origin, audit, audited, name_in_requests};
pub use audit::operation::session_subject;
pub use controller::level::check as check_level;
pub use entity::{Entity, EntityKey, ModelKey};
pub use evaluate::evaluate;
pub use input::{
    Environment, IdentityCommand, Input, IssuerLogin, NewSession, Output, RequestedCommand, UploadedCharm,
    UploadedResource, WorkerCommand,
};
pub use machine::status::machine_history;
pub use migration::{
    plan::{agents_to_migrate, entities_to_migrate, plan_begun_migration, plan_migration},
    status::{migration_status, moved_refusal, moved_to},
};
pub use model::usage::model_usage;
pub use network::{firewall::ingress_rules, spaces::spaces};
pub use offer::details::{offer_details, offers_of_model};
pub use offer::find_offer;
pub use once::{Evaluated, evaluate_once};
pub use resource::content::{resource_details, resource_for_unit};
pub use root::changes;
pub use root::changes::{
    Changes, CrossModelCopy, MAX_BYTES, RecordAppend, RecordBody, RecordKind, StatusRecord, VolatileChange,
};
pub use root::{Enrolments, LoadError, ModelState, Presence, Root, RootBuilder, SharedParts};
pub use secret::read::{find_secret, secret_details, secret_for_admin, secret_for_unit};
pub use secret::seal::{Sealer, open_content, open_entity, open_journal, seal_input};
pub use status::shown::{shown_application_status, shown_statuses};
pub use status::summary::{agent_summaries, model_summary};
pub use status::{StatusContext, full_status};
pub use storage::status::combined_storage;
pub use unit::workloads::status::{check_container, shown_workloads};
pub use user::external::user_at_issuer;
pub use user::read::{model_users, sessions, user_details, users};
pub use user::session::{authenticate, may_register, wrong_password, wrong_registration};
pub use view::{follow, peers, view};
pub use work::due_work;
pub use work::schedule::WorkSchedule;
