//! The files of a container.

use serde_json::{Value, json};

use super::{
    Pebble,
    answer::encoded,
    told::{number, text},
};
use crate::{Result, http::HttpRequest};

/// The boundary between the parts of an upload.
const BOUNDARY: &str = "periapt-sdk-form-boundary";

/// A file, or something else that has a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// The path.
    pub path: String,
    /// The last part of the path.
    pub name: String,
    /// `file`, `directory`, `symlink`, `socket`, `named-pipe`, `device` or `unknown`.
    pub kind: String,
    /// The bytes of a file; 0 of something else.
    pub size: u64,
    /// The permissions, such as 0o644.
    pub permissions: u32,
    /// The user's name; empty if the user has none.
    pub user: String,
    /// The group's name; empty if the group has none.
    pub group: String,
}

impl FileInfo {
    fn of(shown: &Value) -> Self {
        let permissions = text(shown, "permissions");
        Self {
            path: text(shown, "path"),
            name: text(shown, "name"),
            kind: text(shown, "type"),
            size: number(shown, "size"),
            permissions: u32::from_str_radix(&permissions, 8).unwrap_or_default(),
            user: text(shown, "user"),
            group: text(shown, "group"),
        }
    }

    /// Returns true for a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == "directory"
    }
}

/// The permissions and the owner of a new file or directory. Those that are not given are Pebble's: 0o644 for files,
/// 0o755 for directories, and the user that the container runs as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileAccess<'a> {
    /// The permissions, such as 0o600.
    pub permissions: Option<u32>,
    /// The user's name.
    pub user: Option<&'a str>,
    /// The group's name.
    pub group: Option<&'a str>,
}

impl FileAccess<'_> {
    /// Returns an order about a path with these settings.
    fn order(&self, path: &str, parents: &str) -> Value {
        let permissions = self.permissions.map(|permissions| format!("{permissions:03o}").into());
        let settings = [
            ("permissions", permissions),
            ("user", self.user.map(Value::from)),
            ("group", self.group.map(Value::from)),
            ("path", Some(path.into())),
            (parents, Some(true.into())),
        ];
        let given = settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(given.collect())
    }
}

impl Pebble {
    /// Writes a file, with the directories above it. Workloads read it below their own root.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, or as [`connect`](Self::connect).
    pub fn push(&self, path: &str, content: impl AsRef<[u8]>) -> Result {
        self.push_as(path, content, FileAccess::default())
    }

    /// Writes a file with permissions or an owner.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_as(&self, path: &str, content: impl AsRef<[u8]>, access: FileAccess<'_>) -> Result {
        if !path.starts_with('/') || path.contains(['"', '\\']) || path.contains(char::is_control) {
            return Err(self.error("invalid", format!("{path:?} is no absolute path of a file")));
        }
        let file = access.order(path, "make-dirs");
        let order = json!({ "action": "write", "files": [file] });
        let name = |name: &str| format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"");
        let head = format!(
            "{}\r\nContent-Type: application/json\r\n\r\n{order}\r\n{}; filename=\"{path}\"\r\n\r\n",
            name("request"),
            name("files")
        );
        let end = format!("\r\n--{BOUNDARY}--\r\n");
        let content = content.as_ref();
        if content.windows(BOUNDARY.len()).any(|bytes| bytes == BOUNDARY.as_bytes()) {
            let message = format!("{path} contains the text {BOUNDARY:?}, which uploads end with");
            return Err(self.error("invalid", message));
        }
        let body = [head.as_bytes(), content, end.as_bytes()].concat();
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        let request = HttpRequest { method: "POST", path: "/v1/files", kind: &kind, body: &body };
        self.each(&self.ask(&request)?)
    }

    /// Returns the content of a file, of at most 8 MiB.
    ///
    /// # Errors
    ///
    /// When the file cannot be read: `not-found` if it is not there; or as [`connect`](Self::connect).
    pub fn pull(&self, path: &str) -> Result<Vec<u8>> {
        let target = format!("/v1/files?action=read&path={}", encoded(path));
        let (kind, response) = self.exchange(&HttpRequest::get(&target))?;
        let Some(boundary) = boundary(&kind) else {
            let unreadable = || self.error("broken", "its answer has no file");
            return self.answer(&response).and_then(|_| Err(unreadable()));
        };
        let broken = || self.error("broken", format!("the answer with {path} is cut off"));
        let parts = parts(&response.body, boundary).ok_or_else(broken)?;
        let part = |name: &str| parts.iter().find(|part| part.name == name).map(|part| part.content);
        let answer = part("response").and_then(|json| serde_json::from_slice::<Value>(json).ok());
        self.each(&answer.ok_or_else(broken)?)?;
        part("files").map(<[u8]>::to_vec).ok_or_else(broken)
    }

    /// Returns true if there is something at a path.
    ///
    /// # Errors
    ///
    /// When Pebble may not look there, or as [`connect`](Self::connect).
    pub fn exists(&self, path: &str) -> Result<bool> {
        let target = format!("/v1/files?action=list&itself=true&path={}", encoded(path));
        match self.ask(&HttpRequest::get(&target)) {
            Ok(_) => Ok(true),
            Err(error) if error.pebble().is_some_and(|error| error.kind == "not-found") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the entries of a directory, by name; of a file, the file.
    ///
    /// # Errors
    ///
    /// When there is no such path, or as [`connect`](Self::connect).
    pub fn list_files(&self, path: &str) -> Result<Vec<FileInfo>> {
        self.list(&format!("/v1/files?action=list&path={}", encoded(path)), FileInfo::of)
    }

    /// Makes a directory, with those above it. One that is there stays.
    ///
    /// # Errors
    ///
    /// When it cannot be made, or as [`connect`](Self::connect).
    pub fn make_dir(&self, path: &str) -> Result {
        self.make_dir_as(path, FileAccess::default())
    }

    /// Makes a directory with permissions or an owner.
    ///
    /// # Errors
    ///
    /// As [`make_dir`](Self::make_dir).
    pub fn make_dir_as(&self, path: &str, access: FileAccess<'_>) -> Result {
        let directory = access.order(path, "make-parents");
        let answer = self.post("/v1/files", &json!({ "action": "make-dirs", "dirs": [directory] }))?;
        self.each(&answer)
    }

    /// Removes a file, or a directory with all that is in it. A path that is not there is no error.
    ///
    /// # Errors
    ///
    /// When it cannot be removed, or as [`connect`](Self::connect).
    pub fn remove_path(&self, path: &str) -> Result {
        let removal = json!({ "path": path, "recursive": true });
        self.each(&self.post("/v1/files", &json!({ "action": "remove", "paths": [removal] }))?)
    }
}

/// Returns the boundary of a form, if a type is one.
fn boundary(kind: &str) -> Option<&str> {
    let parameters = kind.strip_prefix("multipart/form-data")?;
    let boundary = parameters.split(';').find_map(|it| it.trim().strip_prefix("boundary="))?;
    Some(boundary.trim_matches('"')).filter(|boundary| !boundary.is_empty())
}

/// A part of a form.
#[derive(Debug, PartialEq, Eq)]
struct Part<'a> {
    name: &'a str,
    content: &'a [u8],
}

/// Returns the parts of a form; none if it is cut off.
fn parts<'a>(form: &'a [u8], boundary: &str) -> Option<Vec<Part<'a>>> {
    let mark = format!("\r\n--{boundary}");
    let mut rest = form.strip_prefix(mark.get(2..)?.as_bytes())?;
    let mut parts = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Some(parts);
        }
        let (head, after) = split(rest.strip_prefix(b"\r\n")?, b"\r\n\r\n")?;
        let (content, next) = split(after, mark.as_bytes())?;
        let name = std::str::from_utf8(head)
            .ok()?
            .split_once("; name=\"")
            .and_then(|(_, name)| name.split('"').next());
        parts.push(Part { name: name.unwrap_or_default(), content });
        rest = next;
    }
}

fn split<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let place = bytes.windows(mark.len()).position(|window| window == mark)?;
    Some((bytes.get(..place)?, bytes.get(place + mark.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_would_break_the_form_is_refused() {
        for path in ["etc/x", "/a\"b", "/a\r\nb", "/a\\b"] {
            let error = Pebble::new("web").push(path, "x").unwrap_err();
            assert!(error.to_string().contains("is no absolute path of a file"), "{error}");
            assert_eq!(error.pebble().unwrap().kind, "invalid");
        }
    }

    #[test]
    fn a_form_has_its_parts_or_is_cut_off() {
        assert_eq!(boundary("multipart/form-data; boundary=abc"), Some("abc"));
        assert_eq!(boundary("multipart/form-data; boundary=\"abc\""), Some("abc"));
        assert_eq!(boundary("application/json"), None);
        let form = b"--b\r\nX: y; name=\"files\"; filename=\"/x\"\r\n\r\na\r\n-\r\n--b\r\nX: y; name=\"response\"\r\n\r\n{}\r\n--b--\r\n";
        let expected =
            vec![Part { name: "files", content: b"a\r\n-" }, Part { name: "response", content: b"{}" }];
        assert_eq!(parts(form, "b"), Some(expected));
        for end in 0..form.len() - 4 {
            assert_eq!(parts(&form[..end], "b"), None, "{end}");
        }
    }
}
