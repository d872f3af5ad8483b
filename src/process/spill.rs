//! The whole output of commands that print more than a result keeps, in temporary files.
//!
//! The files of a run lie in one folder, which is made when the first is needed and removed with
//! all that is in it when the run ends: until then the model may go back to any of them. Nobody
//! else can look into it, since commands print what is not for everybody. What a file holds has
//! been through the mask, and is text as it would have been shown.
//!
//! A process that is killed can't remove its folder. It held a lock in there, which the system has
//! let go of; so the next run that makes a folder in the same place removes those that are old and
//! that nobody locks. Folders without a lock that are young may be in the making.
//!
//! A machine without a place for files is as good as any: then there are none. A file that can't be
//! finished is removed, because the room that it takes is what the commands are short of too.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{DEATH, lock, lock_within};
use crate::fs::make_private;
use crate::text;

/// Most bytes of one file.
const FILE_MAX: u64 = 64 * 1024 * 1024;

/// Most bytes of all files of a run: the disk, or the memory, is for others too.
const ALL_MAX: u64 = 1024 * 1024 * 1024;

/// Names of folders start so; the rest can't be guessed.
const PREFIX: &str = "uncut-output-";

/// The file in a folder that its owner locks.
const LOCK: &str = "lock";

/// A folder that is older may be removed.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);

/// Where the whole of an output lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Whole {
    /// In no file: it is short, or there is no place for files.
    #[default]
    Nowhere,
    /// In this file.
    In(PathBuf),
    /// In this file, up to so many bytes; there was more.
    Begun(PathBuf, u64),
    /// In no file, because this went wrong while one was written.
    Lost(String),
}

/// The files of a run.
#[derive(Debug)]
pub(super) struct Spills {
    /// Where the folder may be, best first.
    places: Vec<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    folder: Option<Folder>,
    /// How many files there have been.
    count: u64,
    /// Bytes that may still be written.
    left: u64,
    finished: bool,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Held open, and so locked, for as long as the folder is ours.
    _lock: File,
}

impl Spills {
    /// Files where the environment has temporary ones.
    pub(super) fn new(environment: &[(OsString, OsString)]) -> Spills {
        let variables: &[&str] = if cfg!(windows) { &["TEMP", "TMP"] } else { &["TMPDIR"] };
        let set = variables.iter().filter_map(|name| {
            environment.iter().find(|(other, _)| other == OsStr::new(name)).map(|(_, value)| value)
        });
        let usual = cfg!(unix).then(|| PathBuf::from("/tmp"));
        // A result is text, so the path has to be. A relative one would depend on who reads it.
        let can_be_told = |path: &PathBuf| path.is_absolute() && path.to_str().is_some();
        let places = set.map(PathBuf::from).chain(usual).filter(can_be_told).collect();
        let state = State { folder: None, count: 0, left: ALL_MAX, finished: false };
        Spills { places, state: Mutex::new(state) }
    }

    /// Removes every file; there are none afterwards.
    pub(super) fn finish(&self) {
        let Some(mut state) = lock_within(&self.state, DEATH) else { return };
        state.finished = true;
        if let Some(Folder { path, .. }) = state.folder.take() {
            // A later run tries again.
            let _ = fs::remove_dir_all(path);
        }
    }

    /// A new file.
    fn open(&self) -> io::Result<(File, PathBuf)> {
        let mut state = lock(&self.state);
        if state.finished || state.left == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if state.folder.is_none() {
            let made = self.places.iter().find_map(|place| Folder::new(place).ok());
            state.folder = Some(made.ok_or(io::ErrorKind::NotFound)?);
        }
        state.count += 1;
        let name = format!("{}.txt", state.count);
        let folder = state.folder.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let path = folder.path.join(name);
        Ok((create(&path)?, path))
    }

    /// Takes as much of `wanted` bytes as the run has left.
    fn take(&self, wanted: u64) -> u64 {
        let mut state = lock(&self.state);
        let taken = wanted.min(state.left);
        state.left -= taken;
        taken
    }

    fn give_back(&self, bytes: u64) {
        lock(&self.state).left += bytes;
    }
}

impl Folder {
    fn new(place: &Path) -> io::Result<Folder> {
        // Keyed by the system's source of randomness, and the only one that std has.
        let secret = RandomState::new().hash_one(std::process::id());
        let path = place.join(format!("{PREFIX}{secret:016x}"));
        private_folder().create(&path)?;
        let locked = create(&path.join(LOCK)).and_then(|file| {
            file.try_lock()?;
            Ok(file)
        });
        match locked {
            Ok(file) => {
                remove_leftovers(place, &path);
                Ok(Folder { path, _lock: file })
            }
            Err(error) => {
                let _ = fs::remove_dir_all(&path);
                Err(error)
            }
        }
    }
}

/// Removes what runs of the same user left behind that were killed.
fn remove_leftovers(place: &Path, own: &Path) {
    let Ok(own) = fs::symlink_metadata(own) else { return };
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let path = entry.path();
        let is_left = fs::symlink_metadata(&path).is_ok_and(|one| is_ours(&one, &own))
            && is_old(&path)
            && !is_locked(&path.join(LOCK));
        if is_left {
            // What can't be removed now may be removed by the next.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Whether it is a folder, and no link to one, of the owner of `own`.
fn is_ours(one: &Metadata, own: &Metadata) -> bool {
    #[cfg(unix)]
    let same_owner = {
        use std::os::unix::fs::MetadataExt as _;
        one.uid() == own.uid()
    };
    #[cfg(not(unix))]
    let same_owner = own.is_dir();
    one.is_dir() && same_owner
}

fn is_old(path: &Path) -> bool {
    let age = |metadata: Metadata| metadata.modified().ok()?.elapsed().ok();
    fs::symlink_metadata(path).ok().and_then(age).is_some_and(|age| age > OLD)
}

/// Whether the owner of a folder lives; a lock file that is not there is locked by nobody.
fn is_locked(path: &Path) -> bool {
    match File::open(path) {
        Ok(file) => matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn private_folder() -> DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there is no mode to set"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    make_private(options.write(true).create_new(true)).open(path)
}

/// The whole of one output.
#[derive(Debug)]
pub(super) struct Spill {
    spills: Arc<Spills>,
    file: Option<Open>,
    /// What went wrong while the file was written.
    lost: Option<io::Error>,
}

#[derive(Debug)]
struct Open {
    writer: BufWriter<File>,
    path: PathBuf,
    written: u64,
    is_cut: bool,
}

impl Spill {
    pub(super) fn new(spills: Arc<Spills>) -> Spill {
        Spill { spills, file: None, lost: None }
    }

    /// Makes the file. Without a place for it there is none, and nothing more is written.
    pub(super) fn begin(&mut self) {
        let opened = self.spills.open().ok();
        self.file = opened.map(|(file, path)| {
            let writer = BufWriter::with_capacity(64 * 1024, file);
            Open { writer, path, written: 0, is_cut: false }
        });
    }

    /// Adds to the file that was begun.
    pub(super) fn push(&mut self, text: &str) {
        let Some(open) = self.file.as_mut().filter(|open| !open.is_cut) else { return };
        let wanted = (text.len() as u64).min(FILE_MAX - open.written);
        let taken = self.spills.take(wanted);
        // Fits, since it is no more than the length of the text.
        let written = text::head(text, usize::try_from(taken).unwrap_or(usize::MAX));
        self.spills.give_back(taken - written.len() as u64);
        open.is_cut = written.len() < text.len();
        open.written += written.len() as u64;
        if let Err(error) = open.writer.write_all(written.as_bytes()) {
            self.lose(error);
        }
    }

    pub(super) fn finish(mut self) -> Whole {
        if let Some(open) = self.file.as_mut()
            && let Err(error) = open.writer.flush()
        {
            self.lose(error);
        }
        match (self.file, self.lost) {
            (_, Some(error)) => Whole::Lost(error.to_string()),
            (None, None) => Whole::Nowhere,
            (Some(Open { path, written, is_cut: true, .. }), None) => Whole::Begun(path, written),
            (Some(Open { path, .. }), None) => Whole::In(path),
        }
    }

    fn lose(&mut self, error: io::Error) {
        if let Some(Open { writer, path, written, .. }) = self.file.take() {
            // Without a last attempt to write.
            drop(writer.into_parts());
            let _ = fs::remove_file(path);
            self.spills.give_back(written);
        }
        self.lost = Some(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::tests::Folder as Temporary;
    use std::time::SystemTime;

    fn spills(place: &Path) -> Arc<Spills> {
        let name = if cfg!(windows) { "TEMP" } else { "TMPDIR" };
        Arc::new(Spills::new(&[(name.into(), place.into())]))
    }

    fn names(place: &Path) -> Vec<PathBuf> {
        fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[track_caller]
    fn written(spills: &Arc<Spills>, text: &str) -> Whole {
        let mut spill = Spill::new(Arc::clone(spills));
        spill.begin();
        spill.push(text);
        spill.finish()
    }

    #[test]
    fn files_are_for_their_owner_alone_and_last_as_long_as_the_run() {
        let place = Temporary::new();
        let spills = spills(place.path());
        assert!(names(place.path()).is_empty());
        let Whole::In(path) = written(&spills, "one") else { panic!("no file") };
        assert_ne!(written(&spills, "two"), Whole::In(path.clone()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        let folder = path.parent().unwrap();
        assert_eq!(names(place.path()), [folder]);
        #[cfg(unix)]
        for (path, expected) in [(folder, 0o700), (&path, 0o600)] {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, expected);
        }
        spills.finish();
        assert!(names(place.path()).is_empty());
        assert_eq!(written(&spills, "three"), Whole::Nowhere);
    }

    #[test]
    fn a_file_has_its_bound_and_so_have_all_of_a_run() {
        let place = Temporary::new();
        let spills = spills(place.path());
        let chunk = "x".repeat(1024 * 1024 - 1) + "\u{e9}";
        let mut spill = Spill::new(Arc::clone(&spills));
        spill.begin();
        (0..65).for_each(|_| spill.push(&chunk));
        let Whole::Begun(path, bytes) = spill.finish() else { panic!("not cut") };
        assert_eq!((bytes, path.metadata().unwrap().len()), (FILE_MAX, FILE_MAX));
        assert_eq!(lock(&spills.state).left, ALL_MAX - FILE_MAX);
        lock(&spills.state).left = 4;
        assert!(matches!(written(&spills, "abc\u{e9}"), Whole::Begun(_, 3)));
        assert!(matches!(written(&spills, "a"), Whole::In(_)));
        assert_eq!(written(&spills, "a"), Whole::Nowhere);
    }

    #[test]
    fn the_first_place_that_can_be_used_is_taken() {
        let place = Temporary::new();
        let mut spills = Spills::new(&[]);
        spills.places = vec![place.path().join("gone"), place.path().to_owned()];
        let Whole::In(path) = written(&Arc::new(spills), "x") else { panic!("no file") };
        assert!(path.starts_with(place.path()));
        let mut spills = Spills::new(&[("TMPDIR".into(), "relative".into())]);
        spills.places.retain(|place| place != Path::new("/tmp"));
        assert_eq!(written(&Arc::new(spills), "x"), Whole::Nowhere);
    }

    #[test]
    fn what_killed_runs_left_is_removed_once_it_is_old_and_nothing_else_is() {
        let place = Temporary::new();
        let folder = |name: &str, age: Duration| {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            let lock = create(&path.join(LOCK)).unwrap();
            let time = SystemTime::now() - age;
            File::open(&path).unwrap().set_modified(time).unwrap();
            (path, lock)
        };
        let (left, _) = folder("uncut-output-left", 2 * OLD);
        let (young, _) = folder("uncut-output-young", OLD / 2);
        let (other, _) = folder("other", 2 * OLD);
        let (alive, lock) = folder("uncut-output-alive", 2 * OLD);
        lock.lock().unwrap();
        let (target, _) = folder("target", 2 * OLD);
        let link = place.path().join("uncut-output-link");
        #[cfg(unix)]
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let spills = spills(place.path());
        assert!(matches!(written(&spills, "x"), Whole::In(_)));
        spills.finish();
        assert!(!left.exists());
        for path in [
            young,
            other,
            alive,
            target,
            #[cfg(unix)]
            link,
        ] {
            assert!(path.join(LOCK).exists(), "{}", path.display());
        }
    }
}
