//! Points in time: when the run must end, and what a record says about when it was made.

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
