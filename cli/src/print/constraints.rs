//! Constraints as Juju shows them.

use periapt_host_api::constraints::Constraints;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{context::Context, error::Result, output::OutputArgs};

/// Constraints as Juju shows them: in a line, or by key with mebibytes and lists. Those without effect come
/// last.
#[derive(Debug)]
pub(crate) struct ConstraintsByKey(Vec<(&'static str, Value)>);

impl Serialize for ConstraintsByKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl ConstraintsByKey {
    pub(crate) fn of(constraints: &Constraints) -> Self {
        let agents = &constraints.agents;
        let known = [
            ("cores", agents.cores.map(Value::from)),
            ("mem", constraints.asked_mem().map(|bytes| bytes.div_ceil(1 << 20).into())),
            ("tags", agents.tags.as_ref().map(|tags| tags.to_texts().into())),
            ("zones", agents.zones.as_ref().map(|zones| zones.iter().cloned().collect())),
        ];
        let known = known.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let kept = constraints.kept.others.iter().map(|(key, value)| (key.as_str(), key.show(value)));
        Self(known.chain(kept).collect())
    }
}

pub(crate) fn show(context: &Context, output: &OutputArgs, constraints: &Constraints) -> Result<()> {
    output.print(context.color, &ConstraintsByKey::of(constraints), |_| format!("{constraints}\n"))
}
