//! Which processes came of a command, as `/proc` tells on Linux.
//!
//! A process that leaves its group (`timeout`, `setsid`, a daemon) still has a parent and a
//! session. Where there is no such `/proc`, there are no processes to be found.

use std::collections::HashSet;
use std::fs;

use crate::text::Lossy;

/// What names a process and those that it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) id: i32,
    pub(super) parent: i32,
    pub(super) session: i32,
    pub(super) name: String,
    /// Ticks since the machine started.
    pub(super) start: u64,
    /// Whether it only waits to be reaped.
    pub(super) ended: bool,
}

impl Process {
    /// Reads a line of the form `7 (sh) S 1 7 7 0 ...`. The name may hold anything, brackets too.
    fn parse(stat: &str) -> Option<Process> {
        let (id, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let start = fields.nth(15)?.parse().ok()?;
        let ended = matches!(state, "Z" | "X");
        let (id, name) = (id.parse().ok()?, name.to_owned());
        Some(Process { id, parent, session, name, start, ended })
    }
}

/// Processes that were seen together, and whatever lives in a session of one of them. This is what
/// is left of them when the ways from parent to child are cut.
#[derive(Debug, Default)]
pub(super) struct Family {
    /// Numbers with the start, since another process may get the same number later.
    members: HashSet<(i32, u64)>,
    sessions: HashSet<i32>,
}

impl Family {
    /// These processes, and this session beside theirs.
    pub(super) fn new(processes: &[Process], session: i32) -> Family {
        let members = processes.iter().map(|one| (one.id, one.start)).collect();
        // A member may yet begin a session, which then has its number.
        let sessions = processes.iter().flat_map(|one| [one.id, one.session]);
        Family { members, sessions: sessions.chain([session]).collect() }
    }

    /// Whether a process is one of them or in a session of theirs.
    pub(super) fn holds(&self, one: &Process) -> bool {
        self.members.contains(&(one.id, one.start)) || self.sessions.contains(&one.session)
    }
}

/// Every process that can be seen.
pub(super) fn all() -> Vec<Process> {
    // In a new namespace there may still be the /proc of the old one, in which the same numbers are
    // other processes.
    let own = fs::read_link("/proc/self");
    if own.is_ok_and(|own| own.as_os_str() != std::process::id().to_string().as_str()) {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.flatten().filter(|entry| {
        entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit)
    });
    // One that ends in between can't be read.
    let stats = names.filter_map(|entry| fs::read(entry.path().join("stat")).ok());
    stats.filter_map(|stat| Process::parse(&Lossy::new(&stat).text)).collect()
}

/// The roots and all that is below them.
pub(super) fn below(mut all: Vec<Process>, is_root: impl Fn(&Process) -> bool) -> Vec<Process> {
    let roots = all.iter().filter(|one| is_root(one));
    let mut found: HashSet<i32> = roots.map(|one| one.id).collect();
    loop {
        let before = found.len();
        for one in &all {
            if found.contains(&one.parent) {
                found.insert(one.id);
            }
        }
        if found.len() == before {
            all.retain(|one| found.contains(&one.id));
            return all;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let rest = "Z 12 70 71 0 -1 4194304 105 0 0 0 0 0 0 0 20 0 1 0 404714 3133440 383";
        for name in ["sh", "a) S 1 1 1 (b", ""] {
            let (start, name) = (404_714, name.to_owned());
            let parsed = Process::parse(&format!("7 ({name}) {rest}"));
            let process = Process { id: 7, parent: 12, session: 71, name, start, ended: true };
            assert_eq!(parsed, Some(process));
        }
        assert_eq!(Process::parse("7 (sh) S 1"), None);
        assert_eq!(Process::parse(""), None);
    }

    #[test]
    fn what_is_below_a_root_is_found_in_any_order() {
        let process = |id, parent, session| Process {
            id,
            parent,
            session,
            name: String::new(),
            start: 0,
            ended: false,
        };
        let all = vec![
            process(9, 8, 9),
            process(8, 7, 7),
            process(7, 1, 7),
            process(6, 1, 7),
            process(5, 1, 5),
        ];
        let ids = |is_root: fn(&Process) -> bool| -> Vec<i32> {
            below(all.clone(), is_root).iter().map(|one| one.id).collect()
        };
        assert_eq!(ids(|one| one.id == 7), [9, 8, 7]);
        assert_eq!(ids(|one| one.session == 7), [9, 8, 7, 6]);
        assert_eq!(ids(|_| false), [0; 0]);
    }

    #[test]
    fn a_family_is_known_by_number_and_start_and_by_session() {
        let process = |id, session, start| Process {
            id,
            parent: 1,
            session,
            name: String::new(),
            start,
            ended: false,
        };
        let family = Family::new(&[process(7, 5, 100), process(8, 7, 101)], 3);
        for (one, is_held) in [
            (process(7, 9, 100), true),
            // Another process got the number.
            (process(7, 9, 102), false),
            (process(20, 5, 200), true),
            (process(20, 3, 200), true),
            // In the session that a member has begun since.
            (process(20, 8, 200), true),
            (process(20, 20, 200), false),
        ] {
            assert_eq!(family.holds(&one), is_held, "{one:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_process_itself_is_among_all() {
        let own = i32::try_from(std::process::id()).unwrap();
        let own = all().into_iter().find(|one| one.id == own).unwrap();
        assert!(own.start > 0 && !own.ended);
    }
}
