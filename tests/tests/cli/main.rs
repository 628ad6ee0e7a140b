//! Tests of the binary, driven as an operator drives it, without knowledge of its internals.

mod actions;
mod agents;
mod arriving;
mod assuming;
mod bags;
mod beginning;
mod bundles;
mod catalogue;
mod certificates;
mod changes;
mod compiling;
mod completing;
mod constraints;
mod containers;
mod controllers;
mod crossing;
mod crowded;
mod downloads;
mod exec;
mod exposing;
mod failing;
mod go;
mod goals;
mod guarded;
mod images;
mod installing;
mod interrupted;
mod issuer;
mod joining;
mod kills;
mod languages;
mod later;
mod layers;
mod migrating;
mod mistakes;
mod moving;
mod neighbours;
mod networks;
mod outputs;
mod python;
mod python_shapes;
mod refreshing;
mod removing;
mod replaying;
mod resources;
mod restoring;
mod rotation;
mod secrets;
mod settling;
mod shapes;
mod standstill;
mod storage;
mod telemetry;
mod terminals;
mod tracing;
mod trying;
mod upgrading;
mod users;
mod wasm_commands;
mod wasm_workloads;
mod watching;
mod web_notes;
mod web_page;
mod words;
mod workloads;

use anyhow::Context as _;
use serde_json::Value;

/// Returns the text at a pointer of a document.
fn text<'a>(value: &'a Value, pointer: &str) -> anyhow::Result<&'a str> {
    value.pointer(pointer).and_then(Value::as_str).with_context(|| format!("{pointer} in {value}"))
}
