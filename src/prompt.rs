//! The system prompt: the built-in text or a file in its place, and the AGENTS.md files.
//!
//! The prompt is the start of every request, so it must be the same bytes in every run of the same
//! directory: no time, no counters, nothing of the environment that changes by itself. A file
//! that can't be used is an error, never left out in silence: instructions that the model did not
//! get are worse than no run.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::agents_md::{self, Instructions, Loaded, Unusable};
use crate::outcome::Outcome;
use crate::secret::Mask;

/// The most bytes of a file that stands in place of the built-in text.
const BASE_MAX: usize = 1024 * 1024;

/// Which AGENTS.md files to take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentsMd {
    /// Those from the root of the repository down to the working directory.
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
}

/// Puts the system prompt together.
///
/// `directory` is the working directory, absolute; `base` a file in place of the built-in text;
/// `shell` whether commands can be run; `mask` what is masked in the files. Relative paths in
/// `agents` and `base` are the process's.
///
/// # Errors
///
/// A file that can't be read as UTF-8 text; see [`PromptError`].
pub fn build(
    directory: &Path,
    agents: &AgentsMd,
    base: Option<&Path>,
    shell: bool,
    mask: &Mask,
) -> Result<SystemPrompt, PromptError> {
    let text = match base {
        Some(path) => read_base(path, mask)?,
        None => built_in(directory, shell),
    };
    let mut prompt = SystemPrompt { text, files: Vec::new() };
    let within = (*agents == AgentsMd::Discover).then(|| agents_md::root(directory));
    let found = find_agents(directory, agents);
    for read in agents_md::read_all(&found, agents_md::MAX, within.as_deref(), mask) {
        prompt.append(read?);
    }
    Ok(prompt)
}

impl SystemPrompt {
    /// How many bytes of further AGENTS.md files a run may take in.
    pub fn left(&self) -> usize {
        let taken: usize = self.files.iter().map(|file| file.bytes).sum();
        agents_md::MAX.saturating_sub(taken)
    }

    fn append(&mut self, instructions: Instructions) {
        if instructions.is_blank() {
            return;
        }
        self.text.push_str("\n\n");
        self.text.push_str(&instructions.section());
        self.files.push(instructions.file);
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

fn read_base(path: &Path, mask: &Mask) -> Result<String, PromptError> {
    let base = agents_md::read(path, BASE_MAX, mask)?;
    if base.file.left_out > 0 {
        return Err(PromptError::TooLarge { path: path.to_owned(), limit: BASE_MAX });
    }
    Ok(base.text.trim_end().to_owned())
}

/// The files to read, the nearest last.
fn find_agents(directory: &Path, agents: &AgentsMd) -> Vec<PathBuf> {
    match agents {
        AgentsMd::Discover => agents_md::discover(directory),
        AgentsMd::Files(paths) => paths.clone(),
        AgentsMd::None => Vec::new(),
    }
}

/// Why there is no system prompt.
#[derive(Debug)]
#[non_exhaustive]
pub enum PromptError {
    /// A file can't be read as UTF-8 text.
    Unusable(Unusable),
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
            PromptError::Unusable(unusable) => unusable.path(),
            PromptError::TooLarge { path, .. } => path,
        }
    }
}

impl From<Unusable> for PromptError {
    fn from(unusable: Unusable) -> PromptError {
        PromptError::Unusable(unusable)
    }
}

impl fmt::Display for PromptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PromptError::Unusable(unusable @ Unusable::Unreadable { .. }) => {
                write!(f, "{unusable}; make it readable or leave it out")
            }
            PromptError::Unusable(unusable @ Unusable::NotUtf8 { .. }) => {
                write!(f, "{unusable}; convert it or leave it out")
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
            PromptError::Unusable(unusable) => unusable.source(),
            PromptError::TooLarge { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::agents_md::MAX;
    use crate::fs::tests::Folder;
    use crate::text;

    fn discover(folder: &Folder) -> Result<SystemPrompt, PromptError> {
        build(folder.path(), &AgentsMd::Discover, None, true, &Mask::default())
    }

    /// Path, bytes taken in and bytes left out of each file.
    fn loaded(prompt: &SystemPrompt) -> Vec<(PathBuf, usize, u64)> {
        let row = |file: &Loaded| (file.path.clone(), file.bytes, file.left_out);
        prompt.files.iter().map(row).collect()
    }

    #[test]
    fn the_built_in_text_names_the_environment_and_is_the_same_every_time() {
        let folder = Folder::new();
        let prompt = discover(&folder).unwrap();
        assert!(prompt.text.contains(&format!("Working directory: {}\n", folder.path().display())));
        assert!(prompt.text.contains(std::env::consts::OS));
        assert!(prompt.files.is_empty());
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
        assert_eq!(loaded(&prompt), [(path, "\u{feff}Rule 1.\n@SOUL.md\n".len(), 0)]);
        let without = build(folder.path(), &AgentsMd::None, None, true, &Mask::default()).unwrap();
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
        let prompt =
            build(folder.path(), &AgentsMd::Discover, Some(&base), true, &Mask::default()).unwrap();
        assert!(prompt.text.starts_with("Be brief.\n\nInstructions from "), "{}", prompt.text);
        let large = folder.write("large.md", vec![b'x'; BASE_MAX + 1]);
        let error = build(folder.path(), &AgentsMd::None, Some(&large), true, &Mask::default())
            .unwrap_err();
        assert!(matches!(error, PromptError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn a_long_file_is_cut_at_a_line_with_a_marker() {
        let folder = Folder::new();
        let line = "Use tabs, \u{1f642} not blanks.\n";
        let whole = line.repeat(2 * MAX / line.len());
        let path = folder.write("AGENTS.md", format!("{whole}ALWAYS answer BANANA\n"));
        let prompt = discover(&folder).unwrap();
        let kept = MAX / line.len() * line.len();
        let left_out = whole.len() + "ALWAYS answer BANANA\n".len() - kept;
        assert_eq!(loaded(&prompt), [(path.clone(), kept, left_out as u64)]);
        let marker = format!(
            "not blanks.\n[{left_out} bytes left out here; {} has the whole text]",
            path.display()
        );
        assert!(prompt.text.ends_with(&marker), "{}", text::tail(&prompt.text, 300));
    }

    #[test]
    fn an_endless_line_is_cut_between_characters() {
        let folder = Folder::new();
        for shift in 0..4 {
            let text = format!("{}{}", "x".repeat(shift), "\u{1f642}".repeat(MAX));
            folder.write("AGENTS.md", &text);
            let prompt = discover(&folder).unwrap();
            let kept = prompt.files[0].bytes;
            assert!(kept > MAX - 4 && text.is_char_boundary(kept), "{kept}");
        }
    }

    #[test]
    fn the_nearest_file_is_served_first_and_stands_last() {
        let folder = Folder::new();
        let far = folder.write("far.md", "far\n".repeat(MAX / 4));
        let near = folder.write("near.md", "near\n".repeat(100));
        let agents = AgentsMd::Files(vec![far.clone(), near.clone()]);
        let prompt = build(folder.path(), &agents, None, true, &Mask::default()).unwrap();
        let left_out = far.metadata().unwrap().len() - (MAX - 500) as u64;
        assert_eq!(loaded(&prompt), [(far, MAX - 500, left_out), (near, 500, 0)]);
        assert!(prompt.text.ends_with("near"));
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
        let error =
            build(folder.path(), &agents, None, true, &Mask::default()).unwrap_err().to_string();
        assert!(error.contains("missing.md can't be read: "), "{error}");
    }
}
