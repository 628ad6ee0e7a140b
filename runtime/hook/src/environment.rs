//! The environment variables of a hook (`docs/hook-model.md` 4.2). A sandbox has no socket, no tools directory and no
//! proxy, so the variables for them are absent or empty.

use periapt_host_api::{JUJU_VERSION, event::Event, notice::CUSTOM_NOTICE, storage::StorageKind};

use crate::HookContext;

/// The directory of the charm's own files.
const CHARM_DIR: &str = "/charm";

impl HookContext {
    /// Returns all variables of the hook, and none of the host's.
    pub fn environment(&self) -> Vec<(String, String)> {
        let snapshot = &self.run.snapshot;
        let (model, machine, own) = (snapshot.model(), snapshot.machine(), snapshot.own());
        let event = &self.run.event;
        let name = dispatch_name(event);
        let context_id = format!("{}-{name}-{}", snapshot.unit, self.context_id);
        let (dispatch, hook) = match event {
            Event::Action { .. } => (format!("actions/{name}"), String::new()),
            _ => (format!("hooks/{name}"), name),
        };
        let mut variables: Vec<(String, String)> = Vec::new();
        let mut set = |name: &str, value: String| variables.push((name.to_owned(), value));
        set("JUJU_CHARM_DIR", CHARM_DIR.to_owned());
        set("CHARM_DIR", CHARM_DIR.to_owned());
        set("JUJU_CONTEXT_ID", context_id);
        set("JUJU_DISPATCH_PATH", dispatch);
        set("JUJU_HOOK_NAME", hook);
        set("JUJU_UNIT_NAME", snapshot.unit.to_string());
        set("JUJU_PRINCIPAL_UNIT", own.principal.as_ref().map(ToString::to_string).unwrap_or_default());
        set("JUJU_MODEL_UUID", model.uuid.to_string());
        set("JUJU_MODEL_NAME", model.name.to_string());
        set("JUJU_MACHINE_ID", machine.id.to_string());
        set("JUJU_AVAILABILITY_ZONE", machine.availability_zone.clone());
        set("JUJU_API_ADDRESSES", self.api_addresses.join(" "));
        set("JUJU_VERSION", JUJU_VERSION.to_owned());
        for proxy in ["HTTP", "HTTPS", "FTP", "NO"] {
            set(&format!("JUJU_CHARM_{proxy}_PROXY"), String::new());
        }
        for (name, value) in [
            ("LANG", "C.UTF-8"),
            ("TERM", "tmux-256color"),
            ("DEBIAN_FRONTEND", "noninteractive"),
            ("APT_LISTCHANGES_FRONTEND", "none"),
        ] {
            set(name, value.to_owned());
        }
        variables.extend(self.relation_variables());
        variables.extend(action_variables(event));
        variables.extend(custom_variables(event));
        variables.extend(storage_variables(event));
        variables.extend(secret_variables(event));
        variables.extend(workload_variables(event));
        variables
    }
}

/// Returns the hook's name for charms that dispatch on names. A batch is a relation-changed without a unit.
fn dispatch_name(event: &Event) -> String {
    match event {
        Event::RelationBatch { relation, .. } => format!("{}-relation-changed", relation.endpoint),
        _ => event.hook_name(),
    }
}

fn action_variables(event: &Event) -> Vec<(String, String)> {
    let Event::Action { name, task } = event else { return Vec::new() };
    vec![
        ("JUJU_ACTION_NAME".to_owned(), name.clone()),
        ("JUJU_ACTION_UUID".to_owned(), task.to_string()),
        ("JUJU_ACTION_TAG".to_owned(), format!("action-{task}")),
    ]
}

fn custom_variables(event: &Event) -> Vec<(String, String)> {
    let Event::Custom { id, name, data } = event else { return Vec::new() };
    vec![
        ("PERIAPT_EVENT_ID".to_owned(), id.to_string()),
        ("PERIAPT_EVENT_NAME".to_owned(), name.clone()),
        ("PERIAPT_EVENT_DATA".to_owned(), data.clone()),
    ]
}

fn storage_variables(event: &Event) -> Vec<(String, String)> {
    let Some(context) = event.storage() else { return Vec::new() };
    vec![
        ("JUJU_STORAGE_ID".to_owned(), context.storage.to_string()),
        ("JUJU_STORAGE_LOCATION".to_owned(), context.location.clone()),
        ("JUJU_STORAGE_KIND".to_owned(), StorageKind::Filesystem.to_string()),
    ]
}

fn secret_variables(event: &Event) -> Vec<(String, String)> {
    let Some(secret) = event.secret() else { return Vec::new() };
    let mut variables = vec![
        ("JUJU_SECRET_ID".to_owned(), secret.id.uri()),
        ("JUJU_SECRET_LABEL".to_owned(), secret.label.clone().unwrap_or_default()),
    ];
    if let Some(revision) = event.secret_revision() {
        variables.push(("JUJU_SECRET_REVISION".to_owned(), revision.to_string()));
    }
    variables
}

fn workload_variables(event: &Event) -> Vec<(String, String)> {
    let Some(container) = event.container() else { return Vec::new() };
    let mut variables = vec![("JUJU_WORKLOAD_NAME".to_owned(), container.to_string())];
    match event {
        Event::PebbleCustomNotice { id, key, .. } => variables.extend([
            ("JUJU_NOTICE_ID".to_owned(), id.to_string()),
            ("JUJU_NOTICE_TYPE".to_owned(), CUSTOM_NOTICE.to_owned()),
            ("JUJU_NOTICE_KEY".to_owned(), key.clone()),
        ]),
        Event::PebbleCheckFailed { check, .. } | Event::PebbleCheckRecovered { check, .. } => {
            variables.push(("JUJU_PEBBLE_CHECK_NAME".to_owned(), check.clone()));
        }
        _ => {}
    }
    variables
}

impl HookContext {
    /// Returns the variables of the run's relation: the event's, or the one that a script names.
    fn relation_variables(&self) -> Vec<(String, String)> {
        let Some(context) = self.run.hook_relation() else { return Vec::new() };
        let remote_unit = self.run.hook_remote_unit().map(ToString::to_string).unwrap_or_default();
        let mut variables = vec![
            ("JUJU_RELATION".to_owned(), context.endpoint.to_string()),
            ("JUJU_RELATION_ID".to_owned(), format!("{}:{}", context.endpoint, context.relation)),
            ("JUJU_REMOTE_APP".to_owned(), context.remote_application.to_string()),
            ("JUJU_REMOTE_UNIT".to_owned(), remote_unit),
        ];
        let event = &self.run.event;
        if event.batch().is_some() {
            variables.push(("PERIAPT_RELATION_BATCH".to_owned(), "true".to_owned()));
        }
        if let Some(unit) = event.departing_unit() {
            variables.push(("JUJU_DEPARTING_UNIT".to_owned(), unit.to_string()));
        }
        variables
    }
}
