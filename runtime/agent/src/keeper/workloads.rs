//! The programs and images with which an agent runs workloads.

use std::{path::Path, sync::Arc};

use super::{
    directories::Directories,
    holding::Holding,
    images::Images,
    pods::{PodProgram, StorageCounter, for_status, try_container},
};
use crate::options::{ChildProgram, ContainerDriver, HostGaps, Options, PodDrivers};

/// Returns what the agent holds over the death of its keeper. An agent that runs no workloads ends those that an earlier one
/// has left.
pub(super) async fn holding(options: &Options, directories: &Directories) -> Holding {
    let root = directories.root();
    if let PodDrivers { containers: None, workloads: None } = options.pods {
        end_pods(root).await;
        return Holding::default();
    }
    let ChildProgram { path, holder: arguments, environment, .. } = options.program.clone();
    let program = periapt_helper::Program { path, arguments, environment };
    Holding::open(root, program, options.keep_pods).await
}

/// Ends the pods that an agent with its data in this directory has left, and waits for their ends. No agent may run there.
pub async fn end_pods(data: &Path) {
    match Holding::found(data).await {
        Ok(Some(holding)) => holding.end().await,
        Ok(None) => {}
        Err(error) => {
            tracing::warn!(%error, "pods of an earlier agent cannot be ended: they end by themselves")
        }
    }
}

/// Returns the program of an agent's pods.
pub(super) fn pod_program(options: &Options) -> PodProgram {
    program_of_pods(options.program.clone())
}

/// Returns the counter of storage that workloads write.
pub(super) fn storage_counter(options: &Options) -> StorageCounter {
    let ChildProgram { path, count_helper: arguments, environment, .. } = options.program.clone();
    StorageCounter::new(periapt_helper::Program { path, arguments, environment })
}

fn program_of_pods(ChildProgram { path, pod: arguments, mut environment, .. }: ChildProgram) -> PodProgram {
    // A pod has no client's data, which the program would look for in its user's home.
    environment.push(("HOME".into(), "/".into()));
    PodProgram { path, arguments, environment }
}

/// The part of an agent for containers.
pub(super) struct TriedContainers {
    /// The images of containers.
    pub(super) images: Arc<Images>,
    /// The parts of the confinement that the host lacks, or the reason why no container runs on it, as one line for
    /// `status`.
    pub(super) problem: Option<String>,
}

/// Makes a container on trial, before an agent is started whose directory will be `data`. Returns what the host lacks, as
/// one line with the remedies; none if it lacks nothing.
///
/// # Errors
/// The reason, in words, why this host makes no container or does not confine it, if the driver refuses such a host.
pub async fn try_containers(
    program: ChildProgram,
    driver: ContainerDriver,
    data: &Path,
) -> Result<Option<String>, String> {
    let directories = Directories::open(data).map_err(|error| error.to_string())?;
    let tried = try_container(&program_of_pods(program), driver, &directories.images()).await;
    let lacks = for_status(&tried);
    tried.map(|_| lacks)
}

/// Returns what an agent has for containers, if its options have some run on images, once a container was tried.
///
/// # Errors
/// The reason, in words, why this host makes no container or does not confine it, if the options refuse such a host.
pub(super) async fn containers(
    options: &Options,
    directories: &Directories,
) -> Result<Option<TriedContainers>, String> {
    let Some(driver @ ContainerDriver::Namespaces(gaps)) = options.pods.containers else { return Ok(None) };
    let tried = try_container(&pod_program(options), driver, &directories.images()).await;
    let problem = for_status(&tried);
    match (tried, gaps) {
        (Ok(_), _) => {}
        (Err(reason), HostGaps::Refused) => return Err(reason),
        (Err(reason), HostGaps::Told) => {
            tracing::error!(reason, "this host makes no containers: no container runs on it");
        }
    }
    let ChildProgram { path, unpack_helper: arguments, environment, .. } = options.program.clone();
    let helper = periapt_helper::Program { path, arguments, environment };
    let images = Arc::new(Images::new(directories.images(), directories.incoming(), helper));
    Ok(Some(TriedContainers { images, problem }))
}
