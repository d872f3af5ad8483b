//! The `edit_file` tool: one text in a file is replaced by another.
//!
//! It works on bytes: what does not belong to the change stays as it is, be it UTF-8 or not. It
//! never guesses: the text stands there exactly once, or every place is meant, or nothing is done
//! and the result says what stands where. The only freedom is that of line endings, see
//! [`replacement`](super::replacement).

use std::fs::File;
use std::io::{self, Read as _};

use crate::fs::replace::Target;
use crate::json::Json;
use crate::provider::ToolDefinition;
use crate::secret::Mask;
use crate::time::Deadline;

use super::arguments::Arguments;
use super::lines::number_text;
use super::mismatch::Mismatch;
use super::path::resolve;
use super::replacement::{Edit, Replacement};
use super::similar_names::with_names;
use super::text_search::newlines;
use super::time_limit::TimeLimit;
use super::{Output, Tool, ToolError, Workspace, masked};

/// The `edit_file` tool.
#[derive(Debug)]
pub(super) struct EditFile(pub(super) Workspace);

impl Tool for EditFile {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "edit_file",
            description: "Replace old_string with new_string in a file that you have read. \
                          old_string must match the file exactly, without the line numbers of \
                          read_file, and occur once, unless replace_all is true.",
            parameters: Json::from_static(
                r#"{
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "old_string": {"type": "string"},
                        "new_string": {"type": "string"},
                        "replace_all": {"type": "boolean"}
                    },
                    "required": ["path", "old_string", "new_string"],
                    "additionalProperties": false
                }"#,
            ),
        }
    }

    fn run(
        &mut self,
        mut arguments: Arguments<'_>,
        deadline: Deadline,
    ) -> Result<Output, ToolError> {
        let given = arguments.string("path")?;
        let old = arguments.string("old_string")?;
        let new = arguments.string("new_string")?;
        let all = arguments.optional_bool("replace_all")?.unwrap_or(false);
        let edited =
            self.edit(&given, &old, &new, all, deadline).map_err(|failure| match failure {
                Failure::Text(message) => ToolError::new(message),
                Failure::File(error) => ToolError::new(format!("{given}: {error}")),
            })?;
        let summary = edited.summary;
        Ok(Output::new(format!("edited {given}: {}", edited.text), summary))
    }
}

/// Why nothing was edited.
enum Failure {
    /// The text is not there, or not once; the message says where it was looked for.
    Text(String),
    /// The file or the change is the reason.
    File(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::File(error)
    }
}

impl EditFile {
    fn edit(
        &self,
        given: &str,
        old: &str,
        new: &str,
        all: bool,
        deadline: Deadline,
    ) -> Result<Output, Failure> {
        let time = self.0.time_limit(deadline);
        let path = resolve(&self.0.directory, given)?;
        if old.is_empty() {
            let message =
                "old_string is empty; to create a file or replace all of it, use write_file";
            return Err(invalid(message).into());
        }
        if old == new {
            let message = "old_string and new_string are the same: nothing would change";
            return Err(invalid(message).into());
        }
        let mut target = Target::find(&path)?;
        let (file, length) =
            target.open().map_err(|error| with_names(error, &self.0.directory, &path, time))?;
        let before = self.read(&file, length, time)?;
        let replacement = Replacement::new(old, new);
        let searched = replacement.searched(&before);
        let found = replacement.find(&before, &searched);
        // A mask can't be found where the secret stands.
        let hidden: &[u8] = if found.first.is_none() { &before } else { &[] };
        masked::check(&self.0.mask, "old_string", old, hidden)?;
        masked::check(&self.0.mask, "new_string", new, old.as_bytes())?;
        let Some(first) = &found.first else {
            let mismatch = Mismatch::find(&before, old, &self.0.mask);
            return Err(Failure::Text(format!(
                "old_string was not found in {given}; nothing was changed: {}{}",
                mismatch.why,
                mismatch.excerpt(&before, &self.0.mask)
            )));
        };
        if found.count > 1 && !all {
            return Err(Failure::Text(format!(
                "old_string was found {} times in {given}, at {}; nothing was changed: include \
                 more surrounding lines, or set replace_all to true",
                found.count,
                found.places()
            )));
        }
        if !found.differs {
            return Err(invalid("the file already reads like that: nothing would change").into());
        }
        if found.length > MADE_MAX {
            return Err(self.too_large("it would have", found.length as u64, MADE_MAX).into());
        }
        let after = replacement.apply(&before, &searched, found.length);
        let replaced = self.0.replace(&target, Some(&before), &after)?;
        let places = match found.count {
            1 => "1 place".to_owned(),
            count => format!("{count} places"),
        };
        let in_place = if replaced.in_place { " (written in place)" } else { "" };
        let shown = show(&after, first, &self.0.mask);
        Ok(Output::new(format!("{places}, at {}{in_place}\n{shown}", found.places()), places))
    }

    /// Reads all of a file. Its length may be wrong: a file grows, and those of `/proc` have none.
    fn read(&self, file: &File, length: u64, time: TimeLimit) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if length <= FILE_MAX as u64 {
            // One more, so that the end is seen without more room.
            bytes.reserve_exact(usize::try_from(length).unwrap_or_default() + 1);
            let mut rest = file.take(FILE_MAX as u64 + 1);
            while rest.by_ref().take(PIECE).read_to_end(&mut bytes)? > 0 {
                time.check()?;
            }
        }
        if length > FILE_MAX as u64 || bytes.len() > FILE_MAX {
            return Err(self.too_large("it has", length.max(bytes.len() as u64), FILE_MAX));
        }
        Ok(bytes)
    }

    fn too_large(&self, what: &str, bytes: u64, most: usize) -> io::Error {
        let advice = match self.0.has_shell {
            true => "; change it with a command, for example sed -i",
            false => "",
        };
        let most = most / 1024 / 1024;
        let message = format!("{what} {bytes} bytes, and edit_file takes up to {most} MB{advice}");
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    }
}

/// The most bytes of a file that is edited, and of what an edit makes of it: both are held.
const FILE_MAX: usize = 32 * 1024 * 1024;
const MADE_MAX: usize = 2 * FILE_MAX;

/// So many bytes are read between two looks at the clock.
const PIECE: u64 = 1024 * 1024;

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// The most lines of the changed file that a result shows.
const SHOWN_MAX: usize = 20;

/// The most bytes before a change that are shown, so that a long line does not hide it.
const BEFORE_MAX: usize = 400;

/// Lines above and below the change.
const AROUND: usize = 2;

/// Shows the first place, and what is on its lines and those around it, in the changed file.
/// Nothing is changed before it, so its offset and line are those of the old file.
fn show(file: &[u8], first: &Edit<'_>, mask: &Mask) -> String {
    let mut before = above(&file[..first.start]);
    let from = before.len().saturating_sub(BEFORE_MAX);
    let is_cut = from > 0;
    if is_cut {
        // A character may have been cut, too.
        let is_inside = |&&byte: &&u8| byte & 0xC0 == 0x80;
        let rest = &before[from..];
        before = &rest[rest.iter().take(3).take_while(is_inside).count()..];
    }
    let start = first.line - newlines(before);
    let last = first.last_line() + AROUND;
    let mut out = String::new();
    let mut left_out = 0;
    let lines = file[first.start - before.len()..].split_inclusive(|&byte| byte == b'\n');
    for (number, line) in (start..=last).zip(lines) {
        let line =
            line.strip_suffix(b"\n").map_or(line, |text| text.strip_suffix(b"\r").unwrap_or(text));
        if number - start >= SHOWN_MAX {
            left_out += 1;
        } else if is_cut && number == start {
            let text = [b"... ", &line[mask.open_start(line)..]].concat();
            number_text(&mut out, number as u64, &text, mask);
        } else {
            number_text(&mut out, number as u64, line, mask);
        }
    }
    if left_out > 0 {
        out.push_str(&format!("[{left_out} more lines left out]\n"));
    } else if out.is_empty() {
        out.push_str("[the file is empty now]\n");
    }
    out
}

/// The last line of a text, without an ending, and those above it that are shown.
fn above(text: &[u8]) -> &[u8] {
    let newlines = text.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    let start = newlines.map(|(index, _)| index + 1).nth(AROUND);
    &text[start.unwrap_or_default()..]
}

#[cfg(test)]
mod tests {
    use super::super::lines::EDIT_LINE_MAX;
    use super::*;
    use crate::fs::tests::Folder;
    use crate::fuzz::inputs;

    fn call(folder: &Folder, old: &str, new: &str, all: bool) -> String {
        let arguments = format!(
            "{{\"path\":\"f\",\"old_string\":{},\"new_string\":{},\"replace_all\":{all}}}",
            serde_json::to_string(old).unwrap(),
            serde_json::to_string(new).unwrap()
        );
        Arguments::parse(&arguments, &Mask::default())
            .and_then(|arguments| EditFile(folder.workspace()).run(arguments, Deadline::NONE))
            .unwrap_or_else(Output::from)
            .text
    }

    #[track_caller]
    fn check(before: &[u8], old: &str, new: &str, after: &[u8]) {
        let folder = Folder::new();
        folder.write("f", before);
        let text = call(&folder, old, new, false);
        assert!(text.starts_with("edited f: 1 place, at line "), "{text}");
        assert_eq!(folder.read("f").escape_ascii().to_string(), after.escape_ascii().to_string());
    }

    #[track_caller]
    fn check_all(before: &[u8], old: &str, new: &str, after: &[u8]) {
        let folder = Folder::new();
        folder.write("f", before);
        let text = call(&folder, old, new, true);
        assert!(text.starts_with("edited f: "), "{text}");
        assert_eq!(folder.read("f").escape_ascii().to_string(), after.escape_ascii().to_string());
    }

    #[track_caller]
    fn check_refused(before: &[u8], old: &str, new: &str, message: &str) {
        let folder = Folder::new();
        folder.write("f", before);
        assert_eq!(call(&folder, old, new, false), format!("error: f: {message}"));
        assert_eq!(folder.read("f"), before);
    }

    #[track_caller]
    fn check_error(before: &[u8], old: &str, message: &str) {
        let folder = Folder::new();
        folder.write("f", before);
        assert_eq!(call(&folder, old, "new", false), format!("error: {message}"));
        assert_eq!(folder.read("f"), before);
    }

    #[test]
    fn only_the_text_is_exchanged() {
        check(b"a\nb\nc", "a", "A", b"A\nb\nc");
        check(b"a\nb\nc", "b\n", "", b"a\nc");
        check(b"\xEF\xBB\xBFone\0\xE9two", "one", "1", b"\xEF\xBB\xBF1\0\xE9two");
        check("caf\u{e9}".as_bytes(), "\u{e9}", "\u{e8}", "caf\u{e8}".as_bytes());
    }

    #[test]
    fn line_endings_are_those_of_the_place() {
        check(b"a\r\nb\r\nc\r\n", "a\nb", "a\nB\nB2", b"a\r\nB\r\nB2\r\nc\r\n");
        check(b"a\r\nb\nc\r\nd\n", "b", "B", b"a\r\nB\nc\r\nd\n");
        check(b"a\r\nb\nc\n", "a\nb\nc", "a\nB\nc", b"a\r\nB\nc\n");
        check(b"a\r\nb\n", "a", "a\nx", b"a\r\nx\r\nb\n");
        check(b"a\nb\r\n", "a\n", "a\nx\n", b"a\nx\nb\r\n");
        check(b"a\r\nb", "b", "b\nc\n", b"a\r\nb\r\nc\r\n");
        check(b"a\r\nb\r\n", "a\nb", "a b", b"a b\r\n");
    }

    #[test]
    fn texts_with_carriage_returns_are_taken_as_they_are() {
        check(b"a\r\nb\r\n", "a\r\n", "a\n", b"a\nb\r\n");
        check(b"a\nb\n", "a\n", "a\r\n", b"a\r\nb\n");
        check(b"a\r\nb\n", "a\nb", "x\r\ny", b"x\r\ny\n");
        check_refused(
            b"a\r\nb\n",
            "a\n",
            "a\r\n",
            "the file already reads like that: nothing would change",
        );
    }

    #[test]
    fn every_place_is_exchanged_when_all_are_meant() {
        check_all(b"k\nv\nk\r\nv\r\n", "k\nv", "K\nw\nv", b"K\nw\nv\nK\r\nw\r\nv\r\n");
        check_all(b"x\r\nx x\nx\r\n", "x", "x\n", b"x\r\n\r\nx\n x\n\nx\r\n\r\n");
        check_all(b"aaaaa", "aa", "b", b"bba");
        check_all(b"a a a", "a", "", b"  ");
    }

    #[test]
    fn a_text_that_stands_there_more_than_once_is_refused_with_its_lines() {
        check_error(
            b"}\n\nfn a\n}\n\nfn b\n}\n\nfn c\n",
            "}\n\nfn ",
            "old_string was found 3 times in f, at lines 1, 4, 7; nothing was changed: include \
             more surrounding lines, or set replace_all to true",
        );
        check_error(
            b"k\nv\nx\nk\r\nv\r\n",
            "k\nv",
            "old_string was found 2 times in f, at lines 1, 4; nothing was changed: include more \
             surrounding lines, or set replace_all to true",
        );
    }

    #[test]
    fn what_changes_nothing_is_refused() {
        check_refused(
            b"a",
            "",
            "b",
            "old_string is empty; to create a file or replace all of it, use write_file",
        );
        check_refused(
            b"a",
            "a",
            "a",
            "old_string and new_string are the same: nothing would change",
        );
    }

    #[test]
    fn what_is_not_found_is_told_with_the_reason() {
        check_error(
            b"fn a() {\n\treturn;\n}\n",
            "fn a() {\n    return;\n}",
            "old_string was not found in f; nothing was changed: line 2 is \"\\treturn;\", and \
             old_string has \"    return;\" there\nthe file:\n     1\tfn a() {\n     \
             2\t\treturn;\n     3\t}\n",
        );
        check_error(
            b"",
            "a",
            "old_string was not found in f; nothing was changed: the file is empty",
        );
    }

    #[test]
    fn the_result_shows_the_change_with_the_lines_around_it() {
        let folder = Folder::new();
        folder.write("f", "1\n2\n3\nold\n5\n6\n7\n");
        assert_eq!(
            call(&folder, "old", "new\nmore", false),
            "edited f: 1 place, at line 4\n     2\t2\n     3\t3\n     4\tnew\n     5\tmore\n     \
             6\t5\n     7\t6\n"
        );
        assert_eq!(
            call(&folder, "5\n6\n7\n", "5\n6\n8\n", false),
            "edited f: 1 place, at line 6\n     6\t5\n     7\t6\n     8\t8\n"
        );
        assert_eq!(
            call(&folder, "8\n", "", false),
            "edited f: 1 place, at line 8\n     6\t5\n     7\t6\n"
        );
        let text = call(&folder, "new", &"x\n".repeat(100), false);
        assert!(text.ends_with("    21\tx\n[85 more lines left out]\n"), "{text}");
    }

    #[test]
    fn every_place_that_is_shown_is_shown_as_it_is_to_be() {
        let folder = Folder::new();
        folder.write("f", "def f(x):\n    return x + x\nprint(x)\n");
        assert_eq!(
            call(&folder, "x", "count", true),
            "edited f: 4 places, at lines 1, 2, 2, 3\n     1\tdef f(count):\n     2\t    return \
             count + count\n     3\tprint(count)\n"
        );
        folder.write("f", "a b\nb a\nc\n");
        assert_eq!(
            call(&folder, "b", "\n", true),
            "edited f: 2 places, at lines 1, 2\n     1\ta \n     2\t\n     3\t\n     4\t a\n"
        );
    }

    #[test]
    fn an_edit_that_empties_a_file_says_so() {
        let folder = Folder::new();
        folder.write("f", "a\na\n");
        assert_eq!(
            call(&folder, "a\n", "", true),
            "edited f: 2 places, at lines 1, 2\n[the file is empty now]\n"
        );
        assert_eq!(folder.read("f"), b"");
    }

    #[test]
    fn fuzz_the_lines_that_are_shown_of_random_edits_are_those_of_the_new_file() {
        let mut shown = 0;
        let inputs = inputs("lines of an edit", 2_000);
        let total = inputs.total();
        for (seed, mut random) in inputs {
            let mut pick = |length, alphabet: &[&[u8]]| -> Vec<u8> {
                let length = random.below(length);
                (0..length).flat_map(|_| alphabet[random.below(alphabet.len())].to_vec()).collect()
            };
            let content = pick(40, &[b"a", b"b", b"\n", b"\r\n", b"\xE9", b"\r"]);
            let old = String::from_utf8(pick(3, &[b"a", b"b", b"\n"])).unwrap();
            let new = String::from_utf8(pick(4, &[b"a", b"c", b"\n"])).unwrap();
            if old.is_empty() || old == new {
                continue;
            }
            let replacement = Replacement::new(&old, &new);
            let searched = replacement.searched(&content);
            let found = replacement.find(&content, &searched);
            let Some(place) = &found.first else { continue };
            let made = replacement.apply(&content, &searched, found.length);
            let mut wanted = String::new();
            let first = place.line.saturating_sub(AROUND).max(1);
            let last = place.line + newlines(place.text) + AROUND;
            for (line, number) in made.split_inclusive(|&byte| byte == b'\n').zip(1..=last) {
                let line = line
                    .strip_suffix(b"\n")
                    .map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line));
                if number >= first {
                    let line = crate::text::Lossy::new(line).text;
                    wanted.push_str(&format!("{number:>6}\t{line}\n"));
                }
            }
            if made.is_empty() {
                wanted.push_str("[the file is empty now]\n");
            }
            let told = show(&made, place, &Mask::default());
            assert_eq!(told, wanted, "seed {seed}: {content:?} {old:?} {new:?}");
            shown += found.count;
        }
        assert!(total < 1_000 || shown > total / 3, "{shown}");
    }

    #[test]
    fn a_change_far_into_a_line_is_shown() {
        let folder = Folder::new();
        folder.write("f", format!("{}old{}", "\u{1f642}".repeat(10_000), "y".repeat(5_000)));
        let text = call(&folder, "old", "new", false);
        assert!(text.contains("     1\t... \u{1f642}") && text.contains("newyyy"), "{text}");
        assert!(text.ends_with(" bytes of this line left out]\n") && text.len() < 1_200, "{text}");
    }

    #[test]
    fn a_key_is_masked_before_anything_is_cut() {
        let folder = Folder::new();
        let key = "sk-TESTKEY-1";
        for fill in [BEFORE_MAX - 15, BEFORE_MAX - 11, BEFORE_MAX - 6, BEFORE_MAX - 1] {
            let file = format!("{}{key}{}old", "y".repeat(1_000), "x".repeat(fill));
            folder.write("f", file);
            let text = call(&folder, "old", "new", false);
            assert!(!text.contains("-1x") && text.contains("xnew"), "{fill}: {text}");
        }
        for fill in [EDIT_LINE_MAX - 15, EDIT_LINE_MAX - 6, 200 - 15, 200 - 6] {
            folder.write("f", format!("old\n{}{key}\n", "x".repeat(fill)));
            assert!(!call(&folder, "old", "new", false).contains("sk-"), "{fill}");
            let wanted = format!("new\n  {}{key}", "x".repeat(fill));
            assert!(!call(&folder, &wanted, "", false).contains("sk-"), "{fill}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_and_modes_stay() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = Folder::new();
        let path = folder.write("real", "#!/bin/sh\nold\n");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
        symlink("real", folder.path().join("f")).unwrap();
        call(&folder, "old", "new", false);
        assert_eq!(folder.read("real"), b"#!/bin/sh\nnew\n");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(folder.names(), ["f", "real"]);
    }

    #[test]
    fn what_can_not_be_edited_is_named() {
        let folder = Folder::new();
        let text = call(&folder, "a", "b", false);
        assert!(text.starts_with("error: f: No such file"), "{text}");
        std::fs::create_dir(folder.path().join("f")).unwrap();
        assert_eq!(call(&folder, "a", "b", false), "error: f: it is a directory");
    }

    #[test]
    fn a_file_that_is_too_large_is_refused_with_the_way_out() {
        let folder = Folder::new();
        folder.write("f", "old\n");
        let file = std::fs::OpenOptions::new().write(true).open(folder.path().join("f")).unwrap();
        for length in [1 << 40, FILE_MAX as u64 + 1] {
            file.set_len(length).unwrap();
            let expected = format!(
                "error: f: it has {length} bytes, and edit_file takes up to 32 MB; change it with \
                 a command, for example sed -i"
            );
            assert_eq!(call(&folder, "old", "new", false), expected);
        }
        assert_eq!(folder.names(), ["f"]);
        folder.write("f", "a".repeat(1_000));
        let text = call(&folder, "a", &"b".repeat(100_000), true);
        let expected = "error: f: it would have 100000000 bytes, and edit_file takes up to 64 MB;";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(folder.read("f"), [b'a'; 1_000]);
    }

    #[cfg(unix)]
    #[test]
    fn a_length_that_is_not_true_changes_nothing() {
        let folder = Folder::new();
        let tool = EditFile(folder.workspace());
        let time = tool.0.time_limit(Deadline::NONE);
        let file = File::open(folder.write("f", "0123456789")).unwrap();
        assert_eq!(tool.read(&file, 0, time).unwrap(), b"0123456789");
        let file = File::open(folder.write("f", "0123456789")).unwrap();
        assert_eq!(tool.read(&file, 1_000, time).unwrap(), b"0123456789");
        let endless = File::open("/dev/zero").unwrap();
        let error = tool.read(&endless, 0, time).unwrap_err().to_string();
        assert!(error.starts_with("it has 33554433 bytes, and "), "{error}");
    }

    #[test]
    fn reading_is_given_up_when_the_time_is_over() {
        let folder = Folder::new();
        folder.write("f", "old\n");
        let arguments = r#"{"path":"f","old_string":"old","new_string":"new"}"#;
        let mut tool = EditFile(folder.workspace());
        let run = |tool: &mut EditFile, deadline| {
            let arguments = Arguments::parse(arguments, &Mask::default()).unwrap();
            tool.run(arguments, deadline).unwrap_err().to_string()
        };
        let over = Deadline::after(Some(std::time::Duration::ZERO));
        assert_eq!(run(&mut tool, over), "f: the run's time was over");
        tool.0.call_max = std::time::Duration::ZERO;
        let told = "f: given up after 0 seconds, the most that a call may take";
        assert_eq!(run(&mut tool, Deadline::NONE), told);
        assert_eq!((folder.read("f"), folder.names()), (b"old\n".to_vec(), vec!["f".into()]));
    }

    #[test]
    fn a_million_places_in_one_line_take_no_time() {
        let folder = Folder::new();
        folder.write("f", format!("x\r\n{}", "a".repeat(1_000_000)));
        let text = call(&folder, "a", "\n", true);
        assert!(text.starts_with("edited f: 1000000 places, at lines 2, 2, "), "{text}");
        assert_eq!(folder.read("f"), format!("x\r\n{}", "\r\n".repeat(1_000_000)).as_bytes());
    }
}
