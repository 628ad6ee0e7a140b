//! Notices: those that reach the operator, and readers that wait for one.

use periapt_host_api::notice::WorkloadNotice;
use serde_json::json;

use super::*;
use crate::message::{NoticeBody, NoticesQuery};

#[test]
fn a_custom_notice_is_told_when_it_is_new_and_when_its_pause_is_over() {
    let mut pod = Pod::new("{}");
    let notify = |key: &str, pause: u64| {
        PodRequest::Notify(NoticeBody {
            action: "add".to_owned(),
            kind: "custom".to_owned(),
            key: key.to_owned(),
            repeat_after: Some(GoDuration(Duration::from_secs(pause))),
            data: BTreeMap::new(),
        })
    };
    for (key, pause) in [("a.b/c", 10), ("a.b/c", 10), ("a.b/d", 0), ("a.b/d", 0)] {
        pod.result(notify(key, pause));
        pod.seconds(1.0);
    }
    pod.seconds(7.0);
    pod.result(notify("a.b/c", 10));
    assert!(pod.ask(notify("no key", 0)).is_err());
    let custom = |id, key: &str| PodOutput::Notice(WorkloadNotice::Custom { id, key: key.to_owned() });
    assert_eq!(pod.others, [custom(1, "a.b/c"), custom(2, "a.b/d"), custom(2, "a.b/d"), custom(1, "a.b/c")]);
}

#[test]
fn a_reader_waits_for_a_notice() {
    let mut pod = Pod::new(&service(""));
    let query = NoticesQuery {
        types: vec!["change-update".to_owned()],
        timeout: Some(Duration::from_secs(5)),
        ..NoticesQuery::default()
    };
    let id = pod.send(ROOT, PodRequest::Notices(Box::new(query.clone())));
    assert!(pod.answers.is_empty());
    pod.act(ServicesAction::Start, &["a"]);
    assert!(matches!(pod.answers.remove(&id), Some(Ok(PodAnswer::Sync(found))) if found[0]["key"] == "1"));
    let id =
        pod.send(ROOT, PodRequest::Notices(Box::new(NoticesQuery { keys: vec!["x".to_owned()], ..query })));
    pod.seconds(5.1);
    assert_eq!(pod.answers.remove(&id), Some(Ok(PodAnswer::Sync(json!([])))));
}
