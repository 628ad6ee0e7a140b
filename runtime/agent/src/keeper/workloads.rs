//! The programs and images with which an agent runs workloads.

use std::{path::Path, sync::Arc};

use super::{
    directories::Directories,
    holding::Holding,
    images::Images,
    pods::{PodProgram, try_container},
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

fn program_of_pods(ChildProgram { path, pod: arguments, mut environment, .. }: ChildProgram) -> PodProgram {
    // A pod has no client's data, which the program would look for in its user's home.
    environment.push(("HOME".into(), "/".into()));
    PodProgram { path, arguments, environment }
}

/// Makes a container on trial, before an agent is started whose directory will be `data`.
///
/// # Errors
/// The reason, in words, why this host makes no container or does not confine it, if the driver refuses such a host.
pub async fn try_containers(
    program: ChildProgram,
    driver: ContainerDriver,
    data: &Path,
) -> Result<(), String> {
    let directories = Directories::open(data).map_err(|error| error.to_string())?;
    try_container(&program_of_pods(program), driver, &directories.images()).await
}

/// Returns the images of an agent whose options have containers run on some, once a container was tried.
///
/// # Errors
/// The reason, in words, why this host makes no container or does not confine it, if the options refuse such a host.
pub(super) async fn images(
    options: &Options,
    directories: &Directories,
) -> Result<Option<Arc<Images>>, String> {
    let Some(driver @ ContainerDriver::Namespaces(gaps)) = options.pods.containers else { return Ok(None) };
    let tried = try_container(&pod_program(options), driver, &directories.images()).await;
    match (tried, gaps) {
        (Ok(()), _) => {}
        (Err(reason), HostGaps::Refused) => return Err(reason),
        (Err(reason), HostGaps::Told) => {
            tracing::error!(reason, "this host makes no containers: no container runs on it");
        }
    }
    let ChildProgram { path, unpack_helper: arguments, environment, .. } = options.program.clone();
    let helper = periapt_helper::Program { path, arguments, environment };
    Ok(Some(Arc::new(Images::new(directories.images(), directories.incoming(), helper))))
}
