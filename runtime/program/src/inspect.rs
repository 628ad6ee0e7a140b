//! The first check of a program: its file is an executable for this kind of host, and tells its version.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
    process::Stdio,
    time::Duration,
};

use periapt_host_api::Level;
use serde::Deserialize;
use tokio::{io::AsyncReadExt as _, process::Command, time::timeout};

/// The longest time for a program to tell its version.
const TELLS_WITHIN: Duration = Duration::from_secs(20);

/// The most bytes of the answer that are read.
const MAX_ANSWER: u64 = 16 << 10;

/// The bytes of a file that tell what it is.
const HEADER: usize = 20;

/// The facts that a program tells about itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProgramFacts {
    /// Its version.
    #[serde(rename = "periapt-version")]
    pub version: String,
    /// The highest level of stored forms that it knows; the first one of programs that tell none.
    #[serde(default)]
    pub level: Level,
}

/// Returns the architecture that an executable is for, in the words of [`std::env::consts::ARCH`].
///
/// # Errors
/// The file cannot be read, or is no executable of Linux that Periapt is built for.
pub fn architecture(path: &Path) -> io::Result<&'static str> {
    let mut header = Vec::new();
    File::open(path)?.take(HEADER as u64).read_to_end(&mut header)?;
    machine(&header).ok_or_else(|| io::Error::other("it is no executable of Linux for x86_64 or aarch64"))
}

/// Returns the machine in the header of a 64-bit little-endian ELF file.
fn machine(header: &[u8]) -> Option<&'static str> {
    match header {
        [0x7f, b'E', b'L', b'F', 2, 1, _, _, _, _, _, _, _, _, _, _, _, _, low, high] => {
            match u16::from_le_bytes([*low, *high]) {
                62 => Some("x86_64"),
                183 => Some("aarch64"),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Asks a program for its version, within a limit of time.
///
/// # Errors
/// The reason why it is no program that can be taken.
pub async fn inspect(path: &Path) -> Result<ProgramFacts, String> {
    let mut child = Command::new(path)
        .args(["version", "--all", "--format", "json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("it cannot be started: {error}"))?;
    let output = child.stdout.take().ok_or("its output cannot be read")?;
    let told = async {
        let mut text = Vec::new();
        output.take(MAX_ANSWER).read_to_end(&mut text).await?;
        Ok::<_, io::Error>((child.wait().await?, text))
    };
    let limit = TELLS_WITHIN.as_secs();
    let (status, text) = timeout(TELLS_WITHIN, told)
        .await
        .map_err(|_| format!("it does not tell its version within {limit} s"))?
        .map_err(|error| format!("it does not tell its version: {error}"))?;
    if !status.success() {
        return Err(format!("it does not tell its version: `version` ended with {status}"));
    }
    serde_json::from_slice(&text).map_err(|error| format!("it does not tell its version: {error}"))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn the_architecture_is_in_the_header() {
        let own = architecture(Path::new("/proc/self/exe")).unwrap();
        assert_eq!(own, std::env::consts::ARCH);
        let mut header = fs::read("/proc/self/exe").unwrap()[..HEADER].to_vec();
        assert!(machine(&header[..HEADER - 1]).is_none(), "it is cut off");
        header[18] = 3;
        assert!(machine(&header).is_none(), "another machine");
        assert!(machine(b"#!/bin/sh\nexec sleep 1000\n").is_none());
    }

    #[tokio::test]
    async fn a_program_that_tells_no_version_is_refused_with_the_reason() {
        let directory = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let told = program(
            "told",
            "#!/bin/sh\necho '{\"version\":\"x\",\"periapt-version\":\"1.2\",\"level\":7}'\n",
        );
        let expected = ProgramFacts { version: "1.2".to_owned(), level: Level(7) };
        assert_eq!(inspect(&told).await, Ok(expected));
        let old = program("old", "#!/bin/sh\necho '{\"periapt-version\":\"1.0\"}'\n");
        assert_eq!(inspect(&old).await.unwrap().level, Level::FIRST);
        let failing = inspect(&program("failing", "#!/bin/sh\nexit 9\n")).await.unwrap_err();
        assert!(failing.contains("ended with exit status: 9"), "{failing}");
        let other = inspect(&program("other", "#!/bin/sh\necho hello\n")).await.unwrap_err();
        assert!(other.starts_with("it does not tell its version: "), "{other}");
        let none = inspect(&directory.path().join("none")).await.unwrap_err();
        assert!(none.starts_with("it cannot be started: "), "{none}");
    }
}
