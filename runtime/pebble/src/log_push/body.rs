//! The bodies of pushes.

use serde_json::{Value, json};

use super::{LogPushLine, LogPushStream};

/// The label that names the service for Loki.
const LOKI_SERVICE: &str = "pebble_service";

/// The attribute that names the service for OpenTelemetry.
const OPEN_TELEMETRY_SERVICE: &str = "service.name";

/// Encodes streams for Loki's push API.
pub(super) fn loki(streams: &[LogPushStream]) -> Vec<u8> {
    let value = |line: &LogPushLine| json!([nanoseconds(line), line.message]);
    let stream = |stream: &LogPushStream| {
        let mut labels = stream.labels.clone();
        labels.insert(LOKI_SERVICE.to_owned(), stream.service.clone());
        json!({ "stream": labels, "values": stream.lines.iter().map(value).collect::<Vec<Value>>() })
    };
    encoded(&json!({ "streams": streams.iter().map(stream).collect::<Vec<Value>>() }))
}

/// Encodes streams as logs of resources, one for each service, of which labels are attributes.
pub(super) fn open_telemetry(streams: &[LogPushStream]) -> Vec<u8> {
    let attribute = |name: &str, value: &str| json!({ "key": name, "value": { "stringValue": value } });
    let record = |line: &LogPushLine| {
        let time = nanoseconds(line);
        json!({ "timeUnixNano": time, "observedTimeUnixNano": time, "body": { "stringValue": line.message } })
    };
    let resource = |stream: &LogPushStream| {
        let labels = stream.labels.iter().filter(|(name, _)| *name != OPEN_TELEMETRY_SERVICE);
        let mut attributes = vec![attribute(OPEN_TELEMETRY_SERVICE, &stream.service)];
        attributes.extend(labels.map(|(name, value)| attribute(name, value)));
        let records: Vec<Value> = stream.lines.iter().map(record).collect();
        json!({ "resource": { "attributes": attributes }, "scopeLogs": [{ "logRecords": records }] })
    };
    encoded(&json!({ "resourceLogs": streams.iter().map(resource).collect::<Vec<Value>>() }))
}

fn nanoseconds(line: &LogPushLine) -> String {
    line.time.as_nanosecond().to_string()
}

fn encoded(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;

    use super::*;

    fn streams() -> [LogPushStream; 2] {
        let line = |nanoseconds, message: &str| LogPushLine {
            time: Timestamp::from_nanosecond(nanoseconds).unwrap(),
            message: message.to_owned(),
        };
        [
            LogPushStream {
                service: "web".to_owned(),
                labels: BTreeMap::from([("unit".to_owned(), "web/0".to_owned())]),
                lines: vec![
                    line(1_700_000_000_000_000_001, "one"),
                    line(1_700_000_000_000_000_002, "\"\u{1}"),
                ],
            },
            LogPushStream {
                service: "db".to_owned(),
                labels: BTreeMap::from([("service.name".to_owned(), "mine".to_owned())]),
                lines: vec![line(5, "")],
            },
        ]
    }

    #[test]
    fn loki_gets_streams_with_labels_and_times() {
        let body: Value = serde_json::from_slice(&loki(&streams())).unwrap();
        let expected = json!({ "streams": [
            {
                "stream": { "pebble_service": "web", "unit": "web/0" },
                "values": [["1700000000000000001", "one"], ["1700000000000000002", "\"\u{1}"]],
            },
            { "stream": { "pebble_service": "db", "service.name": "mine" }, "values": [["5", ""]] },
        ]});
        assert_eq!(body, expected);
    }

    #[test]
    fn open_telemetry_gets_resources_that_name_their_service() {
        let body: Value = serde_json::from_slice(&open_telemetry(&streams())).unwrap();
        let attributes = |at: usize| &body["resourceLogs"][at]["resource"]["attributes"];
        let web = json!([
            { "key": "service.name", "value": { "stringValue": "web" } },
            { "key": "unit", "value": { "stringValue": "web/0" } },
        ]);
        assert_eq!(attributes(0), &web);
        assert_eq!(attributes(1), &json!([{ "key": "service.name", "value": { "stringValue": "db" } }]));
        let record = &body["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
        assert_eq!(record["timeUnixNano"], "1700000000000000001");
        assert_eq!(record["body"]["stringValue"], "one");
    }
}
