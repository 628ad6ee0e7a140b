//! The program of a service, which another one may replace.

use std::{env, ffi::OsString, net::SocketAddr, path::Path, time::Duration};

use periapt_program::{AfterTrial, Again, Programs, ReplaceableService, ServiceStart, begin};
use tokio_util::sync::CancellationToken;

use crate::{
    error::{Explain as _, Failure, Result},
    log_args::LogArgs,
    program,
};

/// The time for a log to answer.
const LOG_ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// A controller, as a service whose program is replaced: it comes up once it has caught up with its log.
pub(crate) struct ControllerService {
    /// The log that it shares with others.
    pub(crate) log: LogArgs,
}

impl ReplaceableService for ControllerService {
    /// The program before may not know the level of what the new one has stored.
    const AFTER_TRIAL: AfterTrial = AfterTrial::Stays;

    async fn is_answered(&self) -> bool {
        tokio::time::timeout(LOG_ANSWERS_WITHIN, self.log.answers()).await.unwrap_or(false)
    }
}

/// Begins a service with its data in a directory. Returns none if the service was told to stop before.
pub(crate) async fn begin_service(
    data: &Path,
    service: &impl ReplaceableService,
    stop: &CancellationToken,
) -> Result<Option<Programs>> {
    let again = again(env::args_os().skip(1), None);
    let begun = begin(data, env!("CARGO_PKG_VERSION"), &again, service, stop).await;
    match begun.explain(|| format!("cannot use {}", data.display()))? {
        ServiceStart::Serves(programs) => Ok(Some(programs)),
        ServiceStart::Stopped => Ok(None),
    }
}

/// Begins the service anew if it has ended to make way for another program. `listens` is the address that it had.
pub(crate) fn make_way(programs: &Programs, listens: Option<SocketAddr>) -> Result<()> {
    let Some(target) = programs.chosen() else { return Ok(()) };
    tracing::info!(program = %target.offer.digest.short(), "ended, to try another program");
    let error = again(env::args_os().skip(1), listens).begin_anew();
    Err(Failure::new(format!("cannot begin anew with another program: {error}")))
}

/// Returns the command line by which the service begins anew: at the address that it has, and without the token that
/// joined it, which is used.
fn again(given: impl Iterator<Item = OsString>, listens: Option<SocketAddr>) -> Again {
    let (mut arguments, mut given) = (Vec::new(), given);
    while let Some(argument) = given.next() {
        let text = argument.to_string_lossy();
        let (option, is_whole) = match text.split_once('=') {
            Some((option, _)) => (option.to_owned(), true),
            None => (text.into_owned(), false),
        };
        match (option.as_str(), listens) {
            ("--listen", Some(address)) => {
                if !is_whole {
                    given.next();
                }
                arguments.extend(["--listen".into(), address.to_string().into()]);
            }
            ("--token" | "--token-file", _) => {
                if !is_whole {
                    given.next();
                }
            }
            _ => arguments.push(argument),
        }
    }
    Again { name: program::OWN.into(), arguments }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_begins_anew_at_its_address_and_without_its_token() {
        let address: SocketAddr = ([127, 0, 0, 1], 4711).into();
        for (given, listens, expected) in [
            (
                "controller run --listen 127.0.0.1:0 --data x",
                Some(address),
                "controller run --listen 127.0.0.1:4711 --data x",
            ),
            ("controller run --listen=127.0.0.1:0", Some(address), "controller run --listen 127.0.0.1:4711"),
            ("controller run --listen 127.0.0.1:0", None, "controller run --listen 127.0.0.1:0"),
            ("agent run --token-file t --name a", None, "agent run --name a"),
            ("agent run --token - --name a --token-file=t", None, "agent run --name a"),
        ] {
            let again = again(given.split(' ').map(OsString::from), listens);
            let expected: Vec<_> = expected.split(' ').map(OsString::from).collect();
            assert_eq!(again.arguments, expected, "{given}");
        }
    }
}
