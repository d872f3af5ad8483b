//! Where lines end up: the file, how it is opened, and what is done when it fails.
//!
//! The only place that appends. [`Storage`] is the little that a log needs of a file, so that tests
//! can put a disk there that fails in the middle of a write or loses what was not synced.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::{SessionError, place};

/// How much of the end of a log is compared with what was written.
const END_MAX: usize = 64 << 10;

/// How often, and how far apart, a held lock is looked at again: a quarter of a second in all.
const LOCK_LOOKS: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(25);

/// How often the holder of a lock is looked for.
#[cfg(target_os = "linux")]
const HOLDER_LOOKS: u32 = 5;

/// What a log needs of a file.
pub(super) trait Storage: fmt::Debug + Send {
    /// Writes at the end and returns how much of `bytes` was written, as `write` does.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Returns when everything is durable.
    fn sync(&mut self) -> io::Result<()>;

    /// How many bytes there are, if the file still lies at `path`; otherwise what happened to it.
    fn len(&self, path: &Path) -> io::Result<Result<u64, String>>;

    /// Reads from `at` on, as `read_at` does.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;

    /// Cuts the file to `len` bytes.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
}

impl Storage for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }

    fn len(&self, path: &Path) -> io::Result<Result<u64, String>> {
        place::len(self, path)
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        place::read_at(self, buffer, at)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}

/// A log that is read and can be appended to.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    storage: Box<dyn Storage>,
    /// Bytes of the records that are durable.
    len: u64,
    /// The last of them.
    end: Vec<u8>,
    /// The failure after which nothing more is written.
    failure: Option<Failure>,
}

/// Why nothing more is written to a log.
#[derive(Clone, Debug)]
struct Failure {
    detail: String,
    /// Whether another process did it, and not the disk.
    is_meddling: bool,
}

impl Log {
    /// A log whose `len` bytes are whole records.
    ///
    /// # Errors
    ///
    /// Why its end can't be read.
    pub(super) fn new(path: &Path, storage: Box<dyn Storage>, len: u64) -> io::Result<Log> {
        let mut log = Log { path: path.to_owned(), storage, len, end: Vec::new(), failure: None };
        log.end = log.read_end(usize::try_from(len).unwrap_or(END_MAX).min(END_MAX))?;
        Ok(log)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses a log that failed earlier.
    pub(super) fn check(&self) -> Result<(), SessionError> {
        let Some(Failure { detail, is_meddling }) = &self.failure else { return Ok(()) };
        let detail = format!("no record is written after an earlier failure: {detail}");
        Err(self.error(Failure { detail, is_meddling: *is_meddling }))
    }

    /// Looks whether the log at its path is still what was read and written, as far as its length
    /// and its end tell. One that is not gets no further record.
    pub(super) fn confirm(&mut self) -> Result<(), SessionError> {
        self.check()?;
        match self.storage.len(&self.path) {
            Ok(Ok(len)) if len == self.len => {}
            Ok(Ok(len)) => {
                let left = format!("it has {len} bytes where this run left {}", self.len);
                let detail = format!("{left}: another process writes to it; it was not touched");
                return self.fail(detail, true);
            }
            Ok(Err(detail)) => return self.fail(detail, true),
            Err(error) => return self.fail(error.to_string(), false),
        }
        match self.read_end(self.end.len()) {
            Ok(end) if end == self.end => Ok(()),
            Ok(_) => {
                let detail = "its records were overwritten: another process writes to it; it was \
                              not touched";
                self.fail(detail.to_owned(), true)
            }
            Err(error) => self.fail(error.to_string(), false),
        }
    }

    /// The last bytes of the records; fewer where the file ends before.
    fn read_end(&self, count: usize) -> io::Result<Vec<u8>> {
        let mut end = vec![0; count];
        let start = self.len - count as u64;
        let mut filled = 0;
        while filled < count {
            match self.storage.read_at(&mut end[filled..], start + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        end.truncate(filled);
        Ok(end)
    }

    /// Writes a line, newline included, and returns when it is durable.
    ///
    /// After a failure the file is cut back to its whole records. What a file holds whose write or
    /// sync failed is known to nobody (a later sync may well succeed without the data), so nothing
    /// is written after that.
    pub(super) fn append(&mut self, line: &[u8]) -> Result<(), SessionError> {
        // Where there are no locks, another run may have written. Its records are no part of this
        // conversation, and cutting back would cut them off.
        self.confirm()?;
        match self.write(line).and_then(|()| self.storage.sync()) {
            Ok(()) => {
                self.len += line.len() as u64;
                let line = &line[line.len().saturating_sub(END_MAX)..];
                self.end.drain(..(self.end.len() + line.len()).saturating_sub(END_MAX));
                self.end.extend_from_slice(line);
                Ok(())
            }
            Err(error) => {
                let left = self.cut_back();
                self.fail(format!("{error}; {left}"), false)
            }
        }
    }

    fn fail(&mut self, detail: String, is_meddling: bool) -> Result<(), SessionError> {
        let failure = Failure { detail, is_meddling };
        self.failure = Some(failure.clone());
        Err(self.error(failure))
    }

    fn error(&self, Failure { detail, is_meddling }: Failure) -> SessionError {
        let path = self.path.clone();
        match is_meddling {
            true => SessionError::Changed { path, detail },
            false => SessionError::Write { path, detail },
        }
    }

    /// One write as a rule. After a short one the next says what the matter is.
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let mut rest = line;
        while !rest.is_empty() {
            match self.storage.append(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Cuts off what is no whole record, and says how that went.
    fn cut_back(&mut self) -> String {
        match self.storage.truncate(self.len).and_then(|()| self.storage.sync()) {
            Ok(()) => format!("the file was cut back to its whole records, {} bytes", self.len),
            Err(error) => format!(
                "cutting the file back to its whole records, {} bytes, failed too: {error}",
                self.len
            ),
        }
    }
}

/// A log that is locked and was not read yet.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    /// What is odd about it and ends nothing.
    pub(super) warnings: Vec<String>,
}

/// Opens a log for reading and appending, made where there is none, and locks it.
pub(super) fn open(path: &Path) -> Result<Opened, SessionError> {
    open_with(path, open_or_create)
}

/// Opens a log that is there for reading and appending, and locks it.
pub(super) fn open_existing(path: &Path) -> Result<Opened, SessionError> {
    open_with(path, |path| options().open(path))
}

/// What is not a regular file is refused before it is opened: opening a FIFO waits, and opening a
/// device can do anything.
fn open_with(
    path: &Path,
    open: impl FnOnce(&Path) -> io::Result<File>,
) -> Result<Opened, SessionError> {
    let fail = |source| unopened(path, source);
    match fs::metadata(path) {
        Ok(metadata) => refuse_irregular(&metadata).map_err(fail)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(fail(error)),
    }
    let file = open(path).map_err(fail)?;
    // The path may lead elsewhere by now.
    let metadata = file.metadata().map_err(fail)?;
    refuse_irregular(&metadata).map_err(fail)?;
    let mut warnings: Vec<String> = place::exposed(path, &metadata).into_iter().collect();
    match lock(&file) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = holder(&metadata);
            return Err(SessionError::Locked { path: path.to_owned(), holder });
        }
        // A file system without locks is no reason to do without a log.
        Err(TryLockError::Error(error)) if is_unsupported(&error) => warnings.push(format!(
            "{} can't be locked here ({error}); let no other run use it",
            path.display()
        )),
        Err(TryLockError::Error(error)) => return Err(fail(error)),
    }
    // Whoever made the file may not have lived to sync its directory.
    if metadata.len() == 0 {
        sync_directory(path).map_err(fail)?;
    }
    Ok(Opened { file, warnings })
}

/// What an error before the first record means: of a disk that is full or fails, no other file name
/// will do better.
fn unopened(path: &Path, source: io::Error) -> SessionError {
    let path = path.to_owned();
    let is_full = matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    #[cfg(unix)]
    let fails = source.raw_os_error() == Some(libc::EIO);
    #[cfg(not(unix))]
    let fails = false;
    match is_full || fails {
        true => SessionError::Write { path, detail: source.to_string() },
        false => SessionError::Open { path, source },
    }
}

/// The process that holds the lock, as Linux tells it; a file system whose files don't have its own
/// device number can't be found there. The list is longer than one read of it, and may lose an
/// entry between two when others come and go, so one that is not found is looked for again.
#[cfg(target_os = "linux")]
fn holder(metadata: &fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    let (device, inode) = (metadata.dev(), metadata.ino());
    let file = format!("{:02x}:{:02x}:{inode}", libc::major(device), libc::minor(device));
    let found = |locks: String| holder_in(&locks, &file);
    (0..HOLDER_LOOKS).find_map(|_| fs::read_to_string("/proc/locks").ok().and_then(found))
}

#[cfg(target_os = "linux")]
fn holder_in(locks: &str, file: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Those that wait have an arrow behind their number.
        let [_, "FLOCK", _, "WRITE", pid, name, ..] = words.as_slice() else { return None };
        // The process may be outside of what this one can see.
        pid.parse().ok().filter(|pid| *name == file && *pid != 0)
    })
}

#[cfg(not(target_os = "linux"))]
fn holder(_metadata: &fs::Metadata) -> Option<u32> {
    None
}

/// Locks the file, or finds that somebody holds it.
///
/// A run that is killed while it starts a command leaves a copy of itself behind, which holds the
/// lock until it has become the command. That takes next to no time, but whoever resumes a killed
/// run at once would be told that it still runs; so a held lock is looked at again for a moment.
fn lock(file: &File) -> Result<(), TryLockError> {
    let mut looks = 0;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if looks < LOCK_LOOKS => thread::sleep(LOCK_PAUSE),
            result => return result,
        }
        looks += 1;
    }
}

fn refuse_irregular(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let what = if metadata.is_dir() { "a directory" } else { "not a regular file" };
    Err(io::Error::new(ErrorKind::InvalidInput, format!("is {what}")))
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    // On Windows a handle for appending can't cut the file. There the position, which is the end
    // once the log has been read, does what appending does elsewhere.
    options.read(true).write(true).append(cfg!(unix));
    crate::fs::make_private(crate::fs::without_blocking(&mut options));
    options
}

fn open_or_create(path: &Path) -> io::Result<File> {
    let mut options = options();
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        opened => return opened,
    }
    let file = options.create(true).open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            io::Error::new(ErrorKind::NotFound, "the directory it is to be made in does not exist")
        }
        _ => error,
    })?;
    own(&file);
    Ok(file)
}

/// Gives a file that was just made to its owner, whatever the umask is.
pub(super) fn own(file: &File) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // The umask may have taken our own permissions away. Where this fails the file system has
        // no permissions, and the owner of the directory has decided who reads what.
        let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
    }
    #[cfg(not(unix))]
    let _ = file;
}

/// Whether the file system, or the system, can't do this at all.
fn is_unsupported(error: &io::Error) -> bool {
    // ENOLCK: NFS without a lock daemon.
    #[cfg(unix)]
    if error.raw_os_error() == Some(libc::ENOLCK) {
        return true;
    }
    error.kind() == ErrorKind::Unsupported
}

/// Makes the name of a new file durable.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    // The file may have been made through a symbolic link, in the directory that it leads to.
    let path = fs::canonicalize(path)?;
    path.parent().map_or(Ok(()), crate::fs::sync_directory)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use super::*;
    use crate::message::{AssistantMessage, Message, ToolCall};
    use crate::session::record::{Record, read_all};
    use crate::session::{Conversation, Session};

    /// A disk that fails on demand. What a crash leaves of it is `durable`.
    #[derive(Debug, Default)]
    struct Platter {
        live: Vec<u8>,
        durable: Vec<u8>,
        operations: Vec<&'static str>,
        /// Bytes that fit, where there is a limit.
        space: Option<usize>,
        /// Where a write ends short, once, although there is room behind it.
        pause: Option<usize>,
        /// The syncs that fail, counted from 0.
        failing_syncs: std::ops::Range<usize>,
        syncs: usize,
        truncate_fails: bool,
    }

    #[derive(Clone, Debug, Default)]
    struct Disk(Arc<Mutex<Platter>>);

    impl Disk {
        fn lock(&self) -> MutexGuard<'_, Platter> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn session(&self) -> Session {
            let log = Log::new(Path::new("log"), Box::new(self.clone()), 0).unwrap();
            Session {
                conversation: Conversation::default(),
                log: Some(log),
                mask: Default::default(),
                gate: Default::default(),
                warnings: Vec::new(),
            }
        }
    }

    impl Storage for Disk {
        fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut disk = self.lock();
            disk.operations.push("write");
            let free = disk.space.map_or(usize::MAX, |space| space - disk.live.len());
            if free == 0 {
                return Err(io::Error::new(ErrorKind::StorageFull, "No space left on device"));
            }
            let pause = disk.pause.and_then(|pause| pause.checked_sub(disk.live.len()));
            let pause = pause.filter(|pause| *pause > 0).unwrap_or(usize::MAX);
            let written = bytes.len().min(free).min(pause);
            disk.live.extend_from_slice(&bytes[..written]);
            Ok(written)
        }

        fn sync(&mut self) -> io::Result<()> {
            let mut disk = self.lock();
            disk.operations.push("sync");
            disk.syncs += 1;
            if disk.failing_syncs.contains(&(disk.syncs - 1)) {
                return Err(io::Error::other("the disk is gone"));
            }
            disk.durable = disk.live.clone();
            Ok(())
        }

        fn len(&self, _path: &Path) -> io::Result<Result<u64, String>> {
            Ok(Ok(self.lock().live.len() as u64))
        }

        fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
            let disk = self.lock();
            let rest = disk.live.get(usize::try_from(at).unwrap()..).unwrap_or_default();
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        }

        fn truncate(&mut self, len: u64) -> io::Result<()> {
            let mut disk = self.lock();
            disk.operations.push("truncate");
            if disk.truncate_fails {
                return Err(io::Error::other("it is stuck"));
            }
            disk.live.truncate(usize::try_from(len).map_err(io::Error::other)?);
            Ok(())
        }
    }

    const TEXTS: [&str; 3] = ["one", "zwei \u{1f642}", "three\n"];

    fn record(text: &str) -> Record {
        Record::from(Message::user(text))
    }

    fn expected(count: usize) -> Vec<Message> {
        TEXTS[..count].iter().map(|text| Message::user(*text)).collect()
    }

    /// Appends the records up to the first failure, and checks that everything agrees on how many
    /// there are, and that none is taken after that. Returns how many, and the error.
    #[track_caller]
    fn append_until_failure(disk: &Disk) -> (usize, Option<String>) {
        let mut session = disk.session();
        let mut error = None;
        for text in TEXTS {
            if let Err(failure) = session.append(&record(text)) {
                assert_eq!(failure.outcome(), crate::outcome::Outcome::SessionWrite);
                error = Some(failure.to_string());
                break;
            }
        }
        let count = session.messages().len();
        assert_eq!(session.messages(), expected(count));
        if let Some(error) = &error {
            // The disk is well again, but what it holds is anybody's guess.
            let before = {
                let mut disk = disk.lock();
                disk.space = None;
                disk.failing_syncs = 0..0;
                disk.live.clone()
            };
            let (_, reason) = error.split_once(": ").unwrap_or_default();
            let again = format!("log: no record is written after an earlier failure: {reason}");
            // Also where the record, without the one that failed, could not come next.
            let orphan = Record::from(Message::tool_result(&ToolCall::default(), ""));
            for record in [record("more"), orphan] {
                let Err(error) = session.append(&record) else { panic!("taken") };
                assert_eq!(error.to_string(), again);
            }
            assert_eq!(disk.lock().live, before);
            assert_eq!(session.messages(), expected(count));
        }
        (count, error)
    }

    #[track_caller]
    fn messages_of(image: &[u8]) -> Vec<Message> {
        let mut messages = Vec::new();
        let read = read_all(image, |entry| {
            messages.push(entry.message);
            Ok(())
        });
        assert!(matches!(read, Ok(len) if len == image.len() as u64), "{read:?}");
        messages
    }

    #[test]
    fn a_record_is_one_write_and_one_sync() {
        let disk = Disk::default();
        assert_eq!(append_until_failure(&disk), (3, None));
        assert_eq!(disk.lock().operations, ["write", "sync"].repeat(3));
        assert_eq!(messages_of(&disk.lock().durable), expected(3));
    }

    #[test]
    fn wherever_the_space_ends_the_log_ends_in_a_whole_record() {
        let whole = Disk::default();
        append_until_failure(&whole);
        let whole = whole.lock().live.len();
        for space in 0..whole {
            let disk = Disk::default();
            disk.lock().space = Some(space);
            let (count, error) = append_until_failure(&disk);
            let error = error.unwrap();
            assert!(
                error.starts_with("log: No space left on device; the file was cut back to"),
                "{error}"
            );
            assert_eq!(messages_of(&disk.lock().live), expected(count), "{space}");
            assert_eq!(messages_of(&disk.lock().durable), expected(count), "{space}");
        }
    }

    #[test]
    fn a_record_whose_sync_failed_is_taken_back() {
        for failing in 0..TEXTS.len() {
            let disk = Disk::default();
            disk.lock().failing_syncs = failing..failing + 1;
            let (count, error) = append_until_failure(&disk);
            assert_eq!(count, failing);
            assert!(error.unwrap().starts_with("log: the disk is gone; the file was cut back"));
            assert_eq!(messages_of(&disk.lock().live), expected(count));
            assert_eq!(messages_of(&disk.lock().durable), expected(count));
        }
    }

    #[test]
    fn a_cut_that_could_not_be_made_durable_is_told() {
        let disk = Disk::default();
        disk.lock().failing_syncs = 1..usize::MAX;
        let (count, error) = append_until_failure(&disk);
        assert_eq!(count, 1);
        let error = error.unwrap();
        assert!(error.ends_with("bytes, failed too: the disk is gone"), "{error}");
        assert_eq!(messages_of(&disk.lock().live), expected(1));
        assert_eq!(messages_of(&disk.lock().durable), expected(1));
    }

    #[test]
    fn a_file_that_could_not_be_cut_back_is_told_and_refused_the_next_time() {
        let disk = Disk::default();
        disk.session().append(&record(TEXTS[0])).unwrap();
        let whole = disk.lock().live.len();
        *disk.lock() =
            Platter { space: Some(whole + 9), truncate_fails: true, ..Platter::default() };
        let (count, error) = append_until_failure(&disk);
        assert_eq!(count, 1);
        let error = error.unwrap();
        assert_eq!(
            error,
            format!(
                "log: No space left on device; cutting the file back to its whole records, \
                 {whole} bytes, failed too: it is stuck"
            )
        );
        let live = disk.lock().live.clone();
        let refused = read_all(live.as_slice(), |_| Ok(()));
        let Err(super::super::ReadError::Damaged { line, offset, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((line, offset), (2, whole as u64));
    }

    /// A run of 20 records of every kind that a run has.
    fn long_run() -> Vec<Record> {
        let call = |id: &str| ToolCall::new(id, "shell", "{\"command\":\"ls\"}");
        let calls = |ids: [&str; 2]| {
            Record::from(Message::Assistant(AssistantMessage::calls(ids.map(call).into())))
        };
        let answer = |text| Record::from(Message::Assistant(AssistantMessage::text(text)));
        let result = |id| Record::from(Message::tool_result(&call(id), "a\n\u{1f642}"));
        (0..4)
            .flat_map(|_| {
                [record("go"), calls(["a", "b"]), result("b"), result("a"), answer("done")]
            })
            .collect()
    }

    /// Appends the long run up to the first failure. Returns how many records were taken, each of
    /// which was durable by then.
    #[track_caller]
    fn run_until_failure(disk: &Disk) -> usize {
        let mut session = disk.session();
        let taken = long_run().into_iter().take_while(|record| {
            let taken = session.append(record).is_ok();
            let disk = disk.lock();
            assert!(!taken || disk.durable == disk.live);
            taken
        });
        let taken = taken.count();
        assert_eq!(session.messages().len(), taken);
        taken
    }

    /// The messages of the records at the start of `image`, and whether there is nothing else.
    fn whole_part(image: &[u8]) -> (Vec<Message>, bool) {
        let mut messages = Vec::new();
        let read = read_all(image, |entry| {
            messages.push(entry.message);
            Ok(())
        });
        (messages, read.is_ok())
    }

    /// What is left opens to the records that were taken, and at most the one in flight, whole; or
    /// it is refused, which only a file that could not be cut back may be.
    #[track_caller]
    fn assert_kept(image: &[u8], taken: usize, may_be_torn: bool) {
        let run: Vec<Message> = long_run().into_iter().map(|record| record.message).collect();
        let (messages, is_whole) = whole_part(image);
        assert!(is_whole || may_be_torn, "{taken}");
        assert!((taken..=taken + 1).contains(&messages.len()), "{taken}: {}", messages.len());
        assert_eq!(messages, run[..messages.len()]);
    }

    #[test]
    fn whatever_fails_in_a_long_run_no_record_that_was_taken_is_lost() {
        let whole = Disk::default();
        assert_eq!(run_until_failure(&whole), 20);
        let size = whole.lock().live.len();
        let syncs = whole.lock().syncs;
        assert_kept(&whole.lock().durable, 20, false);
        for truncate_fails in [false, true] {
            let disks = (0..size)
                .map(|space| Platter { space: Some(space), ..Platter::default() })
                .chain((0..syncs).flat_map(|sync| {
                    // That of the record alone, and that of the cut too.
                    [sync + 1, usize::MAX]
                        .map(|end| Platter { failing_syncs: sync..end, ..Platter::default() })
                }));
            for platter in disks {
                let disk = Disk(Arc::new(Mutex::new(Platter { truncate_fails, ..platter })));
                let taken = run_until_failure(&disk);
                assert!(taken < 20);
                // The machine goes on, or loses power now.
                assert_kept(&disk.lock().live, taken, truncate_fails);
                assert_kept(&disk.lock().durable, taken, false);
            }
        }
    }

    #[test]
    fn wherever_a_write_ends_short_the_rest_follows() {
        let whole = Disk::default();
        run_until_failure(&whole);
        let size = whole.lock().live.len();
        let operations = whole.lock().operations.len();
        for pause in 1..size {
            let disk =
                Disk(Arc::new(Mutex::new(Platter { pause: Some(pause), ..Platter::default() })));
            assert_eq!(run_until_failure(&disk), 20, "{pause}");
            assert_kept(&disk.lock().durable, 20, false);
            let between = disk.lock().live[pause - 1] == b'\n';
            assert_eq!(disk.lock().operations.len(), operations + usize::from(!between));
        }
    }

    /// Of what was not synced, a power loss may leave any part.
    #[test]
    fn a_power_loss_in_a_write_leaves_what_was_taken_or_a_tail_that_is_refused() {
        let whole = Disk::default();
        run_until_failure(&whole);
        let whole = whole.lock().live.clone();
        let run: Vec<Message> = long_run().into_iter().map(|record| record.message).collect();
        for len in 0..=whole.len() {
            let (messages, is_whole) = whole_part(&whole[..len]);
            let lines = whole[..len].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(messages, run[..lines], "{len}");
            assert_eq!(is_whole, len == 0 || whole[len - 1] == b'\n', "{len}");
        }
    }

    #[test]
    fn a_write_that_was_interrupted_is_made_again_and_one_of_nothing_is_a_failure() {
        #[derive(Debug)]
        struct Interrupted(u32);
        impl Storage for Interrupted {
            fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 += 1;
                match self.0 {
                    1 => Err(ErrorKind::Interrupted.into()),
                    2 => Ok(bytes.len()),
                    _ => Ok(0),
                }
            }
            fn sync(&mut self) -> io::Result<()> {
                Ok(())
            }
            fn len(&self, _path: &Path) -> io::Result<Result<u64, String>> {
                Ok(Ok(if self.0 == 0 { 0 } else { 2 }))
            }
            fn read_at(&self, buffer: &mut [u8], _at: u64) -> io::Result<usize> {
                buffer.copy_from_slice(b"1\n");
                Ok(2)
            }
            fn truncate(&mut self, _len: u64) -> io::Result<()> {
                Ok(())
            }
        }
        let mut log = Log::new(Path::new("log"), Box::new(Interrupted(0)), 0).unwrap();
        assert!(log.append(b"1\n").is_ok());
        let error = log.append(b"2\n").unwrap_err().to_string();
        assert!(error.ends_with("the file was cut back to its whole records, 2 bytes"), "{error}");
    }

    #[test]
    fn only_a_system_without_locks_goes_without() {
        assert!(is_unsupported(&ErrorKind::Unsupported.into()));
        #[cfg(unix)]
        for (code, expected) in [
            (libc::ENOLCK, true),
            (libc::EOPNOTSUPP, true),
            (libc::ENOSYS, true),
            (libc::EIO, false),
        ] {
            assert_eq!(is_unsupported(&io::Error::from_raw_os_error(code)), expected, "{code}");
        }
    }
}
