//! New content in a temporary file beside the one that it is for, and the locks of both.
//!
//! A run that is killed leaves `.NAME.uncut-N.tmp` behind, which the next write to NAME removes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::{Duration, Instant};

use crate::text;

#[cfg(unix)]
use super::open::identity;
use super::open::{directory_of, make_private, open_regular};

/// The new content in a temporary file, which goes when this is dropped.
pub(super) struct TempFile {
    /// None once there is nothing to remove.
    path: Option<PathBuf>,
    pub(super) file: File,
}

/// The most names that are tried for a temporary file: as many runs may be writing the same file.
const NAMES_MAX: u32 = 1_000;

/// So many names are looked at for what a killed run left, whichever of them is free.
const LEFT_MAX: u32 = 8;

/// Bytes of the file's own name in that of its temporary file. A name of the longest kind, of 255
/// bytes, has no room for more.
const NAME_HEAD: usize = 100;

impl TempFile {
    /// Makes an empty file beside `target`. What stands for an existing file is private until it
    /// has that file's mode; a new one has the mode of any new file from the start.
    ///
    /// Its lock shows that somebody writes it, and the kernel takes that back however a run ends:
    /// so what nobody has locked was left behind. A process id would not show it: in a container
    /// all runs have the same.
    pub(super) fn create(target: &Path, is_private: bool) -> io::Result<TempFile> {
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = |number| {
            let head = text::head(&name, NAME_HEAD);
            directory_of(target).join(format!(".{head}.uncut-{number}.tmp"))
        };
        for number in 0..LEFT_MAX {
            remove_left(&path(number));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        if is_private {
            make_private(&mut options);
        }
        // A number under which something was set aside is taken: this file may have to be, too.
        let is_free = |path: &PathBuf| path.with_extension("new").symlink_metadata().is_err();
        for path in (0..NAMES_MAX).map(path).filter(is_free) {
            match options.open(&path) {
                // Somebody else may have taken it for left behind before it had its lock.
                Ok(file) if !lock(&file) || !is_at(&file, &path) => {}
                Ok(file) => return Ok(TempFile { path: Some(path), file }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("too many temporary files (.*.uncut-*.tmp) lie in its directory"))
    }

    /// Gives the file, which is whole, a name under which nobody takes it for left behind.
    pub(super) fn set_aside(&mut self) {
        if let Some(path) = &mut self.path {
            let aside = path.with_extension("new");
            if fs::rename(&*path, &aside).is_ok() {
                *path = aside;
            }
        }
    }

    /// Puts the file in the place of what lies at `path`.
    pub(super) fn rename(&mut self, path: &Path) -> io::Result<()> {
        if let Some(own) = &self.path {
            fs::rename(own, path)?;
            self.path = None;
        }
        Ok(())
    }

    /// Leaves the temporary file where it is.
    pub(super) fn keep(mut self) -> Option<PathBuf> {
        self.path.take()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // There is nobody to tell, and the outcome does not depend on it.
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes the temporary file of a run that was killed.
///
/// A file that can't be opened or locked is somebody else's, and in nobody's way.
fn remove_left(path: &Path) {
    if let Ok((file, _)) = open_regular(path)
        && file.try_lock().is_ok()
        && is_at(&file, path)
    {
        let _ = fs::remove_file(path);
    }
}

/// The longest that a file is waited for which somebody else has locked, who may keep it for ever.
#[cfg(unix)]
const ALONE_WAIT: Duration = Duration::from_secs(2);

/// Opens a file for reading, if possible when no other run has opened it like this: between the
/// last look at a file and the rename nothing else keeps one run from undoing the change of
/// another. The lock goes with the file.
#[cfg(unix)]
pub(super) fn open_alone(path: &Path) -> io::Result<File> {
    let end = Instant::now() + ALONE_WAIT;
    loop {
        let (file, _) = open_regular(path)?;
        // Who had the lock has put another file in the place of this one.
        if (lock(&file) && is_at(&file, path)) || Instant::now() >= end {
            return Ok(file);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// There a lock would keep everybody from reading and writing it.
#[cfg(not(unix))]
pub(super) fn open_alone(path: &Path) -> io::Result<File> {
    open_regular(path).map(|(file, _)| file)
}

/// Locks a file, unless another process has; some file systems know no locks.
fn lock(file: &File) -> bool {
    !matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Whether it is this file that lies at `path`, and neither another one nor a link to it.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    let same =
        |there: fs::Metadata| file.metadata().is_ok_and(|own| identity(&own) == identity(&there));
    path.symlink_metadata().is_ok_and(same)
}

/// An open file keeps its name there.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}
