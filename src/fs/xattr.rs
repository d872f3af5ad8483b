//! The extended attributes of files, which std can't copy: access lists, labels, capabilities, and
//! what users put there.
//!
//! Beside `process`, the only module with `unsafe`, and each use is one call into libc.
#![expect(unsafe_code, reason = "std has no listxattr, getxattr, setxattr and removexattr")]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Gives `new` the attributes of the file at `old`, which is no symbolic link, and takes from it
/// those that this one has not: a directory gives access to every new file that is made in it.
///
/// # Errors
///
/// One of them can't be read, given or taken. `new` may have some of the others then.
pub(super) fn copy(old: &Path, new: &File) -> io::Result<()> {
    let old = CString::new(old.as_os_str().as_bytes())?;
    let wanted = names(&Place::Path(&old))?;
    for name in &wanted {
        let value = value(&Place::Path(&old), name)?;
        // What the kernel gave to both need not be allowed to us.
        if !self::value(&Place::File(new), name).is_ok_and(|own| own == value) {
            set(new, name, &value)?;
        }
    }
    let own = names(&Place::File(new))?;
    own.iter().filter(|name| !wanted.contains(name)).try_for_each(|name| remove(new, name))
}

/// Where attributes are read.
enum Place<'a> {
    /// A file that we may not be allowed to open for reading.
    Path(&'a CStr),
    File(&'a File),
}

/// The most bytes of all names together, and of one value, that Linux knows.
const MAX: usize = 64 * 1024;

/// The names of the attributes; none where the file system knows no such thing.
fn names(place: &Place<'_>) -> io::Result<Vec<CString>> {
    // SAFETY: both write at most so many bytes to the buffer that they are told of.
    let list = read(|buffer| unsafe {
        match place {
            Place::Path(path) => {
                libc::llistxattr(path.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
            }
            Place::File(file) => {
                libc::flistxattr(file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len())
            }
        }
    });
    match list {
        Ok(list) => Ok(list
            .split_inclusive(|&byte| byte == 0)
            .map_while(|name| CStr::from_bytes_with_nul(name).ok().map(CStr::to_owned))
            .collect()),
        Err(error) if error.raw_os_error() == Some(libc::ENOTSUP) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn value(place: &Place<'_>, name: &CStr) -> io::Result<Vec<u8>> {
    // SAFETY: both write at most so many bytes to the buffer that they are told of.
    read(|buffer| unsafe {
        let (start, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        match place {
            Place::Path(path) => libc::lgetxattr(path.as_ptr(), name.as_ptr(), start, length),
            Place::File(file) => libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), start, length),
        }
    })
}

fn set(file: &File, name: &CStr, value: &[u8]) -> io::Result<()> {
    let (start, length) = (value.as_ptr().cast(), value.len());
    // SAFETY: fsetxattr reads the name and so many bytes of the value.
    checked(unsafe { libc::fsetxattr(file.as_raw_fd(), name.as_ptr(), start, length, 0) })
}

fn remove(file: &File, name: &CStr) -> io::Result<()> {
    // SAFETY: fremovexattr reads the name.
    checked(unsafe { libc::fremovexattr(file.as_raw_fd(), name.as_ptr()) })
}

/// What a call writes that gives the number of bytes, or less than 0 when it fails.
fn read(call: impl FnOnce(&mut [u8]) -> libc::ssize_t) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; MAX];
    let length = usize::try_from(call(&mut buffer)).map_err(|_| io::Error::last_os_error())?;
    buffer.truncate(length);
    Ok(buffer)
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::replace::{Replaced, Target};
    use crate::fs::tests::Folder;

    const ACL: &CStr = c"system.posix_acl_access";
    const DEFAULT_ACL: &CStr = c"system.posix_acl_default";
    const NOTE: &CStr = c"user.note";

    /// An access list that lets user 54321 read and write, as the kernel spells it: the version,
    /// then tag, permissions and id of each entry.
    fn acl() -> Vec<u8> {
        let entry = |tag: u16, permissions: u16, id: u32| {
            [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        let nobody = u32::MAX;
        let entries = [
            entry(0x01, 6, nobody),
            entry(0x02, 6, 54_321),
            entry(0x04, 4, nobody),
            entry(0x10, 6, nobody),
            entry(0x20, 0, nobody),
        ];
        [&2_u32.to_le_bytes()[..], &entries.concat()].concat()
    }

    /// Sets an attribute, where the file system of the test knows it.
    #[track_caller]
    fn is_set(path: &Path, name: &CStr, value: &[u8]) -> bool {
        match set(&File::open(path).unwrap(), name, value) {
            Err(error) if error.raw_os_error() == Some(libc::ENOTSUP) => false,
            result => result.is_ok() || panic!("{name:?}: {result:?}"),
        }
    }

    fn attributes(path: &Path) -> Vec<(CString, Vec<u8>)> {
        let file = File::open(path).unwrap();
        let place = Place::File(&file);
        let mut all: Vec<_> = names(&place)
            .unwrap()
            .into_iter()
            .map(|name| (name.clone(), value(&place, &name).unwrap()))
            .collect();
        all.sort();
        all
    }

    #[track_caller]
    fn replace(path: &Path) {
        let replaced = Target::find(path).unwrap().replace(&|out| out.write_all(b"new")).unwrap();
        assert_eq!(replaced, Replaced { bytes: 3, in_place: false });
    }

    #[test]
    fn access_lists_and_attributes_stay_with_a_file_that_another_takes_the_place_of() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = Folder::new();
        let path = folder.write("f", "old");
        if !is_set(&path, ACL, &acl()) || !is_set(&path, NOTE, b"a\0b") {
            return;
        }
        let before = (attributes(&path), path.metadata().unwrap().mode());
        assert!(before.0.len() >= 2);
        replace(&path);
        assert_eq!((attributes(&path), path.metadata().unwrap().mode()), before);
        assert_eq!(folder.read("f"), b"new");
    }

    #[test]
    fn access_that_a_directory_gives_to_new_files_is_not_given_to_an_old_one() {
        let folder = Folder::new();
        let path = folder.write("f", "old");
        let before = attributes(&path);
        if !is_set(folder.path(), DEFAULT_ACL, &acl()) {
            return;
        }
        // A new file has it.
        let new = folder.write("new", "");
        assert_ne!(attributes(&new), before);
        replace(&path);
        assert_eq!(attributes(&path), before);
    }

    #[test]
    fn a_file_system_without_attributes_has_none() {
        let file = File::open("/proc/self/status").unwrap();
        assert!(names(&Place::File(&file)).unwrap().is_empty());
    }
}
