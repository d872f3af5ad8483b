//! Makes a damaged log whole again, on demand, by moving the damage to a file beside it.
//!
//! Never in place and never without a copy: what is cut off is durable under another name before
//! the log is touched, so that putting it back is one `cat`. What lies behind a damaged line goes
//! with it, whether it could be read or not: a conversation with a gap is another conversation.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::fs::make_private;

use super::{ReadError, SessionError, record, storage};

/// How many copies may lie beside a log; whoever has so many has another problem.
const COPIES_MAX: u32 = 9_999;

/// What was cut off a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// The log.
    pub path: PathBuf,
    /// Where the damaged bytes are now.
    pub copy: PathBuf,
    /// The first damaged line, counted from 1.
    pub line: u64,
    /// Where it starts, and where the log ends now, in bytes.
    pub offset: u64,
    /// What is wrong with it.
    pub detail: String,
    /// How many lines were cut off; one that the file ends in the middle of counts.
    pub lines: u64,
    /// How many bytes were cut off.
    pub bytes: u64,
    /// How many of the lines behind the first are records in themselves.
    pub readable: u64,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Repair { path, copy, line, offset, detail, lines, bytes, readable } = self;
        let noun = if *lines == 1 { "line" } else { "lines" };
        write!(f, "{} line {line} (byte {offset}): {detail}; ", path.display())?;
        write!(f, "from there on {lines} {noun}, {bytes} bytes, were moved to {}", copy.display())?;
        match readable {
            0 => Ok(()),
            1 => f.write_str("; 1 line behind the damage could be read and is lost with it"),
            _ => {
                write!(f, "; {readable} lines behind the damage could be read and are lost with it")
            }
        }
    }
}

/// Moves what stands from `offset` on, the start of line `line`, out of the log.
///
/// The log is locked, and was read as far as the damage.
pub(super) fn cut(
    path: &Path,
    file: &File,
    line: u64,
    offset: u64,
    detail: String,
) -> Result<Repair, SessionError> {
    let unread = |source| SessionError::Open { path: path.to_owned(), source };
    let len = file.metadata().map_err(unread)?.len();
    let (lines, readable) = count(file, offset).map_err(unread)?;
    let bytes = len.saturating_sub(offset);
    let failed = |detail| SessionError::Write { path: path.to_owned(), detail };
    let copy = save(path, file, offset, bytes).map_err(|error| {
        failed(format!("the damage could not be saved beside it: {error}; it was not changed"))
    })?;
    truncate(file, offset, len).map_err(|error| {
        let copy = copy.display();
        failed(format!("cutting it to {offset} bytes failed: {error}; the damage is in {copy} too"))
    })?;
    Ok(Repair { path: path.to_owned(), copy, line, offset, detail, lines, bytes, readable })
}

/// How many lines there are from `offset` on, and how many of those behind the first are records.
fn count(mut file: &File, offset: u64) -> io::Result<(u64, u64)> {
    file.seek(SeekFrom::Start(offset))?;
    let mut rest = BufReader::new(file);
    let mut lines = u64::from(rest.skip_until(b'\n')? > 0);
    let mut readable = 0;
    loop {
        let read = record::read_lines(&mut rest, |line| {
            lines += 1;
            readable += u64::from(record::read_line(line).is_ok());
            // The rest of a line that is too long has to be skipped.
            match record::is_too_long(line) && !line.ends_with(b"\n") {
                true => Err(String::new()),
                false => Ok(()),
            }
        });
        match read {
            Ok(_) => return Ok((lines, readable)),
            Err(ReadError::Io(error)) => return Err(error),
            Err(ReadError::Damaged { .. }) => {
                rest.skip_until(b'\n')?;
            }
        }
    }
}

/// Copies `bytes` bytes from `offset` on to a new file beside the log, durably.
fn save(path: &Path, mut file: &File, offset: u64, bytes: u64) -> io::Result<PathBuf> {
    // Beside the file itself where the path is a link to it.
    let (mut copy, name) = create_beside(&fs::canonicalize(path)?)?;
    let saved = file
        .seek(SeekFrom::Start(offset))
        .and_then(|_| io::copy(&mut file.take(bytes), &mut copy))
        .and_then(|copied| match copied == bytes {
            true => Ok(()),
            false => Err(io::Error::other("another process writes to the log")),
        })
        .and_then(|()| copy.sync_all())
        .and_then(|()| storage::sync_directory(&name));
    if saved.is_err() {
        // It holds nothing that is not in the log.
        let _ = fs::remove_file(&name);
    }
    saved.map(|()| name)
}

/// Makes the first of `FILE.damaged-1`, `FILE.damaged-2`, ... that does not exist.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    for number in 1..=COPIES_MAX {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".damaged-{number}"));
        let name = PathBuf::from(name);
        let mut options = OpenOptions::new();
        match make_private(options.write(true).create_new(true)).open(&name) {
            Ok(copy) => {
                storage::own(&copy);
                return Ok((copy, name));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("there are {COPIES_MAX} copies of earlier damage already")))
}

/// Cuts the log, which has `len` bytes, durably, and stands at its end then.
fn truncate(mut file: &File, offset: u64, len: u64) -> io::Result<()> {
    // Where there are no locks, what another run appended meanwhile is in no copy.
    if file.metadata()?.len() != len {
        return Err(io::Error::other("another process writes to it"));
    }
    file.set_len(offset)?;
    file.sync_all()?;
    file.seek(SeekFrom::End(0))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that ends up here has no lock, because the file system has none.
    #[test]
    fn what_another_process_does_to_the_log_meanwhile_stops_the_repair() {
        let folder = std::env::temp_dir().join(format!("uncut-repair-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("log");
        fs::write(&path, "whole\ntorn").unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        // Of ten bytes, one was not there yet, or the last is gone by now.
        for len in [9, 11] {
            let error = truncate(&file, 6, len).unwrap_err().to_string();
            assert_eq!(error, "another process writes to it");
        }
        let error = save(&path, &file, 6, 5).unwrap_err().to_string();
        assert_eq!(error, "another process writes to the log");
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\ntorn");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "a copy is left");
        fs::remove_dir_all(&folder).unwrap();
    }
}
