//! The conversation and its log.
//!
//! The log is a file of JSON objects, one a line, that is only ever appended to:
//!
//! ```json
//! {"v":1,"time":"2026-11-30T12:00:00.000Z","message":{"role":"user","content":"hi"}}
//! {"v":1,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop",
//!  "usage":{"prompt_tokens":9,"cached_tokens":0,"completion_tokens":2},"model":"m"}
//! ```
//!
//! (The second record is broken here for width; in a log it is one line.) `v` is 1, `message` is a
//! message in chat-completions form, and everything beside them may be absent. A record with
//! `refused`, whatever its value but null or false, is for readers of the log: its message is no
//! part of the conversation. System messages at the start are read and left out, because the
//! system prompt belongs to the run; anywhere else they are damage.
//!
//! A log is whole or it is refused, with the line and the byte where it stops being whole, and not
//! touched. What is in memory is what was read, also right after it was written: a record goes
//! through the same reader on its way to the file as on its way back, so that the conversation of
//! a run and the one that is resumed from its log can't differ, and nothing is written that could
//! not be read.

mod conversation;
mod error;
mod place;
mod record;
mod repair;
mod show;
mod storage;

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use crate::gate::Gate;
use crate::message::Message;
use crate::secret::Mask;
use crate::text::counted;

use conversation::Conversation;
pub use error::SessionError;
pub use record::Record;
use record::{Entry, ReadError};
pub use repair::Repair;
pub use show::{Ending, Shown, show};
use storage::{Log, Opened};

/// How much of a log is read at once.
const READ_MAX: usize = 64 << 10;

/// What the model is told of a call whose result was lost.
pub const INTERRUPTED: &str = "interrupted: may or may not have taken effect";

/// What the model is told of a call that was never started.
pub const NOT_STARTED: &str = "not run: the run ended before this call was started";

/// The conversation, and its log where there is one.
#[derive(Debug)]
pub struct Session {
    conversation: Conversation,
    log: Option<Log>,
    mask: Mask,
    gate: Arc<Gate>,
    warnings: Vec<String>,
}

impl Session {
    /// A conversation without a log.
    pub fn ephemeral() -> Session {
        Session {
            conversation: Conversation::default(),
            log: None,
            mask: Mask::default(),
            gate: Arc::default(),
            warnings: Vec::new(),
        }
    }

    /// Opens a log, made with mode 0600 where there is none, and reads the conversation from it.
    ///
    /// The log is locked for as long as the session lives; a file system without locks goes
    /// without. It is read in one pass, in memory of the conversation and about twice the longest
    /// line, which has at most 256 MB.
    ///
    /// # Errors
    ///
    /// All but [`SessionError::Changed`] and [`SessionError::Record`]. A log that was there is as
    /// it was.
    pub fn open(path: &Path) -> Result<Session, SessionError> {
        let opened = storage::open(path)?;
        let mut conversation = Conversation::default();
        let len =
            replay(&opened.file, &mut conversation).map_err(|error| unreadable(path, error))?;
        Session::new(path, opened, conversation, len)
    }

    /// Opens a log that is there as [`Session::open`] does, but first moves what is damaged of it,
    /// from the first line that can't be read to the end, to a new file beside it. Returns what
    /// was moved; nothing where the log is whole.
    ///
    /// The bytes are durable where they are moved to before the log is cut.
    ///
    /// # Errors
    ///
    /// All but [`SessionError::Damaged`] and [`SessionError::Record`].
    pub fn repair(path: &Path) -> Result<(Session, Option<Repair>), SessionError> {
        let opened = storage::open_existing(path)?;
        let mut conversation = Conversation::default();
        let (len, repair) = match replay(&opened.file, &mut conversation) {
            Ok(len) => (len, None),
            Err(ReadError::Damaged { line, offset, detail }) => {
                let repair = repair::cut(path, &opened.file, line, offset, detail)?;
                conversation.has_lost_records();
                (offset, Some(repair))
            }
            Err(error) => return Err(unreadable(path, error)),
        };
        Ok((Session::new(path, opened, conversation, len)?, repair))
    }

    fn new(
        path: &Path,
        opened: Opened,
        conversation: Conversation,
        len: u64,
    ) -> Result<Session, SessionError> {
        let unread = |source| SessionError::Open { path: path.to_owned(), source };
        let log = Log::new(path, Box::new(opened.file), len).map_err(unread)?;
        Ok(Session {
            conversation,
            log: Some(log),
            mask: Mask::default(),
            gate: Arc::default(),
            warnings: opened.warnings,
        })
    }

    /// What is odd about the log, if anything, and ends nothing: a line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Masks every record that is appended from now on.
    pub fn with_mask(self, mask: Mask) -> Session {
        Session { mask, ..self }
    }

    /// Asks at this gate before each record is written.
    pub fn with_gate(self, gate: Arc<Gate>) -> Session {
        Session { gate, ..self }
    }

    /// The log, where there is one.
    pub fn path(&self) -> Option<&Path> {
        self.log.as_ref().map(Log::path)
    }

    /// The conversation: what was appended, without what was refused.
    pub fn messages(&self) -> &[Message] {
        self.conversation.messages()
    }

    /// Logs a record durably, and only then makes its message part of the conversation.
    ///
    /// # Errors
    ///
    /// [`SessionError::Record`], [`SessionError::Write`]; the conversation is as it was.
    pub fn append(&mut self, record: &Record) -> Result<(), SessionError> {
        self.log.as_ref().map_or(Ok(()), Log::check)?;
        let invalid = |detail| SessionError::Record { detail };
        let line = self.line(record).map_err(invalid)?;
        let entry = record::read_line(line.as_bytes()).map_err(invalid)?;
        if !entry.refused {
            self.conversation.check(&entry.message).map_err(invalid)?;
        }
        if let Some(log) = &mut self.log {
            let _pass = self.gate.enter();
            log.append(line.as_bytes())?;
        }
        if !entry.refused {
            self.conversation.push_entry(entry);
        }
        Ok(())
    }

    /// Looks whether the log still lies at its path, with the length and the end that it was left
    /// with: what a run says to have recorded has to be there.
    ///
    /// # Errors
    ///
    /// [`SessionError::Changed`], and [`SessionError::Write`] where that can't be found out.
    pub fn confirm(&mut self) -> Result<(), SessionError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        log.confirm()
    }

    /// Answers the tool calls that an earlier run made and did not live to see the result of, in
    /// the log too: with [`INTERRUPTED`] those that may have been started, with [`NOT_STARTED`]
    /// those that can't have been. Returns how many there were; none where there was none.
    ///
    /// A run starts a call once the result of the one before is durable. So of a log with times,
    /// as runs write them, only the first call without a result can have been started.
    ///
    /// # Errors
    ///
    /// Those of [`Session::append`].
    pub fn answer_interrupted_calls(&mut self) -> Result<Option<Unanswered>, SessionError> {
        let started = self.conversation.started();
        let text = |index| if index < started { INTERRUPTED } else { NOT_STARTED };
        let calls = self.conversation.open_calls().enumerate();
        let results: Vec<_> =
            calls.map(|(index, call)| Message::tool_result(call, text(index))).collect();
        let unanswered = Unanswered { started, not_started: results.len() - started };
        let were_any = !results.is_empty();
        results.into_iter().try_for_each(|result| self.append(&Record::from(result)))?;
        Ok(were_any.then_some(unanswered))
    }

    /// The line of a record, newline included. The copy that is masked is dropped here, before the
    /// line is read back, so that a large message is not held twice beside its line.
    fn line(&self, record: &Record) -> Result<String, String> {
        let mut record = Cow::Borrowed(record);
        if !self.mask.is_empty() {
            record.to_mut().mask(&self.mask);
        }
        let mut line = record.to_line(SystemTime::now()).map_err(|error| error.to_string())?;
        line.push('\n');
        Ok(line)
    }
}

/// Reads a log from its start into `conversation`, up to the damage if there is any, and returns
/// its length in bytes.
fn replay(file: &File, conversation: &mut Conversation) -> Result<u64, ReadError> {
    record::read_all(BufReader::with_capacity(READ_MAX, file), |entry| take(conversation, entry))
}

fn unreadable(path: &Path, error: ReadError) -> SessionError {
    let path = path.to_owned();
    match error {
        ReadError::Damaged { line, offset, detail } => {
            SessionError::Damaged { path, line, offset, detail }
        }
        ReadError::Io(source) => SessionError::Open { path, source },
    }
}

fn take(conversation: &mut Conversation, entry: Entry) -> Result<(), String> {
    if admit(conversation, &entry)? {
        conversation.push_entry(entry);
    }
    Ok(())
}

/// Whether the message of an entry that was read is the next one of the conversation; the error
/// says why it should be and can't.
fn admit(conversation: &Conversation, entry: &Entry) -> Result<bool, String> {
    let superseded =
        matches!(entry.message, Message::System(_)) && conversation.messages().is_empty();
    if entry.refused || superseded {
        return Ok(false);
    }
    conversation.check(&entry.message)?;
    Ok(true)
}

/// Tool calls of an earlier run without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unanswered {
    /// How many may have been started.
    pub started: usize,
    /// How many can't have been.
    pub not_started: usize,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unanswered { started, not_started } = *self;
        let calls = counted((started + not_started) as u64, "tool call");
        write!(f, "{calls} of an earlier run without a result; the model is told that ")?;
        f.write_str(match (started, not_started) {
            (1, 0) => "it may or may not have taken effect",
            (_, 0) => "they may or may not have taken effect",
            _ => "only the first may or may not have taken effect: no other was started",
        })
    }
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::message::{AssistantMessage, ToolCall};
    use crate::outcome::Outcome;

    /// A folder of a test's own, gone when it is dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Folder {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("uncut-session-{}-{count}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            // Usable whatever the umask is.
            #[cfg(unix)]
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700))
                .unwrap();
            Folder(path)
        }

        fn log(&self) -> PathBuf {
            self.0.join("log.jsonl")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn user(text: &str) -> Record {
        Record::from(Message::user(text))
    }

    fn calls(ids: &[&str]) -> Record {
        let calls = ids.iter().map(|id| ToolCall::new(*id, "shell", "{}")).collect();
        Record::from(Message::Assistant(AssistantMessage::calls(calls)))
    }

    fn result(id: &str, text: &str) -> Record {
        Record::from(Message::tool_result(&ToolCall::new(id, "shell", "{}"), text))
    }

    /// A log with every kind of record, and the conversation that it holds.
    fn sample(path: &Path) -> Vec<Message> {
        let mut session = Session::open(path).unwrap();
        let cut = Record { refused: Some(Outcome::Truncated), ..calls(&["cut", "cut", ""]) };
        for record in [
            user("what is \u{1f642}?"),
            cut,
            Record { model: Some("m".to_owned()), ..calls(&["c1", "c2"]) },
            result("c1", "a\r\nb"),
            result("c2", ""),
            Record::from(Message::Assistant(AssistantMessage::text("done"))),
        ] {
            session.append(&record).unwrap();
        }
        session.messages().to_vec()
    }

    /// Opens a log that holds `text`, which must be refused as damaged and left as it is. Returns
    /// the line, the offset and the detail.
    #[track_caller]
    fn damage(text: &[u8]) -> (u64, u64, String) {
        let folder = Folder::new();
        fs::write(folder.log(), text).unwrap();
        let error = Session::open(&folder.log()).unwrap_err();
        assert_eq!(fs::read(folder.log()).unwrap(), text);
        assert_eq!(error.outcome(), Outcome::SessionDamaged);
        let SessionError::Damaged { line, offset, detail, .. } = error else {
            panic!("{error}");
        };
        (line, offset, detail)
    }

    #[test]
    fn a_resumed_conversation_is_the_one_that_was_had() {
        let folder = Folder::new();
        let had = sample(&folder.log());
        assert_eq!(had.len(), 5, "the refused message is no part of it");
        let mut session = Session::open(&folder.log()).unwrap();
        assert_eq!(session.messages(), had);
        assert_eq!(session.path(), Some(folder.log().as_path()));

        session.append(&user("more")).unwrap();
        drop(session);
        let session = Session::open(&folder.log()).unwrap();
        assert_eq!(session.messages()[..5], had);
        assert_eq!(session.messages()[5], Message::user("more"));
    }

    /// A crash can leave any start of what was being written.
    #[test]
    fn every_start_of_a_log_is_replayed_whole_or_refused() {
        let folder = Folder::new();
        let had = sample(&folder.log());
        let whole = fs::read(folder.log()).unwrap();
        for len in 0..=whole.len() {
            let part = &whole[..len];
            let records = part.split_inclusive(|byte| *byte == b'\n');
            let (complete, torn): (Vec<_>, Vec<_>) = records.partition(|r| r.ends_with(b"\n"));
            if torn.is_empty() {
                fs::write(folder.log(), part).unwrap();
                let session = Session::open(&folder.log()).unwrap();
                // The second record is the refused one.
                let count = complete.len() - usize::from(complete.len() > 1);
                assert_eq!(session.messages(), &had[..count], "{len}");
            } else {
                let offset: usize = complete.iter().map(|record| record.len()).sum();
                let (line, at, _) = damage(part);
                assert_eq!((line, at), (complete.len() as u64 + 1, offset as u64), "{len}");
            }
        }
    }

    #[test]
    fn a_damaged_log_is_refused_with_line_and_byte_and_left_as_it_is() {
        let good = "{\"v\":1,\"message\":{\"role\":\"user\",\"content\":\"\u{fc}\"}}\n";
        let robot = "{\"v\":1,\"message\":{\"role\":\"robot\",\"content\":\"\"}}\n";
        let size = good.len() as u64;
        for (text, line, offset, reason) in [
            (format!("{good}{good}{good}{{\"v\":1,\"mess"), 4, 3 * size, "no newline"),
            (good.trim_end().to_owned(), 1, 0, "no newline"),
            (format!("{good}\n{good}"), 2, size, "a blank line"),
            (format!("{good}{}{good}", good.trim_end()), 2, size, "trailing characters"),
            (format!("{good}{robot}"), 2, size, "unknown role \"robot\""),
            (format!("{good}{}", good.replace(":1", ":3")), 2, size, "unknown version 3"),
        ] {
            let (at_line, at_offset, detail) = damage(text.as_bytes());
            assert_eq!((at_line, at_offset), (line, offset), "{text}");
            assert!(detail.contains(reason), "{detail}");
        }
        let (line, offset, _) = damage(&[good.as_bytes(), b"\xff\n"].concat());
        assert_eq!((line, offset), (2, size));
    }

    #[test]
    fn a_log_that_no_endpoint_would_accept_is_damaged() {
        let call = "{\"v\":1,\"message\":{\"role\":\"assistant\",\"content\":null,\"tool_calls\":\
                    [{\"id\":\"c1\",\"function\":{\"name\":\"shell\",\"arguments\":\"{}\"}}]}}\n";
        let user = "{\"v\":1,\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n";
        let system = user.replace("user", "system");
        let (line, offset, detail) = damage(format!("{call}{user}").as_bytes());
        assert_eq!((line, offset), (2, call.len() as u64));
        assert_eq!(detail, "the result of tool call \"c1\" should stand here");
        let (_, _, detail) = damage(format!("{user}{system}").as_bytes());
        assert_eq!(detail, "a system message inside the conversation");
    }

    #[test]
    fn the_message_about_damage_says_where_and_what_to_do() {
        let folder = Folder::new();
        fs::write(folder.log(), "\n").unwrap();
        let error = Session::open(&folder.log()).unwrap_err();
        let path = folder.log().display().to_string();
        let expected = " line 1 (byte 0): a blank line; the file was not changed";
        assert_eq!(error.to_string(), format!("{path}{expected}"));
        assert!(error.advice().contains("give --session another file"), "{}", error.advice());
        let line = "{\"v\":1,\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n";
        fs::write(folder.log(), format!("{line}\n")).unwrap();
        let error = Session::open(&folder.log()).unwrap_err();
        let expected = format!("uncut --session '{path}' --repair-session");
        assert!(error.advice().contains(&expected), "{}", error.advice());
    }

    #[test]
    fn system_messages_at_the_start_are_superseded() {
        let folder = Folder::new();
        let text = "{\"v\":1,\"message\":{\"role\":\"system\",\"content\":\"be brief\"}}\n\
                    {\"v\":1,\"message\":{\"role\":\"developer\",\"content\":\"be kind\"}}\n\
                    {\"v\":1,\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n";
        fs::write(folder.log(), text).unwrap();
        assert_eq!(Session::open(&folder.log()).unwrap().messages(), [Message::user("hi")]);
        assert_eq!(fs::read_to_string(folder.log()).unwrap(), text);
    }

    #[test]
    fn calls_that_a_killed_run_left_open_are_answered_once_and_in_the_log() {
        let folder = Folder::new();
        let mut session = Session::open(&folder.log()).unwrap();
        session.append(&calls(&["c1", "c2", "c3"])).unwrap();
        session.append(&result("c2", "done")).unwrap();
        drop(session);

        let mut session = Session::open(&folder.log()).unwrap();
        assert_eq!(session.messages().len(), 2, "nothing is answered by opening alone");
        let unanswered = session.answer_interrupted_calls().unwrap().unwrap();
        // No run of ours logs its results in this order.
        assert_eq!((unanswered.started, unanswered.not_started), (2, 0));
        assert_eq!(session.answer_interrupted_calls().unwrap(), None);
        session.append(&user("continue")).unwrap();
        let expected = [
            calls(&["c1", "c2", "c3"]).message,
            result("c2", "done").message,
            result("c1", INTERRUPTED).message,
            result("c3", INTERRUPTED).message,
            Message::user("continue"),
        ];
        assert_eq!(session.messages(), expected);
        drop(session);
        assert_eq!(Session::open(&folder.log()).unwrap().messages(), expected);
    }

    #[test]
    fn of_calls_run_in_order_only_the_first_without_a_result_can_have_been_started() {
        for answered in 0..3 {
            let folder = Folder::new();
            let mut session = Session::open(&folder.log()).unwrap();
            session.append(&calls(&["c1", "c2", "c3"])).unwrap();
            for id in &["c1", "c2", "c3"][..answered] {
                session.append(&result(id, "done")).unwrap();
            }
            drop(session);
            let mut session = Session::open(&folder.log()).unwrap();
            let unanswered = session.answer_interrupted_calls().unwrap().unwrap();
            assert_eq!((unanswered.started, unanswered.not_started), (1, 2 - answered));
            let mut texts = vec!["done"; answered];
            texts.push(INTERRUPTED);
            texts.resize(3, NOT_STARTED);
            let results = session.messages()[1..].iter().map(|message| match message {
                Message::Tool(result) => result.content.as_str(),
                other => panic!("{other:?}"),
            });
            assert_eq!(results.collect::<Vec<_>>(), texts);
        }
    }

    #[test]
    fn a_record_that_could_not_be_resumed_is_not_written() {
        let folder = Folder::new();
        for mut session in [Session::open(&folder.log()).unwrap(), Session::ephemeral()] {
            session.append(&calls(&["c1"])).unwrap();
            for record in [
                user("too early"),
                result("c2", "for nobody"),
                Record::from(Message::system("not for the log")),
            ] {
                let error = session.append(&record).unwrap_err();
                assert!(matches!(error, SessionError::Record { .. }), "{error}");
            }
            session.append(&result("c1", "done")).unwrap();
            assert_eq!(session.messages().len(), 2);
        }
        assert_eq!(Session::open(&folder.log()).unwrap().messages().len(), 2);
    }

    #[test]
    fn the_key_is_neither_in_the_log_nor_in_the_conversation() {
        let folder = Folder::new();
        let mask = Mask::new(crate::secret::Secret::parse("sk-TESTKEY-1").unwrap());
        let masked = [Message::user("KEY=[api key]")];
        for session in [Session::open(&folder.log()).unwrap(), Session::ephemeral()] {
            let mut session = session.with_mask(mask.clone());
            session.append(&user("KEY=sk-TESTKEY-1")).unwrap();
            assert_eq!(session.messages(), masked);
        }
        assert!(!fs::read_to_string(folder.log()).unwrap().contains("TESTKEY"));
        assert_eq!(Session::open(&folder.log()).unwrap().messages(), masked);
    }

    #[test]
    fn a_log_is_held_by_one_session_at_a_time() {
        let folder = Folder::new();
        let first = Session::open(&folder.log()).unwrap();
        let error = Session::open(&folder.log()).unwrap_err();
        assert_eq!(error.outcome(), Outcome::SessionLocked, "{error}");
        #[cfg(unix)]
        {
            // What another process is in the middle of writing must not be taken for damage.
            fs::write(folder.log(), "half a rec").unwrap();
            let alias = folder.0.join("alias");
            std::os::unix::fs::symlink(folder.log(), &alias).unwrap();
            let error = Session::open(&alias).unwrap_err();
            assert_eq!(error.outcome(), Outcome::SessionLocked, "{error}");
            fs::write(folder.log(), "").unwrap();
        }
        drop(first);
        assert!(Session::open(&folder.log()).is_ok());
    }

    #[test]
    fn a_missing_directory_is_named_and_not_made() {
        let folder = Folder::new();
        let error = Session::open(&folder.0.join("no/log.jsonl")).unwrap_err();
        assert_eq!(error.outcome(), Outcome::Usage);
        let expected = "/no/log.jsonl: the directory it is to be made in does not exist";
        assert!(error.to_string().ends_with(expected), "{error}");
        assert!(!folder.0.join("no").exists());
    }

    #[cfg(unix)]
    mod unix {
        use std::io::Read as _;
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
        use std::process::{Command, Stdio};

        use super::*;

        #[test]
        fn what_is_no_regular_file_is_refused_and_not_waited_for() {
            let folder = Folder::new();
            let fifo = folder.0.join("fifo");
            let made = Command::new("mkfifo").arg(&fifo).spawn().unwrap().wait().unwrap();
            assert!(made.success());
            for (path, reason) in [
                (fifo.as_path(), "is not a regular file"),
                (Path::new("/dev/null"), "is not a regular file"),
                (&folder.0, "is a directory"),
            ] {
                let error = Session::open(path).unwrap_err();
                assert_eq!(error.outcome(), Outcome::Usage);
                assert!(error.to_string().ends_with(reason), "{error}");
            }
        }

        #[test]
        fn a_link_is_followed_also_where_there_is_nothing_yet() {
            let folder = Folder::new();
            let link = folder.0.join("link");
            symlink("log.jsonl", &link).unwrap();
            let had = sample(&link);
            assert!(link.is_symlink());
            assert_eq!(Session::open(&folder.log()).unwrap().messages(), had);
        }

        /// Where the file system has no locks, a second writer is possible.
        #[test]
        fn what_another_writer_appended_is_neither_cut_off_nor_continued() {
            let folder = Folder::new();
            let mut session = Session::open(&folder.log()).unwrap();
            let foreign = "{\"v\":1,\"message\":{\"role\":\"user\",\"content\":\"theirs\"}}\n";
            fs::write(folder.log(), foreign).unwrap();
            let error = session.append(&user("ours")).unwrap_err();
            assert!(error.to_string().contains("another process writes to it"), "{error}");
            assert_eq!(error.outcome(), Outcome::SessionWrite);
            assert!(session.messages().is_empty());
            assert_eq!(fs::read_to_string(folder.log()).unwrap(), foreign);
        }

        #[test]
        fn a_new_log_is_for_its_owner_only_and_an_old_one_stays_as_it_is() {
            let folder = Folder::new();
            drop(Session::open(&folder.log()).unwrap());
            let mode = || fs::metadata(folder.log()).unwrap().mode() & 0o7777;
            assert_eq!(mode(), 0o600);
            fs::set_permissions(folder.log(), fs::Permissions::from_mode(0o640)).unwrap();
            drop(Session::open(&folder.log()).unwrap());
            assert_eq!(mode(), 0o640);
        }

        /// The umask belongs to the process, so the test above is run again in processes of its
        /// own.
        #[test]
        fn the_umask_does_not_matter() {
            let test = "session::tests::unix::a_new_log_is_for_its_owner_only_and_an_old_one_stays";
            for umask in ["000", "777"] {
                let mut child = Command::new("/bin/sh")
                    .args(["-c", "umask $2; exec \"$0\" \"$1\""])
                    .arg(std::env::current_exe().unwrap())
                    .args([test, umask])
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap();
                let mut output = String::new();
                child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
                assert!(child.wait().unwrap().success(), "{umask}: {output}");
                assert!(output.contains("1 passed"), "{umask}: {output}");
            }
        }
    }
}
