//! Tests of a real controller on 127.0.0.1, over its API.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]
#![expect(clippy::panic, reason = "a test says what failed by panicking")]
#![expect(clippy::indexing_slicing, reason = "a test that finds nothing where something belongs has failed")]

mod access;
mod backups;
mod bad_disks;
mod bounds;
mod charms;
mod commands;
mod copies;
mod cutting;
mod disk;
mod downloads;
mod enrolment;
mod failover;
mod file_system;
mod fixture;
mod identity;
mod journal;
mod layers;
mod listeners;
mod logs;
mod many_workloads;
mod metrics;
mod openapi;
mod overload;
mod raw;
mod records;
mod replication;
mod requests;
mod resources;
mod resuming;
mod sessions;
mod set;
mod set_back;
mod shared_blobs;
mod simulation;
mod staleness;
mod store;
mod streams;
mod takeovers;
mod uploads;
mod users;
mod walk;
mod watches;
mod work;
