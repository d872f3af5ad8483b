//! Why a run ended without an answer.

use std::fmt;

use crate::outcome::Outcome;
use crate::provider::ProviderError;
use crate::session::SessionError;
use crate::text::counted;
use crate::verdict::Refusal;

/// Why a run ended without an answer.
///
/// `Display` says what happened, [`advice`](Error::advice) what to do, and
/// [`outcome`](Error::outcome) is what a script sees. Embedders branch with `match`.
///
/// What others said stands in there whole and as it came. Who shows it masks it first, and only
/// then makes it short and safe to print, as [`message_line`](crate::text::message_line) does: of a
/// key that is cut in two, neither part would be known.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There was no completion.
    Provider(ProviderError),
    /// There was one, and it can't be trusted. It is in the log, marked as refused.
    Refused(Refusal),
    /// The session can't be read or written.
    Session(SessionError),
    /// The last step that was allowed ended in tool calls.
    MaxSteps {
        /// How many were allowed.
        max_steps: u32,
    },
    /// The tokens of the run were spent before there was an answer.
    MaxTokensTotal {
        /// What the endpoint reported so far.
        spent: u64,
        /// What was allowed.
        limit: u64,
    },
    /// The model made the same call again and again, with the same result.
    Stuck {
        /// The tool.
        tool: String,
        /// How often.
        times: u32,
    },
    /// No answer passed its verification.
    VerifyFailed {
        /// What was run.
        command: String,
        /// How many answers there were.
        attempts: u32,
        /// How it ended the last time.
        summary: String,
    },
    /// The run's time is over.
    Deadline,
}

impl Error {
    /// The outcome of the run.
    pub fn outcome(&self) -> Outcome {
        match self {
            Error::Provider(error) => error.outcome(),
            Error::Refused(refusal) => refusal.outcome(),
            Error::Session(error) => error.outcome(),
            Error::MaxSteps { .. } => Outcome::MaxSteps,
            Error::MaxTokensTotal { .. } => Outcome::MaxTokensTotal,
            Error::Stuck { .. } => Outcome::Stuck,
            Error::VerifyFailed { .. } => Outcome::VerifyFailed,
            Error::Deadline => Outcome::Deadline,
        }
    }

    /// What the user can do about it.
    pub fn advice(&self) -> String {
        match self {
            Error::Provider(error) => error.advice().to_owned(),
            Error::Refused(refusal) => refusal.advice(),
            Error::Session(error) => error.advice(),
            Error::MaxSteps { .. } => {
                "raise --max-steps; a run with --session can be resumed".to_owned()
            }
            Error::MaxTokensTotal { .. } => {
                "raise --max-total-tokens; a run with --session can be resumed".to_owned()
            }
            Error::Stuck { .. } => "change the prompt or the model".to_owned(),
            Error::VerifyFailed { .. } => {
                "see what the command finds; a run with --session can be resumed".to_owned()
            }
            Error::Deadline => "raise --timeout; a run with --session can be resumed".to_owned(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Provider(error) => error.fmt(f),
            Error::Refused(refusal) => refusal.fmt(f),
            Error::Session(error) => error.fmt(f),
            Error::MaxSteps { max_steps } => {
                write!(f, "no answer after {}", counted((*max_steps).into(), "step"))
            }
            Error::MaxTokensTotal { spent, limit } => {
                write!(f, "no answer after {spent} tokens of the {limit} that are allowed")
            }
            Error::Stuck { tool, times } => {
                write!(f, "the same call of {tool} had the same result {times} times in a row")
            }
            Error::VerifyFailed { command, attempts, summary } => {
                let answers = counted((*attempts).into(), "answer");
                write!(f, "`{command}` did not pass after {answers}, at last: {summary}")
            }
            Error::Deadline => f.write_str("the run's time is over"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Provider(error) => Some(error),
            Error::Refused(refusal) => Some(refusal),
            Error::Session(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ProviderError> for Error {
    fn from(error: ProviderError) -> Error {
        match error {
            // Wherever the time ran out, it is the run's.
            ProviderError::Deadline => Error::Deadline,
            error => Error::Provider(error),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::Refused(refusal)
    }
}

impl From<SessionError> for Error {
    fn from(error: SessionError) -> Error {
        Error::Session(error)
    }
}
