//! Whether the file of a log still lies where it was opened, what happened to it if not, and who
//! else may read it.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::fs::identity;

/// How many bytes the file has, if it still lies at `path`; otherwise what happened to it.
pub(super) fn len(file: &File, path: &Path) -> io::Result<Result<u64, String>> {
    let own = file.metadata()?;
    let there = match fs::metadata(path) {
        Ok(there) => Some(there),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => None,
            _ => return Err(error),
        },
    };
    Ok(match there {
        Some(there) if is_same(&own, &there) => Ok(own.len()),
        there => Err(taken(has_name(&own), there.as_ref())),
    })
}

/// Reads from a place in the file. On Windows that moves the position, to the end where all of the
/// end is read, as it always is here.
pub(super) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, buffer, at);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, buffer, at);
}

/// Whether what lies at the path is the file that is held. Where nothing tells files apart, one of
/// the same length is.
fn is_same(own: &fs::Metadata, there: &fs::Metadata) -> bool {
    let is_held = identity(own) == identity(there) && there.is_file();
    is_held && has_name(own) && (cfg!(unix) || own.len() == there.len())
}

/// Whether the file has a name. What is written to one without is gone with this process.
fn has_name(own: &fs::Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::nlink(own) > 0;
    #[cfg(not(unix))]
    return own.is_file();
}

/// What happened to a log that is not at its path.
fn taken(has_name: bool, there: Option<&fs::Metadata>) -> String {
    let what = match (has_name, there) {
        (false, None) => "it was removed",
        (true, None) => "it was moved away",
        (false, Some(there)) if there.is_dir() => "it was removed, and a directory lies there now",
        (true, Some(there)) if there.is_dir() => "it was moved away for a directory",
        (false, Some(_)) => "it was replaced by another file",
        (true, Some(_)) => "it was moved away, and another file lies there now",
    };
    let records = match has_name {
        true => "the records until then are where it is now",
        false => "the records of this run are gone",
    };
    format!("{what} while this run wrote to it; {records}")
}

/// What there is to say of a log that others than its owner may read or change.
#[cfg(unix)]
pub(super) fn exposed(path: &Path, metadata: &fs::Metadata) -> Option<String> {
    let mode = std::os::unix::fs::MetadataExt::mode(metadata) & 0o777;
    (mode & 0o077 != 0).then(|| {
        format!("{} is open to others (mode {mode:04o}); chmod 600 keeps it yours", path.display())
    })
}

#[cfg(not(unix))]
pub(super) fn exposed(_path: &Path, _metadata: &fs::Metadata) -> Option<String> {
    None
}
