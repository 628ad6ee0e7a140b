//! The controller's metrics: one table, of which `GET /metrics` and `docs/metrics.md` are made.

use periapt_telemetry::metrics::{BYTES, COUNTS, SECONDS};

/// The outcomes of a command.
const OUTCOMES: &[&str] = &["done", "refused", "failed"];
/// The kinds of streams.
const STREAMS: &[&str] = &["view", "assignments", "operator"];
/// The controller's own workers.
const WORKERS: &[&str] =
    &["agents", "audit", "level", "work", "migrations", "copies", "sync", "trimming", "pruning"];
/// The kinds of blobs.
const BLOBS: &[&str] = &["charm", "resource"];

periapt_telemetry::metrics! {
    /// The metrics of this process. Each label has a closed list of values: no model, application or unit is named.
    requests: Histogram(SECONDS) = "periapt_controller_request_seconds", "seconds",
        { status: &["1xx", "2xx", "3xx", "4xx", "5xx"] },
        "The time from the head of a request to the head of its answer, by the class of its status.";
    queue_commands: Gauge = "periapt_controller_queue_commands", "commands", {},
        "The commands that wait for the writer.";
    queue_bytes: Gauge = "periapt_controller_queue_bytes", "bytes", {},
        "The weight of the commands that wait for the writer.";
    queue_refused: Counter = "periapt_controller_queue_refused_total", "commands", {},
        "The commands that were refused because the queue was full.";
    queue_wait: Histogram(SECONDS) = "periapt_controller_queue_wait_seconds", "seconds", {},
        "The time that a command waited for the writer.";
    batch_commands: Histogram(COUNTS) = "periapt_controller_batch_commands", "commands", {},
        "The number of commands that were evaluated together.";
    batch_bytes: Histogram(BYTES) = "periapt_controller_batch_bytes", "bytes", {},
        "The bytes of entities and records that a batch wrote.";
    commands: Histogram(SECONDS) = "periapt_controller_command_seconds", "seconds", { outcome: OUTCOMES },
        "The time from a command's place in the queue to its answer: done, refused by the model, or failed with the store.";
    commits: Histogram(SECONDS) = "periapt_controller_commit_seconds", "seconds",
        { outcome: &["written", "refused", "failed"] },
        "The time of a store's commit of a batch.";
    sync: Histogram(SECONDS) = "periapt_controller_store_sync_seconds", "seconds", {},
        "The time of the store's write and sync (fsync) in a commit.";
    store_opened: Counter = "periapt_controller_store_reopened_total", "times", {},
        "The times that the store was opened again after a failure.";
    store_bytes: Gauge = "periapt_controller_store_bytes", "bytes", {},
        "The size of the store on the disk.";
    revision: Gauge = "periapt_controller_revision", "revision", {},
        "The newest durable revision; of one of several controllers, the last one that it has applied.";
    blobs: Gauge = "periapt_controller_blobs", "blobs", { kind: BLOBS },
        "The blobs that are kept.";
    blob_bytes: Gauge = "periapt_controller_blob_bytes", "bytes", { kind: BLOBS },
        "The size of the blobs that are kept.";
    streams: Gauge = "periapt_controller_streams", "streams", { kind: STREAMS },
        "The streams that are open: views of runners, assignments of agents, and logs and statuses of operators.";
    streams_refused: Counter = "periapt_controller_streams_refused_total", "streams", { kind: STREAMS },
        "The streams that were refused because too many were open.";
    watch_lag: Histogram(SECONDS) = "periapt_controller_watch_lag_seconds", "seconds", {},
        "The time from a state's publication to the frame that brings it to a runner.";
    frames: Counter = "periapt_controller_frames_total", "frames", { kind: &["full", "change", "heartbeat"] },
        "The frames that were sent to runners: a whole view, a change of it, or no change.";
    frame_bytes: Counter = "periapt_controller_frame_bytes_total", "bytes", {},
        "The bytes of the frames that were sent to runners.";
    encoded: Counter = "periapt_controller_encodings_total", "encodings", {},
        "The frames and statuses that were encoded, once for all watchers of the same.";
    worker_steps: Counter = "periapt_controller_worker_steps_total", "steps", { outcome: &["done", "refused"] },
        "The steps of the controller's own work; a refused step is tried again.";
    worker_failures: Counter = "periapt_controller_worker_failures_total", "failures", { worker: WORKERS },
        "The failures of the controller's own workers, after which they are started again.";
    log_lines_dropped: Counter = "periapt_controller_log_lines_dropped_total", "lines", {},
        "The log lines that were dropped because they came faster than old ones could be pruned.";
    leads: Gauge = "periapt_controller_leads", "controllers", {},
        "1 while this controller carries commands out: it leads those of its log, or is alone.";
    term: Gauge = "periapt_controller_term", "term", {},
        "The term of the controller that leads, as this one knows it.";
    takeovers: Counter = "periapt_controller_takeovers_total", "times", {},
        "The times that this controller began to lead.";
    behind: Gauge = "periapt_controller_behind_entries", "entries", {},
        "The entries of the log that this controller had not applied when it asked for the end of the log.";
    age: Gauge = "periapt_controller_age_milliseconds", "milliseconds", {},
        "The age of what this controller shows. Above 5000 it is stale, and shows nothing.";
    log_entries: Gauge = "periapt_controller_log_entries", "entries", {},
        "The entries that the log has, as the controller that leads counts them.";
    log_bytes: Gauge = "periapt_controller_log_bytes", "bytes", {},
        "The size of these entries.";
    log_bound: Gauge = "periapt_controller_log_bound_bytes", "bytes", {},
        "The most bytes that the log has. Entries beyond it are trimmed even if a controller still needs them.";
    log_trims: Counter = "periapt_controller_log_trims_total", "trims", { reason: &["unneeded", "bound"] },
        "The times that this controller trimmed the log: of what nobody needs, or of what does not fit into the bound.";
    snapshots: Counter = "periapt_controller_snapshots_total", "snapshots", { outcome: &["taken", "failed"] },
        "The times that this controller took the state of the one that leads, because the log lacks what it needs.";
}
