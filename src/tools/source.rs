//! A file that is searched and copied without being held: it is read a window at a time, from any
//! place, as often as need be.

use std::fs::File;
use std::io::{self, BufReader, Read};

use crate::fs::read_at;
use crate::time::Deadline;

use super::lines::check;

/// Bytes of a file that are held at a time.
pub(super) const WINDOW: usize = 64 * 1024;

/// An open file.
#[derive(Debug)]
pub(super) struct Source<'a> {
    pub(super) file: &'a File,
    /// Nothing behind it is read: a file may grow faster than it is read.
    pub(super) end: u64,
    /// Bytes that a reader holds; [`WINDOW`] but for tests.
    pub(super) window: usize,
    /// When reading fails.
    pub(super) deadline: Deadline,
}

impl Source<'_> {
    /// Reads from `at` on. Each reader has a place of its own.
    pub(super) fn from(&self, at: u64) -> BufReader<At<'_>> {
        BufReader::with_capacity(self.window, At { source: self, at })
    }
}

/// Reads from a place in a file.
#[derive(Debug)]
pub(super) struct At<'a> {
    source: &'a Source<'a>,
    at: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        check(self.source.deadline)?;
        let left = self.source.end.saturating_sub(self.at);
        let room = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = read_at(self.source.file, &mut buffer[..room], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::tests::Folder;

    #[test]
    fn readers_have_places_of_their_own_and_a_common_end() {
        let folder = Folder::new();
        let file = File::open(folder.write("f", "0123456789")).unwrap();
        let source = Source { file: &file, end: 8, window: 3, deadline: Deadline::NONE };
        let (mut one, mut other) = (source.from(0), source.from(5));
        let mut text = String::new();
        one.by_ref().take(4).read_to_string(&mut text).unwrap();
        other.read_to_string(&mut text).unwrap();
        one.read_to_string(&mut text).unwrap();
        source.from(9).read_to_string(&mut text).unwrap();
        assert_eq!(text, "01235674567");
    }
}
