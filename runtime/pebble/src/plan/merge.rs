//! The merge of an entry with the entry of the layers below.

use std::collections::BTreeMap;

use super::{
    check::{Check, ExecCheck, HttpCheck, TcpCheck},
    log_target::LogTarget,
    service::{Override, Service},
};

/// An entry that layers can change.
pub(super) trait Merge: Clone {
    /// Returns the entry's own word on how it meets the entry below.
    fn mode(&self) -> Option<Override>;

    /// Sets that word.
    fn set_mode(&mut self, mode: Option<Override>);

    /// Takes the fields that a higher entry sets.
    fn merge(&mut self, above: &Self);
}

/// The word of an entry that another was merged with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// The higher entry's, as the plan shows it.
    Newest,
    /// `replace` if the lower entry says so: one layer made of two still replaces what is below both.
    Kept,
}

/// Puts the entries of a layer over those below. Entries without a mode are refused before.
pub(super) fn over<T: Merge>(below: &mut BTreeMap<String, T>, above: &BTreeMap<String, T>, word: Word) {
    for (name, entry) in above {
        match (entry.mode(), below.get_mut(name)) {
            (Some(Override::Merge), Some(under)) => {
                let before = under.mode();
                under.merge(entry);
                if word == Word::Kept && before == Some(Override::Replace) {
                    under.set_mode(before);
                }
            }
            _ => {
                below.insert(name.clone(), entry.clone());
            }
        }
    }
}

/// Takes a text that is set.
fn text(below: &mut String, above: &str) {
    if !above.is_empty() {
        above.clone_into(below);
    }
}

/// Takes a value that is set.
fn value<T: Copy>(below: &mut Option<T>, above: Option<T>) {
    if above.is_some() {
        *below = above;
    }
}

/// Takes all pairs.
fn pairs<T: Clone>(below: &mut BTreeMap<String, T>, above: &BTreeMap<String, T>) {
    below.extend(above.iter().map(|(name, value)| (name.clone(), value.clone())));
}

/// Adds the names that are not there yet.
fn names(below: &mut Vec<String>, above: &[String]) {
    for name in above {
        if !below.contains(name) {
            below.push(name.clone());
        }
    }
}

impl Merge for Service {
    fn mode(&self) -> Option<Override> {
        self.mode
    }

    fn set_mode(&mut self, mode: Option<Override>) {
        self.mode = mode;
    }

    fn merge(&mut self, above: &Self) {
        text(&mut self.summary, &above.summary);
        text(&mut self.description, &above.description);
        value(&mut self.startup, above.startup);
        value(&mut self.mode, above.mode);
        text(&mut self.command, &above.command);
        names(&mut self.after, &above.after);
        names(&mut self.before, &above.before);
        names(&mut self.requires, &above.requires);
        pairs(&mut self.environment, &above.environment);
        value(&mut self.user_id, above.user_id);
        text(&mut self.user, &above.user);
        value(&mut self.group_id, above.group_id);
        text(&mut self.group, &above.group);
        text(&mut self.working_dir, &above.working_dir);
        value(&mut self.on_success, above.on_success);
        value(&mut self.on_failure, above.on_failure);
        pairs(&mut self.on_check_failure, &above.on_check_failure);
        value(&mut self.backoff_delay, above.backoff_delay);
        value(&mut self.backoff_factor, above.backoff_factor);
        value(&mut self.backoff_limit, above.backoff_limit);
        value(&mut self.kill_delay, above.kill_delay);
    }
}

impl Merge for Check {
    fn mode(&self) -> Option<Override> {
        self.mode
    }

    fn set_mode(&mut self, mode: Option<Override>) {
        self.mode = mode;
    }

    fn merge(&mut self, above: &Self) {
        value(&mut self.mode, above.mode);
        value(&mut self.level, above.level);
        value(&mut self.startup, above.startup);
        value(&mut self.period, above.period);
        value(&mut self.timeout, above.timeout);
        value(&mut self.threshold, above.threshold);
        if let Some(HttpCheck { url, headers }) = &above.http {
            let http = self.http.get_or_insert_default();
            text(&mut http.url, url);
            pairs(&mut http.headers, headers);
        }
        if let Some(TcpCheck { port, host }) = &above.tcp {
            let tcp = self.tcp.get_or_insert_default();
            value(&mut tcp.port, *port);
            text(&mut tcp.host, host);
        }
        if let Some(above) = &above.exec {
            let ExecCheck {
                command,
                service_context,
                environment,
                user_id,
                user,
                group_id,
                group,
                working_dir,
            } = self.exec.get_or_insert_default();
            text(command, &above.command);
            text(service_context, &above.service_context);
            pairs(environment, &above.environment);
            value(user_id, above.user_id);
            text(user, &above.user);
            value(group_id, above.group_id);
            text(group, &above.group);
            text(working_dir, &above.working_dir);
        }
    }
}

impl Merge for LogTarget {
    fn mode(&self) -> Option<Override> {
        self.mode
    }

    fn set_mode(&mut self, mode: Option<Override>) {
        self.mode = mode;
    }

    fn merge(&mut self, above: &Self) {
        value(&mut self.mode, above.mode);
        value(&mut self.kind, above.kind);
        text(&mut self.location, &above.location);
        // The last word on a service counts: `-name` takes back what stands before it. Each word is kept once.
        for name in std::mem::take(&mut self.services).iter().chain(&above.services) {
            self.services.retain(|known| known != name);
            self.services.push(name.clone());
        }
        pairs(&mut self.labels, &above.labels);
    }
}
