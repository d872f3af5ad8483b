//! The one place where a request is sent again.
//!
//! A request has no effect but a completion, and nothing of one that did not come whole is
//! executed, so sending the same bytes again is safe. What is worth it is said by the error; here
//! is only how often, and how long to wait in between: twice as long each time, with jitter, so
//! that many runs that failed together don't come back together; or as long as the endpoint asks.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::thread;
use std::time::{Duration, Instant};

use crate::provider::{Meaning, Notice, Notify, ProviderError, is_transient};
use crate::time::Deadline;

/// The first pause; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(500);

/// The longest pause that nobody asked for.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The longest pause that an endpoint may ask for. Whoever asks for more is better asked again by
/// the next run.
const ASKED_MAX: Duration = Duration::from_secs(5 * 60);

/// How long a server may load its model.
const LOADING_MAX: Duration = Duration::from_secs(10 * 60);

/// The longest pause between two looks whether a model is loaded, unless the endpoint asks for one.
const LOADING_PAUSE_MAX: Duration = Duration::from_secs(5);

/// How many times an endpoint is asked again that could not read the call of the model.
const AGAIN_MAX: u32 = 2;

/// Attempts until there is a result, an error that another attempt won't change, or no attempt
/// left.
///
/// # Errors
///
/// The error of the last attempt, in [`ProviderError::Spent`] where there were several or the pause
/// that the endpoint asked for is too long. A pause never reaches beyond the deadline.
pub(crate) fn run<T>(
    max_retries: u32,
    deadline: Deadline,
    notify: Notify<'_>,
    mut attempt: impl FnMut() -> Result<T, ProviderError>,
) -> Result<T, ProviderError> {
    let mut attempts = 0;
    let mut retries = 0;
    let mut again = 0;
    let mut loading = Loading::default();
    loop {
        let error = match attempt() {
            Ok(result) => return Ok(result),
            Err(error) => error,
        };
        attempts += 1;
        let Some(reason) = Reason::of(&error) else { return Err(error) };
        if reason == Reason::BadCall {
            if again == AGAIN_MAX {
                return Err(spent(attempts, None, error));
            }
            again += 1;
            (notify.0)(&Notice::AskAgain { time: again, times: AGAIN_MAX, error: &error });
            continue;
        }
        let asked = retry_after(&error);
        if reason == Reason::Loading
            && let Some(pause) = loading.pause(asked)
            && fits(pause, deadline)
        {
            (notify.0)(&Notice::Loading { pause });
            thread::sleep(pause);
            continue;
        }
        // No pause at all would spend the retries in no time.
        let pause = asked.filter(|asked| *asked >= PAUSE_FIRST);
        let pause = pause.unwrap_or_else(|| backoff(retries));
        let too_long = asked.filter(|asked| *asked > ASKED_MAX || !fits(*asked, deadline));
        if retries >= max_retries || too_long.is_some() || !fits(pause, deadline) {
            return Err(spent(attempts, too_long, error));
        }
        retries += 1;
        (notify.0)(&Notice::Retry { retry: retries, max_retries, pause, error: &error });
        thread::sleep(pause);
    }
}

/// Why another attempt may go better.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    Busy,
    Loading,
    /// The model may write its call better the next time, and nothing has to be waited for.
    BadCall,
}

impl Reason {
    fn of(error: &ProviderError) -> Option<Reason> {
        match error {
            ProviderError::Status(status) => match status.meaning {
                Meaning::Busy => Some(Reason::Busy),
                Meaning::Loading => Some(Reason::Loading),
                Meaning::BadCall => Some(Reason::BadCall),
                Meaning::Refused
                | Meaning::Unfit
                | Meaning::RoleOrder
                | Meaning::Context(_)
                | Meaning::Filtered
                | Meaning::Quota
                | Meaning::Unclear => None,
            },
            ProviderError::Transport { .. } | ProviderError::Timeout { .. } => Some(Reason::Busy),
            ProviderError::Proxy { status, .. } if is_transient(*status) => Some(Reason::Busy),
            ProviderError::Deadline
            | ProviderError::Tls { .. }
            | ProviderError::Proxy { .. }
            | ProviderError::Response { .. }
            | ProviderError::Replay { .. }
            | ProviderError::Spent { .. } => None,
        }
    }
}

fn retry_after(error: &ProviderError) -> Option<Duration> {
    match error {
        ProviderError::Status(status) => status.retry_after,
        _ => None,
    }
}

/// Whether there is time for the pause and for an attempt after it.
fn fits(pause: Duration, deadline: Deadline) -> bool {
    deadline.remaining().is_none_or(|remaining| pause < remaining)
}

fn spent(attempts: u32, asked: Option<Duration>, error: ProviderError) -> ProviderError {
    match asked {
        None if attempts == 1 => error,
        _ => ProviderError::Spent { attempts, asked, last: Box::new(error) },
    }
}

/// The pause before the retry that follows `retries` others, between half and all of its length.
fn backoff(retries: u32) -> Duration {
    let whole = PAUSE_FIRST.saturating_mul(1 << retries.min(16)).min(PAUSE_MAX);
    // Each RandomState has keys of its own, which makes an empty hash a random number.
    let random = RandomState::new().build_hasher().finish();
    whole.mul_f64(0.5 + (random >> 11) as f64 / (1_u64 << 54) as f64)
}

/// How long a model has been loading.
#[derive(Default)]
struct Loading {
    since: Option<Instant>,
    looks: u32,
}

impl Loading {
    /// The pause before the next look; none when it takes too long.
    fn pause(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let since = *self.since.get_or_insert_with(Instant::now);
        let own = || backoff(self.looks).min(LOADING_PAUSE_MAX);
        let pause = asked.filter(|asked| *asked >= PAUSE_FIRST).unwrap_or_else(own);
        self.looks += 1;
        (since.elapsed() + pause <= LOADING_MAX).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::provider::{Overflow, StatusError};

    fn status(meaning: Meaning, retry_after: Option<u64>) -> ProviderError {
        ProviderError::Status(StatusError {
            status: 429,
            meaning,
            message: None,
            location: None,
            retry_after: retry_after.map(Duration::from_millis),
            body: Vec::new(),
        })
    }

    /// Fails in these ways, then succeeds; gives the result, and the pauses that were told.
    fn run_all(
        max_retries: u32,
        deadline: Deadline,
        errors: Vec<ProviderError>,
    ) -> (Result<(), ProviderError>, Vec<Duration>) {
        let pauses = RefCell::new(Vec::new());
        let mut errors = errors.into_iter();
        let notify = |notice: &Notice<'_>| match notice {
            Notice::Retry { pause, .. } | Notice::Loading { pause } => {
                pauses.borrow_mut().push(*pause);
            }
            _ => {}
        };
        let result =
            run(max_retries, deadline, Notify(&notify), || errors.next().map_or(Ok(()), Err));
        (result, pauses.into_inner())
    }

    fn busy() -> ProviderError {
        status(Meaning::Busy, Some(501))
    }

    #[test]
    fn what_may_go_better_is_tried_again_after_the_pause_that_was_asked_for() {
        let transport = ProviderError::Transport { detail: String::new() };
        let (result, pauses) = run_all(4, Deadline::NONE, vec![busy(), transport]);
        assert!(result.is_ok());
        assert_eq!(pauses[0], Duration::from_millis(501));
        assert!(pauses[1] >= PAUSE_FIRST / 2 && pauses[1] <= PAUSE_FIRST * 2, "{pauses:?}");
        let (_, pauses) = run_all(4, Deadline::NONE, vec![status(Meaning::Busy, Some(0))]);
        assert!(pauses[0] >= PAUSE_FIRST / 2, "{pauses:?}");
    }

    #[test]
    fn what_stays_as_it_is_is_tried_once() {
        for meaning in [
            Meaning::Refused,
            Meaning::Unfit,
            Meaning::RoleOrder,
            Meaning::Context(Overflow::default()),
            Meaning::Filtered,
            Meaning::Quota,
            Meaning::Unclear,
        ] {
            let (result, pauses) = run_all(4, Deadline::NONE, vec![status(meaning, Some(1))]);
            assert!(matches!(result, Err(ProviderError::Status(_))), "{meaning:?}");
            assert!(pauses.is_empty());
        }
    }

    #[test]
    fn a_call_that_could_not_be_read_is_asked_for_twice_more_beside_the_retries() {
        let bad = || status(Meaning::BadCall, Some(1));
        let (result, _) = run_all(0, Deadline::NONE, vec![bad(), bad()]);
        assert!(result.is_ok(), "{result:?}");
        let (result, pauses) = run_all(1, Deadline::NONE, vec![bad(), busy(), bad(), bad()]);
        let error = result.unwrap_err();
        assert!(matches!(error, ProviderError::Spent { attempts: 4, .. }), "{error:?}");
        assert_eq!(error.outcome(), crate::outcome::Outcome::Protocol);
        assert_eq!(pauses.len(), 1);
    }

    #[test]
    fn spent_retries_are_told_with_the_number_of_attempts() {
        let (result, pauses) = run_all(2, Deadline::NONE, vec![busy(), busy(), busy(), busy()]);
        assert!(matches!(result, Err(ProviderError::Spent { attempts: 3, asked: None, .. })));
        assert_eq!(pauses.len(), 2);
        let (result, _) = run_all(0, Deadline::NONE, vec![busy()]);
        assert!(matches!(result, Err(ProviderError::Status(_))));
    }

    #[test]
    fn a_pause_that_is_too_long_ends_it_at_once() {
        let hour = Some(3_600_000);
        for (deadline, asked) in
            [(Deadline::NONE, hour), (Deadline::after(Some(Duration::from_secs(60))), Some(61_000))]
        {
            let errors = vec![status(Meaning::Busy, asked)];
            let (result, pauses) = run_all(4, deadline, errors);
            let Err(ProviderError::Spent { attempts: 1, asked: told, .. }) = result else {
                panic!("{result:?}");
            };
            assert_eq!(told, asked.map(Duration::from_millis));
            assert!(pauses.is_empty());
        }
    }

    #[test]
    fn a_loading_model_is_waited_for_beside_the_retries() {
        let loading = || status(Meaning::Loading, None);
        let errors = vec![loading(), loading(), loading(), busy(), loading()];
        let (result, pauses) = run_all(1, Deadline::NONE, errors);
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(pauses.len(), 5);
        let mut long = Loading { since: Instant::now().checked_sub(LOADING_MAX), looks: 0 };
        if long.since.is_some() {
            assert_eq!(long.pause(None), None);
        }
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_differ() {
        for (retries, whole) in [(0, 500), (1, 1_000), (5, 16_000), (6, 30_000), (99, 30_000)] {
            let whole = Duration::from_millis(whole);
            let pauses: Vec<Duration> = (0..50).map(|_| backoff(retries)).collect();
            assert!(
                pauses.iter().all(|pause| *pause >= whole / 2 && *pause <= whole),
                "{pauses:?}"
            );
            assert!(pauses.iter().any(|pause| *pause != pauses[0]));
        }
    }
}
