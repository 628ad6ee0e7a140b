//! The trial of a container at an agent's start: what this host lacks is told before a unit needs it.

use std::{path::Path, time::Duration};

use tokio::time::timeout;

use super::{
    process::{PodEvent, PodProgram},
    starter::driver_arguments,
};
use crate::{keeper::directories::private_directory, options::ContainerDriver};

/// The time in which a container without a workload begins.
const BEGINS_WITHIN: Duration = Duration::from_secs(45);

/// Starts a container on an empty directory, and ends it. The pod's process logs each part of the confinement that this
/// host lacks.
///
/// # Errors
/// The reason, in words, why this host makes no container.
pub(crate) async fn try_container(
    program: &PodProgram,
    driver: ContainerDriver,
    images: &Path,
) -> Result<(), String> {
    let root = images.join("trial");
    private_directory(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    let mut arguments = driver_arguments(driver);
    arguments.extend(["--root".into(), root.into_os_string(), "--host-name".into(), "trial".into()]);
    let started = program.start(&arguments, None, None, None);
    let mut process = started.map_err(|error| format!("a pod could not be started: {error}"))?;
    match timeout(BEGINS_WITHIN, process.report()).await {
        Ok(Ok(Some(PodEvent::Ready(_)))) => {
            process.end().await;
            Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::HostGaps;

    async fn tried(script: &str) -> Result<(), String> {
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
        tried(r#"echo '{"ready":{"boot-id":"1"}}' >&0; cat"#).await.unwrap();
        let lacking = tried(r#"echo '{"failed":{"reason":"no user namespaces"}}' >&0; exit 1"#).await;
        assert_eq!(lacking.unwrap_err(), "no user namespaces");
        assert_eq!(tried("exit 3").await.unwrap_err(), "exit status: 3");
    }
}
