//! The fuzz targets: strangers' bytes as layers, and as what clients of a pod ask and its processes do. Each is read as a pod
//! reads it, and the pod stays within its bounds.

pub(crate) mod pod;

use std::collections::BTreeSet;

use periapt_pebble::{Adding, Layer, LayerError, PodLimits, Stack};

/// The line between two layers of an input.
const BETWEEN: &str = "\n---\n";

/// The most layers of an input.
const LAYERS: usize = 16;

/// Bounds that an input of some KiB can reach.
fn limits() -> PodLimits {
    PodLimits {
        layer: 16 << 10,
        stack: 64 << 10,
        layers: 6,
        services: 8,
        checks: 4,
        log_targets: 4,
        name: 40,
        changes: 20,
        tasks: 80,
        notices: 20,
        notice_data: 200,
        identities: 5,
        warnings: 5,
        waiters: 4,
        execs: 3,
        exec: 500,
        log_ring: 2_000,
        log_line: 200,
        ..PodLimits::default()
    }
}

/// Adds bytes to a stack as layers, which have [`BETWEEN`] between them. Returns true if all of them are taken.
pub(crate) fn plan(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let limits = limits();
    let (mut stack, mut is_taken) = (Stack::default(), true);
    for (number, text) in text.split(BETWEEN).take(LAYERS).enumerate() {
        // Two of three are new, and the third is over one that is there.
        let adding = if number % 3 == 2 { Adding::Combined } else { Adding::OnTop };
        let label = format!("layer {}", if number % 3 == 2 { number - 1 } else { number });
        let before = stack.clone();
        let layer = Layer::read(&label, text, &limits);
        match layer.and_then(|layer| stack.add(&label, layer, adding, &limits)) {
            Ok(()) => check_plan(&stack, &limits),
            Err(error) => {
                assert!(stack == before, "{error} changed the plan");
                check_error(&error, text);
                is_taken = false;
            }
        }
    }
    is_taken
}

/// Checks that a plan is within its bounds, and that who reads what is shown of it has the same one.
fn check_plan(stack: &Stack, limits: &PodLimits) {
    let labels: Vec<&str> = stack.labels().collect();
    assert!(labels.len() <= limits.layers, "{labels:?}");
    assert_eq!(labels.iter().collect::<BTreeSet<_>>().len(), labels.len(), "{labels:?}");
    let shown = stack.plan().to_yaml();
    // YAML puts short words on lines of their own, and takes some times the bytes of JSON, by which a stack is measured.
    assert!(shown.len() <= 8 * limits.stack, "{} bytes", shown.len());
    let wide = PodLimits { layer: shown.len(), stack: 2 * limits.stack, ..limits.clone() };
    let mut again = Stack::default();
    let read = Layer::read("plan", &shown, &wide);
    let added = read.and_then(|layer| again.add("plan", layer, Adding::OnTop, &wide));
    assert!(
        added.is_ok() && again.plan() == stack.plan(),
        "{added:?} in {shown}, which is {:?}",
        stack.plan()
    );
}

fn check_error(error: &LayerError, of: &str) {
    let text = error.to_string();
    // It may name a service, whose name may be all of the layer.
    assert!(!text.is_empty() && text.len() <= 16 * of.len() + (4 << 10), "{text}");
}
