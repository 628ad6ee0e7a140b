//! Requests to a Pebble, and what it answers.

use serde_json::Value;

use super::{Pebble, PebbleError};
use crate::{
    Context as _, Error, Result,
    http::{HttpRequest, HttpResponse, exchange},
};

/// The most bytes of an answer: a plan may have some MiB, and so may a file.
pub(super) const MAX_ANSWER: usize = 8 << 20;

/// The tries to see the end of a change, each of [`TRY_SECONDS`].
const TRIES: u32 = 8;

/// The seconds of one try: the host ends a request that is silent for longer.
const TRY_SECONDS: u32 = 4;

impl Pebble {
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let body = body.to_string();
        let kind = "application/json";
        self.ask(&HttpRequest { method: "POST", path, kind, body: body.as_bytes() })
    }

    pub(super) fn ask(&self, request: &HttpRequest<'_>) -> Result<Value> {
        self.answer(&self.exchange(request)?.1)
    }

    /// Sends a request, and returns the response with its type.
    pub(super) fn exchange(&self, request: &HttpRequest<'_>) -> Result<(String, HttpResponse)> {
        let mut stream = self.connect().context(self)?;
        exchange(&mut stream, request, MAX_ANSWER).map_err(|error| self.error("broken", error.to_string()))
    }

    /// Returns the answer of the API.
    pub(super) fn answer(&self, response: &HttpResponse) -> Result<Value> {
        let answer = serde_json::from_slice(&response.body).ok().filter(Value::is_object);
        let status = response.status;
        match answer {
            Some(answer) if response.is_success() => Ok(answer),
            Some(answer) => Err(self.told(answer.get("result").unwrap_or(&Value::Null), status)),
            None => Err(self.error("broken", format!("its answer with status {status} is unreadable"))),
        }
    }

    /// Returns the error that Pebble told, in a response or of one file.
    pub(super) fn told(&self, error: &Value, status: u16) -> Error {
        let text = |key| error.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let kind = text("kind").unwrap_or("api").to_owned();
        let message = text("message").unwrap_or("it gives no reason").to_owned();
        let error = PebbleError { kind, message, status };
        Err::<(), _>(Error::of_pebble(error)).context(self).err().unwrap_or_else(Error::unhandled)
    }

    /// Fails if one of the files of an answer has an error: each has a result of its own.
    pub(super) fn each(&self, answer: &Value) -> Result {
        let results = answer.get("result").and_then(Value::as_array).into_iter().flatten();
        match results.filter_map(|item| item.get("error")).find(|error| error.is_object()) {
            Some(error) => Err(self.told(error, 0)),
            None => Ok(()),
        }
    }

    /// Waits for the end of a change that was begun, and returns the change.
    pub(super) fn ended(&self, begun: &Value, action: &str) -> Result<Value> {
        let change = begun.get("change").and_then(Value::as_str).filter(|id| is_number(id));
        let change = change.ok_or_else(|| self.error("broken", format!("{action} began no change")))?;
        let wait = format!("/v1/changes/{change}/wait?timeout={TRY_SECONDS}s");
        for _ in 0..TRIES {
            let (_, response) = self.exchange(&HttpRequest::get(&wait))?;
            // 504 means that the change still goes on.
            if response.status != 504 {
                let mut ended = self.answer(&response)?;
                let ended = ended.get_mut("result").map(Value::take).unwrap_or_default();
                return match failure(&ended) {
                    Some(message) => Err(self.error("change-failed", message)),
                    None => Ok(ended),
                };
            }
        }
        let seconds = TRIES * TRY_SECONDS;
        Err(self.error("timeout", format!("{action} still goes on after {seconds} s")))
    }
}

/// Returns true for the id of a change or task.
pub(super) fn is_number(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns a text as a part of a query.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => encoded.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Returns the error of a change that has ended, with what its tasks logged; none if it succeeded.
fn failure(change: &Value) -> Option<String> {
    if change.get("status").and_then(Value::as_str) == Some("Done") {
        return None;
    }
    let texts = |value: &Value| value.as_str().map(str::to_owned);
    let error = change.get("err").and_then(texts).unwrap_or_else(|| "the change failed".to_owned());
    let tasks = change.get("tasks").and_then(Value::as_array).into_iter().flatten();
    let logs = tasks.filter_map(|task| task.get("log")?.as_array()).flatten().filter_map(texts);
    Some(std::iter::once(error).chain(logs).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_that_failed_is_an_error_with_what_its_tasks_logged() {
        assert_eq!(failure(&json!({ "status": "Done", "err": null })), None);
        let change = json!({
            "status": "Error",
            "err": "cannot start service: exited quickly with code 1",
            "tasks": [{ "log": ["INFO Most recent service output:\n    no such file"] }, { "log": null }],
        });
        assert_eq!(
            failure(&change).unwrap(),
            "cannot start service: exited quickly with code 1\nINFO Most recent service output:\n    no such file"
        );
        assert_eq!(failure(&json!([])).unwrap(), "the change failed");
    }

    #[test]
    fn an_answer_that_refuses_or_makes_no_sense_is_one_error() {
        let web = Pebble::new("web");
        let told = |status, body: &str| {
            let response = HttpResponse { status, body: body.into() };
            web.answer(&response).map(|answer| answer["result"].clone()).map_err(|error| error.to_string())
        };
        assert_eq!(told(200, r#"{"type":"sync","result":[1]}"#), Ok(json!([1])));
        assert_eq!(
            told(400, r#"{"type":"error","result":{"message":"cannot parse layer"}}"#).unwrap_err(),
            "container \"web\": cannot parse layer (status 400)"
        );
        for body in ["", "nonsense", "[]"] {
            let unreadable = "container \"web\": its answer with status 500 is unreadable";
            assert_eq!(told(500, body).unwrap_err(), unreadable);
        }
        let error =
            web.each(&json!({"result": [{"path": "/a"}, {"error": {"kind": "not-found", "message": "x"}}]}));
        let expected = PebbleError { kind: "not-found".to_owned(), message: "x".to_owned(), status: 0 };
        assert_eq!(error.unwrap_err().pebble(), Some(&expected));
    }

    #[test]
    fn whatever_a_path_contains_stays_a_part_of_the_query() {
        assert_eq!(encoded("/etc/a b&c=d\r\n\u{e9}"), "/etc/a%20b%26c%3Dd%0D%0A%C3%A9");
    }
}
