//! Why a session can't be used, and what there is to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::outcome::Outcome;

/// Why a session can't be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionError {
    /// The log is not whole. Nothing of it was changed.
    Damaged {
        /// The log.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// Where the line starts, in bytes from the start of the file.
        offset: u64,
        /// What is wrong with it.
        detail: String,
    },
    /// Another process, or another session of this one, holds the log.
    Locked {
        /// The log.
        path: PathBuf,
        /// The process that holds it, where the system tells.
        holder: Option<u32>,
    },
    /// The log can't be opened or read.
    Open {
        /// The log.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A record could not be read back or can't come next in the conversation, so it was not
    /// written: a fault of the caller. The session is as good as before.
    Record {
        /// What is wrong with it.
        detail: String,
    },
    /// Another process has written to the log, moved, removed or replaced it, so no record is
    /// written to it.
    Changed {
        /// The log.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// A record could not be written or synced, now or earlier, or there is no room for a first
    /// one.
    Write {
        /// The log.
        path: PathBuf,
        /// What went wrong, and how the file was left.
        detail: String,
    },
}

impl SessionError {
    /// The outcome of a run that ends for this reason.
    pub fn outcome(&self) -> Outcome {
        match self {
            SessionError::Damaged { .. } => Outcome::SessionDamaged,
            SessionError::Locked { .. } => Outcome::SessionLocked,
            SessionError::Open { .. } => Outcome::Usage,
            SessionError::Record { .. } => Outcome::Internal,
            SessionError::Changed { .. } | SessionError::Write { .. } => Outcome::SessionWrite,
        }
    }

    /// What the user can do about it.
    pub fn advice(&self) -> String {
        match self {
            SessionError::Damaged { path, offset, .. } => {
                let foreign = match offset {
                    0 => "if this is no session of uncut, give --session another file; ",
                    _ => "",
                };
                let path = quoted(path);
                format!(
                    "{foreign}to move the damage to a file beside it and go on from the records \
                     before it: uncut --session {path} --repair-session"
                )
            }
            SessionError::Locked { .. } => "wait for its end or use another file".to_owned(),
            SessionError::Open { .. } => {
                "give --session a file that can be read and written".to_owned()
            }
            SessionError::Record { .. } => "report this as a fault of uncut".to_owned(),
            SessionError::Changed { .. } => {
                "keep it out of the way of other programs, and let one run at a time use it"
                    .to_owned()
            }
            SessionError::Write { .. } => {
                "make room or mend the disk, then resume the session".to_owned()
            }
        }
    }
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionError::Damaged { path, line, offset, detail } => write!(
                f,
                "{} line {line} (byte {offset}): {detail}; the file was not changed",
                path.display()
            ),
            SessionError::Locked { path, holder } => {
                write!(f, "{} is held by another process", path.display())?;
                holder.map_or(Ok(()), |pid| write!(f, " (pid {pid})"))
            }
            SessionError::Open { path, source } => write!(f, "{}: {source}", path.display()),
            SessionError::Record { detail } => {
                write!(f, "a record was refused before it was written: {detail}")
            }
            SessionError::Changed { path, detail } | SessionError::Write { path, detail } => {
                write!(f, "{}: {detail}", path.display())
            }
        }
    }
}

impl std::error::Error for SessionError {}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}
