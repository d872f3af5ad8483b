//! The heartbeat: a line now and then while a run is silent, so that whoever reads the log knows
//! what it waits for.

use std::time::{Duration, Instant};

/// How long a run may be silent.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(30);

/// What a run is doing, and when it last said anything.
pub(super) struct Pulse {
    said: Instant,
    since: Instant,
    /// Masked, on one line; empty while there is nothing to wait for.
    doing: String,
}

impl Pulse {
    pub(super) fn new() -> Pulse {
        let now = Instant::now();
        Pulse { said: now, since: now, doing: String::new() }
    }

    /// Something was said.
    pub(super) fn said(&mut self) {
        self.said = Instant::now();
    }

    /// From now on this is waited for.
    pub(super) fn doing(&mut self, what: String) {
        self.doing = what;
        self.since = Instant::now();
    }

    /// The line that is due, if one is, and how long until another look is worth it.
    pub(super) fn beat(&mut self) -> (Option<String>, Duration) {
        let silent = self.said.elapsed();
        if silent < SILENCE_MAX {
            return (None, SILENCE_MAX - silent);
        }
        self.said();
        let seconds = self.since.elapsed().as_secs();
        let line = format!("{}, {seconds} s so far", self.doing);
        ((!self.doing.is_empty()).then_some(line), SILENCE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that has been silent for this long, in seconds.
    fn silent(seconds: u64) -> Pulse {
        let mut pulse = Pulse::new();
        pulse.doing("step 1/32: waiting for the model".to_owned());
        let before = Duration::from_secs(seconds);
        pulse.said = pulse.said.checked_sub(before).unwrap();
        pulse.since = pulse.since.checked_sub(before).unwrap();
        pulse
    }

    #[test]
    fn a_line_comes_after_so_much_silence_and_then_again_after_as_much() {
        let mut pulse = silent(10);
        let (line, next) = pulse.beat();
        assert_eq!(line, None);
        assert!((19..=20).contains(&next.as_secs()), "{next:?}");
        let mut pulse = silent(30);
        let (line, next) = pulse.beat();
        assert_eq!(line.as_deref(), Some("step 1/32: waiting for the model, 30 s so far"));
        assert_eq!(next, SILENCE_MAX);
        assert_eq!(pulse.beat().0, None);
    }

    #[test]
    fn whoever_speaks_is_not_silent_and_who_waits_for_nothing_has_nothing_to_say() {
        let mut pulse = silent(31);
        pulse.said();
        assert_eq!(pulse.beat().0, None);
        let mut pulse = silent(31);
        pulse.doing(String::new());
        assert_eq!(pulse.beat().0, None);
    }
}
