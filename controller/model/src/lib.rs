//! The controller's model: what it keeps ([`entity`]), how commands change it ([`evaluate`]), what each caller
//! may see of it, and how statuses are derived. Pure: time and seeds are arguments, and the same input gives
//! the same output.

mod access;
mod agent;
mod assignments;
pub mod changes;
mod charms;
mod command;
mod commit;
mod config;
mod cross;
pub mod entity;
mod evaluate;
mod firewall;
mod input;
mod life;
mod model_config;
mod resource;
mod root;
mod seal;
mod secret;
mod spaces;
mod start;
mod status;
mod summary;
mod transaction;
mod usage;
mod view;
mod worker;

pub use access::{ModelAccess, check_access, model_access, offer_access};
pub use assignments::assignments;
pub use changes::{
    Changes, CrossNews, MAX_BYTES, RecordAppend, RecordBody, RecordKind, StatusRecord, VolatileChange,
};
pub use command::plan::{RefreshRequest, plan_refresh};
pub use cross::{find_offer, offer_details, offers_of_model};
pub use entity::{Entity, EntityKey, ModelKey};
pub use evaluate::evaluate;
pub use firewall::ingress_rules;
pub use input::{Environment, Input, Output, UploadedCharm, UploadedResource, WorkerCommand};
pub use resource::{resource_details, resource_for_unit};
pub use root::{LoadError, ModelState, Presence, Root};
pub use seal::{Sealer, open_content, open_journal, seal_input};
pub use secret::{find_secret, secret_details, secret_for_admin, secret_for_unit};
pub use spaces::spaces;
pub use status::{
    StatusContext, combined_storage, full_status, machine_history, shown_application_status, shown_statuses,
};
pub use summary::{agent_summaries, model_summary};
pub use usage::model_usage;
pub use view::{follow, view};
pub use worker::{Agenda, due_work};
