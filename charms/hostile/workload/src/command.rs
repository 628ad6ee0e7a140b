//! The command. Its first argument after its name is the mode.

use std::io::{Read as _, Write as _};

use wasip2::exports::cli::run::Guest;

use crate::{Workload, modes};

impl Guest for Workload {
    fn run() -> Result<(), ()> {
        let mode = std::env::args().nth(1).unwrap_or_default();
        match mode.as_str() {
            "surroundings" => print!("{}", modes::surroundings()),
            "escapes" => print!("{}", modes::escapes()),
            "read" => {
                let path = std::env::args().nth(2).unwrap_or_default();
                print!("{}", std::fs::read_to_string(path).map_err(|error| eprintln!("{error}"))?);
            }
            "cat" => {
                let mut input = Vec::new();
                std::io::stdin().read_to_end(&mut input).map_err(|_| ())?;
                std::io::stdout().write_all(&input).map_err(|_| ())?;
            }
            "sleep" => {
                println!("asleep");
                std::thread::sleep(std::time::Duration::from_secs(3_600));
            }
            "compute" => {
                println!("computing");
                modes::compute()
            }
            "memory" => println!("{} MiB", modes::take_memory()),
            "flood" => modes::flood(),
            "exit" => std::process::exit(7),
            "abort" => std::process::abort(),
            "recurse" => println!("{}", modes::recurse(0)),
            _ => return Err(()),
        }
        // No runtime of a program does it after `run`.
        std::io::stdout().flush().map_err(|_| ())
    }
}
