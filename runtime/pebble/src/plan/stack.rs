//! The stack of layers.

use super::{
    layer::{Layer, LayerError, Plan},
    merge::{Word, over},
    validate,
};
use crate::limits::PodLimits;

/// The layers, from the lowest to the highest, and the plan that they give. A change that is refused changes nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stack {
    layers: Vec<(String, Layer)>,
    plan: Plan,
}

/// The place of a new layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adding {
    /// On top; its label must be new.
    OnTop,
    /// Over the layer with its label, if there is one.
    Combined,
}

impl Stack {
    /// Returns the plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the labels, from the lowest layer to the highest.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.layers.iter().map(|(label, _)| label.as_str())
    }

    /// Adds a layer.
    ///
    /// # Errors
    /// [`LayerError`] says what is wrong with the layer, or with the plan that it would give.
    pub fn add(
        &mut self,
        label: &str,
        layer: Layer,
        adding: Adding,
        limits: &PodLimits,
    ) -> Result<(), LayerError> {
        check_label(label, limits)?;
        validate::layer(label, &layer, limits)?;
        let mut layers = self.layers.clone();
        let count = layers.len();
        match layers.iter_mut().find(|(known, _)| known == label) {
            Some(_) if adding == Adding::OnTop => {
                return Err(LayerError(format!("layer {label:?} already exists")));
            }
            Some((_, below)) => below.combine(&layer, Word::Kept),
            None if count >= limits.layers => {
                return Err(LayerError(format!(
                    "there are {} layers already; no more are kept",
                    limits.layers
                )));
            }
            None => layers.push((label.to_owned(), layer)),
        }
        let size: usize = layers.iter().map(|(_, layer)| size(layer)).sum();
        if size > limits.stack {
            return Err(LayerError(format!(
                "all layers together take {size} bytes; at most {} are kept",
                limits.stack
            )));
        }
        let plan = flattened(&layers);
        validate::plan(&plan, limits)?;
        self.layers = layers;
        self.plan = plan;
        Ok(())
    }
}

impl Layer {
    /// Puts another layer over this one.
    fn combine(&mut self, above: &Self, word: Word) {
        if !above.summary.is_empty() {
            self.summary.clone_from(&above.summary);
        }
        if !above.description.is_empty() {
            self.description.clone_from(&above.description);
        }
        over(&mut self.services, &above.services, word);
        over(&mut self.checks, &above.checks, word);
        over(&mut self.log_targets, &above.log_targets, word);
    }
}

/// Returns the bytes of a layer as JSON.
fn size(layer: &Layer) -> usize {
    serde_json::to_string(layer).map_or(usize::MAX >> 10, |text| text.len())
}

fn flattened(layers: &[(String, Layer)]) -> Plan {
    let mut all = Layer::default();
    for (_, layer) in layers {
        all.combine(layer, Word::Newest);
    }
    for check in all.checks.values_mut() {
        check.threshold = Some(check.threshold());
        check.startup = check.startup.or(Some(super::service::Startup::Enabled));
    }
    Plan { services: all.services, checks: all.checks, log_targets: all.log_targets }
}

fn check_label(label: &str, limits: &PodLimits) -> Result<(), LayerError> {
    if label.is_empty() {
        return Err(LayerError("label must be set".to_owned()));
    }
    if label.len() > limits.name || label.chars().any(char::is_control) {
        return Err(LayerError(format!("the label must be at most {} bytes of printable text", limits.name)));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
