//! `GET /metrics` of a controller that works.

use std::time::Duration;

use periapt_controller::{LogBounds, metrics::TABLE};
use periapt_store::Store as _;
use periapt_telemetry::metrics::Kind;

use crate::{
    fixture::{Fault, Fixture, TIMEOUT, in_directory, next, run},
    raw,
    set::{Member, Set},
};

/// Returns the value of a series as it is exposed.
pub(crate) fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in\n{text}")).parse().unwrap()
}

pub(crate) async fn scrape(fixture: &Fixture) -> String {
    let response = raw::request(fixture.handle.address(), "GET /metrics", &[], "").await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    String::from_utf8(response.body).unwrap()
}

#[tokio::test]
async fn each_metric_of_the_table_is_exposed_with_all_values_of_its_labels() {
    let fixture = Fixture::start().await;
    let text = scrape(&fixture).await;
    for metric in TABLE {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        assert!(text.contains(&format!("# HELP {} {}\n", metric.name, metric.help)), "{}", metric.name);
        assert!(text.contains(&format!("# TYPE {} {kind}\n", metric.name)), "{}", metric.name);
        for label in metric.labels {
            for value in label.values {
                let series = |line: &str| {
                    line.starts_with(metric.name) && line.contains(&format!("{}=\"{value}\"", label.name))
                };
                assert!(text.lines().any(series), "{} {}={value}", metric.name, label.name);
            }
        }
    }
    assert_eq!(text.matches("# TYPE ").count(), TABLE.len(), "and no other");
    fixture.stop().await;
}

#[tokio::test]
async fn commands_streams_frames_and_blobs_are_counted() {
    let fixture = Fixture::start().await;
    let before = scrape(&fixture).await;
    let deployed = fixture.deployed(2).await;
    let agent = &deployed.agent;
    let mut frames = agent.client.watch(&agent.name, &deployed.model.uuid, None).await.unwrap();
    next(&mut frames).await;
    let refused = fixture.client.controller_command(periapt_host_api::command::ControllerCommand::add_model(
        periapt_host_api::ModelName::new("m").unwrap(),
    ));
    refused.await.unwrap_err();
    let after = scrape(&fixture).await;
    let rise = |series: &str| value(&after, series) - value(&before, series);
    assert!(rise("periapt_controller_command_seconds_count{outcome=\"done\"}") >= 3.0, "{after}");
    assert_eq!(rise("periapt_controller_command_seconds_count{outcome=\"refused\"}"), 1.0);
    assert!(rise("periapt_controller_commit_seconds_count{outcome=\"written\"}") >= 2.0, "{after}");
    assert!(rise("periapt_controller_queue_wait_seconds_count") >= 4.0, "{after}");
    assert!(rise("periapt_controller_request_seconds_count{status=\"2xx\"}") >= 3.0, "{after}");
    assert!(rise("periapt_controller_frames_total{kind=\"full\"}") >= 1.0, "{after}");
    assert!(rise("periapt_controller_frame_bytes_total") > 100.0, "{after}");
    assert_eq!(value(&after, "periapt_controller_streams{kind=\"view\"}"), 1.0);
    assert_eq!(value(&after, "periapt_controller_streams{kind=\"assignments\"}"), 1.0);
    assert!(value(&after, "periapt_controller_revision") > value(&before, "periapt_controller_revision"));
    drop((frames, deployed));
    fixture.stop().await;
}

#[tokio::test]
async fn a_store_that_fails_is_seen_in_the_metrics() {
    let fixture = Fixture::start().await;
    fixture.faults.set(Fault::Refuse);
    let name = periapt_host_api::ModelName::new("m").unwrap();
    let add = periapt_host_api::command::ControllerCommand::add_model(name);
    fixture.client.controller_command(add).await.unwrap_err();
    let text = scrape(&fixture).await;
    assert!(value(&text, "periapt_controller_commit_seconds_count{outcome=\"refused\"}") >= 1.0, "{text}");
    assert!(value(&text, "periapt_controller_command_seconds_count{outcome=\"failed\"}") >= 1.0, "{text}");
    fixture.stop().await;
}

#[tokio::test]
async fn sizes_and_syncs_of_a_store_on_the_disk_are_measured() {
    let directory = tempfile::tempdir().unwrap();
    let (handle, client, running) = run(in_directory(directory.path())).await;
    client.controller().await.unwrap();
    client.upload_charm(crate::fixture::charm()).await.unwrap();
    let response = raw::request(handle.address(), "GET /metrics", &[], "").await;
    let text = String::from_utf8(response.body).unwrap();
    assert!(value(&text, "periapt_controller_store_bytes") > 0.0, "{text}");
    assert!(value(&text, "periapt_controller_store_sync_seconds_count") >= 1.0, "{text}");
    assert_eq!(value(&text, "periapt_controller_blobs{kind=\"charm\"}"), 1.0);
    assert!(value(&text, "periapt_controller_blob_bytes{kind=\"charm\"}") > 0.0, "{text}");
    assert_eq!(value(&text, "periapt_controller_blobs{kind=\"resource\"}"), 0.0);
    handle.shutdown();
    running.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_ages_and_the_log_of_several_controllers_are_measured() {
    let most = 4 << 10;
    let set = Set::bounded(LogBounds { kept: 0, most });
    let (one, two) = (set.start("one").await, set.start("two").await);
    one.leads("one").await;
    let scrape = async |member: &Member| {
        let response = raw::request(member.handle.address(), "GET /metrics", &[], "").await;
        String::from_utf8(response.body).unwrap()
    };
    // The other controller is cut off, takes the state of this one, and is up to date again.
    set.settled(&[&one, &two]).await;
    two.cut_off();
    let needs = two.memory.load().await.unwrap().revision.0 + 1;
    let mut number = 0;
    let trimmed = async {
        while set.log.entries().first().is_none_or(|entry| entry.position.0 <= needs) {
            one.add_model(&format!("m{number}")).await.unwrap();
            number += 1;
            set.clock.advance(Duration::from_secs(10));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, trimmed).await.unwrap();
    two.reconnect();
    tokio::time::timeout(TIMEOUT, set.settled(&[&one, &two])).await.unwrap();

    // A slow machine may have changed who leads. A state is counted once it is shown.
    let measured = async {
        loop {
            let (of_one, of_two) = (scrape(&one).await, scrape(&two).await);
            let has_taken = value(&of_one, "periapt_controller_snapshots_total{outcome=\"taken\"}") >= 1.0;
            match [&of_one, &of_two].map(|text| value(text, "periapt_controller_leads") as u8) {
                [1, 0] if has_taken => return (of_one, of_two),
                [0, 1] if has_taken => return (of_two, of_one),
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    let (leader, follower) = tokio::time::timeout(TIMEOUT, measured).await.unwrap();
    assert!(value(&leader, "periapt_controller_log_trims_total{reason=\"bound\"}") >= 1.0);
    assert!(value(&leader, "periapt_controller_term") >= 1.0);
    assert!(value(&leader, "periapt_controller_takeovers_total") >= 1.0);
    assert_eq!(value(&leader, "periapt_controller_log_bound_bytes"), 4096.0);
    assert!(value(&leader, "periapt_controller_log_bytes") > 0.0);
    assert!(value(&leader, "periapt_controller_log_entries") >= 1.0);
    assert_eq!(value(&follower, "periapt_controller_log_entries"), 0.0, "the one that leads counts");
    assert!(value(&follower, "periapt_controller_revision") >= 1.0);
    // The age is read again each second, and rises while the log does not answer.
    two.cut_off();
    let aged = async {
        while value(&scrape(&two).await, "periapt_controller_age_milliseconds") < 5_000.0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, aged).await.unwrap();
    two.reconnect();
    let fresh = async {
        loop {
            let text = scrape(&two).await;
            let (age, behind) = ("periapt_controller_age_milliseconds", "periapt_controller_behind_entries");
            if value(&text, age) < 5_000.0 && value(&text, behind) == 0.0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, fresh).await.unwrap();
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn no_web_page_reads_the_metrics() {
    let fixture = Fixture::start().await;
    let page = [("origin", "https://evil.example")];
    let response = raw::request(fixture.handle.address(), "GET /metrics", &page, "").await;
    assert_eq!(response.status, 403);
    fixture.stop().await;
}
