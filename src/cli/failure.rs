//! Why there is no answer, in words and as an outcome.

use super::args::UsageError;
use crate::error::Error;
use crate::outcome::Outcome;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) outcome: Outcome,
    /// What happened.
    pub(super) what: String,
    /// What to do about it.
    pub(super) advice: Option<String>,
}

impl Failure {
    /// Something on our side that should work.
    pub(super) fn internal(what: String, advice: &str) -> Failure {
        Failure { outcome: Outcome::Internal, what, advice: Some(advice.to_owned()) }
    }
}

impl From<UsageError> for Failure {
    fn from(error: UsageError) -> Failure {
        Failure { outcome: Outcome::Usage, what: error.to_string(), advice: None }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { outcome: error.outcome(), what: error.to_string(), advice: Some(error.advice()) }
    }
}
