//! Where the result goes: standard output, and the file of `--output-file`.
//!
//! Nothing gets there unmasked. Shared by the loop and the thread that may end the process, so that
//! there is one result whoever comes first. No lock is held while anything is waited for but the
//! one of standard output, and that only while it is written: who finds it taken knows that a line
//! there is not finished.

use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use super::args::Format;
use super::failure::Failure;
use super::ledger::Ledger;
use super::object::Object;
use super::pulse::Pulse;
use crate::fs::replace::Target;
use crate::gate::Gate;
use crate::outcome::Outcome;
use crate::process::{self, Standard};
use crate::secret::Mask;
use crate::time::{rfc3339, within};

/// The version of everything that is written as JSON. Later releases of the same version may add
/// members and types of events, and nothing else.
const VERSION: u32 = 1;

/// How long standard output may take for a result when the process is about to end.
const TELL_MAX: Duration = Duration::from_secs(2);

/// How long the file may take then.
const FILE_MAX: Duration = Duration::from_secs(5);

/// See the module.
pub(super) struct Publisher {
    /// Once it is closed, nothing more is said but the result.
    pub(super) gate: Arc<Gate>,
    mask: Mask,
    pulse: Mutex<Pulse>,
    ledger: Mutex<Ledger>,
    format: Format,
    file: Option<Target>,
    /// What has gone to standard output, where a file is to have it too.
    kept: Mutex<Vec<u8>>,
    stdout: Mutex<State>,
    sequence: AtomicU64,
    last_word: Mutex<LastWord>,
}

/// What has become of standard output.
#[derive(Default)]
struct State {
    failed: Option<io::Error>,
}

/// Who has the last word.
#[derive(Clone, Copy, Default)]
enum LastWord {
    /// Nobody yet.
    #[default]
    Open,
    /// The loop has said it, and the process is to end with this outcome, whatever comes.
    Said(Outcome),
    /// Whoever ends the process.
    Taken,
}

impl Publisher {
    /// Publishes in this form; to that file, too; and nothing that is to be masked. The mask holds
    /// all that is secret: nothing is added to it later.
    pub(super) fn new(format: Format, file: Option<Target>, mask: Mask) -> Publisher {
        Publisher {
            gate: Arc::default(),
            mask,
            pulse: Mutex::new(Pulse::new()),
            ledger: Mutex::new(Ledger::new()),
            format,
            file,
            kept: Mutex::default(),
            stdout: Mutex::default(),
            sequence: AtomicU64::new(1),
            last_word: Mutex::default(),
        }
    }

    /// What is masked in everything that is written.
    pub(super) fn mask(&self) -> &Mask {
        &self.mask
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.ledger)
    }

    pub(super) fn pulse(&self) -> MutexGuard<'_, Pulse> {
        lock(&self.pulse)
    }

    /// Whether standard output gets text and no JSON.
    pub(super) fn is_text(&self) -> bool {
        self.format == Format::Text
    }

    /// Writes an event, where events are asked for.
    pub(super) fn event(&self, stdout: &mut dyn Write, kind: &str, members: Object) {
        if self.format == Format::Jsonl {
            // A number is taken only by a line that is written: the last one leaves no gap.
            let _pass = self.gate.enter();
            let number = self.sequence.fetch_add(1, Ordering::Relaxed);
            let line = self.line(kind, number, members);
            self.keep(&line);
            // A reader that is gone is told of at the end; the work goes on.
            let _ = self.put(stdout, &line);
        }
    }

    /// Writes a piece of text that is no answer, such as a session that is to be shown. Where a
    /// file has it too, it may be that nobody reads the rest of it from standard output.
    pub(super) fn text(&self, stdout: &mut dyn Write, text: &str) -> io::Result<()> {
        let text = &self.mask.text(text);
        let _pass = self.gate.enter();
        self.keep(text);
        match self.put(stdout, text) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe && self.file.is_some() => Ok(()),
            result => result,
        }
    }

    /// Writes the last there is to say, and returns how the run ended after that: that it can't be
    /// said changes it. To be called once, and with a pass of the gate. Does not return when
    /// somebody else has had the last word meanwhile, because it took too long.
    pub(super) fn conclude(
        &self,
        stdout: &mut dyn Write,
        ended: Result<Option<String>, Failure>,
    ) -> Result<(), Failure> {
        let mut ended = ended;
        let mut last = self.last(&ended);
        // The file comes first: what stands there can still be replaced when the other fails.
        if let Err(error) = self.write_file(&last) {
            ended = ended.and(Err(unwritten_file(&error)));
            last = self.last(&ended);
        }
        let printed = if last.is_empty() { Ok(()) } else { self.put(stdout, &last) };
        let ended = match (ended, printed) {
            (ended, Ok(())) => ended.map(drop),
            (Err(failure), Err(_)) => Err(failure),
            (Ok(_), Err(error)) => {
                let failure = unwritten("stdout", &error);
                // Why it can't be written either would change nothing.
                let _ = self.write_file(&self.last(&Err(failure.clone())));
                Err(failure)
            }
        };
        let mut word = lock(&self.last_word);
        while matches!(*word, LastWord::Taken) {
            drop(word);
            // The process is about to end.
            thread::park();
            word = lock(&self.last_word);
        }
        *word =
            LastWord::Said(ended.as_ref().map_or_else(|failure| failure.outcome, |()| Outcome::Ok));
        ended
    }

    /// How the run has ended, once the last word is out.
    pub(super) fn said(&self) -> Option<Outcome> {
        match *lock(&self.last_word) {
            LastWord::Said(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// The last word of a process that is about to end whatever the loop does, once the gate is
    /// closed. Gives how the run has ended where that was said in the last moment.
    pub(super) fn conclude_late(self: &Arc<Publisher>, failure: &Failure) -> Result<(), Outcome> {
        {
            let mut word = lock(&self.last_word);
            if let LastWord::Said(outcome) = *word {
                return Err(outcome);
            }
            *word = LastWord::Taken;
        }
        let last = self.last(&Err(failure.clone()));
        if let Ok(state) = self.stdout.try_lock()
            && state.failed.is_none()
        {
            process::tell(Standard::Output, &last, TELL_MAX);
        }
        if self.file.is_some() {
            let publisher = Arc::clone(self);
            let write = move || publisher.write_file(&last).is_ok();
            // There is nobody left to tell.
            let _ = within(Some(FILE_MAX), write);
        }
        Ok(())
    }

    /// What is still to be said on standard output.
    fn last(&self, ended: &Result<Option<String>, Failure>) -> String {
        if self.is_text() {
            let answer = ended.as_ref().ok().and_then(Option::as_ref);
            let line = |answer: &String| format!("{}\n", self.mask.text(answer));
            return answer.map_or_else(String::new, line);
        }
        let ended = ended.as_ref().map(|answer| answer.as_deref());
        let object = self.ledger().result(Object::new(), ended);
        self.line("result", self.sequence.load(Ordering::Relaxed), object)
    }

    /// A line of JSON: what every line has, and then the members of its own.
    fn line(&self, kind: &str, number: u64, members: Object) -> String {
        Object::new()
            .with("version", VERSION)
            .with_word("type", Some(kind))
            .with("seq", number)
            .with_word("time", Some(&rfc3339(SystemTime::now())))
            .followed_by(members)
            .into_line(&self.mask)
    }

    fn keep(&self, text: &str) {
        if self.file.is_some() {
            lock(&self.kept).extend_from_slice(text.as_bytes());
        }
    }

    fn put(&self, stdout: &mut dyn Write, text: &str) -> io::Result<()> {
        let mut state = lock(&self.stdout);
        if let Some(error) = &state.failed {
            // A line of which a part is missing must not be followed by another.
            return Err(io::Error::new(error.kind(), error.to_string()));
        }
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        if let Err(error) = &written {
            state.failed = Some(io::Error::new(error.kind(), error.to_string()));
        }
        written
    }

    fn write_file(&self, last: &str) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let kept = lock(&self.kept).clone();
        let replaced = file.replace(&|new| {
            new.write_all(&kept)?;
            new.write_all(last.as_bytes())
        });
        // What stands there is not of this run, and must not pass for it.
        replaced.map(drop).inspect_err(|_| drop(file.clear()))
    }
}

fn unwritten_file(error: &io::Error) -> Failure {
    let what = format!("the output file can't be written: {error}");
    Failure::internal(what, "free some space, or use another file")
}

pub(super) fn unwritten(what: &str, error: &io::Error) -> Failure {
    let advice = "check its reader, or free some space";
    Failure::internal(format!("{what} can't be written: {error}"), advice)
}

/// What a thread that panicked left behind is still whole: nothing here is changed in two steps.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn an_event_that_comes_too_late_takes_no_number() {
        let publisher = Arc::new(Publisher::new(Format::Jsonl, None, Mask::default()));
        assert!(publisher.gate.close(Duration::ZERO));
        let late = Arc::clone(&publisher);
        let event = move || late.event(&mut io::sink(), "late", Object::new());
        // It waits for ever, as its process is about to end.
        assert_eq!(within(Some(Duration::from_millis(20)), event).unwrap(), None);
        assert!(publisher.last(&Ok(None)).contains("\"seq\":1,"));
    }

    #[test]
    fn whatever_is_written_is_masked() {
        for format in [Format::Text, Format::Json, Format::Jsonl] {
            let key = "sk-TESTKEY-1";
            let mask = Mask::new(Secret::parse(key).unwrap());
            let publisher = Publisher::new(format, None, mask);
            let mut stdout = Vec::new();
            publisher.event(&mut stdout, "odd", Object::new().with("what", key));
            publisher.text(&mut stdout, key).unwrap();
            publisher.ledger().warning(key);
            assert_eq!(publisher.conclude(&mut stdout, Ok(Some(key.to_owned()))), Ok(()));
            let text = String::from_utf8(stdout).unwrap();
            let all =
                if format == Format::Text { 2 } else { 3 + usize::from(format == Format::Jsonl) };
            assert_eq!((text.matches(key).count(), text.matches("[api key]").count()), (0, all));
        }
    }
}
