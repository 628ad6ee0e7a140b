//! The command for the other processes of an agent.

use std::ffi::OsString;

use periapt_agent::{ChildProgram, ContainerDriver, PodDrivers};

use crate::program;

/// Returns the command, with an environment. It runs this program's own file, even if another file has its path now.
pub(crate) fn child_program(environment: Vec<(OsString, OsString)>) -> ChildProgram {
    let arguments = |word: &str| vec![OsString::from("agent"), OsString::from(word)];
    ChildProgram {
        path: program::FILE.into(),
        runner: arguments("runner"),
        compile_helper: arguments("compile-helper"),
        pod: ["agent", "pod", "--keeper"].map(OsString::from).into(),
        holder: arguments("hold-pods"),
        unpack_helper: arguments("unpack-helper"),
        count_helper: arguments("count-helper"),
        environment,
    }
}

/// Returns the command for an agent with these drivers of pods. Its runners have rights over the files in storage that other
/// users of its containers own.
pub(crate) fn child_program_of(drivers: PodDrivers, environment: Vec<(OsString, OsString)>) -> ChildProgram {
    let mut program = child_program(environment);
    if let Some(ContainerDriver::Namespaces(_)) = drivers.containers {
        program.runner.push("--container-users".into());
    }
    program
}
