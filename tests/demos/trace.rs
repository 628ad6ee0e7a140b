//! Runs one `config` command on an installation of its own, and prints its trace as a tree. For `tools/demo-trace`.

#![expect(clippy::print_stdout, reason = "the tree is the program's output")]

use periapt_tests::TracedInstallation;

fn main() -> anyhow::Result<()> {
    println!("== a controller, an agent and two charms");
    let traced = TracedInstallation::bootstrapped()?;
    traced.deploy()?;
    println!("== periapt config wordpress blog-title=Traced port=8080");
    let tree = traced.configure()?;
    println!("\n{:>12} {:>12}  span (service)", "begin", "duration");
    print!("{}", tree.render());
    Ok(())
}
