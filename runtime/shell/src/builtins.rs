//! The commands beside hook tools: those of operators' and test suites' one-liners. Output and exit codes are those of
//! GNU's commands, as far as they go. An unknown option is an error.

mod call;
mod cut;
mod environment;
mod escapes;
mod files;
mod flow;
mod grep;
mod nested;
mod print;
mod printf;
mod read;
mod sleep;
mod sort;
mod test;
mod text;
mod tr;

use crate::interpreter::{Shell, Step, Streams, Unwind};
use call::Call;

/// One command.
pub(crate) struct Command {
    name: &'static str,
    run: Run,
}

#[derive(Clone, Copy)]
enum Run {
    /// A command that needs no request to the host.
    Now(fn(&mut Call<'_>) -> Result<u8, Unwind>),
    /// A command that waits for files, time or other commands.
    Later(for<'a> fn(Call<'a>) -> Step<'a, u8>),
}

/// All commands, sorted by name.
const COMMANDS: &[Command] = &[
    Command { name: ":", run: Run::Now(flow::yes) },
    Command { name: "[", run: Run::Later(test::bracket) },
    Command { name: "bash", run: Run::Later(nested::sh) },
    Command { name: "break", run: Run::Now(flow::end_loops) },
    Command { name: "cat", run: Run::Later(text::cat) },
    Command { name: "cd", run: Run::Later(environment::cd) },
    Command { name: "command", run: Run::Later(nested::command) },
    Command { name: "continue", run: Run::Now(flow::next_turn) },
    Command { name: "cut", run: Run::Later(cut::cut) },
    Command { name: "echo", run: Run::Now(print::echo) },
    Command { name: "env", run: Run::Later(nested::env) },
    Command { name: "exit", run: Run::Now(flow::exit) },
    Command { name: "export", run: Run::Now(environment::export) },
    Command { name: "false", run: Run::Now(flow::no) },
    Command { name: "grep", run: Run::Later(grep::grep) },
    Command { name: "head", run: Run::Later(text::head) },
    Command { name: "hostname", run: Run::Now(environment::hostname) },
    Command { name: "ls", run: Run::Later(files::ls) },
    Command { name: "mkdir", run: Run::Later(files::mkdir) },
    Command { name: "printenv", run: Run::Now(environment::printenv) },
    Command { name: "printf", run: Run::Now(printf::printf) },
    Command { name: "pwd", run: Run::Now(environment::pwd) },
    Command { name: "read", run: Run::Now(read::read) },
    Command { name: "rm", run: Run::Later(files::rm) },
    Command { name: "seq", run: Run::Now(print::seq) },
    Command { name: "set", run: Run::Now(environment::set) },
    Command { name: "sh", run: Run::Later(nested::sh) },
    Command { name: "sleep", run: Run::Later(sleep::sleep) },
    Command { name: "sort", run: Run::Later(sort::sort) },
    Command { name: "tail", run: Run::Later(text::tail) },
    Command { name: "tee", run: Run::Later(files::tee) },
    Command { name: "test", run: Run::Later(test::test) },
    Command { name: "touch", run: Run::Later(files::touch) },
    Command { name: "tr", run: Run::Now(tr::tr) },
    Command { name: "true", run: Run::Now(flow::yes) },
    Command { name: "uniq", run: Run::Later(sort::uniq) },
    Command { name: "unset", run: Run::Now(environment::unset) },
    Command { name: "wc", run: Run::Later(text::wc) },
];

/// Iterates over the names, sorted: the commands that a script may call beside hook tools.
pub fn commands() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|command| command.name)
}

/// Finds the command of a name. Scripts may write its usual path on other systems, too.
pub(crate) fn find(name: &str) -> Option<&'static Command> {
    let bare = name.strip_prefix("/usr").unwrap_or(name);
    let bare = bare.strip_prefix("/bin/").unwrap_or(name);
    COMMANDS.iter().find(|command| command.name == bare)
}

/// Runs a command, and returns its exit code.
pub(crate) async fn run(
    shell: &mut Shell,
    command: &'static Command,
    arguments: &[String],
    streams: Streams,
) -> Result<u8, Unwind> {
    let mut call = Call { shell, name: command.name, arguments, streams };
    match command.run {
        Run::Now(run) => run(&mut call),
        Run::Later(run) => run(call).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_no_hook_tools() {
        let names: Vec<&str> = commands().collect();
        assert!(names.is_sorted(), "{names:?}");
        for name in names {
            assert!(!periapt_hook::is_hook_tool(name), "{name}");
        }
        for path in ["echo", "/bin/echo", "/usr/bin/echo"] {
            assert!(find(path).is_some(), "{path}");
        }
        for path in ["/echo", "bin/echo", "/sbin/echo", "/usr/echo", "curl"] {
            assert!(find(path).is_none(), "{path}");
        }
    }
}
