//! Makes files and the names of new files durable.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Makes the names in a directory durable.
///
/// # Errors
///
/// What the system says. A file system that can't sync a directory is no error, and neither is a
/// directory that we may not read: one may be allowed to make files in it all the same.
#[cfg(unix)]
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory) {
        Ok(directory) => sync(&directory),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

/// Other systems can't sync a directory.
///
/// # Errors
///
/// None.
#[cfg(not(unix))]
pub fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Syncs a file, unless its file system can't.
pub(super) fn sync(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Ok(())
        }
        result => result,
    }
}
