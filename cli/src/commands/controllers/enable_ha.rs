//! `enable-ha`: lets as many further controllers join as are missing.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use clap::Args;
use periapt_transport::{Readers, write_file};
use serde::Serialize;

use crate::{
    commands::Verb,
    context::{Context, Controller, ControllerArg},
    error::{Explain as _, Failure, Result, with_source},
    join::admit_member,
    output::OutputArgs,
    parse::duration,
};

/// Let further controllers join, until there are several
///
/// For a controller that was bootstrapped with --log. Periapt starts no machines: for each controller that is missing, the
/// command writes a token into the file NAME.token and prints the command that starts the controller on its own host.
/// The holder of a token is given all keys of the controllers, once: hand it over as a secret.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt enable-ha\n  \
                  periapt enable-ha -n 5 --to node-4,node-5 --directory tokens")]
pub(crate) struct EnableHa {
    /// The number of controllers: odd, so that a majority can be told
    #[arg(short, long = "num-controllers", value_name = "NUMBER", default_value = "3", value_parser = odd)]
    number: usize,
    /// The names of the further controllers, usually those of their hosts; by default controller-1 and so on
    #[arg(long, value_name = "NAME[,NAME...]", value_delimiter = ',')]
    to: Vec<String>,
    /// The time for which the tokens can be used
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration::parse)]
    expires: Duration,
    /// The directory for the files with tokens
    #[arg(long, value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    #[command(flatten)]
    controller: ControllerArg,
    #[command(flatten)]
    output: OutputArgs,
}

/// The controllers that there are, and those that may join.
#[derive(Debug, Serialize)]
struct Listing {
    maintained: Vec<String>,
    added: Vec<String>,
    /// The command that starts each added controller, on its own host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    commands: Vec<String>,
}

/// The most controllers: as many as Juju's.
const MOST: usize = 7;

fn odd(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number % 2 == 1 && number <= MOST => Ok(number),
        _ => Err(format!("the number of controllers must be odd, such as 3 or 5, and at most {MOST}")),
    }
}

impl Verb for EnableHa {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let members = controller.client.controller().await?.members;
        let maintained: Vec<_> = members.into_iter().map(|member| member.name).collect();
        if maintained.is_empty() {
            let text = format!("controller {} shares its state with no other", controller.name);
            return Err(Failure::new(text)
                .with_hint("one that shares it is bootstrapped with `--log etcd://HOST:2379,...`"));
        }
        let added = self.missing(&maintained)?;
        if !added.is_empty() {
            std::fs::create_dir_all(&self.directory).explain(|| self.directory.display().to_string())?;
        }
        let mut commands = Vec::new();
        for name in &added {
            commands.push(self.admit(&controller, name).await?);
        }
        let listing = Listing { maintained, added, commands };
        self.output.print(context.color, &listing, shown)
    }
}

impl EnableHa {
    /// Returns the names of the controllers that are missing.
    fn missing(&self, known: &[String]) -> Result<Vec<String>> {
        let count = self.number.saturating_sub(known.len());
        if self.to.is_empty() {
            let free = (1..).map(|number| format!("controller-{number}"));
            return Ok(free.filter(|name| !known.contains(name)).take(count).collect());
        }
        if let Some(name) = self.to.iter().find(|name| known.contains(name)) {
            return Err(Failure::new(format!("controller \"{name}\" has joined already")));
        }
        let names: BTreeSet<_> = self.to.iter().collect();
        if names.len() != count || self.to.len() != count {
            let text =
                format!("{count} further controllers make {}, and --to names {}", self.number, names.len());
            return Err(Failure::new(text));
        }
        Ok(self.to.clone())
    }

    /// Writes the token of one controller, and returns the command that starts the controller.
    async fn admit(&self, controller: &Controller, name: &str) -> Result<String> {
        let text = admit_member(controller, name, self.expires).await?;
        let file = self.directory.join(format!("{name}.token"));
        write_file(&file, format!("{}\n", text.reveal()), Readers::Owner).map_err(with_source)?;
        Ok(format!(
            "periapt controller join {} --controller {} --token-file {} --member {name} --listen 0.0.0.0:17070 \
             --public-name HOST",
            controller.name,
            controller.entry.url,
            file.display(),
        ))
    }
}

/// Returns the lines for people, the first ones as Juju's.
fn shown(listing: &Listing) -> String {
    let mut lines = vec![format!("maintaining controllers: {}", listing.maintained.join(", "))];
    if !listing.added.is_empty() {
        lines.push(format!("adding controllers: {}", listing.added.join(", ")));
        lines.push("\nHand each token over to its host as a secret, and run there:".to_owned());
    }
    lines.extend(listing.commands.iter().map(|command| format!("  {command}")));
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_controllers_is_odd_and_bounded() {
        assert_eq!(["1", "3", "7"].map(|text| odd(text).unwrap()), [1, 3, 7]);
        for bad in ["0", "2", "9", "-1", "18446744073709551615", "three", ""] {
            assert!(odd(bad).unwrap_err().contains("must be odd"), "{bad}");
        }
    }
}
