//! AGENTS.md files below the working directory, told when a tool first touches what they are for.
//!
//! They come with the result of that call and not in the system prompt, which has to stay the same
//! for the endpoint's cache. Each is told once in a conversation. A resumed one shows by itself
//! what it was told: every section starts with a heading of its own. Which files a command touches
//! is not guessed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::agents_md::{self, Instructions, Unusable};
use crate::message::{Message, ToolCall};
use crate::secret::Mask;

use super::arguments::Arguments;
use super::path::resolve;

/// What is still to be told in a conversation.
#[derive(Debug, Default)]
pub(super) struct AgentsMdBelow {
    /// The working directory.
    directory: PathBuf,
    /// The same without symbolic links; none where nothing is to be told.
    physical: Option<PathBuf>,
    /// The root of the repository, out of which no link may lead.
    root: PathBuf,
    /// The paths of the files that were told, as their headings spell them.
    told: HashSet<String>,
    /// How many bytes may still be.
    left: usize,
}

impl AgentsMdBelow {
    /// For a conversation in `directory`, in whose system prompt there was room for `left` bytes
    /// more.
    pub(super) fn new(directory: &Path, left: usize, conversation: &[Message]) -> AgentsMdBelow {
        let mut agents_md = AgentsMdBelow {
            directory: directory.to_owned(),
            physical: directory.canonicalize().ok(),
            root: agents_md::root(directory),
            told: HashSet::new(),
            left,
        };
        for message in conversation {
            if let Message::Tool(result) = message {
                agents_md.recall(result.content.as_str());
            }
        }
        agents_md
    }

    /// Takes note of what an earlier result told. The sections are the end of it, from the first
    /// line on that is the heading of a file of ours.
    fn recall(&mut self, result: &str) {
        let (mut offset, mut start) = (0, None);
        for line in result.split_inclusive('\n') {
            let path = agents_md::path_of_heading(line.trim_end());
            if let Some(path) = path.filter(|path| self.may_be_told(path)) {
                self.told.insert(path.to_owned());
                start.get_or_insert(offset);
            }
            offset += line.len();
        }
        let told = start.map_or(0, |start| result.len() - start);
        self.left = self.left.saturating_sub(told);
    }

    fn may_be_told(&self, path: &str) -> bool {
        let path = Path::new(path);
        path.starts_with(&self.directory) && path.ends_with("AGENTS.md")
    }

    /// The files that the call makes due, the nearest last. It has been run already: what was not
    /// there and was not made by it has no place either.
    pub(super) fn touched(
        &mut self,
        call: &ToolCall,
        mask: &Mask,
    ) -> Vec<Result<Instructions, Unusable>> {
        let due = self.due(call).unwrap_or_default();
        let read = agents_md::read_all(&due, self.left, Some(&self.root), mask);
        for instructions in read.iter().flatten() {
            self.left -= instructions.file.bytes;
        }
        self.told.extend(due.iter().map(|path| path.display().to_string()));
        read
    }

    fn due(&self, call: &ToolCall) -> Option<Vec<PathBuf>> {
        let given = named_path(call)?;
        let path = resolve(&self.directory, &given).ok()?.canonicalize().ok()?;
        let below = path.strip_prefix(self.physical.as_ref()?).ok()?;
        let innermost = if path.is_dir() { below } else { below.parent()? };
        let directories = innermost.ancestors().filter(|below| *below != Path::new(""));
        // Whoever touches the file itself sees it by that.
        let is_due = |file: &PathBuf| {
            !self.told.contains(&file.display().to_string()) && *file != self.directory.join(below)
        };
        let files = directories.filter_map(|below| agents_md::file_in(&self.directory.join(below)));
        let mut due: Vec<PathBuf> = files.filter(is_due).collect();
        due.reverse();
        Some(due)
    }
}

/// The path of a call of one of the tools for files.
fn named_path(call: &ToolCall) -> Option<String> {
    if call.name == "shell" {
        return None;
    }
    Arguments::parse(&call.arguments, &Mask::default()).ok()?.string("path").ok()
}

/// Adds what the files say, and which of them can't be used, to the result of the call.
pub(super) fn append(text: &mut String, told: &[Result<Instructions, Unusable>]) {
    for section in told {
        let section = match section {
            Ok(instructions) if instructions.is_blank() => continue,
            Ok(instructions) => instructions.section(),
            Err(unusable) => format!("[{unusable}: what it says is not known]"),
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push('\n');
        text.push_str(&section);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::agents_md::MAX;
    use crate::fs::tests::Folder;
    use crate::time::Deadline;
    use crate::tools::{Executor as _, Toolbox};

    /// A folder with files in `a/b`, and an AGENTS.md in it and in each directory.
    fn tree() -> Folder {
        let folder = Folder::new();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        for (name, content) in [
            ("AGENTS.md", "Rule 0.\n"),
            ("a/AGENTS.md", "Rule a.\n"),
            ("a/b/AGENTS.md", "Rule b.\n"),
            ("f", "0\n"),
            ("a/f", "a\n"),
            ("a/b/f", "b\n"),
        ] {
            folder.write(name, content);
        }
        folder
    }

    fn toolbox(folder: &Folder, left: usize, conversation: &[Message]) -> Toolbox {
        let toolbox = Toolbox::new(folder.path(), None, &Mask::default());
        toolbox.with_instructions(folder.path(), left, conversation)
    }

    fn call(name: &str, path: &str) -> ToolCall {
        let more = r#""content":"x","old_string":"no such","new_string":"text""#;
        ToolCall::new("1", name, format!("{{\"path\":\"{path}\",{more}}}"))
    }

    #[track_caller]
    fn read(toolbox: &mut Toolbox, path: &str) -> String {
        toolbox.execute(&call("read_file", path), Deadline::NONE).text
    }

    fn section(folder: &Folder, name: &str, text: &str) -> String {
        format!("\nInstructions from {}:\n\n{text}", folder.path().join(name).display())
    }

    #[test]
    fn a_file_is_told_once_with_the_first_touch_of_what_lies_beside_or_below_it() {
        let folder = tree();
        let mut toolbox = toolbox(&folder, MAX, &[]);
        assert_eq!(read(&mut toolbox, "f"), "     1\t0\n");
        let a = section(&folder, "a/AGENTS.md", "Rule a.");
        let b = section(&folder, "a/b/AGENTS.md", "Rule b.");
        assert_eq!(read(&mut toolbox, "a/b/f"), format!("     1\tb\n{a}\n{b}"));
        assert_eq!(read(&mut toolbox, "a/b/f"), "     1\tb\n");
        assert_eq!(read(&mut toolbox, "a/f"), "     1\ta\n");
    }

    #[test]
    fn text_that_looks_like_a_heading_is_not_taken_for_what_was_told() {
        let folder = tree();
        let call = call("read_file", "a/f");
        let text = format!(
            "Instructions from the maintainer follow.\nInstructions from /etc/AGENTS.md:\n{}",
            "x".repeat(MAX)
        );
        let earlier = [Message::tool_result(&call, text)];
        let mut toolbox = toolbox(&folder, MAX, &earlier);
        let told = section(&folder, "a/AGENTS.md", "Rule a.");
        assert!(read(&mut toolbox, "a/f").ends_with(&told));
    }

    #[test]
    fn every_tool_for_files_touches_and_so_does_a_call_that_fails() {
        for (tool, path) in [("write_file", "a/new"), ("edit_file", "a/f"), ("read_file", "a")] {
            let folder = tree();
            let output = toolbox(&folder, MAX, &[]).execute(&call(tool, path), Deadline::NONE);
            let told = section(&folder, "a/AGENTS.md", "Rule a.");
            assert!(output.text.ends_with(&told), "{tool}: {}", output.text);
        }
        let folder = tree();
        let text = read(&mut toolbox(&folder, MAX, &[]), "a/missing");
        assert!(!text.contains("Rule"), "{text}");
    }

    #[test]
    fn what_is_told_is_reported_with_its_call() {
        let folder = tree();
        let mut toolbox = toolbox(&folder, MAX, &[]);
        read(&mut toolbox, "a/f");
        let told = toolbox.take_instructions();
        let told: Vec<_> = told.into_iter().map(|told| told.unwrap().path).collect();
        assert_eq!(told, [folder.path().join("a/AGENTS.md")]);
        assert!(toolbox.take_instructions().is_empty());
    }

    #[test]
    fn who_reads_the_file_itself_is_not_told_it_twice() {
        let folder = tree();
        let mut toolbox = toolbox(&folder, MAX, &[]);
        assert_eq!(read(&mut toolbox, "a/AGENTS.md"), "     1\tRule a.\n");
        assert!(read(&mut toolbox, "a/f").contains("Rule a."));
    }

    #[test]
    fn a_resumed_conversation_is_told_only_what_it_does_not_hold() {
        let folder = tree();
        let first = read(&mut toolbox(&folder, MAX, &[]), "a/f");
        let conversation = [Message::tool_result(&call("read_file", "a/f"), first)];
        let mut resumed = toolbox(&folder, MAX, &conversation);
        let b = section(&folder, "a/b/AGENTS.md", "Rule b.");
        assert_eq!(read(&mut resumed, "a/b/f"), format!("     1\tb\n{b}"));
        // What it holds counts against the limit.
        let held = section(&folder, "a/AGENTS.md", "Rule a.").len();
        let mut resumed = toolbox(&folder, held, &conversation);
        let text = read(&mut resumed, "a/b/f");
        assert!(text.contains("bytes left out here; ") && !text.contains("Rule b."), "{text}");
    }

    #[test]
    fn all_files_of_a_run_share_one_limit() {
        let folder = tree();
        folder.write("a/AGENTS.md", "Rule 1.\nRule 2.\n");
        let mut toolbox = toolbox(&folder, 16, &[]);
        let text = read(&mut toolbox, "a/b/f");
        let path = folder.path().join("a/AGENTS.md");
        let marker = format!("[8 bytes left out here; {} has the whole text]", path.display());
        let a = section(&folder, "a/AGENTS.md", &format!("Rule 1.\n{marker}"));
        let b = section(&folder, "a/b/AGENTS.md", "Rule b.");
        assert_eq!(text, format!("     1\tb\n{a}\n{b}"));
    }

    #[test]
    fn a_file_that_can_not_be_used_is_told_and_ends_nothing() {
        let folder = tree();
        let path = folder.write("a/AGENTS.md", b"Use \x93tabs\x94");
        let mut toolbox = toolbox(&folder, MAX, &[]);
        let told = format!("\n[{} is not UTF-8 at byte 4: what it says is", path.display());
        assert_eq!(read(&mut toolbox, "a/f"), format!("     1\ta\n{told} not known]"));
        assert_eq!(read(&mut toolbox, "a/f"), "     1\ta\n");
    }

    #[test]
    fn a_command_is_not_guessed_at() {
        let folder = tree();
        let mut agents_md = AgentsMdBelow::new(folder.path(), MAX, &[]);
        assert!(agents_md.touched(&call("shell", "a/f"), &Mask::default()).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_may_lead_anywhere_in_the_repository_and_not_out_of_it() {
        use std::os::unix::fs::symlink;
        let (folder, outside) = (tree(), tree());
        fs::create_dir(folder.path().join(".git")).unwrap();
        fs::remove_file(folder.path().join("a/b/AGENTS.md")).unwrap();
        symlink("../../AGENTS.md", folder.path().join("a/b/AGENTS.md")).unwrap();
        let below = folder.path().join("a");
        let toolbox = || {
            let toolbox = Toolbox::new(&below, None, &Mask::default());
            toolbox.with_instructions(&below, MAX, &[])
        };
        let told = section(&folder, "a/b/AGENTS.md", "Rule 0.");
        assert_eq!(read(&mut toolbox(), "b/f"), format!("     1\tb\n{told}"));
        fs::remove_file(folder.path().join("AGENTS.md")).unwrap();
        symlink(outside.path().join("AGENTS.md"), folder.path().join("AGENTS.md")).unwrap();
        let text = read(&mut toolbox(), "b/f");
        assert!(text.ends_with(": what it says is not known]"), "{text}");
    }

    #[cfg(unix)]
    #[test]
    fn it_is_the_real_place_that_counts() {
        use std::os::unix::fs::symlink;
        let (folder, outside) = (tree(), tree());
        symlink(outside.path().join("a"), folder.path().join("out")).unwrap();
        symlink("a/b/f", folder.path().join("in")).unwrap();
        symlink("loop", folder.path().join("loop")).unwrap();
        let mut toolbox = toolbox(&folder, MAX, &[]);
        assert_eq!(read(&mut toolbox, "out/f"), "     1\ta\n");
        let outside = outside.path().join("a/f").display().to_string();
        assert_eq!(read(&mut toolbox, &outside), "     1\ta\n");
        assert!(!read(&mut toolbox, "loop").contains("Rule"));
        assert!(read(&mut toolbox, "in").ends_with(&section(&folder, "a/b/AGENTS.md", "Rule b.")));
    }
}
