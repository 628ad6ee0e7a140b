//! Pods as processes of their own, with real processes behind a real socket.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed, as it should")]
#![expect(clippy::indexing_slicing, reason = "a test that finds nothing where something belongs has failed")]

mod client;
mod commands;
mod container;
mod container_bounds;
mod container_ends;
mod containers;
mod encrypted;
mod files;
mod forwarding;
mod loki;
mod peers;
mod pod;
mod services;
mod unit_network;
