//! The metrics of services and checks, in the text form of Prometheus.

use std::fmt::Write as _;

use super::Supervisor;
use crate::message::PodAnswer;

/// A metric with its samples: the name of a service or check, and the value.
struct Family<'a> {
    name: &'static str,
    help: &'static str,
    kind: &'static str,
    label: &'static str,
    samples: Vec<(&'a str, u64)>,
}

impl Family<'_> {
    /// Writes the metric. One without samples is left out.
    fn write(&self, text: &mut String) {
        let Self { name, help, kind, label, samples } = self;
        if samples.is_empty() {
            return;
        }
        // A text takes all that is written to it.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (of, value) in samples {
            let _ = writeln!(text, "{name}{{{label}=\"{}\"}} {value}", escaped(of));
        }
    }
}

impl Supervisor {
    /// Returns the metrics of all services and checks of the plan.
    pub(super) fn metrics(&self) -> PodAnswer {
        let services = self.stack.plan().services.keys();
        let services: Vec<_> = services.map(|name| (name.as_str(), self.services.get(name))).collect();
        let checks: Vec<_> = self.checks.iter().map(|(name, run)| (name.as_str(), run)).collect();
        let of_services = |name, help, kind, samples| Family { name, help, kind, label: "service", samples };
        let of_checks = |name, help, kind, samples| Family { name, help, kind, label: "check", samples };
        let families = [
            of_services(
                "pebble_service_start_count",
                "Number of times that the service was started",
                "counter",
                services.iter().map(|(name, run)| (*name, run.map_or(0, |run| run.starts))).collect(),
            ),
            of_services(
                "pebble_service_active",
                "1 if the service is active, 0 otherwise",
                "gauge",
                services
                    .iter()
                    .map(|(name, run)| (*name, u64::from(run.is_some_and(|run| run.has_process()))))
                    .collect(),
            ),
            of_checks(
                "pebble_check_up",
                "1 if the check is up, 0 if it is down or does not run",
                "gauge",
                checks
                    .iter()
                    .map(|(name, run)| (*name, u64::from(run.active.as_ref().is_some_and(|it| !it.is_down))))
                    .collect(),
            ),
            of_checks(
                "pebble_check_success_count",
                "Number of times that the check succeeded",
                "counter",
                checks.iter().map(|(name, run)| (*name, run.answers.successes)).collect(),
            ),
            of_checks(
                "pebble_check_failure_count",
                "Number of times that the check failed",
                "counter",
                checks.iter().map(|(name, run)| (*name, run.answers.failures)).collect(),
            ),
        ];
        let mut text = String::new();
        for family in &families {
            family.write(&mut text);
        }
        PodAnswer::Metrics(text)
    }
}

/// Returns the value of a label as it stands between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_value_of_a_label() {
        assert_eq!(escaped("web-1"), "web-1");
        assert_eq!(escaped("a\"} 1\nb\\"), "a\\\"} 1\\nb\\\\");
    }
}
