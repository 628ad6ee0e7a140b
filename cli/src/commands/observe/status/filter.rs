//! The filter of `status`.

use periapt_host_api::{
    glob::glob,
    status::{ApplicationStatus, FullStatus, UnitStatus, application_of},
};

/// Keeps the parts that match one of the patterns, with their context: a unit's application and
/// machine, an application's units and relations.
pub(super) fn keep(status: &mut FullStatus, patterns: &[String]) {
    if patterns.is_empty() {
        return;
    }
    let patterns = &with_leaders(status, patterns);
    let fits = |name: &str| patterns.iter().any(|pattern| glob(pattern, name));
    let FullStatus { applications, remote_applications, offers, machines, relations, .. } = status;
    applications.retain(|name, application| {
        let whole = fits(name) || has_exposure(application, patterns);
        if !whole {
            application.units.retain(|name, unit| {
                unit.subordinates.retain(|name, below| {
                    fits(name) || fits(application_of(name)) || has_status(below, patterns)
                });
                let below = !unit.subordinates.is_empty();
                fits(name) || fits(&unit.machine) || has_status(unit, patterns) || below
            });
        }
        whole || !application.units.is_empty()
    });
    remote_applications.retain(|name, remote| {
        let mut related = remote.relations.values().flatten();
        fits(name) || related.any(|application| applications.contains_key(application))
    });
    offers.retain(|name, offer| fits(name) || applications.contains_key(&offer.application));
    let hosts = |machine: &str| {
        let mut units = applications.values().flat_map(|application| application.units.values());
        units.any(|unit| unit.machine == machine)
    };
    machines.retain(|name, _| fits(name) || hosts(name));
    relations.retain(|relation| {
        [&relation.provider, &relation.requirer].into_iter().any(|end| {
            let application = end.split_once(':').map_or(end.as_str(), |(application, _)| application);
            applications.contains_key(application)
        })
    });
}

/// Replaces `APPLICATION/leader` in the patterns by the leader's name.
fn with_leaders(status: &FullStatus, patterns: &[String]) -> Vec<String> {
    let resolved = |pattern: &String| {
        let application = pattern.strip_suffix("/leader")?;
        let leader = status.units().find(|unit| unit.unit.leader && unit.application() == application)?;
        Some(leader.name.to_owned())
    };
    patterns.iter().map(|pattern| resolved(pattern).unwrap_or_else(|| pattern.clone())).collect()
}

/// Returns true if a pattern is `exposed` or `not exposed`, and the application is so.
fn has_exposure(application: &ApplicationStatus, patterns: &[String]) -> bool {
    let word = if application.exposed { "exposed" } else { "not exposed" };
    patterns.iter().any(|pattern| pattern == word)
}

/// Returns true if a pattern is the status of a unit's workload or of its agent.
fn has_status(unit: &UnitStatus, patterns: &[String]) -> bool {
    let statuses = [&unit.workload_status.current, &unit.juju_status.current];
    patterns.iter().any(|pattern| statuses.contains(&pattern))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::status::fixture;

    fn check(patterns: &[&str], applications: &[&str], units: &[&str], machines: &[&str]) {
        let mut status = fixture::settled();
        keep(&mut status, &patterns.iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>());
        let got: Vec<_> = status.applications.keys().map(String::as_str).collect();
        assert_eq!(got, applications, "{patterns:?}");
        let got: Vec<_> =
            status.applications.values().flat_map(|a| a.units.keys()).map(String::as_str).collect();
        assert_eq!(got, units, "{patterns:?}");
        assert_eq!(status.machines.keys().map(String::as_str).collect::<Vec<_>>(), machines, "{patterns:?}");
    }

    #[test]
    fn what_fits_is_kept_with_what_belongs_to_it() {
        check(&["mysql"], &["mysql"], &["mysql/0", "mysql/1"], &["0", "1"]);
        check(&["wordpress/10"], &["wordpress"], &["wordpress/10"], &["10"]);
        check(
            &["mysql/*", "2"],
            &["mysql", "wordpress"],
            &["mysql/0", "mysql/1", "wordpress/2"],
            &["0", "1", "2"],
        );
        check(&["nothing"], &[], &[], &[]);
        check(
            &["active"],
            &["mysql", "wordpress"],
            &["mysql/0", "mysql/1", "wordpress/10", "wordpress/2"],
            &["0", "1", "10", "2"],
        );
        check(&["blocked", "executing"], &[], &[], &[]);
        check(&["mysql/leader"], &["mysql"], &["mysql/0"], &["0"]);
        check(&["exposed"], &["wordpress"], &["wordpress/10", "wordpress/2"], &["10", "2"]);
    }
}
