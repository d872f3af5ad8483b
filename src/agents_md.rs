//! AGENTS.md files: which there are, and what of them fits.
//!
//! What the files say is text; `@import` lines in it mean nothing to us. The repository is found by
//! its `.git` alone, and git is never asked: it may be missing, or refuse a directory that is
//! somebody else's.

use std::fmt;
use std::fs::Metadata;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};

use crate::fs::open_regular;
use crate::secret::{Held, Mask};

/// The most bytes of AGENTS.md files that a run takes in, all of them together.
pub const MAX: usize = 32 * 1024;

/// An AGENTS.md file that was read and holds something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Where it lies.
    pub path: PathBuf,
    /// How many of its bytes were taken in, from its start.
    pub bytes: usize,
    /// How many follow that were not.
    pub left_out: u64,
    /// The SHA-256 of the bytes that were taken in, in hexadecimal: of a file that was not cut,
    /// what `sha256sum` prints.
    pub sha256: String,
}

/// A file, or the start of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// What was read.
    pub file: Loaded,
    /// What it says, without byte order mark and with secrets masked: a cut may fall into one, and
    /// a piece of it would pass for something else later.
    pub text: String,
}

impl Instructions {
    /// Whether there is nothing to obey.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty() && self.file.left_out == 0
    }

    /// The text under the path of its file, and what is left out of it.
    pub fn section(&self) -> String {
        let path = self.file.path.display();
        let mut section = format!("{}\n\n{}", heading(&self.file.path), self.text.trim_end());
        if self.file.left_out > 0 {
            section.push_str(&format!(
                "\n[{} bytes left out here; {path} has the whole text]",
                self.file.left_out
            ));
        }
        section
    }
}

/// How the line above the text of a file starts.
pub const HEADING: &str = "Instructions from ";

fn heading(path: &Path) -> String {
    format!("{HEADING}{}:", path.display())
}

/// The path that a line is the heading for.
pub fn path_of_heading(line: &str) -> Option<&str> {
    line.strip_prefix(HEADING)?.strip_suffix(':')
}

/// The files from the root of the repository down to `directory`, the nearest last; that of
/// `directory` alone where it is in no repository.
pub fn discover(directory: &Path) -> Vec<PathBuf> {
    let own = physical(directory);
    let root = root(directory);
    let root = root.as_path();
    let above = own.ancestors().skip(1).take_while(|directory| directory.starts_with(root));
    // What can't be looked into above is no reason not to work here.
    let above = above.map(path_in).filter(|path| path.symlink_metadata().is_ok());
    let mut paths: Vec<PathBuf> = file_in(&own).into_iter().chain(above).collect();
    paths.reverse();
    paths
}

/// The root of the repository that `directory` is in, or `directory` itself: the nearest above it
/// that has a `.git`. One that a stranger has put there is none, as in a directory where everybody
/// may write: it belongs to the superuser or to whoever owns `directory`.
pub fn root(directory: &Path) -> PathBuf {
    let own = physical(directory);
    let is_root = |above: &&Path| {
        let git = above.join(".git").metadata();
        git.is_ok_and(|git| *above == own || is_trusted(&git, &own))
    };
    own.ancestors().find(is_root).unwrap_or(&own).to_owned()
}

#[cfg(unix)]
fn is_trusted(git: &Metadata, directory: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    git.uid() == 0 || directory.metadata().is_ok_and(|own| own.uid() == git.uid())
}

#[cfg(not(unix))]
fn is_trusted(_: &Metadata, _: &Path) -> bool {
    true
}

/// The directory without symbolic links: what lies above it is above where they lead.
fn physical(directory: &Path) -> PathBuf {
    // There the result has a form that few programs understand.
    if cfg!(windows) {
        return directory.to_owned();
    }
    directory.canonicalize().unwrap_or_else(|_| directory.to_owned())
}

/// The file of a directory. Only what is not there at all is absent; whatever else is wrong with
/// it, a link that leads nowhere included, comes out when it is read.
pub fn file_in(directory: &Path) -> Option<PathBuf> {
    let path = path_in(directory);
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        _ => Some(path),
    }
}

fn path_in(directory: &Path) -> PathBuf {
    directory.join("AGENTS.md")
}

/// Reads files within `max` bytes for all of them, the last one first served. The results are in
/// the order of the paths. Where they were found and not named, none may lead out of `within`: a
/// link in somebody's repository must not send a file of this machine to the endpoint.
pub fn read_all(
    paths: &[PathBuf],
    max: usize,
    within: Option<&Path>,
    mask: &Mask,
) -> Vec<Result<Instructions, Unusable>> {
    let mut left = max;
    let mut all = Vec::with_capacity(paths.len());
    for path in paths.iter().rev() {
        let read = inside(path, within).and_then(|()| read(path, left, mask));
        left -= read.as_ref().map_or(0, |instructions| instructions.file.bytes);
        all.push(read);
    }
    all.reverse();
    all
}

fn inside(path: &Path, within: Option<&Path>) -> Result<(), Unusable> {
    let (Some(within), Ok(target)) = (within, path.canonicalize()) else { return Ok(()) };
    if within.canonicalize().is_ok_and(|within| target.starts_with(within)) {
        return Ok(());
    }
    let message = format!("it leads out of {}", within.display());
    let source = io::Error::new(io::ErrorKind::PermissionDenied, message);
    Err(Unusable::Unreadable { path: path.to_owned(), source })
}

/// Reads a file, and of a long one the whole lines that fit into `max` bytes.
///
/// # Errors
///
/// It can't be read, or what fits is not UTF-8. What is left out is not read, and so not checked.
pub fn read(path: &Path, max: usize, mask: &Mask) -> Result<Instructions, Unusable> {
    let unreadable = |source| Unusable::Unreadable { path: path.to_owned(), source };
    let (file, metadata) = open_regular(path).map_err(unreadable)?;
    // One byte more shows that there is more.
    let enough = max.saturating_add(1);
    let mut bytes = Vec::new();
    file.take(enough as u64).read_to_end(&mut bytes).map_err(unreadable)?;
    let fitting = cut(&bytes, max);
    let text = std::str::from_utf8(fitting).map_err(|error| {
        let offset = error.valid_up_to();
        Unusable::NotUtf8 { path: path.to_owned(), offset }
    })?;
    // The size is what it was when the file was opened; what was read since counts too.
    let size = metadata.len().max(bytes.len() as u64);
    let is_whole = text.len() == bytes.len();
    let file = Loaded {
        path: path.to_owned(),
        bytes: text.len(),
        left_out: if is_whole { 0 } else { size - text.len() as u64 },
        sha256: sha256(fitting),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = if is_whole {
        mask.text(text).into_owned()
    } else {
        mask.piece(&mut Held::default(), text)
    };
    Ok(Instructions { file, text })
}

/// The whole lines that fit into `max` bytes; of an endless first line the characters that fit.
fn cut(bytes: &[u8], max: usize) -> &[u8] {
    if bytes.len() <= max {
        return bytes;
    }
    if let Some(end) = bytes[..max].iter().rposition(|&byte| byte == b'\n') {
        return &bytes[..=end];
    }
    let starts_character = |&index: &usize| bytes[index] & 0xC0 != 0x80;
    let end = (max.saturating_sub(3)..=max).rev().find(starts_character).unwrap_or(max);
    &bytes[..end]
}

fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Why a file can't be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unusable {
    /// It can't be read, or is no regular file.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It holds bytes that are not UTF-8.
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Where the first of them stands, in bytes from the start of the file.
        offset: usize,
    },
}

impl Unusable {
    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Unusable::Unreadable { path, .. } | Unusable::NotUtf8 { path, .. } => path,
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path().display();
        match self {
            Unusable::Unreadable { source, .. } => write!(f, "{path} can't be read: {source}"),
            Unusable::NotUtf8 { offset, .. } => write!(f, "{path} is not UTF-8 at byte {offset}"),
        }
    }
}

impl std::error::Error for Unusable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Unusable::Unreadable { source, .. } => Some(source),
            Unusable::NotUtf8 { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fs::tests::Folder;

    /// The files that are found from `directory`, without the path of the folder.
    #[track_caller]
    fn found(folder: &Folder, directory: &str) -> Vec<String> {
        let root = folder.path().canonicalize().unwrap();
        let below = |path: PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
        discover(&folder.path().join(directory)).into_iter().map(below).collect()
    }

    /// `outer/repository/a/b`, with a file in each of them.
    fn tree() -> Folder {
        let folder = Folder::new();
        fs::create_dir_all(folder.path().join("outer/repository/a/b")).unwrap();
        for directory in ["", "outer/", "outer/repository/", "outer/repository/a/b/"] {
            folder.write(&format!("{directory}AGENTS.md"), directory);
        }
        folder
    }

    #[test]
    fn the_files_are_those_from_the_root_of_the_repository_down() {
        let folder = tree();
        fs::create_dir(folder.path().join("outer/repository/.git")).unwrap();
        let both = ["outer/repository/AGENTS.md", "outer/repository/a/b/AGENTS.md"];
        assert_eq!(found(&folder, "outer/repository/a/b"), both);
        assert_eq!(found(&folder, "outer/repository/a"), both[..1]);
        assert_eq!(found(&folder, "outer/repository"), both[..1]);
        assert_eq!(found(&folder, "outer"), ["outer/AGENTS.md"]);
    }

    #[test]
    fn the_root_of_a_work_tree_has_a_file_where_others_have_a_directory() {
        let folder = tree();
        fs::create_dir(folder.path().join(".git")).unwrap();
        folder.write("outer/repository/a/.git", "gitdir: /nowhere\n");
        assert_eq!(found(&folder, "outer/repository/a/b"), ["outer/repository/a/b/AGENTS.md"]);
        assert_eq!(found(&folder, "outer").len(), 2);
    }

    #[test]
    fn without_a_repository_only_the_directory_itself_counts() {
        let folder = tree();
        assert_eq!(found(&folder, "outer/repository/a/b"), ["outer/repository/a/b/AGENTS.md"]);
        assert!(found(&folder, "outer/repository/a").is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_was_found_leads_nowhere_else() {
        let folder = tree();
        let root = root(&folder.path().join("outer/repository"));
        fs::remove_file(root.join("AGENTS.md")).unwrap();
        std::os::unix::fs::symlink("../AGENTS.md", root.join("AGENTS.md")).unwrap();
        let path = [root.join("AGENTS.md")];
        let found = read_all(&path, MAX, Some(&root), &Mask::default()).remove(0).unwrap_err();
        assert!(found.to_string().contains("it leads out of "), "{found}");
        assert!(
            read_all(&path, MAX, None, &Mask::default()).remove(0).is_ok(),
            "one that was named may"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_repository_that_a_stranger_made_above_is_none() {
        let folder = tree();
        let git = folder.path().join("outer/.git");
        fs::create_dir(&git).unwrap();
        assert_eq!(found(&folder, "outer/repository").len(), 2);
        // Only the superuser can give a directory away.
        if std::os::unix::fs::chown(&git, Some(54_321), None).is_ok() {
            assert_eq!(found(&folder, "outer/repository"), ["outer/repository/AGENTS.md"]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_the_repository_that_they_point_into_and_circles_to_none() {
        use std::os::unix::fs::symlink;
        let folder = tree();
        fs::create_dir(folder.path().join("outer/repository/.git")).unwrap();
        symlink("outer/repository/a", folder.path().join("link")).unwrap();
        assert_eq!(found(&folder, "link"), ["outer/repository/AGENTS.md"]);
        symlink(".git", folder.path().join("outer/repository/a/.git")).unwrap();
        assert_eq!(found(&folder, "outer/repository/a/b").len(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_above_that_can_not_be_listed_is_passed() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tree();
        fs::create_dir(folder.path().join("outer/.git")).unwrap();
        let closed = folder.path().join("outer/repository");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o111)).unwrap();
        assert_eq!(found(&folder, "outer/repository/a/b").len(), 3);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_hash_is_that_of_the_bytes_that_were_taken_in() {
        let folder = Folder::new();
        let path = folder.write("AGENTS.md", "\u{feff}abc");
        let whole = read(&path, MAX, &Mask::default()).unwrap();
        assert_eq!((whole.text.as_str(), whole.file.bytes), ("abc", 6));
        assert_eq!(
            whole.file.sha256,
            "1c28dc3f1f804a1ad9c9b4b4cf5e2658d16ad4ed08e3020d04a8d2865018947c"
        );
        folder.write("AGENTS.md", "abc\ndef");
        let cut = read(&path, 5, &Mask::default()).unwrap();
        assert_eq!((cut.text.as_str(), cut.file.bytes, cut.file.left_out), ("abc\n", 4, 3));
        assert_eq!(
            cut.file.sha256,
            "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb"
        );
    }

    #[test]
    fn no_piece_of_a_key_stands_where_a_line_without_end_is_cut() {
        let folder = Folder::new();
        let key = "sk-TESTKEY-sk-1";
        let mask = Mask::new(crate::secret::Secret::parse(key).unwrap());
        for fill in MAX - key.len() - 1..=MAX {
            let path = folder.write("AGENTS.md", format!("{}{key} and more", "x".repeat(fill)));
            let text = read(&path, MAX, &mask).unwrap().text;
            assert!(!text.contains("sk-"), "{fill}: {}", &text[fill..]);
        }
    }
}
