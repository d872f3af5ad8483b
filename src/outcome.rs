//! How a run ended: the one source of its exit code and of the word that names it.

use std::fmt;
use std::mem::discriminant;
use std::process::ExitCode;

/// The signal that asks a process to end.
const SIGTERM: u8 = 15;

/// How a run ended.
///
/// An exit code never changes its meaning, because scripts branch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// A complete answer is on stdout.
    Ok,
    /// A fault on our side, or stdout could not be written.
    Internal,
    /// The command line, the environment or a file named there is unusable; nothing was sent.
    Usage,
    /// The endpoint refused for good.
    Rejected,
    /// The endpoint's response is not a completion.
    Protocol,
    /// The model was cut off before it was done.
    Truncated,
    /// A filter or the model itself refused.
    Filtered,
    /// The model was done without having said anything.
    Empty,
    /// The conversation does not fit the model's context.
    Context,
    /// The steps that were allowed are used up.
    MaxSteps,
    /// The tokens that were allowed are used up.
    MaxTokensTotal,
    /// The model repeats itself.
    Stuck,
    /// The session's log can't be read whole.
    SessionDamaged,
    /// Another process holds the session.
    SessionLocked,
    /// The session's log can't be written.
    SessionWrite,
    /// No answer passed its verification.
    VerifyFailed,
    /// The endpoint is not to be had now; the same run may well succeed later.
    Transient,
    /// The time that was allowed is over.
    Deadline,
    /// The terminal or the session that it was started from is gone.
    Hangup,
    /// It was interrupted.
    Interrupt,
    /// SIGTERM came, or another signal that would have ended the process; this is its number.
    Terminated(u8),
}

impl Outcome {
    /// Every outcome with its word and its meaning, in the order of the exit codes.
    pub const ALL: &[(Outcome, &str, &str)] = &[
        (Outcome::Ok, "ok", "a complete answer is on stdout"),
        (Outcome::Internal, "internal", "a fault in uncut, or stdout could not be written"),
        (
            Outcome::Usage,
            "usage",
            "command line, environment, prompt or a file named there is unusable; nothing was sent",
        ),
        (
            Outcome::Rejected,
            "rejected",
            "the endpoint or the proxy refused permanently (400, 401, 403, 404, 422, a redirect, \
             exhausted quota), or a certificate is not trusted",
        ),
        (
            Outcome::Protocol,
            "protocol",
            "the response is not a completion: HTML, not JSON, no choices, a call without a name, \
             an unknown finish reason",
        ),
        (
            Outcome::Truncated,
            "truncated",
            "the model was cut off before it was done; nothing of that message was executed",
        ),
        (Outcome::Filtered, "filtered", "a content filter or the model itself refused"),
        (Outcome::Empty, "empty", "no answer text"),
        (Outcome::Context, "context", "the conversation does not fit the model's context"),
        (Outcome::MaxSteps, "max_steps", "no answer after --max-steps completions"),
        (Outcome::MaxTokensTotal, "max_tokens_total", "--max-total-tokens are used up"),
        (Outcome::Stuck, "stuck", "the same call had the same result 8 times in a row"),
        (
            Outcome::SessionDamaged,
            "session_damaged",
            "the session file is not whole; it was not touched",
        ),
        (Outcome::SessionLocked, "session_locked", "another process holds the session"),
        (
            Outcome::SessionWrite,
            "session_write",
            "a record could not be written; the file ends in a whole record",
        ),
        (Outcome::VerifyFailed, "verify_failed", "the --verify command did not pass"),
        (
            Outcome::Transient,
            "transient",
            "408, 409, 425, 429, 500, 502 to 504, 520 to 524, 529, no connection or a timeout, \
             after all retries: try again later",
        ),
        (Outcome::Deadline, "deadline", "--timeout is over"),
        (Outcome::Hangup, "hangup", "SIGHUP"),
        (Outcome::Interrupt, "interrupt", "SIGINT or SIGQUIT"),
        (
            Outcome::Terminated(SIGTERM),
            "terminated",
            "SIGTERM; another fatal signal gives 128 plus its number",
        ),
    ];

    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Outcome::Ok => 0,
            Outcome::Internal => 1,
            Outcome::Usage => 2,
            Outcome::Rejected => 10,
            Outcome::Protocol => 11,
            Outcome::Truncated => 12,
            Outcome::Filtered => 13,
            Outcome::Empty => 14,
            Outcome::Context => 15,
            Outcome::MaxSteps => 20,
            Outcome::MaxTokensTotal => 21,
            Outcome::Stuck => 22,
            Outcome::SessionDamaged => 30,
            Outcome::SessionLocked => 31,
            Outcome::SessionWrite => 32,
            Outcome::VerifyFailed => 40,
            Outcome::Transient => 75,
            Outcome::Deadline => 124,
            Outcome::Hangup => 129,
            Outcome::Interrupt => 130,
            Outcome::Terminated(signal) => 128 + signal,
        }
    }

    /// The word that names it on stderr and in records.
    pub fn word(self) -> &'static str {
        let mut rows = Outcome::ALL.iter();
        // Whatever signal it was.
        rows.find(|(outcome, ..)| discriminant(outcome) == discriminant(&self))
            .map_or("internal", |row| row.1)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(outcome.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signal_that_ends_a_run_has_the_word_of_sigterm() {
        let by_sigusr1 = Outcome::Terminated(10);
        assert_eq!((by_sigusr1.code(), by_sigusr1.word()), (138, "terminated"));
    }

    #[test]
    fn codes_and_words_are_those_that_scripts_know() {
        let table: Vec<_> =
            Outcome::ALL.iter().map(|(outcome, word, _)| (outcome.code(), *word)).collect();
        assert_eq!(
            table,
            [
                (0, "ok"),
                (1, "internal"),
                (2, "usage"),
                (10, "rejected"),
                (11, "protocol"),
                (12, "truncated"),
                (13, "filtered"),
                (14, "empty"),
                (15, "context"),
                (20, "max_steps"),
                (21, "max_tokens_total"),
                (22, "stuck"),
                (30, "session_damaged"),
                (31, "session_locked"),
                (32, "session_write"),
                (40, "verify_failed"),
                (75, "transient"),
                (124, "deadline"),
                (129, "hangup"),
                (130, "interrupt"),
                (143, "terminated"),
            ]
        );
    }
}
