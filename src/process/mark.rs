//! Which command a process came from, as its environment tells.
//!
//! A daemon has lost its parent and left its session; what stays with it is the environment, in
//! which every command has a mark of its own. The mark tells commands apart that leave something
//! running. It proves nothing: a program may clear its environment, so that one without a mark may
//! have come from any command.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher as _, RandomState};

/// The variable that holds it.
const VARIABLE: &str = "UNCUT_COMMAND";

/// What a command is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The same for all commands of a run, and for no other run on the machine.
    run: u64,
    command: u64,
}

impl Mark {
    /// Of what comes before the first command of a run.
    pub(super) fn new() -> Mark {
        Mark { run: RandomState::new().hash_one(VARIABLE), command: 0 }
    }

    /// That of the next command of the same run.
    pub(super) fn next(self) -> Mark {
        Mark { command: self.command + 1, ..self }
    }

    /// The variable for the environment of the command.
    pub(super) fn variable(self) -> (&'static OsStr, OsString) {
        (OsStr::new(VARIABLE), format!("{:016x}-{}", self.run, self.command).into())
    }

    /// That in an environment as `/proc` shows it, if it is of the same run.
    #[cfg(unix)]
    pub(super) fn of_same_run(self, environment: &[u8]) -> Option<Mark> {
        let value = environment
            .split(|byte| *byte == 0)
            .find_map(|variable| variable.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="))?;
        let (run, command) = std::str::from_utf8(value).ok()?.split_once('-')?;
        let run = u64::from_str_radix(run, 16).ok()?;
        let command = command.parse().ok()?;
        (run == self.run).then_some(Mark { run, command })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_in_an_environment_of_the_same_run_only() {
        let first = Mark::new().next();
        let second = first.next();
        let environment = |mark: Mark| {
            let (name, value) = mark.variable();
            let (name, value) = (name.to_str().unwrap(), value.to_str().unwrap());
            format!("A=1\0X{name}=0-0\0{name}={value}\0B=2\0").into_bytes()
        };
        assert_eq!(first.of_same_run(&environment(first)), Some(first));
        assert_eq!(first.of_same_run(&environment(second)), Some(second));
        assert_ne!(first, second);
        assert_eq!(first.of_same_run(&environment(Mark::new().next())), None);
        for other in ["", "A=1\0", "UNCUT_COMMAND=\0", "UNCUT_COMMAND=1\0", "UNCUT_COMMAND=x-y"] {
            assert_eq!(first.of_same_run(other.as_bytes()), None, "{other}");
        }
    }
}
