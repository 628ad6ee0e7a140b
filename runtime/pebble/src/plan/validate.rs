//! The checks of a layer by itself, and of a plan as a whole.

use std::collections::BTreeMap;

use super::{
    check::{Check, ProbeKind},
    command::split,
    layer::{Layer, LayerError, Plan},
    log_target::{ALL, LogTarget, NONE},
    merge::Merge,
    order::start_order,
    service::Service,
};
use crate::limits::PodLimits;

type Result = std::result::Result<(), LayerError>;

fn refuse(message: String) -> Result {
    Err(LayerError(message))
}

/// Refuses a layer with wrong names, or with entries that do not say how they meet those below.
pub(super) fn layer(label: &str, layer: &Layer, limits: &PodLimits) -> Result {
    entries(label, "service", &layer.services, limits)?;
    entries(label, "check", &layer.checks, limits)?;
    entries(label, "log target", &layer.log_targets, limits)
}

fn entries<T: Merge>(label: &str, kind: &str, entries: &BTreeMap<String, T>, limits: &PodLimits) -> Result {
    for (name, entry) in entries {
        if name.is_empty() {
            return refuse(format!("layer {label:?} has a {kind} without a name"));
        }
        if name.len() > limits.name {
            return refuse(format!(
                "layer {label:?} has a {kind} with a name of more than {} bytes",
                limits.name
            ));
        }
        if kind == "service" && name.starts_with('-') {
            return refuse(format!(
                "layer {label:?} has a service {name:?}, but names do not begin with \"-\""
            ));
        }
        if entry.mode().is_none() {
            return refuse(format!(
                "layer {label:?} must define \"override\" for {kind} {name:?}: merge or replace"
            ));
        }
    }
    Ok(())
}

/// Refuses a plan that cannot run.
pub(super) fn plan(plan: &Plan, limits: &PodLimits) -> Result {
    for (kind, count, most) in [
        ("services", plan.services.len(), limits.services),
        ("checks", plan.checks.len(), limits.checks),
        ("log targets", plan.log_targets.len(), limits.log_targets),
    ] {
        if count > most {
            return refuse(format!("the plan has {count} {kind}; at most {most} are kept"));
        }
    }
    for (name, service) in &plan.services {
        self::service(plan, name, service)?;
        keys(&format!("plan service {name:?} environment"), &service.environment, limits)?;
    }
    for (name, check) in &plan.checks {
        self::check(plan, name, check, limits)?;
        if let Some(http) = &check.http {
            keys(&format!("plan check {name:?} headers"), &http.headers, limits)?;
        }
        if let Some(exec) = &check.exec {
            keys(&format!("plan check {name:?} environment"), &exec.environment, limits)?;
        }
    }
    for (name, target) in &plan.log_targets {
        log_target(plan, name, target, limits)?;
    }
    let used = |target: &&LogTarget| plan.services.keys().any(|service| target.selects(service));
    let (used, most) = (plan.log_targets.values().filter(used).count(), limits.used_log_targets);
    if used > most {
        return refuse(format!("the plan has {used} log targets with services; at most {most} get lines"));
    }
    start_order(plan, plan.services.keys().map(String::as_str)).map(|_| ())
}

fn service(plan: &Plan, name: &str, service: &Service) -> Result {
    if service.command.is_empty() {
        return refuse(format!("plan must define \"command\" for service {name:?}"));
    }
    if let Err(error) = split(&service.command) {
        return refuse(format!("plan service {name:?} command {:?} is invalid: {error}", service.command));
    }
    if service.backoff_factor.is_some_and(|factor| !(1.0..=1_000.0).contains(&factor)) {
        return refuse(format!("plan service {name:?} backoff-factor must be a number from 1 to 1000"));
    }
    environment(&format!("plan service {name:?}"), service.environment.iter())?;
    if let Some(unknown) = service.requires.iter().find(|other| !plan.services.contains_key(*other)) {
        return refuse(format!("plan service {name:?} requires the unknown service {unknown:?}"));
    }
    if let Some(unknown) = service.on_check_failure.keys().find(|check| !plan.checks.contains_key(*check)) {
        return refuse(format!("plan service {name:?} on-check-failure specifies unknown check {unknown:?}"));
    }
    Ok(())
}

fn check(plan: &Plan, name: &str, check: &Check, limits: &PodLimits) -> Result {
    let Some(probe) = check.probe() else {
        return refuse(format!("plan must specify one of \"http\", \"tcp\", or \"exec\" for check {name:?}"));
    };
    if check.period() < limits.shortest_pause {
        return refuse(format!("plan check {name:?} period must be {:?} or longer", limits.shortest_pause));
    }
    if check.timeout().is_zero() {
        return refuse(format!("plan check {name:?} timeout must not be zero"));
    }
    if check.threshold() == 0 {
        return refuse(format!("plan check {name:?} threshold must be 1 or more"));
    }
    match probe {
        ProbeKind::Http(http) => match http.url.is_empty() {
            true => refuse(format!("plan must set \"url\" for http check {name:?}")),
            false => Ok(()),
        },
        ProbeKind::Tcp(tcp) => match tcp.port {
            None | Some(0) => refuse(format!("plan must set \"port\" for tcp check {name:?}")),
            Some(_) => Ok(()),
        },
        ProbeKind::Exec(exec) => {
            if let Err(error) = split(&exec.command) {
                return refuse(format!("plan check {name:?} command {:?} is invalid: {error}", exec.command));
            }
            environment(&format!("plan check {name:?}"), exec.environment.iter())?;
            let context = &exec.service_context;
            match context.is_empty() || plan.services.contains_key(context) {
                true => Ok(()),
                false => refuse(format!(
                    "plan check {name:?} service context specifies non-existent service {context:?}"
                )),
            }
        }
    }
}

fn log_target(plan: &Plan, name: &str, target: &LogTarget, limits: &PodLimits) -> Result {
    if target.kind.is_none() {
        return refuse(format!(
            "plan must define \"type\" (\"loki\", \"opentelemetry\" or \"syslog\") for log target {name:?}"
        ));
    }
    if target.location.is_empty() && !target.services.is_empty() {
        return refuse(format!("plan must define \"location\" for log target {name:?}"));
    }
    for service in &target.services {
        let named = service.strip_prefix('-').unwrap_or(service);
        if ![ALL, NONE].contains(&service.as_str()) && !plan.services.contains_key(named) {
            return refuse(format!("log target {name:?} specifies unknown service {named:?}"));
        }
    }
    if target.labels.len() > limits.labels {
        let (count, most) = (target.labels.len(), limits.labels);
        return refuse(format!("log target {name:?} has {count} labels; at most {most} are sent"));
    }
    keys(&format!("log target {name:?} labels"), &target.labels, limits)?;
    for (label, value) in &target.labels {
        if label.starts_with("pebble_") {
            return refuse(format!("log target {name:?} label {label:?} uses reserved prefix \"pebble_\""));
        }
        if label.is_empty() || value.len() > limits.label {
            let most = limits.label;
            return refuse(format!(
                "log target {name:?} has a label whose name is empty or whose value is longer than {most} bytes"
            ));
        }
    }
    Ok(())
}

/// Refuses names that are too long. YAML's keys have 1,024 characters at most, escapes included: a plan with a longer one is
/// shown, and no client can read it.
fn keys(of: &str, pairs: &BTreeMap<String, String>, limits: &PodLimits) -> Result {
    match pairs.keys().any(|name| name.len() > limits.name) {
        true => refuse(format!("{of} has a name of more than {} bytes", limits.name)),
        false => Ok(()),
    }
}

/// Refuses names of variables that no process can be given.
fn environment<'a>(of: &str, pairs: impl Iterator<Item = (&'a String, &'a String)>) -> Result {
    for (name, value) in pairs {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return refuse(format!("{of} environment has a variable {name:?} that no process can be given"));
        }
    }
    Ok(())
}
