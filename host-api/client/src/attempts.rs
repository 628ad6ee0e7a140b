//! The attempts of one call: when its request is sent again, and what is known of the outcome.

use std::time::Duration;

use periapt_host_api::{
    ErrorCode, Refusal,
    command::{CommandResult, CommandResults},
    timing::LONGEST_REPEAT,
};
use tokio::time::Instant;

use crate::{ClientError, Options, RequestOutcome, Result, retry::Retry};

/// The treatment of a request that was sent and not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Its outcome is told as it is known: the controller would carry the request out again.
    Never,
    /// It is sent again: it has an id, by which the controller carries it out once.
    ById,
    /// As with `Never`. It opens a stream beside others; if there are too many of them, that is told at once: another
    /// attempt would wait for their readers.
    BesideOthers,
}

/// The attempts of one call.
#[derive(Debug)]
pub(crate) struct Attempts {
    repeat: Repeat,
    /// The attempts after the refusals of a busy controller.
    busy: Retry,
    /// The time for attempts after the request was sent and not answered.
    unanswered_within: Duration,
    doubt: Option<Doubt>,
    was_told: bool,
    /// The generation of the connection that is not used again.
    pub(crate) broken: Option<u64>,
}

/// The state of a call whose request may have been carried out.
#[derive(Debug)]
struct Doubt {
    /// The error that began it.
    error: ClientError,
    /// The attempts to get the answer.
    retry: Retry,
    /// The time from which the controller may have forgotten the answer.
    until: Instant,
}

impl Attempts {
    pub(crate) fn new(options: &Options, repeat: Repeat) -> Self {
        Self {
            repeat,
            busy: Retry::new(options.busy_retry_timeout),
            unanswered_within: options.unanswered_retry_timeout,
            doubt: None,
            was_told: false,
            broken: None,
        }
    }

    /// Returns true if an earlier attempt may have been carried out.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    /// Waits until the request may be sent again after an error, at least as long as the controller asks.
    ///
    /// # Errors
    /// The error of the call, if the request is not sent again. It tells the outcome of all attempts.
    pub(crate) async fn again(&mut self, error: ClientError, asked: Option<Duration>) -> Result<()> {
        if self.repeat == Repeat::ById && self.doubt.is_none() && has_unknown_outcome(&error) {
            let (retry, until) = (Retry::new(self.unanswered_within), Instant::now() + LONGEST_REPEAT);
            self.doubt = Some(Doubt { error: error.clone(), retry, until });
        }
        let is_busy = self.waits_after(&error);
        let goes_on = match &mut self.doubt {
            Some(doubt) if Instant::now() >= doubt.until => false,
            Some(_) if is_busy => self.busy.next(asked).await,
            // Whatever is temporary now says nothing about the earlier attempt.
            Some(doubt) => error.is_temporary() && doubt.retry.next(asked).await,
            None => is_busy && self.busy.next(asked).await,
        };
        if !goes_on {
            return Err(self.outcome(error));
        }
        // The first error is a warning that tells the caller why it waits.
        match (std::mem::replace(&mut self.was_told, true), self.is_in_doubt()) {
            (true, _) => tracing::info!(%error, "sending the request again"),
            (false, true) => tracing::warn!(
                "the controller did not answer the request, which is sent again and carried out once: {error}"
            ),
            (false, false) => {
                tracing::warn!("the controller did not take the request, which is sent again: {error}");
            }
        }
        Ok(())
    }

    /// Returns true if the controller refused the call because it is busy, so that the call had no effect and may soon be
    /// taken.
    fn waits_after(&self, error: &ClientError) -> bool {
        error.refusal().is_some_and(|refusal| match refusal.code {
            ErrorCode::TryAgain => true,
            ErrorCode::TooManyRequests => self.repeat != Repeat::BesideOthers,
            _ => false,
        })
    }

    /// Returns the results of the last attempt as the caller is told them. While an earlier attempt may have been carried
    /// out, the refusal of a busy controller does not tell the outcome.
    pub(crate) fn told<T>(&self, mut results: CommandResults<T>) -> CommandResults<T> {
        let Some(doubt) = &self.doubt else { return results };
        for result in &mut results.results {
            if let CommandResult::Error(refusal) = result
                && refusal.code != ErrorCode::OutcomeUnknown
                && refusal.code.is_temporary()
            {
                *refusal = Refusal::new(ErrorCode::OutcomeUnknown, doubt.error.to_string());
            }
        }
        results
    }

    /// Returns the last error with the outcome of all attempts.
    fn outcome(&self, error: ClientError) -> ClientError {
        match (&self.doubt, error) {
            (Some(_), ClientError::Unreachable { url, reason, .. }) => {
                ClientError::Unreachable { url, reason, outcome: RequestOutcome::Unknown }
            }
            (Some(doubt), ClientError::NoneReached(_) | ClientError::NotTrusted { .. }) => {
                doubt.error.clone()
            }
            (Some(doubt), error) if error.is_temporary() => doubt.error.clone(),
            (_, error) => error,
        }
    }
}

/// Returns true if the request may have been carried out.
fn has_unknown_outcome(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { outcome, .. } => *outcome == RequestOutcome::Unknown,
        ClientError::Refused(refusal) => refusal.code == ErrorCode::OutcomeUnknown,
        _ => false,
    }
}

/// Returns the refusal of a command whose outcome is not known. In doubt, no temporary refusal tells it.
pub(crate) fn unknown_result<T>(results: &CommandResults<T>, attempts: &Attempts) -> Option<ClientError> {
    results.results.iter().find_map(|result| match result {
        CommandResult::Error(refusal)
            if refusal.code == ErrorCode::OutcomeUnknown
                || (attempts.is_in_doubt() && refusal.code.is_temporary()) =>
        {
            Some(ClientError::Refused(refusal.clone()))
        }
        _ => None,
    })
}

/// Returns the results of the last attempt. A command whose outcome was unknown keeps that result until another attempt
/// tells more than a temporary refusal.
pub(crate) fn settled<T>(earlier: Option<CommandResults<T>>, last: CommandResults<T>) -> CommandResults<T> {
    let Some(earlier) = earlier else { return last };
    let revision = last.revision;
    let results = earlier.results.into_iter().zip(last.results);
    let results = results.map(|(earlier, last)| match (&earlier, &last) {
        (CommandResult::Error(doubt), CommandResult::Error(now))
            if doubt.code == ErrorCode::OutcomeUnknown && now.code.is_temporary() =>
        {
            earlier
        }
        _ => last,
    });
    CommandResults { results: results.collect(), revision }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::Revision;

    use super::*;
    use crate::Identity;

    #[tokio::test(start_paused = true)]
    async fn no_refusal_of_a_busy_controller_tells_the_outcome_of_a_request_that_may_have_been_carried_out() {
        let options = Options::new("https://a:1", Identity::Local);
        let mut attempts = Attempts::new(&options, Repeat::ById);
        let refused = |code| CommandResult::<()>::Error(Refusal::new(code, "the request had no effect"));
        let results = || CommandResults {
            results: vec![refused(ErrorCode::TryAgain), refused(ErrorCode::NotFound), CommandResult::Ok(())],
            revision: Revision(1),
        };
        let codes = |results: CommandResults<()>| -> Vec<_> {
            let code = |result| match result {
                CommandResult::Error(refusal) => Some(refusal.code),
                CommandResult::Ok(()) => None,
            };
            results.results.into_iter().map(code).collect()
        };
        let told = [Some(ErrorCode::TryAgain), Some(ErrorCode::NotFound), None];
        assert_eq!(codes(attempts.told(results())), told);
        let url = "https://a:1".to_owned();
        let silent = ClientError::Unreachable {
            url,
            reason: "no answer in time".into(),
            outcome: RequestOutcome::Unknown,
        };
        attempts.again(silent, None).await.unwrap_err();
        let told = [Some(ErrorCode::OutcomeUnknown), Some(ErrorCode::NotFound), None];
        assert_eq!(codes(attempts.told(results())), told);
    }
    #[tokio::test(start_paused = true)]
    async fn one_stream_too_many_is_told_at_once() {
        let options =
            Options::new("https://a:1", Identity::Local).with_busy_retry_timeout(Duration::from_secs(60));
        let again = async |repeat, code| {
            let error = ClientError::Refused(Refusal::new(code, "the request had no effect"));
            Attempts::new(&options, repeat).again(error, None).await.is_ok()
        };
        assert!(again(Repeat::Never, ErrorCode::TooManyRequests).await);
        assert!(again(Repeat::BesideOthers, ErrorCode::TryAgain).await);
        assert!(!again(Repeat::BesideOthers, ErrorCode::TooManyRequests).await);
    }
}
