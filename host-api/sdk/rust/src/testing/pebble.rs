//! The Pebble of a container in memory: what it answers.

use serde_json::{Value, json};

use super::container::{Inside, WorkloadRequest};
use crate::HttpResponse;

impl Inside {
    /// Answers a request. What the response's type is comes before it.
    pub(crate) fn answer(&mut self, request: &WorkloadRequest) -> (&'static str, HttpResponse) {
        if let Some(mut serve) = self.serve.take() {
            let response = serve(request);
            self.serve = Some(serve);
            if let Some(response) = response {
                return (JSON, response);
            }
        }
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let word = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let names = |key: &str| -> Vec<String> {
            let all = body.get(key).and_then(Value::as_array).into_iter().flatten();
            all.filter_map(|name| Some(name.as_str()?.to_owned())).collect()
        };
        let result = match (request.method.as_str(), path) {
            ("GET", "/v1/system-info") => json!({ "version": "test", "boot-id": "1" }),
            ("GET", "/v1/plan") => json!(self.plan),
            ("GET", "/v1/services") => listed(&self.services),
            ("GET", "/v1/checks") => listed(&self.checks),
            ("GET", "/v1/notices") => json!(self.notices),
            ("POST", "/v1/layers") => {
                self.layers.push((word("label"), word("layer")));
                json!(true)
            }
            ("POST", "/v1/services") => {
                self.actions.push([vec![word("action")], names("services")].concat().join(" "));
                return begun(&Value::Null);
            }
            ("POST", "/v1/checks") => return self.act_on_checks(&word("action"), &names("checks")),
            ("POST", "/v1/signals") => {
                self.actions.push([vec![word("signal")], names("services")].concat().join(" "));
                json!(true)
            }
            ("POST", "/v1/notices") => {
                let id = (self.notices.len() + 1).to_string();
                let data = body.get("data").cloned().unwrap_or_default();
                self.notices
                    .push(json!({"id": id, "type": "custom", "key": word("key"), "occurrences": 1, "last-data": data}));
                json!({ "id": id })
            }
            ("POST", "/v1/exec") => {
                self.commands.push((names("command"), None));
                return begun(&json!({ "task-id": self.commands.len().to_string() }));
            }
            ("GET", "/v1/files") => return self.read(query),
            ("POST", "/v1/files") => self.act_on_files(&request.body, &body),
            ("GET", path) if path.starts_with("/v1/changes/") => {
                let code = self.commands.last().and_then(|(_, code)| *code);
                json!({ "status": "Done", "err": null, "tasks": [{ "data": { "exit-code": code } }] })
            }
            ("GET", path) if path.starts_with("/v1/notices/") => {
                let id = path.trim_start_matches("/v1/notices/");
                match self.notices.iter().find(|notice| notice["id"] == id) {
                    Some(notice) => notice.clone(),
                    None => return refused(404, "not-found", &format!("cannot find notice with ID {id:?}")),
                }
            }
            _ => return refused(404, "not-found", "invalid API endpoint requested"),
        };
        sync(&result)
    }

    /// Starts or stops checks: those that run are `up` or `down`.
    fn act_on_checks(&mut self, action: &str, names: &[String]) -> (&'static str, HttpResponse) {
        if names.is_empty() {
            return refused(400, "", &format!("no checks to {action}"));
        }
        let mut none = Vec::new();
        let checks = self.checks.as_array_mut().unwrap_or(&mut none);
        let is_there = |name: &&String| checks.iter().any(|check| check["name"] == name.as_str());
        if let Some(unknown) = names.iter().find(|name| !is_there(name)) {
            return refused(404, "", &format!("cannot find check {unknown:?}"));
        }
        let (is_start, mut changed) = (action == "start", Vec::new());
        for check in checks {
            let is_named = names.iter().any(|name| check["name"] == name.as_str());
            if is_named && (check["status"] == "inactive") == is_start {
                check["status"] = json!(if is_start { "up" } else { "inactive" });
                changed.push(check["name"].clone());
            }
        }
        self.actions.push(format!("{action}-checks {}", names.join(" ")));
        sync(&json!({ "changed": changed }))
    }

    /// Runs a command whose input has come. Returns its output, and keeps the rest.
    pub(crate) fn run(&mut self, stdin: &[u8]) -> Vec<u8> {
        let Some((command, _)) = self.commands.last().cloned() else { return Vec::new() };
        let output = match &mut self.run {
            Some(run) => run(&command, stdin),
            None => crate::PebbleOutput {
                code: 127,
                stdout: Vec::new(),
                stderr: b"the container has no answer for commands".to_vec(),
            },
        };
        if let Some((_, code)) = self.commands.last_mut() {
            *code = Some(output.code);
        }
        self.errors.push(output.stderr);
        output.stdout
    }

    fn is_directory(&self, path: &str) -> bool {
        let below = format!("{}/", path.trim_end_matches('/'));
        self.directories.iter().any(|it| it == path || it.starts_with(&below))
            || self.files.keys().any(|file| file.starts_with(&below))
    }

    fn read(&self, query: &str) -> (&'static str, HttpResponse) {
        let value = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs
                .filter(|(known, _)| *known == name)
                .map(|(_, value)| decoded(value))
                .next()
                .unwrap_or_default()
        };
        let path = value("path");
        let missing = format!("stat {path}: no such file or directory");
        if value("action") == "read" {
            let file = self.files.get(&path);
            let item = match file {
                Some(_) => json!({ "path": path }),
                None => json!({ "path": path, "error": { "kind": "not-found", "message": missing } }),
            };
            let mut form = Vec::new();
            if let Some(content) = file {
                form.extend(b"--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"x\"\r\n\r\n");
                form.extend(content);
                form.extend(b"\r\n");
            }
            let response = json!({ "type": "sync", "result": [item] });
            form.extend(b"--b\r\nContent-Disposition: form-data; name=\"response\"\r\n\r\n");
            form.extend(format!("{response}\r\n--b--\r\n").as_bytes());
            return ("multipart/form-data; boundary=b", HttpResponse { status: 200, body: form });
        }
        let entry = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or_default();
            match self.files.get(path) {
                Some(content) => {
                    json!({"path": path, "name": name, "type": "file", "permissions": "644", "size": content.len()})
                }
                None => json!({"path": path, "name": name, "type": "directory", "permissions": "755"}),
            }
        };
        if self.files.contains_key(&path) || (value("itself") == "true" && self.is_directory(&path)) {
            return sync(&json!([entry(&path)]));
        }
        if !self.is_directory(&path) {
            return refused(404, "not-found", &missing);
        }
        let below = format!("{}/", path.trim_end_matches('/'));
        let all = self.files.keys().chain(&self.directories);
        let inside = all.filter_map(|it| it.strip_prefix(&below)?.split('/').next());
        let names: std::collections::BTreeSet<&str> = inside.filter(|name| !name.is_empty()).collect();
        sync(&names.into_iter().map(|name| entry(&format!("{below}{name}"))).collect())
    }

    fn act_on_files(&mut self, form: &[u8], body: &Value) -> Value {
        let paths = |key: &str| -> Vec<String> {
            let all = body.get(key).and_then(Value::as_array).into_iter().flatten();
            all.filter_map(|item| Some(item.get("path")?.as_str()?.to_owned())).collect()
        };
        for path in paths("paths") {
            let below = format!("{path}/");
            self.files.retain(|file, _| *file != path && !file.starts_with(&below));
            self.directories.retain(|it| *it != path && !it.starts_with(&below));
        }
        self.directories.extend(paths("dirs"));
        if body.is_object() {
            return json!([]);
        }
        match uploaded(form) {
            Some((path, content)) => {
                self.files.insert(path.clone(), content);
                json!([{ "path": path }])
            }
            None => json!([{ "error": { "kind": "generic-file-error", "message": "no form" } }]),
        }
    }
}

const JSON: &str = "application/json";

/// Returns the file of an upload.
fn uploaded(form: &[u8]) -> Option<(String, Vec<u8>)> {
    let find = |bytes: &[u8], mark: &[u8]| bytes.windows(mark.len()).position(|it| it == mark);
    let start = find(form, b"filename=\"")? + 10;
    let named = form.get(start..)?;
    let path = String::from_utf8_lossy(named.get(..find(named, b"\"")?)?).into_owned();
    let content = named.get(find(named, b"\r\n\r\n")? + 4..)?;
    let line = form.get(..find(form, b"\r\n")?)?;
    let content = content.get(..find(content, &[b"\r\n", line].concat())?)?;
    Some((path, content.to_vec()))
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let digits =
            after.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn listed(list: &Value) -> Value {
    if list.is_array() { list.clone() } else { json!([]) }
}

fn sync(result: &Value) -> (&'static str, HttpResponse) {
    (JSON, HttpResponse { status: 200, body: json!({ "type": "sync", "result": result }).to_string().into() })
}

fn begun(result: &Value) -> (&'static str, HttpResponse) {
    let body = json!({ "type": "async", "change": "1", "result": result });
    (JSON, HttpResponse { status: 202, body: body.to_string().into() })
}

fn refused(status: u16, kind: &str, message: &str) -> (&'static str, HttpResponse) {
    let body = json!({ "type": "error", "result": { "kind": kind, "message": message } });
    (JSON, HttpResponse { status, body: body.to_string().into() })
}
