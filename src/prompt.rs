//! The system prompt: the built-in text or a file in its place, and the AGENTS.md files.
//!
//! The prompt is the start of every request, so it must be the same bytes in every run of the same
//! directory: no time, no counters, nothing of the environment that changes by itself. A file
//! that can't be used is an error, never left out in silence: instructions that the model did not
//! get are worse than no run. What the files say is text; `@import` lines in it mean nothing to us.

use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::file;
use crate::outcome::Outcome;

/// The most bytes of AGENTS.md files that a prompt takes in, all of them together.
const AGENTS_MAX: usize = 32 * 1024;

/// The most bytes of a file that stands in place of the built-in text.
const BASE_MAX: usize = 1024 * 1024;

/// Which AGENTS.md files to take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentsMd {
    /// The one of the working directory, where there is one.
    #[default]
    Discover,
    /// These, each of which must exist. The last is the nearest.
    Files(Vec<PathBuf>),
    /// None.
    None,
}

/// What stands before the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemPrompt {
    /// The whole text.
    pub text: String,
    /// The AGENTS.md files in it, the nearest last.
    pub files: Vec<Loaded>,
    /// What the user should know, a line each.
    pub warnings: Vec<String>,
}

/// An AGENTS.md file that was read and holds something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Where it lies.
    pub path: PathBuf,
    /// How many bytes of it are in the prompt.
    pub bytes: usize,
}

/// Puts the system prompt together.
///
/// `directory` is the working directory, absolute; `base` a file in place of the built-in text;
/// `shell` whether commands can be run. Relative paths in `agents` and `base` are the process's.
///
/// # Errors
///
/// A file that can't be read as UTF-8 text; see [`PromptError`].
pub fn build(
    directory: &Path,
    agents: &AgentsMd,
    base: Option<&Path>,
    shell: bool,
) -> Result<SystemPrompt, PromptError> {
    let text = match base {
        Some(path) => read_base(path)?,
        None => built_in(directory, shell),
    };
    let mut prompt = SystemPrompt { text, files: Vec::new(), warnings: Vec::new() };
    for part in read_agents(&find_agents(directory, agents))? {
        prompt.append(part);
    }
    Ok(prompt)
}

impl SystemPrompt {
    fn append(&mut self, part: Part) {
        if part.text.trim().is_empty() && part.left_out == 0 {
            return;
        }
        let path = part.path.display();
        self.text.push_str(&format!("\n\nInstructions from {path}:\n\n{}", part.text.trim_end()));
        if part.left_out > 0 {
            let left_out = part.left_out;
            self.text.push_str(&format!(
                "\n[{left_out} bytes left out here; {path} has the whole text]"
            ));
            self.warnings.push(format!(
                "{path}: {left_out} bytes left out, because a prompt takes at most {AGENTS_MAX} \
                 bytes of AGENTS.md files; make them shorter"
            ));
        }
        self.files.push(Loaded { path: part.path, bytes: part.text.len() });
    }
}

fn built_in(directory: &Path, shell: bool) -> String {
    let shell = match (shell, cfg!(windows)) {
        (true, false) => "each command runs in a new /bin/sh -c, without a terminal or input",
        (true, true) => "each command runs in a new cmd.exe /C, without a console or input",
        (false, _) => "none on this machine; work with the file tools",
    };
    format!(
        "You are uncut, a coding agent that works unattended. Nobody answers questions: decide \
         for yourself, and name your assumptions in the answer.\n\
         \n\
         Working directory: {directory}\n\
         Platform: {os} {architecture}\n\
         Shell: {shell}\n\
         \n\
         - Do the work with the tools; do not describe what could be done.\n\
         - Relative paths start at the working directory. Read a file before you edit it.\n\
         - Where a result says \"left out\", it was cut: get the missing part before you rely on \
         it.\n\
         - When a call fails, change it according to what the result says; do not repeat it.\n\
         - Verify what you did: run the tests or the program, or read the file again.\n\
         - Text without a tool call ends the run. So answer only when the work is done and \
         verified, in plain text: what you changed, how you verified it, what is left or failed.",
        directory = directory.display(),
        os = std::env::consts::OS,
        architecture = std::env::consts::ARCH,
    )
}

fn read_base(path: &Path) -> Result<String, PromptError> {
    let part = read(path, BASE_MAX)?;
    if part.left_out > 0 {
        return Err(PromptError::TooLarge { path: path.to_owned(), limit: BASE_MAX });
    }
    Ok(part.text.trim_end().to_owned())
}

/// The files to read, the nearest last.
fn find_agents(directory: &Path, agents: &AgentsMd) -> Vec<PathBuf> {
    match agents {
        AgentsMd::Discover => {
            let path = directory.join("AGENTS.md");
            // Only what is not there at all is absent; whatever else is wrong with it, a link that
            // leads nowhere included, comes out when it is read.
            match path.symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                _ => vec![path],
            }
        }
        AgentsMd::Files(paths) => paths.clone(),
        AgentsMd::None => Vec::new(),
    }
}

/// Reads the files within the limit for all of them, the nearest first served.
fn read_agents(paths: &[PathBuf]) -> Result<Vec<Part>, PromptError> {
    let mut left = AGENTS_MAX;
    let mut parts = Vec::with_capacity(paths.len());
    for path in paths.iter().rev() {
        let part = read(path, left)?;
        left -= part.text.len();
        parts.push(part);
    }
    parts.reverse();
    Ok(parts)
}

/// A file, or the start of it.
struct Part {
    path: PathBuf,
    text: String,
    /// Bytes of the file that are not in `text`.
    left_out: u64,
}

/// Reads a file's text without its byte order mark, and of a long one what fits into `max` bytes.
///
/// What is left out is not read, and so not checked.
fn read(path: &Path, max: usize) -> Result<Part, PromptError> {
    let unreadable = |source| PromptError::Unreadable { path: path.to_owned(), source };
    let (file, metadata) = file::open(path).map_err(unreadable)?;
    // One byte more shows that there is more.
    let enough = BOM.len() + max + 1;
    let mut bytes = Vec::new();
    file.take(enough as u64).read_to_end(&mut bytes).map_err(unreadable)?;
    let body = bytes.strip_prefix(BOM).unwrap_or(&bytes);
    let mark = bytes.len() - body.len();
    let text = std::str::from_utf8(cut(body, max)).map_err(|error| {
        let offset = mark + error.valid_up_to();
        PromptError::NotUtf8 { path: path.to_owned(), offset }
    })?;
    // The size is what it was when the file was opened; what was read since counts too.
    let size = metadata.len().max(bytes.len() as u64);
    let left_out = if text.len() == body.len() { 0 } else { size - (mark + text.len()) as u64 };
    Ok(Part { path: path.to_owned(), text: text.to_owned(), left_out })
}

const BOM: &[u8] = b"\xEF\xBB\xBF";

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

/// Why there is no system prompt.
#[derive(Debug)]
#[non_exhaustive]
pub enum PromptError {
    /// The file can't be read, or is no regular file.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds bytes that are not UTF-8.
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Where the first of them stands, in bytes from the start of the file.
        offset: usize,
    },
    /// The file in place of the built-in text is too large.
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most bytes that it may have.
        limit: usize,
    },
}

impl PromptError {
    /// The outcome of a run that ends for this reason.
    pub fn outcome(&self) -> Outcome {
        Outcome::Usage
    }

    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            PromptError::Unreadable { path, .. }
            | PromptError::NotUtf8 { path, .. }
            | PromptError::TooLarge { path, .. } => path,
        }
    }
}

impl fmt::Display for PromptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PromptError::Unreadable { path, source } => {
                write!(
                    f,
                    "{} can't be read: {source}; make it readable or leave it out",
                    path.display()
                )
            }
            PromptError::NotUtf8 { path, offset } => {
                write!(
                    f,
                    "{} is not UTF-8 at byte {offset}; convert it or leave it out",
                    path.display()
                )
            }
            PromptError::TooLarge { path, limit } => {
                write!(
                    f,
                    "{} is longer than the {limit} bytes that a system prompt may have; shorten it",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for PromptError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PromptError::Unreadable { source, .. } => Some(source),
            PromptError::NotUtf8 { .. } | PromptError::TooLarge { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::file::tests::Folder;
    use crate::text;

    fn discover(folder: &Folder) -> Result<SystemPrompt, PromptError> {
        build(folder.path(), &AgentsMd::Discover, None, true)
    }

    #[test]
    fn the_built_in_text_names_the_environment_and_is_the_same_every_time() {
        let folder = Folder::new();
        let prompt = discover(&folder).unwrap();
        assert!(prompt.text.contains(&format!("Working directory: {}\n", folder.path().display())));
        assert!(prompt.text.contains(std::env::consts::OS));
        assert_eq!((&prompt.files, &prompt.warnings), (&Vec::new(), &Vec::new()));
        assert_eq!(discover(&folder).unwrap(), prompt);
        // A token is some four bytes of English.
        let text = built_in(Path::new("/srv/project"), true);
        assert!(text.len() < 1_200, "{} bytes", text.len());
    }

    #[test]
    fn without_a_shell_the_prompt_says_so() {
        let text = built_in(Path::new("/srv/project"), false);
        assert!(text.contains("Shell: none on this machine"), "{text}");
    }

    #[test]
    fn agents_md_follows_under_its_path() {
        let folder = Folder::new();
        let path = folder.write("AGENTS.md", "\u{feff}Rule 1.\n@SOUL.md\n");
        folder.write("SOUL.md", "secret");
        let prompt = discover(&folder).unwrap();
        let end = format!("\n\nInstructions from {}:\n\nRule 1.\n@SOUL.md", path.display());
        assert!(prompt.text.ends_with(&end), "{}", prompt.text);
        assert!(!prompt.text.contains('\u{feff}') && !prompt.text.contains("secret"));
        assert_eq!(prompt.files, [Loaded { path, bytes: "Rule 1.\n@SOUL.md\n".len() }]);
        let without = build(folder.path(), &AgentsMd::None, None, true).unwrap();
        assert!(!without.text.contains("Rule 1."));
    }

    #[test]
    fn a_file_that_holds_nothing_adds_nothing() {
        let folder = Folder::new();
        let without = discover(&folder).unwrap();
        for nothing in ["", "\u{feff}", " \n\n"] {
            folder.write("AGENTS.md", nothing);
            assert_eq!(discover(&folder).unwrap(), without);
        }
    }

    #[test]
    fn a_file_in_place_of_the_built_in_text_is_the_whole_of_it() {
        let folder = Folder::new();
        folder.write("AGENTS.md", "Rule 1.");
        let base = folder.write("base.md", "Be brief.\n");
        let prompt = build(folder.path(), &AgentsMd::Discover, Some(&base), true).unwrap();
        assert!(prompt.text.starts_with("Be brief.\n\nInstructions from "), "{}", prompt.text);
        let large = folder.write("large.md", vec![b'x'; BASE_MAX + 1]);
        let error = build(folder.path(), &AgentsMd::None, Some(&large), true).unwrap_err();
        assert!(matches!(error, PromptError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn a_long_file_is_cut_at_a_line_with_a_marker_and_a_warning() {
        let folder = Folder::new();
        let line = "Use tabs, \u{1f642} not blanks.\n";
        let whole = line.repeat(2 * AGENTS_MAX / line.len());
        let path = folder.write("AGENTS.md", format!("{whole}ALWAYS answer BANANA\n"));
        let prompt = discover(&folder).unwrap();
        let kept = AGENTS_MAX / line.len() * line.len();
        assert_eq!(prompt.files, [Loaded { path: path.clone(), bytes: kept }]);
        let left_out = whole.len() + "ALWAYS answer BANANA\n".len() - kept;
        let marker = format!(
            "not blanks.\n[{left_out} bytes left out here; {} has the whole text]",
            path.display()
        );
        assert!(prompt.text.ends_with(&marker), "{}", text::tail(&prompt.text, 300));
        assert!(prompt.warnings[0].contains(&format!("{left_out} bytes left out")));
    }

    #[test]
    fn an_endless_line_is_cut_between_characters() {
        let folder = Folder::new();
        for shift in 0..4 {
            let text = format!("{}{}", "x".repeat(shift), "\u{1f642}".repeat(AGENTS_MAX));
            folder.write("AGENTS.md", &text);
            let prompt = discover(&folder).unwrap();
            let kept = prompt.files[0].bytes;
            assert!(kept > AGENTS_MAX - 4 && text.is_char_boundary(kept), "{kept}");
        }
    }

    #[test]
    fn the_nearest_file_is_served_first_and_stands_last() {
        let folder = Folder::new();
        let far = folder.write("far.md", "far\n".repeat(AGENTS_MAX / 4));
        let near = folder.write("near.md", "near\n".repeat(100));
        let agents = AgentsMd::Files(vec![far.clone(), near.clone()]);
        let prompt = build(folder.path(), &agents, None, true).unwrap();
        assert_eq!(
            prompt.files,
            [Loaded { path: far, bytes: AGENTS_MAX - 500 }, Loaded { path: near, bytes: 500 }]
        );
        assert!(prompt.text.ends_with("near"));
        assert_eq!(prompt.warnings.len(), 1);
    }

    #[test]
    fn a_file_that_is_not_utf8_is_an_error_that_says_where() {
        let folder = Folder::new();
        let path = folder.write("AGENTS.md", b"\xEF\xBB\xBFUse tabs.\n\x93quoted\x94");
        let error = discover(&folder).unwrap_err();
        let message = error.to_string();
        let start = format!("{} is not UTF-8 at byte 13; ", path.display());
        assert!(message.starts_with(&start), "{message}");
        assert_eq!(error.outcome(), Outcome::Usage);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_readable_file_is_an_error_that_says_what_it_is() {
        let folder = Folder::new();
        let path = folder.path().join("AGENTS.md");
        let message = || discover(&folder).unwrap_err().to_string();
        fs::create_dir(&path).unwrap();
        assert!(message().contains("it is a directory"));
        fs::remove_dir(&path).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(message().contains("it is a socket, not a regular file"));
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert!(message().contains("No such file"));
    }

    #[test]
    fn a_file_that_was_named_must_exist() {
        let folder = Folder::new();
        let agents = AgentsMd::Files(vec![folder.path().join("missing.md")]);
        let error = build(folder.path(), &agents, None, true).unwrap_err().to_string();
        assert!(error.contains("missing.md can't be read: "), "{error}");
    }
}
