//! How long a request may take, and which limit it was that ended it.

use std::time::Duration;

use super::Settings;
use crate::provider::ProviderError;
use crate::time::Deadline;

/// How long finding and reaching the other side may take, TLS included.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the other side may take to answer a TLS handshake. One that has accepted the connection
/// and says nothing for so long most likely waits for a request without TLS.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest limit that is passed on. The clock of the library can't tell a time that lies too
/// far ahead.
const LIMIT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The time limits of one request.
pub(super) struct Limits {
    /// The shorter of what is left of the run and the limit of a request.
    pub(super) whole: Option<Duration>,
    whole_is_deadline: bool,
    request: Option<Duration>,
    pub(super) idle: Option<Duration>,
    pub(super) connect: Duration,
}

impl Limits {
    /// From now on; `request` is when the request must have ended, and `deadline` when the run.
    pub(super) fn new(settings: &Settings, request: Deadline, deadline: Deadline) -> Limits {
        let capped = |limit: Option<Duration>| limit.map(|limit| limit.min(LIMIT_MAX));
        let (left, request) = (deadline.remaining(), request.remaining());
        let whole_is_deadline =
            left.is_some_and(|left| request.is_none_or(|request| left <= request));
        let idle = capped(settings.idle_timeout);
        Limits {
            whole: capped(if whole_is_deadline { left } else { request }),
            whole_is_deadline,
            request: settings.request_timeout,
            idle,
            connect: idle.map_or(CONNECT_TIMEOUT, |idle| idle.min(CONNECT_TIMEOUT)),
        }
    }

    /// The error for a limit of ours; none where it is the fixed one of connecting.
    pub(super) fn error(&self, timeout: ureq::Timeout) -> Option<ProviderError> {
        match timeout {
            ureq::Timeout::Global if self.whole_is_deadline => Some(ProviderError::Deadline),
            ureq::Timeout::Global => {
                let after = self.request?;
                Some(ProviderError::Timeout { limit: "--request-timeout", after })
            }
            // Connecting is limited by whichever is shorter.
            ureq::Timeout::Resolve | ureq::Timeout::Connect if self.connect == CONNECT_TIMEOUT => {
                None
            }
            _ => Some(ProviderError::Timeout { limit: "--idle-timeout", after: self.idle? }),
        }
    }
}
