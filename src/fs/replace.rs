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
//! lose its protection, a mount point is busy, a directory may be closed to us. Their content is
//! overwritten in place and synced. Where the directory lets us, the temporary file with the whole
//! new content stays until that is done, so that nothing is lost: it is called `.NAME.uncut-N.new`
//! then, and nobody removes it but the user. Where it does not, the new content is held in memory.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::open::{directory_of, follow_links, identity, refuse_irregular, without_blocking};
use super::sync::{sync, sync_directory};
use super::temp::{TempFile, open_alone};
#[cfg(target_os = "linux")]
use super::xattr;

/// Writes the new content; called once.
pub(crate) type Content<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

/// A file that may be replaced, or made.
#[derive(Debug)]
pub(crate) struct Target {
    /// Where it is in the end: no symbolic link.
    path: PathBuf,
    /// None where there is no file yet.
    existing: Option<Metadata>,
    /// Whether the new content is made from the old one.
    is_source: bool,
}

/// The most bytes of new content that are held, which they are where nothing can be put beside the
/// file.
pub(crate) const HELD_MAX: usize = 64 * 1024 * 1024;

/// How a file was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replaced {
    /// Bytes of the new content.
    pub(crate) bytes: u64,
    /// Whether the file was overwritten, rather than another put in its place.
    pub(crate) in_place: bool,
}

impl Target {
    /// Finds the file that `path` leads to, and whether it may be written.
    ///
    /// # Errors
    ///
    /// It is no regular file, or an open one of a process, or it may not be written: the kernel
    /// says so, or its mode lets nobody write, which stops us even where it would not stop the
    /// kernel.
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
        Ok(Target { path, existing, is_source: false })
    }

    /// Finds out whether a new file can be made, and leaves none. An existing one may be
    /// overwritten.
    ///
    /// # Errors
    ///
    /// Why it can't.
    pub(crate) fn try_out(&self) -> io::Result<()> {
        match &self.existing {
            Some(_) => Ok(()),
            None => TempFile::create(&self.path, false).map(drop),
        }
    }

    /// Takes the content away in place, which needs no room; what it was is lost.
    ///
    /// # Errors
    ///
    /// Those of opening and cutting a file. That there is none is no error.
    pub(crate) fn clear(&self) -> io::Result<()> {
        match without_blocking(OpenOptions::new().write(true)).open(&self.path) {
            Ok(file) => file.set_len(0).and_then(|()| sync(&file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The file's metadata, where there is a file.
    pub(crate) fn existing(&self) -> Option<&Metadata> {
        self.existing.as_ref()
    }

    /// Opens the file for new content that is made from the old one, and gives its length.
    ///
    /// Other runs that open it like this wait until the file is closed, but not for ever. If
    /// anybody changes it all the same, it is not replaced; that is noticed until just before the
    /// exchange.
    ///
    /// # Errors
    ///
    /// There is none, or it can't be read.
    pub(crate) fn open(&mut self) -> io::Result<(File, u64)> {
        let file = open_alone(&self.path)?;
        let metadata = file.metadata()?;
        let length = metadata.len();
        (self.existing, self.is_source) = (Some(metadata), true);
        Ok((file, length))
    }

    /// Puts `content` in the place of what is there; directories that are missing are made.
    ///
    /// # Errors
    ///
    /// The file has its old content then, unless the message says otherwise.
    pub(crate) fn replace(&self, content: Content<'_>) -> io::Result<Replaced> {
        let directory = directory_of(&self.path);
        make_directories(directory)?;
        let mut temp = match (TempFile::create(&self.path, self.existing.is_some()), &self.existing)
        {
            (Ok(temp), _) => temp,
            // Nothing can be put beside it, but that does not close the file itself. A full disk
            // does: what is overwritten then may have lost its old content and not get the new.
            (Err(error), Some(_)) if !is_full(&error) => {
                let held = hold(content)?;
                self.refuse_changed()?;
                return self.overwrite(&mut &held[..], None);
            }
            (Err(error), _) => return Err(error),
        };
        let bytes = write(&temp.file, content)?;
        let inherited =
            self.existing.as_ref().map_or(Ok(()), |old| inherit(&self.path, old, &temp.file));
        sync(&temp.file)?;
        self.refuse_changed()?;
        match inherited.and_then(|()| temp.rename(&self.path)) {
            // Somebody took one of the two away; that is no reason to give up what they are for.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(retold(&error, "somebody removed it or what was put beside it"));
            }
            Err(_) if self.existing.is_some() => {
                let mut new = temp.file.try_clone()?;
                new.rewind()?;
                return self.overwrite(&mut new, Some(temp));
            }
            result => result?,
        }
        sync_directory(directory).map_err(|error| {
            retold(&error, "the new content is in place, but a crash may undo that")
        })?;
        Ok(Replaced { bytes, in_place: false })
    }

    fn refuse_changed(&self) -> io::Result<()> {
        let Some(existing) = self.existing.as_ref().filter(|_| self.is_source) else {
            return Ok(());
        };
        let is_same = fs::metadata(&self.path).is_ok_and(|now| state(&now) == state(existing));
        if is_same { Ok(()) } else { Err(changed()) }
    }

    /// Writes over the old content, and only then cuts off what is left of it, so that nobody ever
    /// finds the file empty. The temporary file is kept when that goes wrong.
    fn overwrite(&self, new: &mut dyn Read, mut temp: Option<TempFile>) -> io::Result<Replaced> {
        let mut file = without_blocking(OpenOptions::new().write(true)).open(&self.path)?;
        let metadata = file.metadata()?;
        refuse_irregular(&metadata)?;
        if let Some(temp) = &mut temp {
            temp.set_aside();
        }
        let mut overwrite = || {
            let bytes = io::copy(new, &mut file)?;
            if bytes < metadata.len() {
                file.set_len(bytes)?;
            }
            sync(&file)?;
            Ok(Replaced { bytes, in_place: true })
        };
        overwrite().map_err(|error| {
            let told = "the file may hold only a part of the new content";
            match temp.and_then(TempFile::keep) {
                Some(path) => retold(&error, &format!("{told}; {} has it all", path.display())),
                None => retold(&error, told),
            }
        })
    }
}

fn refuse_unwritable(path: &Path, metadata: &Metadata) -> io::Result<()> {
    refuse_irregular(metadata)?;
    if metadata.permissions().readonly() {
        let message = "the file is read-only, its mode lets nobody write; it was left as it is";
        return Err(io::Error::new(ErrorKind::PermissionDenied, message));
    }
    // Only the kernel knows about access lists, read-only mounts and immutable files. It would not
    // let anybody write to a program that runs, but one may take its place.
    match without_blocking(OpenOptions::new().write(true)).open(path) {
        Err(error) if error.kind() != ErrorKind::ExecutableFileBusy => Err(error),
        _ => Ok(()),
    }
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
    xattr::copy(path, new)?;
    #[cfg(not(target_os = "linux"))]
    let _ = path;
    new.set_permissions(existing.permissions())
}

#[cfg(not(unix))]
fn inherit(_: &Path, _: &Metadata, _: &File) -> io::Result<()> {
    Ok(())
}

/// What a file is known by, and what changes with it.
fn state(metadata: &Metadata) -> (u64, Option<SystemTime>, (u64, u64), [i64; 2]) {
    #[cfg(unix)]
    let changed = {
        use std::os::unix::fs::MetadataExt as _;
        [metadata.ctime(), metadata.ctime_nsec()]
    };
    #[cfg(not(unix))]
    let changed = [0; 2];
    (metadata.len(), metadata.modified().ok(), identity(metadata), changed)
}

/// Why content that was made from an old one is not put in its place.
fn changed() -> io::Error {
    io::Error::other("it was changed in the meantime; nothing was changed here: read it again")
}

fn hold(content: Content<'_>) -> io::Result<Vec<u8>> {
    let mut held = Held(Vec::new());
    content(&mut held)?;
    Ok(held.0)
}

struct Held(Vec<u8>);

impl Write for Held {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.0.len() + buffer.len() > HELD_MAX {
            let message = format!(
                "nothing can be put beside it, and it has more than the {HELD_MAX} bytes that can \
                 be written in place"
            );
            return Err(io::Error::new(ErrorKind::FileTooLarge, message));
        }
        self.0.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
    use crate::fs::tests::Folder;

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
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let folder = Folder::new();
        let path = folder.write("a", "old");
        let temp = TempFile::create(&path, true).unwrap();
        (&temp.file).write_all(b"new").unwrap();
        let target = Target::find(&path).unwrap();
        let error = target.overwrite(&mut Broken, Some(temp)).unwrap_err().to_string();
        let kept = folder.names().remove(0);
        assert_eq!(kept, ".a.uncut-0.new");
        assert_eq!(folder.read(&kept), b"new");
        let start = "broken; the file may hold only a part of the new content; ";
        assert!(error.starts_with(start) && error.ends_with("-0.new has it all"), "{error}");
    }

    #[test]
    fn where_nothing_can_be_put_beside_a_file_its_new_content_is_held() {
        let folder = Folder::new();
        let path = folder.write("f", "old");
        // Every name for it is taken.
        (0..1_000).for_each(|number| drop(folder.write(&format!(".f.uncut-{number}.new"), "")));
        let replaced = replace(&path, b"new").unwrap();
        assert_eq!(replaced, Replaced { bytes: 3, in_place: true });
        assert_eq!((folder.read("f"), folder.names().len()), (b"new".to_vec(), 1_001));
        let mut target = Target::find(&path).unwrap();
        target.open().unwrap();
        let content = |out: &mut dyn Write| {
            fs::write(&path, "own")?;
            out.write_all(b"newer")
        };
        let error = target.replace(&content).unwrap_err().to_string();
        assert!(error.starts_with("it was changed in the meantime"), "{error}");
        assert_eq!(folder.read("f"), b"own");
        let endless = |out: &mut dyn Write| io::copy(&mut io::repeat(b'x'), out).map(drop);
        let error = Target::find(&path).unwrap().replace(&endless).unwrap_err().to_string();
        assert!(error.starts_with("nothing can be put beside it, and it has more than"), "{error}");
        assert_eq!(folder.read("f"), b"own");
    }

    #[test]
    fn what_somebody_else_changed_since_it_was_read_is_left_as_it_is() {
        let folder = Folder::new();
        let path = folder.write("f", "old");
        let other = folder.path().join("other");
        let changes: [&dyn Fn(); 4] = [
            &|| fs::write(&path, "ours").unwrap(),
            // Of the same length.
            &|| fs::write(&path, "own").unwrap(),
            &|| {
                fs::write(&other, "own").unwrap();
                fs::rename(&other, &path).unwrap();
            },
            &|| fs::remove_file(&path).unwrap(),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            fs::write(&path, "old").unwrap();
            let mut target = Target::find(&path).unwrap();
            target.open().unwrap();
            let content = |out: &mut dyn Write| {
                change();
                out.write_all(b"new")
            };
            let error = target.replace(&content).unwrap_err().to_string();
            assert!(error.starts_with("it was changed in the meantime"), "{index}: {error}");
            assert_ne!(fs::read(&path).ok().as_deref(), Some(&b"new"[..]), "{index}");
            assert!(folder.names().len() < 2, "{index}: {:?}", folder.names());
        }
    }

    #[test]
    fn who_opens_a_file_that_is_being_edited_gets_what_is_made_of_it() {
        let folder = Folder::new();
        let path = folder.write("f", "old");
        let mut target = Target::find(&path).unwrap();
        let (old, _) = target.open().unwrap();
        let (about_to, is_about_to) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let mut target = Target::find(&path).unwrap();
                about_to.send(()).unwrap();
                io::read_to_string(target.open().unwrap().0).unwrap()
            });
            is_about_to.recv().unwrap();
            target.replace(&|out| out.write_all(b"new")).unwrap();
            drop(old);
            assert_eq!(other.join().unwrap(), "new");
        });
    }

    #[test]
    fn a_file_that_somebody_keeps_locked_is_opened_all_the_same() {
        let folder = Folder::new();
        let path = folder.write("f", "old");
        let other = File::open(&path).unwrap();
        other.lock().unwrap();
        let (file, _) = Target::find(&path).unwrap().open().unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "old");
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
            assert!(!replace(&path, b"inner")?.in_place);
            out.write_all(b"outer")
        };
        let replaced = Target::find(&path).unwrap().replace(&outer).unwrap();
        assert!(!replaced.in_place);
        assert_eq!((folder.read("f"), folder.names()), (b"outer".to_vec(), vec!["f".to_owned()]));
    }

    #[test]
    fn a_file_is_not_overwritten_because_its_new_content_was_taken_away() {
        let folder = Folder::new();
        let path = folder.write("f", "old");
        let content = |out: &mut dyn Write| {
            fs::remove_file(folder.path().join(".f.uncut-0.tmp"))?;
            out.write_all(b"new")
        };
        let error = Target::find(&path).unwrap().replace(&content).unwrap_err().to_string();
        assert!(error.ends_with("; somebody removed it or what was put beside it"), "{error}");
        assert_eq!((folder.read("f"), folder.names()), (b"old".to_vec(), vec!["f".to_owned()]));
    }

    #[test]
    fn nobody_finds_a_file_empty_that_is_being_overwritten() {
        struct Watching<'a>(&'a Path, &'a [u8]);
        impl Read for Watching<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                assert_eq!(fs::metadata(self.0)?.len(), 3);
                self.1.read(buffer)
            }
        }
        let folder = Folder::new();
        let path = folder.write("f", "old");
        Target::find(&path).unwrap().overwrite(&mut Watching(&path, b"n"), None).unwrap();
        assert_eq!(folder.read("f"), b"n");
    }
}
