//! Descriptions of events, as one line each.

use periapt_sdk::{Event, Relation};

/// Returns `event NAME`, followed by the event's data.
pub(crate) fn line(event: &Event) -> String {
    let name = event.hook_name();
    let mut line = format!("event {name}");
    let mut about = |relation: &Relation, app: &str| line += &format!(" relation={relation} app={app}");
    match event {
        Event::RelationCreated(event) => about(&event.relation, &event.app),
        Event::RelationJoined(event) => {
            about(&event.relation, &event.app);
            line += &format!(" unit={}", event.unit);
        }
        Event::RelationChanged(event) => {
            about(&event.relation, &event.app);
            if let Some(unit) = &event.unit {
                line += &format!(" unit={unit}");
            }
        }
        Event::RelationDeparted(event) => {
            about(&event.relation, &event.app);
            line += &format!(" unit={} departing={}", event.unit, event.departing);
        }
        Event::RelationBroken(event) => about(&event.relation, &event.app),
        Event::RelationBatch(event) => {
            about(&event.relation, &event.app);
            let (joined, changed, departed) =
                (event.joined.join(","), event.changed.join(","), event.departed.join(","));
            line += &format!(" joined={joined} changed={changed} departed={departed}");
        }
        Event::PebbleCustomNotice(event) => {
            line += &format!(" id={} type={} key={}", event.notice_id, event.notice_type, event.notice_key);
        }
        Event::PebbleCheckFailed(event) | Event::PebbleCheckRecovered(event) => {
            line += &format!(" check={}", event.check);
        }
        _ => {}
    }
    line
}
