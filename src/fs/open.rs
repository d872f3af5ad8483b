//! Opens files whose names come from outside: the model, a flag, a directory.
//!
//! Opening a FIFO or a device can block for ever or change something, so what is not a regular
//! file is refused by its metadata, before it is opened. Between the look and the opening another
//! process may exchange the file; opening without blocking and a second look at what was opened
//! make that harmless.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The most links that are followed one after another, as many as Linux follows.
const LINKS_MAX: usize = 40;

/// Where `path` leads, through symbolic links at its end. Those before it are the system's to
/// follow.
///
/// # Errors
///
/// The links don't end, or they lead to an open file of a process, as those of `/dev/stdout` do:
/// what is read there is gone for who it is for, and what is written gets mixed up with theirs.
pub fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        // Not a link, or nothing at all.
        let Ok(target) = fs::read_link(&path) else { return Ok(path) };
        if is_descriptor(&path) {
            let message = "it is an open stream of a process (of uncut itself, where it is \
                           /dev/stdin, /dev/stdout or the like), not a file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        path = directory_of(&path).join(target);
    }
    Err(io::Error::other("too many symbolic links, one after another"))
}

/// Whether a link is one of those that Linux shows for the open files of a process.
fn is_descriptor(link: &Path) -> bool {
    let directory = directory_of(link).canonicalize();
    directory.is_ok_and(|directory| directory.starts_with("/proc") && directory.ends_with("fd"))
}

/// Whether two paths lead to the same file, also by different links; of files that are not there,
/// whether they would.
pub fn are_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let path = follow_links(path).ok()?;
        let directory = directory_of(&path).canonicalize().ok()?;
        Some((directory, path.file_name()?.to_owned()))
    };
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) if cfg!(unix) => identity(&one) == identity(&other),
        _ => place(one).is_some_and(|one| place(other) == Some(one)),
    }
}

/// What tells files of a machine apart: their device and their number on it. Other systems have
/// nothing of the kind, and there all are the same.
#[cfg(unix)]
pub fn identity(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

/// Nothing tells files apart here.
#[cfg(not(unix))]
pub fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// The directory of a path; the current one where the path is a bare name.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Opens a regular file for reading, without ever blocking.
///
/// # Errors
///
/// What the system says, or that it is no regular file and what it is instead.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    refuse_irregular(&fs::metadata(path)?)?;
    let file = without_blocking(OpenOptions::new().read(true)).open(path)?;
    let metadata = file.metadata()?;
    refuse_irregular(&metadata)?;
    Ok((file, metadata))
}

/// Fails unless the metadata is that of a regular file.
///
/// # Errors
///
/// What it is instead; [`io::ErrorKind::IsADirectory`] for a directory.
pub fn refuse_irregular(metadata: &Metadata) -> io::Result<()> {
    let file_type = metadata.file_type();
    if file_type.is_file() {
        return Ok(());
    }
    if file_type.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    let message = format!("it is {}, not a regular file", name_of(file_type));
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Makes `options` open without waiting for the other end of a FIFO or for a device, and without
/// making a terminal ours. For regular files it changes nothing.
pub fn without_blocking(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

/// Lets nobody else read the file that `options` make; elsewhere a new file is as private as its
/// directory.
pub fn make_private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(unix)]
fn name_of(file_type: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if file_type.is_fifo() {
        "a FIFO"
    } else if file_type.is_socket() {
        "a socket"
    } else if file_type.is_block_device() || file_type.is_char_device() {
        "a device"
    } else {
        "something else"
    }
}

#[cfg(not(unix))]
fn name_of(_: FileType) -> &'static str {
    "something else"
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// An empty directory for one test.
    pub(crate) struct Folder(PathBuf);

    impl Folder {
        pub(crate) fn new() -> Folder {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("uncut-{}-{count}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Folder(path)
        }

        pub(crate) fn path(&self) -> &Path {
            &self.0
        }

        #[track_caller]
        pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, content).unwrap();
            path
        }

        #[track_caller]
        pub(crate) fn read(&self, name: &str) -> Vec<u8> {
            fs::read(self.0.join(name)).unwrap()
        }

        /// The names in it, sorted.
        pub(crate) fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Makes a FIFO, which std can't.
    #[cfg(unix)]
    #[track_caller]
    pub(crate) fn make_fifo(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).spawn().unwrap().wait().unwrap();
        assert!(made.success());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_is_refused_by_name() {
        let folder = Folder::new();
        let device = open_regular(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(device.to_string(), "it is a device, not a regular file");
        let directory = open_regular(folder.path()).unwrap_err();
        assert_eq!(directory.kind(), io::ErrorKind::IsADirectory);
        let path = folder.path().join("pipe");
        make_fifo(&path);
        let fifo = open_regular(&path).unwrap_err();
        assert_eq!(fifo.to_string(), "it is a FIFO, not a regular file");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn links_lead_on_but_not_to_an_open_file_of_a_process() {
        use std::os::fd::AsRawFd as _;
        use std::os::unix::fs::symlink;
        let folder = Folder::new();
        let path = folder.write("f", "");
        symlink("f", folder.path().join("link")).unwrap();
        assert_eq!(follow_links(&folder.path().join("link")).unwrap(), path);
        let file = File::open(&path).unwrap();
        let descriptor = file.as_raw_fd();
        symlink(format!("/dev/fd/{descriptor}"), folder.path().join("stream")).unwrap();
        for path in [
            folder.path().join("stream"),
            format!("/proc/self/fd/{descriptor}").into(),
            format!("/proc/{}/fd/{descriptor}", std::process::id()).into(),
            "/dev/stdout".into(),
        ] {
            let error = follow_links(&path).unwrap_err().to_string();
            assert!(error.starts_with("it is an open stream of a process"), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_fifo_that_slips_in_does_not_block() {
        let folder = Folder::new();
        let path = folder.path().join("pipe");
        make_fifo(&path);
        assert!(without_blocking(OpenOptions::new().read(true)).open(&path).is_ok());
        assert!(without_blocking(OpenOptions::new().write(true)).open(&path).is_err());
    }
}
