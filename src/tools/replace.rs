//! Replaces the content of a file as a whole: after a crash it is the old one or the new one.
//!
//! The new content goes to a temporary file in the same directory, is synced, and takes the
//! place of the old one by a rename, which also keeps readers from ever seeing half of it. A rename
//! makes another file of the same name, so what belonged to the old file (mode, owner, on Linux
//! access list and other extended attributes) is given to the new one first, and symbolic links are
//! followed before.
//!
//! Some files can't be exchanged like that: one with several hard links would lose them, one whose
//! owner we can't give away would change hands, one with an attribute that we may not set would
//! lose its protection, a mount point is busy, a directory may be closed to
//! us. Their content is overwritten in place and synced. Where the directory lets us, the
//! temporary file with the whole new content stays until that is done, so that nothing is lost: it
//! is called `.NAME.uncut-N.new` then, and nobody removes it but the user.
//!
//! A run that is killed leaves `.NAME.uncut-N.tmp` behind, which the next write to NAME removes.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::file::{self, directory_of, follow_links};
use crate::text;

/// Writes the new content, the same whenever it is called.
pub(crate) type Content<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

/// A file that may be replaced, or made.
#[derive(Debug)]
pub(crate) struct Target {
    /// Where it is in the end: no symbolic link.
    path: PathBuf,
    /// None where there is no file yet.
    existing: Option<Metadata>,
}

/// How a file was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replaced {
    /// Bytes of the new content.
    pub(super) bytes: u64,
    /// Whether the file was overwritten, rather than another put in its place.
    pub(super) in_place: bool,
}

impl Target {
    /// Finds the file that `path` leads to, and whether it may be written.
    ///
    /// # Errors
    ///
    /// It is no regular file, or an open one of a process, or it may not be written: the kernel says so, or its mode lets nobody
    /// write, which stops us even where it would not stop the kernel.
    pub(crate) fn find(path: &Path) -> io::Result<Target> {
        let existing = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let path = follow_links(path)?;
        match &existing {
            Some(metadata) => refuse_unwritable(&path, metadata)?,
            None if names_directory(&path) => {
                let message = "the path ends like that of a directory";
                return Err(io::Error::new(ErrorKind::IsADirectory, message));
            }
            None => {}
        }
        Ok(Target { path, existing })
    }

    /// The file's metadata, where there is a file.
    pub(super) fn existing(&self) -> Option<&Metadata> {
        self.existing.as_ref()
    }

    /// Puts `content` in the place of what is there; directories that are missing are made.
    ///
    /// # Errors
    ///
    /// The file has its old content then, unless the message says otherwise.
    pub(crate) fn replace(&self, content: Content<'_>) -> io::Result<Replaced> {
        let directory = directory_of(&self.path);
        make_directories(directory)?;
        let mut staged = match (Staged::create(&self.path, self.existing.is_some()), &self.existing)
        {
            (Ok(staged), _) => staged,
            // Nothing can be put beside it, but that does not close the file itself. A full disk
            // does: what is overwritten then may have lost its old content and not get the new.
            (Err(error), Some(_)) if !is_full(&error) => return self.overwrite(content, None),
            (Err(error), _) => return Err(error),
        };
        let bytes = write(&staged.file, content)?;
        let inherited =
            self.existing.as_ref().map_or(Ok(()), |old| inherit(&self.path, old, &staged.file));
        sync(&staged.file)?;
        match inherited.and_then(|()| staged.rename(&self.path)) {
            Err(_) if self.existing.is_some() => return self.overwrite(content, Some(staged)),
            result => result?,
        }
        sync_directory(directory).map_err(|error| {
            retold(&error, "the new content is in place, but a crash may undo that")
        })?;
        Ok(Replaced { bytes, in_place: false })
    }

    /// Writes over the old content, and only then cuts off what is left of it, so that nobody ever
    /// finds the file empty. What is staged is kept when that goes wrong.
    fn overwrite(&self, content: Content<'_>, mut staged: Option<Staged>) -> io::Result<Replaced> {
        let file = file::without_blocking(OpenOptions::new().write(true)).open(&self.path)?;
        let metadata = file.metadata()?;
        file::refuse_irregular(&metadata)?;
        if let Some(staged) = &mut staged {
            staged.set_aside();
        }
        let overwrite = || {
            let bytes = write(&file, content)?;
            if bytes < metadata.len() {
                file.set_len(bytes)?;
            }
            sync(&file)?;
            Ok(Replaced { bytes, in_place: true })
        };
        overwrite().map_err(|error| {
            let told = "the file may hold only a part of the new content";
            match staged.and_then(Staged::keep) {
                Some(path) => retold(&error, &format!("{told}; {} has it all", path.display())),
                None => retold(&error, told),
            }
        })
    }
}

fn refuse_unwritable(path: &Path, metadata: &Metadata) -> io::Result<()> {
    file::refuse_irregular(metadata)?;
    if metadata.permissions().readonly() {
        let message = "the file is read-only, its mode lets nobody write; it was left as it is";
        return Err(io::Error::new(ErrorKind::PermissionDenied, message));
    }
    // Only the kernel knows about access lists, read-only mounts and immutable files. It would not
    // let anybody write to a program that runs, but one may take its place.
    match file::without_blocking(OpenOptions::new().write(true)).open(path) {
        Err(error) if error.kind() != ErrorKind::ExecutableFileBusy => Err(error),
        _ => Ok(()),
    }
}

/// The new content in a temporary file, which goes when this is dropped.
struct Staged {
    /// None once there is nothing to remove.
    path: Option<PathBuf>,
    file: File,
}

/// The most names that are tried for a temporary file: as many runs may be writing the same file.
const NAMES_MAX: u32 = 1_000;

/// So many names are looked at for what a killed run left, whichever of them is free.
const LEFT_MAX: u32 = 8;

/// Bytes of the file's own name in that of its temporary file. A name of the longest kind, of 255
/// bytes, has no room for more.
const NAME_HEAD: usize = 100;

impl Staged {
    /// Makes an empty file beside `target`. What stands for an existing file is private until it
    /// has that file's mode; a new one has the mode of any new file from the start.
    ///
    /// Its lock shows that somebody writes it, and the kernel takes that back however a run ends: so
    /// what nobody has locked was left behind. A process id would not show it: in a container all
    /// runs have the same.
    fn create(target: &Path, is_private: bool) -> io::Result<Staged> {
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = |number| {
            let head = text::head(&name, NAME_HEAD);
            directory_of(target).join(format!(".{head}.uncut-{number}.tmp"))
        };
        for number in 0..LEFT_MAX {
            remove_left(&path(number));
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if is_private {
            make_private(&mut options);
        }
        // A number under which something was set aside is taken: this file may have to be, too.
        let is_free = |path: &PathBuf| path.with_extension("new").symlink_metadata().is_err();
        for path in (0..NAMES_MAX).map(path).filter(is_free) {
            match options.open(&path) {
                // Somebody else may have taken it for left behind before it had its lock.
                Ok(file) if !lock(&file) || !is_at(&file, &path) => {}
                Ok(file) => return Ok(Staged { path: Some(path), file }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("too many temporary files (.*.uncut-*.tmp) lie in its directory"))
    }

    /// Gives the file, which is whole, a name under which nobody takes it for left behind.
    fn set_aside(&mut self) {
        if let Some(path) = &mut self.path {
            let aside = path.with_extension("new");
            if fs::rename(&*path, &aside).is_ok() {
                *path = aside;
            }
        }
    }

    fn rename(&mut self, path: &Path) -> io::Result<()> {
        if let Some(own) = &self.path {
            fs::rename(own, path)?;
            self.path = None;
        }
        Ok(())
    }

    /// Leaves the temporary file where it is.
    fn keep(mut self) -> Option<PathBuf> {
        self.path.take()
    }
}

impl Drop for Staged {
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
    if let Ok((file, _)) = file::open(path)
        && file.try_lock().is_ok()
        && is_at(&file, path)
    {
        let _ = fs::remove_file(path);
    }
}

/// Locks a file, unless another process has; some file systems know no locks.
fn lock(file: &File) -> bool {
    !matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Whether it is this file that lies at `path`, and neither another one nor a link to it.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let there = path.symlink_metadata().map(id);
    there.is_ok_and(|there| file.metadata().map(id).is_ok_and(|own| own == there))
}

/// An open file keeps its name there.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}

/// Lets nobody else read what is made; elsewhere a new file is as private as its directory.
fn make_private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Gives `new` what belonged to the file at `path` that it is to supersede. The owner comes first,
/// because the kernel drops set-id bits and capabilities when a file changes hands; the mode last,
/// because it is also a part of the access list.
#[cfg(unix)]
fn inherit(path: &Path, existing: &Metadata, new: &File) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    if existing.nlink() > 1 {
        return Err(io::Error::other("its other hard links would keep the old content"));
    }
    let own = new.metadata()?;
    if (own.uid(), own.gid()) != (existing.uid(), existing.gid()) {
        fchown(new, Some(existing.uid()), Some(existing.gid()))?;
    }
    #[cfg(target_os = "linux")]
    super::attributes::copy(path, new)?;
    #[cfg(not(target_os = "linux"))]
    let _ = path;
    new.set_permissions(existing.permissions())
}

#[cfg(not(unix))]
fn inherit(_: &Path, _: &Metadata, _: &File) -> io::Result<()> {
    Ok(())
}

fn write(file: &File, content: Content<'_>) -> io::Result<u64> {
    let mut counted = Counted { inner: BufWriter::with_capacity(64 * 1024, file), bytes: 0 };
    content(&mut counted)?;
    counted.flush()?;
    Ok(counted.bytes)
}

struct Counted<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Makes a directory and those above it, so that they outlive a crash too.
fn make_directories(directory: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| !path.exists()).collect();
    fs::create_dir_all(directory)?;
    missing.into_iter().try_for_each(|made| sync_directory(directory_of(made)))
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory) {
        Ok(directory) => sync(&directory),
        // One may be allowed to make files in a directory and not to read it.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

/// There is no such thing elsewhere.
#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Syncs a file, unless it is of a kind that knows no such thing.
fn sync(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Ok(())
        }
        result => result,
    }
}

/// Whether a path, by its end, can only name a directory. `Path` itself overlooks such ends.
fn names_directory(path: &Path) -> bool {
    let mut names =
        path.as_os_str().as_encoded_bytes().rsplit(|&byte| std::path::is_separator(byte.into()));
    matches!(names.next(), Some(b"" | b"." | b".."))
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// The error with what it left behind.
fn retold(error: &io::Error, told: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{error}; {told}"))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;
    use crate::file::tests::Folder;

    fn replace(path: &Path, content: &[u8]) -> io::Result<Replaced> {
        Target::find(path)?.replace(&|out| out.write_all(content))
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_mode_stays_and_the_file_is_another() {
        let folder = Folder::new();
        for wanted in [0o640, 0o755, 0o600, 0o4711] {
            let path = folder.write("f", "old");
            set_mode(&path, wanted);
            let before = fs::metadata(&path).unwrap().ino();
            let replaced = replace(&path, b"new").unwrap();
            assert_eq!(replaced, Replaced { bytes: 3, in_place: false });
            assert_eq!((mode(&path), folder.read("f")), (wanted, b"new".to_vec()));
            assert_ne!(fs::metadata(&path).unwrap().ino(), before);
        }
        assert_eq!(folder.names(), ["f"]);
    }

    #[test]
    fn the_new_content_of_a_private_file_is_private_from_the_start() {
        let folder = Folder::new();
        let path = folder.write("f", "old");
        set_mode(&path, 0o600);
        let modes = std::cell::RefCell::new(Vec::new());
        let content = |out: &mut dyn Write| {
            let names = folder.names();
            modes.borrow_mut().extend(names.iter().map(|name| mode(&folder.path().join(name))));
            out.write_all(b"new")
        };
        Target::find(&path).unwrap().replace(&content).unwrap();
        assert_eq!(modes.into_inner(), [0o600, 0o600]);
    }

    #[test]
    fn a_new_file_has_the_mode_of_any_new_file() {
        let folder = Folder::new();
        let like = folder.write("like", "");
        let path = folder.path().join("f");
        replace(&path, b"new").unwrap();
        assert_eq!(mode(&path), mode(&like));
    }

    #[test]
    fn a_file_that_nobody_may_write_is_left_as_it_is() {
        let folder = Folder::new();
        let path = folder.write("f", "old");
        set_mode(&path, 0o444);
        let error = replace(&path, b"new").unwrap_err().to_string();
        assert!(error.starts_with("the file is read-only"), "{error}");
        assert_eq!((mode(&path), folder.read("f")), (0o444, b"old".to_vec()));
    }

    #[test]
    fn symbolic_links_are_followed_and_stay() {
        let folder = Folder::new();
        folder.write("f", "old");
        symlink("f", folder.path().join("relative")).unwrap();
        symlink(folder.path().join("relative"), folder.path().join("chain")).unwrap();
        replace(&folder.path().join("chain"), b"new").unwrap();
        assert_eq!(folder.read("f"), b"new");
        symlink("store/new/n.txt", folder.path().join("dangling")).unwrap();
        replace(&folder.path().join("dangling"), b"made").unwrap();
        assert_eq!(folder.read("store/new/n.txt"), b"made");
        for link in ["relative", "chain", "dangling"] {
            assert!(folder.path().join(link).is_symlink(), "{link}");
        }
        symlink("store", folder.path().join("memory")).unwrap();
        replace(&folder.path().join("memory/deep/m.txt"), b"made").unwrap();
        assert_eq!(folder.read("store/deep/m.txt"), b"made");
    }

    #[test]
    fn links_that_lead_in_a_circle_are_an_error() {
        let folder = Folder::new();
        symlink("b", folder.path().join("a")).unwrap();
        symlink("a", folder.path().join("b")).unwrap();
        assert!(replace(&folder.path().join("a"), b"new").is_err());
        assert!(follow_links(&folder.path().join("a")).is_err());
    }

    #[test]
    fn hard_links_see_the_new_content() {
        let folder = Folder::new();
        let path = folder.write("a", "a long old content");
        fs::hard_link(&path, folder.path().join("b")).unwrap();
        let replaced = replace(&path, b"new").unwrap();
        assert_eq!(replaced, Replaced { bytes: 3, in_place: true });
        assert_eq!((folder.read("a"), folder.read("b")), (b"new".to_vec(), b"new".to_vec()));
        assert_eq!(folder.names(), ["a", "b"]);
    }

    #[test]
    fn a_file_in_a_closed_directory_is_written_in_place() {
        let folder = Folder::new();
        let path = folder.write("f", "old");
        set_mode(folder.path(), 0o555);
        let is_closed = File::create(folder.path().join("probe")).is_err();
        let replaced = replace(&path, b"new").unwrap();
        set_mode(folder.path(), 0o755);
        assert_eq!(folder.read("f"), b"new");
        // For root no directory is closed.
        assert_eq!(replaced.in_place, is_closed);
    }

    #[test]
    fn a_failure_leaves_the_old_content_and_nothing_else() {
        let folder = Folder::new();
        let path = folder.write("f", "old");
        let error = Target::find(&path)
            .unwrap()
            .replace(&|out| {
                out.write_all(b"new")?;
                Err(io::Error::from(ErrorKind::StorageFull))
            })
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!((folder.read("f"), folder.names()), (b"old".to_vec(), vec!["f".to_owned()]));
    }

    #[test]
    fn a_failure_in_place_names_the_file_that_has_it_all() {
        let folder = Folder::new();
        let path = folder.write("a", "old");
        fs::hard_link(&path, folder.path().join("b")).unwrap();
        let calls = std::cell::Cell::new(0);
        let error = Target::find(&path)
            .unwrap()
            .replace(&|out| {
                calls.set(calls.get() + 1);
                if calls.get() == 2 {
                    return Err(io::Error::other("broken"));
                }
                out.write_all(b"new")
            })
            .unwrap_err()
            .to_string();
        let kept = folder.names().remove(0);
        assert_eq!(kept, ".a.uncut-0.new");
        assert_eq!(folder.read(&kept), b"new");
        let start = "broken; the file may hold only a part of the new content; ";
        assert!(error.starts_with(start) && error.ends_with("-0.new has it all"), "{error}");
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_others_have_is_not() {
        let folder = Folder::new();
        folder.write(".f.uncut-0.tmp", "left");
        let path = folder.write(".f.uncut-1.tmp", "being written");
        let other = File::open(&path).unwrap();
        other.try_lock().unwrap();
        symlink("elsewhere", folder.path().join(".f.uncut-2.tmp")).unwrap();
        folder.write("elsewhere", "");
        folder.write(".f.uncut-3.tmp", "left");
        folder.write(".f.uncut-4.new", "whole");
        folder.write(".g.uncut-5.tmp", "of another file");
        replace(&folder.path().join("f"), b"new").unwrap();
        let stay = [
            ".f.uncut-1.tmp",
            ".f.uncut-2.tmp",
            ".f.uncut-4.new",
            ".g.uncut-5.tmp",
            "elsewhere",
            "f",
        ];
        assert_eq!(
            (folder.read("f"), folder.names()),
            (b"new".to_vec(), stay.map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn what_was_set_aside_is_not_overwritten_by_what_is_set_aside_next() {
        let folder = Folder::new();
        let path = folder.write("f", "torn");
        // It is overwritten in place, because it has another name.
        fs::hard_link(&path, folder.path().join("g")).unwrap();
        folder.write(".f.uncut-0.new", "the only whole copy");
        replace(&path, b"new").unwrap();
        assert_eq!(folder.read("g"), b"new");
        assert_eq!(folder.read(".f.uncut-0.new"), b"the only whole copy");
    }

    #[test]
    fn two_that_write_the_same_file_do_not_meet() {
        let folder = Folder::new();
        let path = folder.write("f", "old");
        let outer = |out: &mut dyn Write| {
            replace(&path, b"inner")?;
            out.write_all(b"outer")
        };
        Target::find(&path).unwrap().replace(&outer).unwrap();
        assert_eq!((folder.read("f"), folder.names()), (b"outer".to_vec(), vec!["f".to_owned()]));
    }
}
