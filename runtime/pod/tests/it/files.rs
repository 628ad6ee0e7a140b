//! Files through the API.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::{
    client::{Client, Response},
    pod::Pod,
};

/// Writes a file with the fields of its order.
pub(crate) fn push(client: &Client, path: &str, fields: Value, content: &[u8]) -> Response {
    let mut file = fields;
    file["path"] = path.into();
    let order = json!({ "action": "write", "files": [file] });
    let name = path.replace('"', "\\\"");
    let head = format!(
        "--b\r\nContent-Type: application/json\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n{order}\r\n\
         --b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"{name}\"\r\n\r\n"
    );
    let body = [head.as_bytes(), content, b"\r\n--b--\r\n"].concat();
    client.send("POST", "/v1/files", "multipart/form-data; boundary=b", &body)
}

pub(crate) fn error(response: &Response) -> (String, String) {
    let error = &response.json()["result"][0]["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (text("kind"), text("message"))
}

pub(crate) fn encoded(path: &str) -> String {
    path.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn what_is_written_is_read_back_under_any_name() {
    let pod = Pod::start();
    let client = pod.client();
    let content: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
    for name in ["plain", "with \"quotes\"", "日本語", "a b;c=d,e"] {
        let path = pod.directory().join(name).to_str().unwrap().to_owned();
        let written = push(&client, &path, json!({ "permissions": "640" }), &content);
        assert_eq!(written.json()["result"], json!([{ "path": path }]));
        assert_eq!(std::fs::read(&path).unwrap(), content);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        let read = client.get(&format!("/v1/files?action=read&path={}", encoded(&path)));
        assert!(read.body.windows(content.len()).any(|it| it == content), "{name}");
        assert!(String::from_utf8_lossy(&read.body).contains("\"status\":\"OK\""), "{name}");
    }
    let left = std::fs::read_dir(pod.directory()).unwrap().count();
    assert_eq!(left, 5, "the socket and four files");
}

#[test]
fn a_link_is_followed_and_a_file_that_is_refused_leaves_nothing() {
    let pod = Pod::start();
    let client = pod.client();
    let at = |name: &str| pod.directory().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("target"), "old").unwrap();
    std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
    push(&client, &at("link"), json!({}), b"new");
    assert_eq!(std::fs::read_to_string(at("target")).unwrap(), "new");
    assert!(std::fs::symlink_metadata(at("link")).unwrap().is_symlink());
    std::fs::create_dir(at("dir")).unwrap();
    for (path, fields, kind, part) in [
        (at("dir"), json!({}), "generic-file-error", "is a directory"),
        (at("no/such"), json!({}), "not-found", "no such file or directory"),
        (at("x"), json!({ "permissions": "1000" }), "generic-file-error", "3-digit octal"),
        (at("x"), json!({ "permissions": "+77" }), "generic-file-error", "3-digit octal"),
        (at("x"), json!({ "user": "nobody-here" }), "generic-file-error", "unknown user"),
        (at("x"), json!({ "group": "root" }), "generic-file-error", "not just group"),
        ("relative".to_owned(), json!({}), "generic-file-error", "absolute"),
        (format!("/{}", "x".repeat(5_000)), json!({}), "generic-file-error", "4095 bytes"),
    ] {
        // More than fits into a socket's buffer, so that a pod that did not read it would break the connection.
        let response = push(&client, &path, fields, &vec![0; 1 << 20]);
        let (found, message) = error(&response);
        assert!(found == kind && message.contains(part), "{path}: {found} {message}");
    }
    assert!(!std::path::Path::new(&at("x")).exists());
    assert_eq!(std::fs::read_dir(pod.directory()).unwrap().count(), 4);
}

#[test]
fn only_regular_files_are_read_and_none_makes_the_pod_wait() {
    let pod = Pod::start();
    let client = pod.client();
    let fifo = pod.directory().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for path in [fifo.to_str().unwrap(), "/dev/zero", "/", pod.socket().to_str().unwrap()] {
        let response = client.get(&format!("/v1/files?action=read&path={path}"));
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert!(text.contains("can only read a regular file"), "{path}: {text}");
    }
    let listed = client.result(&format!("/v1/files?action=list&path={}", pod.directory().display()));
    let kinds: Vec<_> = listed.as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["socket", "named-pipe"]);
}

#[test]
fn orders_that_are_wrong_are_refused() {
    let pod = Pod::start();
    let client = pod.client();
    let form = "multipart/form-data; boundary=b";
    for (kind, body, part) in [
        ("text/plain", "x", "invalid media type"),
        ("application/json", "{", "cannot decode"),
        ("application/json", "{\"action\": \"burn\"}", "invalid action"),
        ("application/json", "{\"action\": \"remove\"}", "one or more paths"),
        (form, "x", "multipart"),
        (form, "--b\r\n\r\nx\r\n--b--\r\n", "multipart"),
        (form, "--b\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n{}\r\n--b--\r\n", "metadata"),
        (
            form,
            "--b\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n{\"action\":\"write\",\"files\":[{\"path\":\"/x\"}]}\
             \r\n--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"/y\"\r\n\r\nx\r\n--b--\r\n",
            "no metadata for path \"/y\"",
        ),
    ] {
        let response = client.send("POST", "/v1/files", kind, body.as_bytes());
        assert_eq!(response.status, 400, "{body}");
        assert!(response.message().contains(part), "{body}: {}", response.message());
    }
    for (path, status) in [
        ("/v1/files?action=list&path=relative", 400),
        ("/v1/files?action=list&path=/no/such", 404),
        ("/v1/files?action=read", 400),
        ("/v1/files?action=burn&path=/", 400),
        ("/v1/files", 400),
    ] {
        assert_eq!(client.get(path).status, status, "{path}");
    }
}
