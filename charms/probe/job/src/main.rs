//! A program for tests, which is a workload as a command. It does what its arguments say, one after the other.

use std::{
    env, fs,
    process::{ExitCode, exit},
    thread::sleep,
    time::Duration,
};

#[cfg(target_arch = "wasm32")]
mod ask;

fn main() -> ExitCode {
    match run(env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Does each step. The error names the one that failed.
fn run(mut words: impl Iterator<Item = String>) -> Result<(), String> {
    let mut next = Some(words.next().unwrap_or_else(|| "sleep".to_owned()));
    while let Some(step) = next {
        let mut word = |what: &str| words.next().ok_or_else(|| format!("{step}: it needs a {what}"));
        match step.as_str() {
            "say" => println!("{}", word("text")?),
            "complain" => eprintln!("{}", word("text")?),
            "surroundings" => print!("{}", surroundings()),
            "write" => {
                let (path, text) = (word("path")?, word("text")?);
                fs::write(&path, text).map_err(|error| format!("write {path}: {error}"))?;
            }
            "read" => {
                let path = word("path")?;
                let text = fs::read_to_string(&path).map_err(|error| format!("read {path}: {error}"))?;
                println!("{text}");
            }
            #[cfg(target_arch = "wasm32")]
            "ask" => {
                let authority = word("server")?;
                let answer = ask::ask(&authority).map_err(|error| format!("ask {authority}: {error}"))?;
                println!("{answer}");
            }
            "exit" => exit(word("code")?.parse::<i32>().map_err(|error| format!("exit: {error}"))?),
            "sleep" => loop {
                sleep(Duration::from_secs(3_600));
            },
            _ => return Err(format!("there is no step {step:?}")),
        }
        next = words.next();
    }
    Ok(())
}

/// Returns the arguments and the environment, a line each.
fn surroundings() -> String {
    let mut variables: Vec<String> = env::vars().map(|(name, value)| format!("{name}={value}")).collect();
    variables.sort();
    env::args().chain(variables).map(|line| line + "\n").collect()
}
