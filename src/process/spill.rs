//! The whole output of commands that print more than a result keeps, in temporary files.
//!
//! The files of a run lie in one folder, which is made when the first is needed and removed with
//! all that is in it when the run ends: until then the model may go back to any of them. Nobody
//! else can look into it, since commands print what is not for everybody. What a file holds has
//! been through the mask, and is text as it would have been shown.
//!
//! A process that is killed can't remove its folder. It held a lock on the folder, which the system
//! has let go of; so the next run that makes one in the same place removes those that nobody locks
//! (not on Windows, which locks no folders). Nothing is opened there but folders of ours.
//!
//! A machine without a place for files is as good as any: then there are none. A file that can't be
//! finished is removed, because the room that it takes is what the commands are short of too.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::os::open_own_folder;
use super::{DEATH, lock, lock_within};
use crate::fs::make_private;
use crate::text;

/// Most bytes of one file.
const FILE_MAX: u64 = 64 * 1024 * 1024;

/// Most bytes of all files of a run: the disk, or the memory, is for others too.
const ALL_MAX: u64 = 1024 * 1024 * 1024;

/// Names of folders start so; the rest can't be guessed.
const PREFIX: &str = "uncut-output-";

/// Names of those that are not locked yet.
const UNLOCKED: &str = "uncut-new-";

/// Where the whole of an output lies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FullOutput {
    /// In this file.
    Complete(PathBuf),
    /// In this file, up to so many bytes; there was more.
    Truncated(PathBuf, u64),
    /// In no file, because this went wrong while one was written.
    Failed(String),
}

/// The files of a run.
#[derive(Debug)]
pub(super) struct SpillDir {
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
    /// Held open, and so locked, for as long as the folder is ours. None where no folder can be
    /// locked: then nobody else can lock it either.
    _lock: Option<File>,
}

impl SpillDir {
    /// Files where the environment has temporary ones.
    pub(super) fn new(environment: &[(OsString, OsString)]) -> SpillDir {
        let variables: &[&str] = if cfg!(windows) { &["TEMP", "TMP"] } else { &["TMPDIR"] };
        let set = variables.iter().filter_map(|name| {
            environment.iter().find(|(other, _)| other == OsStr::new(name)).map(|(_, value)| value)
        });
        let usual = cfg!(unix).then(|| PathBuf::from("/tmp"));
        // A result is text, so the path has to be. A relative one would depend on who reads it.
        let can_be_told = |path: &PathBuf| path.is_absolute() && path.to_str().is_some();
        let places = set.map(PathBuf::from).chain(usual).filter(can_be_told).collect();
        let state = State { folder: None, count: 0, left: ALL_MAX, finished: false };
        SpillDir { places, state: Mutex::new(state) }
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
        let unlocked = place.join(format!("{UNLOCKED}{secret:016x}"));
        private_folder().create(&unlocked)?;
        // It gets the name that others look for when it is locked.
        let lock = lock_folder(&unlocked).ok();
        fs::rename(&unlocked, &path).inspect_err(|_| drop(fs::remove_dir(&unlocked)))?;
        remove_leftovers(place);
        Ok(Folder { path, _lock: lock })
    }
}

/// Removes what runs of the same user left behind that were killed.
fn remove_leftovers(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let is_folder = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if is_folder && let Ok(_lock) = lock_folder(&entry.path()) {
            // What can't be removed now may be removed by the next.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Locks a folder of ours that nobody has locked.
fn lock_folder(path: &Path) -> io::Result<File> {
    let folder = open_own_folder(path)?;
    folder.try_lock()?;
    Ok(folder)
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
pub(super) struct SpillFile {
    dir: Arc<SpillDir>,
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

impl SpillFile {
    pub(super) fn new(dir: Arc<SpillDir>) -> SpillFile {
        SpillFile { dir, file: None, lost: None }
    }

    /// Makes the file. Without a place for it there is none, and nothing more is written.
    pub(super) fn begin(&mut self) {
        let opened = self.dir.open().ok();
        self.file = opened.map(|(file, path)| {
            let writer = BufWriter::with_capacity(64 * 1024, file);
            Open { writer, path, written: 0, is_cut: false }
        });
    }

    /// Adds to the file that was begun.
    pub(super) fn push(&mut self, text: &str) {
        let Some(open) = self.file.as_mut().filter(|open| !open.is_cut) else { return };
        let wanted = (text.len() as u64).min(FILE_MAX - open.written);
        let taken = self.dir.take(wanted);
        // Fits, since it is no more than the length of the text.
        let written = text::head(text, usize::try_from(taken).unwrap_or(usize::MAX));
        self.dir.give_back(taken - written.len() as u64);
        open.is_cut = written.len() < text.len();
        open.written += written.len() as u64;
        if let Err(error) = open.writer.write_all(written.as_bytes()) {
            self.lose(error);
        }
    }

    /// Where the whole lies; none where there is no place for files.
    pub(super) fn finish(mut self) -> Option<FullOutput> {
        if let Some(open) = self.file.as_mut()
            && let Err(error) = open.writer.flush()
        {
            self.lose(error);
        }
        match (self.file, self.lost) {
            (_, Some(error)) => Some(FullOutput::Failed(error.to_string())),
            (None, None) => None,
            (Some(Open { path, written, is_cut: true, .. }), None) => {
                Some(FullOutput::Truncated(path, written))
            }
            (Some(Open { path, .. }), None) => Some(FullOutput::Complete(path)),
        }
    }

    fn lose(&mut self, error: io::Error) {
        if let Some(Open { writer, path, written, .. }) = self.file.take() {
            // Without a last attempt to write.
            drop(writer.into_parts());
            let _ = fs::remove_file(path);
            self.dir.give_back(written);
        }
        self.lost = Some(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::tests::Folder as Temporary;

    fn spills(place: &Path) -> Arc<SpillDir> {
        let name = if cfg!(windows) { "TEMP" } else { "TMPDIR" };
        Arc::new(SpillDir::new(&[(name.into(), place.into())]))
    }

    fn names(place: &Path) -> Vec<PathBuf> {
        fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[track_caller]
    fn written(spills: &Arc<SpillDir>, text: &str) -> Option<FullOutput> {
        let mut spill = SpillFile::new(Arc::clone(spills));
        spill.begin();
        spill.push(text);
        spill.finish()
    }

    #[test]
    fn files_are_for_their_owner_alone_and_last_as_long_as_the_run() {
        let place = Temporary::new();
        let spills = spills(place.path());
        assert!(names(place.path()).is_empty());
        let Some(FullOutput::Complete(path)) = written(&spills, "one") else { panic!("no file") };
        assert_ne!(written(&spills, "two"), Some(FullOutput::Complete(path.clone())));
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
        assert_eq!(written(&spills, "three"), None);
    }

    #[test]
    fn a_file_has_its_bound_and_so_have_all_of_a_run() {
        let place = Temporary::new();
        let spills = spills(place.path());
        let chunk = "x".repeat(1024 * 1024 - 1) + "\u{e9}";
        let mut spill = SpillFile::new(Arc::clone(&spills));
        spill.begin();
        (0..65).for_each(|_| spill.push(&chunk));
        let Some(FullOutput::Truncated(path, bytes)) = spill.finish() else { panic!("not cut") };
        assert_eq!((bytes, path.metadata().unwrap().len()), (FILE_MAX, FILE_MAX));
        assert_eq!(lock(&spills.state).left, ALL_MAX - FILE_MAX);
        lock(&spills.state).left = 4;
        assert!(matches!(written(&spills, "abc\u{e9}"), Some(FullOutput::Truncated(_, 3))));
        assert!(matches!(written(&spills, "a"), Some(FullOutput::Complete(_))));
        assert_eq!(written(&spills, "a"), None);
    }

    #[test]
    fn the_first_place_that_can_be_used_is_taken() {
        let place = Temporary::new();
        let mut spills = SpillDir::new(&[]);
        spills.places = vec![place.path().join("gone"), place.path().to_owned()];
        let Some(FullOutput::Complete(path)) = written(&Arc::new(spills), "x") else {
            panic!("no file")
        };
        assert!(path.starts_with(place.path()));
        let mut spills = SpillDir::new(&[("TMPDIR".into(), "relative".into())]);
        spills.places.retain(|place| place != Path::new("/tmp"));
        assert_eq!(written(&Arc::new(spills), "x"), None);
    }

    #[cfg(unix)]
    #[test]
    fn what_killed_runs_left_is_removed_and_nothing_else_is() {
        let place = Temporary::new();
        let folder = |name: &str| {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("1.txt"), "x").unwrap();
            path
        };
        let left = folder("uncut-output-left");
        let alive = folder("uncut-output-alive");
        let _lock = lock_folder(&alive).unwrap();
        let (other, young) = (folder("other"), folder("uncut-new-young"));
        let target = folder("target");
        let link = place.path().join("uncut-output-link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let strange = folder("uncut-output-strange");
        // Where we may not give it away it is ours, and goes.
        let is_strange = std::os::unix::fs::chown(&strange, Some(65_534), None).is_ok();
        let spills = spills(place.path());
        assert!(matches!(written(&spills, "x"), Some(FullOutput::Complete(_))));
        spills.finish();
        assert!(!left.exists());
        assert_eq!(strange.exists(), is_strange);
        for path in [young, other, alive, target, link] {
            assert!(path.join("1.txt").exists(), "{}", path.display());
        }
    }
}
