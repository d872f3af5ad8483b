//! Points in time: when the run must end, and what a record says about when it was made.

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// The moment at which a run must have ended, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// No limit.
    pub const NONE: Deadline = Deadline(None);

    /// The moment that lies `limit` after now; no limit without one, or when it lies further away
    /// than the clock can tell.
    pub fn after(limit: Option<Duration>) -> Deadline {
        Deadline(limit.and_then(|limit| Instant::now().checked_add(limit)))
    }

    /// What is left: none without a limit, zero when it has passed.
    pub fn remaining(self) -> Option<Duration> {
        self.0.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Whether the moment has come.
    pub fn has_passed(self) -> bool {
        self.remaining() == Some(Duration::ZERO)
    }

    /// The shorter of `limit` and what is left.
    pub fn cap(self, limit: Option<Duration>) -> Option<Duration> {
        match (self.remaining(), limit) {
            (Some(remaining), Some(limit)) => Some(remaining.min(limit)),
            (remaining, limit) => remaining.or(limit),
        }
    }
}

/// Runs `work`, which may hang for ever, on a thread and waits at most `limit`. Gives its result,
/// or none where it took longer; the thread is left behind then.
///
/// # Errors
///
/// There is no thread to be had.
pub fn within<T: Send + 'static>(
    limit: Option<Duration>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let (sender, result) = mpsc::channel();
    // Whoever asked may have gone on.
    let work = move || drop(sender.send(work()));
    thread::Builder::new().name("within".to_owned()).spawn(work)?;
    Ok(match limit {
        Some(limit) => result.recv_timeout(limit).ok(),
        None => result.recv().ok(),
    })
}

/// `time` in UTC as RFC 3339 has it, to the millisecond: `2026-11-30T12:00:00.000Z`.
///
/// A clock before 1970 gives the start of 1970.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60,
        since.subsec_millis()
    )
}

/// Reads a date as HTTP has it (RFC 9110 section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`, or in one
/// of the two forms that are obsolete and still to be read: `Sunday, 06-Nov-94 08:49:37 GMT` and
/// `Sun Nov  6 08:49:37 1994`.
pub fn parse_http_date(text: &str) -> Option<SystemTime> {
    let words: Vec<&str> = text.split([' ', ',', '-']).filter(|word| !word.is_empty()).collect();
    let (day, month, year, time) = match words.as_slice() {
        [_, day, month, year, time, "GMT"] => (day, month, year, time),
        [_, month, day, time, year] => (day, month, year, time),
        _ => return None,
    };
    let month = 1 + MONTHS.iter().position(|name| name == month)?;
    let clock: Vec<u64> = time.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds @ 0..=60] = clock.as_slice() else { return None };
    let (year, day): (u64, u64) = (year.parse().ok()?, day.parse().ok()?);
    // Two digits are of this century, unless they lie before the start of time.
    let year = match year {
        0..70 => year + 2_000,
        70..100 => year + 1_900,
        _ => year,
    };
    if !(1970..10_000).contains(&year) || !(1..=31).contains(&day) || *hours > 23 || *minutes > 59 {
        return None;
    }
    let days = days_before_year(year) + days_before_month(year, month) + day - 1;
    let since = Duration::from_secs(days * 86_400 + hours * 3_600 + minutes * 60 + seconds);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The days from 1970 to the start of a year.
fn days_before_year(year: u64) -> u64 {
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969)
}

fn days_before_month(year: u64, month: usize) -> u64 {
    const LENGTHS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let before: u64 = LENGTHS.iter().take(month - 1).sum();
    before + u64::from(is_leap && month > 2)
}

/// The Gregorian date that lies `days` after 1970-01-01.
///
/// Counts from 0000-03-01, so that the leap day is the last of its year; eras are 400 years.
/// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, millis: u64) -> String {
        let since = Duration::from_secs(seconds) + Duration::from_millis(millis);
        rfc3339(SystemTime::UNIX_EPOCH + since)
    }

    #[test]
    fn times_are_written_as_rfc_3339_has_them() {
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399, 0), "2000-02-28T23:59:59.000Z");
        assert_eq!(at(951_782_400, 1), "2000-02-29T00:00:00.001Z");
        assert_eq!(at(1_709_251_199, 999), "2024-02-29T23:59:59.999Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn dates_are_read_as_http_has_them() {
        let read = |text| parse_http_date(text).map(rfc3339);
        let date = |text: &str| Some(text.to_owned());
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), date("1994-11-06T08:49:37.000Z"));
        assert_eq!(read("Thu, 29 Feb 2024 23:59:59 GMT"), date("2024-02-29T23:59:59.000Z"));
        assert_eq!(read("Fri, 01 Mar 2024 00:00:00 GMT"), date("2024-03-01T00:00:00.000Z"));
        assert_eq!(read("Mon, 01 Mar 2100 00:00:00 GMT"), date("2100-03-01T00:00:00.000Z"));
        assert_eq!(read("Thu, 01 Jan 1970 00:00:00 GMT"), date("1970-01-01T00:00:00.000Z"));
        for text in ["Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(read(text), date("1994-11-06T08:49:37.000Z"), "{text}");
        }
        assert_eq!(read("Monday, 30-Nov-26 00:00:00 GMT"), date("2026-11-30T00:00:00.000Z"));
        for odd in ["", "soon", "Sun, 06 Nov 1994 25:00:00 GMT", "Sun, 06 Nov 1994 08:49:37 CET"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }

    #[test]
    fn what_hangs_is_left_behind() {
        let soon = Some(Duration::from_secs(30));
        assert_eq!(within(soon, || 7).unwrap(), Some(7));
        assert_eq!(within(None, || 7).unwrap(), Some(7));
        let (sender, never) = mpsc::channel::<()>();
        let hangs = move || never.recv().is_ok();
        assert_eq!(within(Some(Duration::from_millis(1)), hangs).unwrap(), None);
        drop(sender);
    }

    #[test]
    fn a_deadline_caps_and_passes() {
        let minute = Some(Duration::from_secs(60));
        assert_eq!(Deadline::NONE.cap(minute), minute);
        assert_eq!(Deadline::NONE.cap(None), None);
        assert!(!Deadline::NONE.has_passed());
        let now = Deadline::after(Some(Duration::ZERO));
        assert!(now.has_passed());
        assert_eq!(now.cap(minute), Some(Duration::ZERO));
        assert_eq!(Deadline::after(Some(Duration::MAX)), Deadline::NONE);
    }
}
