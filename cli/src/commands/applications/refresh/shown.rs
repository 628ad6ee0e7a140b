//! The table of a refresh's changes.

use std::{collections::BTreeMap, fmt::Display};

use periapt_host_api::{
    charm::{EndpointMeta, StorageMeta},
    refresh::{Change, CharmDifference, Names, OptionShape, RefreshPlan},
    relation::{Role, Scope},
    storage::mebibytes,
};

use crate::output::{Table, Text, TextStyle};

/// Draws one line for each difference.
pub(super) fn table(plan: &RefreshPlan) -> Text {
    let rows = rows(&plan.difference);
    if rows.is_empty() {
        return format!("The new charm asks and offers what {} does.\n", plan.from).into();
    }
    let mut table = Table::new(["Change", "Kind", "Name", "Before", "After"]);
    for Row { change, kind, name, before, after } in rows {
        let style = match change {
            "added" => TextStyle::Good,
            "changed" => TextStyle::Busy,
            _ => TextStyle::Bad,
        };
        table.row([(change, style).into(), kind.into(), name.into(), before.into(), after.into()]);
    }
    table.render()
}

struct Row {
    change: &'static str,
    kind: &'static str,
    name: String,
    before: String,
    after: String,
}

fn rows(difference: &CharmDifference) -> Vec<Row> {
    let CharmDifference { grants, endpoints, extra_bindings, storage, options, dropped_settings, actions } =
        difference;
    let mut rows = named("grant", grants);
    rows.extend(changed("endpoint", endpoints, endpoint));
    rows.extend(named("binding", extra_bindings));
    rows.extend(changed("storage", storage, stored));
    rows.extend(changed("option", options, option));
    rows.extend(dropped_settings.iter().map(|(name, value)| Row {
        change: "dropped",
        kind: "setting",
        name: name.clone(),
        before: value.to_string(),
        after: String::new(),
    }));
    rows.extend(named("action", actions));
    rows
}

fn named<T: Ord + Display>(kind: &'static str, names: &Names<T>) -> Vec<Row> {
    let row = |change, name: &T| Row {
        change,
        kind,
        name: name.to_string(),
        before: String::new(),
        after: String::new(),
    };
    let added = names.added.iter().map(|name| row("added", name));
    added.chain(names.removed.iter().map(|name| row("removed", name))).collect()
}

fn changed<K: Display, T>(
    kind: &'static str,
    changes: &BTreeMap<K, Change<T>>,
    text: impl Fn(&T) -> String,
) -> Vec<Row> {
    let row = |(name, change): (&K, &Change<T>)| {
        let (change, before, after) = match change {
            Change::Added(to) => ("added", String::new(), text(to)),
            Change::Removed(from) => ("removed", text(from), String::new()),
            Change::Changed { from, to } => ("changed", text(from), text(to)),
        };
        Row { change, kind, name: name.to_string(), before, after }
    };
    changes.iter().map(row).collect()
}

/// Formats an endpoint: `requires mysql, limit 1, scope container`.
fn endpoint(endpoint: &EndpointMeta) -> String {
    let verb = match endpoint.role {
        Role::Provider => "provides",
        Role::Requirer => "requires",
        Role::Peer => "peers by",
    };
    let limit = endpoint.limit.map(|limit| format!(", limit {limit}")).unwrap_or_default();
    let scope = if endpoint.scope == Scope::Container { ", scope container" } else { "" };
    format!("{verb} {}{limit}{scope}", endpoint.interface)
}

/// Formats a storage: `1-3 of 100M at /srv/data, read-only`.
fn stored(storage: &StorageMeta) -> String {
    let size = match storage.minimum_size {
        0 => String::new(),
        least => format!(" of {}", mebibytes(least)),
    };
    let place = storage.location.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
    let read_only = if storage.read_only { ", read-only" } else { "" };
    format!("{}{size}{place}{read_only}", storage.count)
}

/// Formats an option: `int, default 80`.
fn option(option: &OptionShape) -> String {
    match &option.default {
        Some(default) => format!("{}, default {default}", option.kind.as_str()),
        None => option.kind.as_str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::charm::{CharmFiles, CharmMeta};
    use periapt_host_api::{Digest, imports::Grant, settings::OptionValue};

    use super::*;

    fn charm(metadata: &str) -> CharmMeta {
        let text = format!("name: blog\nsummary: s\ndescription: d\n{metadata}");
        CharmMeta::parse(&CharmFiles { charmcraft: Some(text), ..CharmFiles::default() }).unwrap()
    }

    fn drawn(old: &CharmMeta, new: &CharmMeta) -> String {
        let settings = [("port".to_owned(), OptionValue::Integer(81))].into();
        let plan = RefreshPlan {
            application: "blog".parse().unwrap(),
            from: "local:blog-0".into(),
            from_digest: Digest::of(b"old"),
            to: "blog".into(),
            to_digest: Digest::of(b"new"),
            difference: CharmDifference::between(old, new, &settings),
            refusal: None,
        };
        anstream::adapter::strip_str(&table(&plan)).to_string()
    }

    #[test]
    fn each_difference_stands_on_a_line() {
        let old = charm(
            "requires: {db: mysql}\nstorage: {data: {type: filesystem}}\n\
             config: {options: {port: {type: int, default: 80}}}\nactions: {backup: {}}",
        );
        let mut new = charm(
            "requires: {db: {interface: mysql, limit: 1}, host: {interface: juju-info, scope: container}}\n\
             storage: {data: {type: filesystem, minimum-size: 100M, location: /srv, read-only: true}}\n\
             config: {options: {port: {type: string}}}",
        );
        new.grants.insert(Grant::OutboundHttp);
        assert_eq!(
            drawn(&old, &new),
            "Change   Kind      Name           Before           After\n\
             added    grant     outbound-http\n\
             changed  endpoint  db             requires mysql   requires mysql, limit 1\n\
             added    endpoint  host                            requires juju-info, scope container\n\
             changed  storage   data           1                1 of 100MiB at /srv, read-only\n\
             changed  option    port           int, default 80  string\n\
             dropped  setting   port           81\n\
             removed  action    backup\n"
        );
    }

    #[test]
    fn no_difference_is_said_in_words() {
        let old = charm("config: {options: {port: {type: int}}}");
        assert_eq!(drawn(&old, &old), "The new charm asks and offers what local:blog-0 does.\n");
    }
}
