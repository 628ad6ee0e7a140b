//! The trial of a container at an agent's start: what this host lacks is told before a unit needs it.

use std::{path::Path, time::Duration};

use periapt_host_api::agent::MAX_CONTAINER_PROBLEM;
use tokio::time::timeout;

use super::{
    process::{PodEvent, PodProgram},
    starter::driver_arguments,
};
use crate::{keeper::directories::private_directory, options::ContainerDriver};

/// The time in which a container without a workload begins.
const BEGINS_WITHIN: Duration = Duration::from_secs(45);

/// Starts a container on an empty directory, and ends it. The pod's process logs each part of the confinement that this
/// host lacks. Returns those parts with their remedies; empty if the host lacks none.
///
/// # Errors
/// The reason, in words, why this host makes no container.
pub(crate) async fn try_container(
    program: &PodProgram,
    driver: ContainerDriver,
    images: &Path,
) -> Result<String, String> {
    let root = images.join("trial");
    private_directory(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    let mut arguments = driver_arguments(driver);
    arguments.extend(["--root".into(), root.into_os_string(), "--host-name".into(), "trial".into()]);
    let started = program.start(&arguments, None, None, None);
    let mut process = started.map_err(|error| format!("a pod could not be started: {error}"))?;
    match timeout(BEGINS_WITHIN, process.report()).await {
        Ok(Ok(Some(PodEvent::Ready { lacks, .. }))) => {
            process.end().await;
            Ok(lacks)
        }
        Ok(Ok(Some(PodEvent::Failed(reason)))) => {
            process.gone().await;
            Err(reason)
        }
        Ok(Ok(Some(_))) => {
            process.kill().await;
            Err("it speaks before it listens".to_owned())
        }
        Ok(Ok(None)) => Err(process.gone().await),
        Ok(Err(error)) => {
            process.kill().await;
            Err(error.to_string())
        }
        Err(_) => {
            process.kill().await;
            Err("it takes too long".to_owned())
        }
    }
}

/// Returns what came of a trial as one line for `status`; none if the host lacks nothing.
pub(crate) fn for_status(tried: &Result<String, String>) -> Option<String> {
    let line = match tried {
        Ok(lacks) if lacks.is_empty() => return None,
        Ok(lacks) => format!("containers run without {lacks}"),
        Err(reason) => format!("no container runs on this host: {reason}"),
    };
    // The system's own texts are within it.
    let mut line = line.replace(char::is_control, " ");
    line.truncate(line.floor_char_boundary(MAX_CONTAINER_PROBLEM));
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::HostGaps;

    async fn tried(script: &str) -> Result<String, String> {
        let images = tempfile::tempdir().unwrap();
        let program = PodProgram {
            path: "/bin/sh".into(),
            arguments: ["-c", script].map(Into::into).to_vec(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        };
        try_container(&program, ContainerDriver::Namespaces(HostGaps::Told), images.path()).await
    }

    #[tokio::test]
    async fn a_host_that_makes_containers_is_told_from_one_that_does_not() {
        let whole = tried(r#"echo '{"ready":{"boot-id":"1"}}' >&0; cat"#).await;
        assert_eq!((whole.as_deref(), for_status(&whole)), (Ok(""), None));
        let partly = tried(r#"echo '{"ready":{"boot-id":"1","lacks":"users (add one)"}}' >&0; cat"#).await;
        assert_eq!(for_status(&partly).as_deref(), Some("containers run without users (add one)"));
        let lacking = tried(r#"echo '{"failed":{"reason":"no user namespaces"}}' >&0; exit 1"#).await;
        assert_eq!(lacking.unwrap_err(), "no user namespaces");
        assert_eq!(tried("exit 3").await.unwrap_err(), "exit status: 3");
    }

    #[test]
    fn what_came_of_a_trial_is_one_line_that_the_controller_takes() {
        let told = for_status(&Err("no\tuser\nnamespaces".to_owned())).unwrap();
        assert_eq!(told, "no container runs on this host: no user namespaces");
        let long = for_status(&Err("\u{e4}".repeat(1_000))).unwrap();
        assert!(long.len() <= MAX_CONTAINER_PROBLEM && long.ends_with('\u{e4}'), "{long}");
    }
}
