//! The `read_file` tool: a page of numbered lines, or the names in a directory.
//!
//! A file is read as a stream and never held: a file of any size, and a line of any length, costs
//! the same memory. Whatever is not shown is told, with what to do to see it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::fs::{follow_links, open_regular};
use crate::json::Json;
use crate::provider::ToolDefinition;
use crate::time::Deadline;

use super::arguments::Arguments;
use super::lines::{Ending, HEAD_MAX, LINE_MAX, Line, next_line, number_line};
use super::path::resolve;
use super::similar_names::with_names;
use super::time_limit::TimeLimit;
use super::{Output, Tool, ToolError, Workspace};

/// The most lines or names in one result.
const LINES_MAX: u64 = 2_000;

/// The most bytes of lines or names in one result; the notes around them come on top.
const BYTES_MAX: usize = 50 * 1024;

/// A NUL byte in so many bytes at the start makes a file binary.
const HEAD: usize = 8 * 1024;

/// The `read_file` tool.
#[derive(Debug)]
pub(super) struct ReadFile(pub(super) Workspace);

impl Tool for ReadFile {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "read_file",
            description: "Read a text file as numbered lines, at most 2000 or 50 KB at once, or \
                          list a directory. offset is the first line, counted from 1; limit the \
                          number of lines.",
            parameters: Json::from_static(
                r#"{
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "offset": {"type": "integer", "minimum": 1},
                        "limit": {"type": "integer", "minimum": 1}
                    },
                    "required": ["path"],
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
        let first = arguments.optional_u64("offset")?.unwrap_or(1).max(1);
        let limit = arguments.optional_u64("limit")?.unwrap_or(LINES_MAX).min(LINES_MAX);
        // Models that fill in every argument mean "the usual one" by 0.
        let limit = if limit == 0 { LINES_MAX } else { limit };
        let time = self.0.time_limit(deadline);
        let read = || {
            let path = resolve(&self.0.directory, &given)?;
            follow_links(&path)?;
            match open_regular(&path) {
                Ok((file, _)) => self.show_file(&given, file, first, limit, time),
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                    self.show_directory(&path, time)
                }
                Err(error) => Err(with_names(error, &self.0.directory, &path, time)),
            }
        };
        read().map_err(|error| ToolError::new(format!("{given}: {error}")))
    }
}

impl ReadFile {
    fn show_file(
        &self,
        given: &str,
        file: File,
        first: u64,
        limit: u64,
        time: TimeLimit,
    ) -> io::Result<Output> {
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        let head = reader.fill_buf()?;
        if head.is_empty() {
            return Ok(Output::new("[the file is empty]", "empty"));
        }
        if let Some(offset) = head[..head.len().min(HEAD)].iter().position(|&byte| byte == 0) {
            return Ok(self.binary(offset));
        }
        let mark = if head.starts_with(BOM) { BOM.len() } else { 0 };
        reader.consume(mark);
        let mut page = Page::default();
        let mut number = 0;
        while page.lines < limit {
            let wanted = number + 1 >= first;
            let Some(line) = next_line(&mut reader, if wanted { HEAD_MAX } else { 0 }, time)?
            else {
                break;
            };
            number += 1;
            if number % LOOK == 0 {
                time.check()?;
            }
            if wanted && !page.add(number, &line.masked(&self.0.mask)) {
                page.more = true;
                break;
            }
        }
        page.more |= !reader.fill_buf()?.is_empty();
        if page.lines == 0 {
            let message = format!("offset {first} is past the end: the file has {number} lines");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let cut = page.cut.map(|(number, shown)| {
            let before = if number == 1 { mark as u64 } else { 0 };
            self.long_line(given, number, before + shown)
        });
        Ok(page.finish(first, cut.as_deref()))
    }

    fn binary(&self, offset: usize) -> Output {
        let advice = match self.0.has_shell {
            true => "; look at it with the shell, for example od -c or strings",
            false => "",
        };
        let text =
            format!("[a binary file, with a NUL byte at offset {offset}: not shown{advice}]");
        Output::new(text, "binary")
    }

    /// How to see more of a line of which so many bytes are shown.
    fn long_line(&self, given: &str, number: u64, shown: u64) -> String {
        let told = format!("lines of more than {LINE_MAX} characters are cut");
        if !self.0.has_shell || cfg!(windows) {
            return told;
        }
        format!(
            "{told}; to see more of this one, use the shell: sed -n {number}p {} | cut -b {}-{}",
            quoted(given),
            shown + 1,
            shown + 2 * LINE_MAX as u64
        )
    }

    /// Lists a directory: the names that come first in byte order, as many as fit.
    ///
    /// Only those are held, so that a directory with millions of entries costs no memory.
    fn show_directory(&self, path: &Path, time: TimeLimit) -> io::Result<Output> {
        let mut names = BTreeMap::new();
        let mut count: u64 = 0;
        for entry in fs::read_dir(path)? {
            time.check()?;
            let entry = entry?;
            count += 1;
            names.insert(entry.file_name(), entry.file_type()?);
            if names.len() as u64 > LINES_MAX {
                names.pop_last();
            }
        }
        if count == 0 {
            return Ok(Output::new("[the directory is empty]", "empty directory"));
        }
        let mut text = "[a directory]\n".to_owned();
        let mut shown = 0;
        for (name, file_type) in names {
            let mut line = printable(&name.to_string_lossy());
            if file_type.is_dir() {
                line.push('/');
            } else if file_type.is_symlink()
                && let Ok(target) = fs::read_link(path.join(&name))
            {
                line.push_str(&format!(" -> {}", printable(&target.to_string_lossy())));
            }
            if text.len() + line.len() >= BYTES_MAX {
                break;
            }
            text.push_str(&line);
            text.push('\n');
            shown += 1;
        }
        if shown < count {
            let advice = if self.0.has_shell { "; list them with the shell" } else { "" };
            text.push_str(&format!("[{} more names left out{advice}]\n", count - shown));
        }
        Ok(Output::new(text, format!("{count} names")))
    }
}

/// A path as the shell takes it for one word and no option.
fn quoted(path: &str) -> String {
    let dash = if path.starts_with('-') { "./" } else { "" };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%".contains(&byte);
    if path.bytes().all(is_plain) {
        return format!("{dash}{path}");
    }
    format!("'{dash}{}'", path.replace('\'', "'\\''"))
}

/// So many lines are read between two looks at the clock.
const LOOK: u64 = 4_096;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The lines that a result shows.
#[derive(Default)]
struct Page {
    text: String,
    lines: u64,
    /// Whether there are lines after these.
    more: bool,
    /// The first line that is shown in part, and how many bytes of it are.
    cut: Option<(u64, u64)>,
    replaced: usize,
    lf: bool,
    crlf: bool,
    unfinished: bool,
}

impl Page {
    /// Adds a line, unless it does not fit.
    fn add(&mut self, number: u64, line: &Line) -> bool {
        let length = self.text.len();
        let shown = number_line(&mut self.text, number, line, LINE_MAX);
        if self.text.len() > BYTES_MAX {
            self.text.truncate(length);
            return false;
        }
        self.lines += 1;
        self.replaced += shown.replaced;
        if shown.left_out > 0 {
            self.cut.get_or_insert((number, line.bytes - shown.left_out));
        }
        self.lf |= line.ending == Ending::Lf;
        self.crlf |= line.ending == Ending::Crlf;
        self.unfinished = line.ending == Ending::None;
        true
    }

    /// The page as it is told; `cut` is what there is to say of a line that is shown in part.
    fn finish(self, first: u64, cut: Option<&str>) -> Output {
        let mut text = self.text;
        let last = first + self.lines - 1;
        let mut note = |note: &str| {
            text.push_str(&format!("[{note}]\n"));
        };
        if self.more {
            let next = last + 1;
            note(&format!(
                "lines {first} to {last}; the rest is left out, read on with offset={next}"
            ));
        }
        if let Some(cut) = cut {
            note(cut);
        }
        match (self.crlf, self.lf) {
            (true, true) => note(
                "line endings are mixed, LF and CRLF; edit_file matches LF against both and keeps \
                 what is there",
            ),
            (true, false) => {
                note("line endings are CRLF; edit_file matches LF against them and keeps them");
            }
            _ => {}
        }
        if self.replaced > 0 {
            note(&format!(
                "{} bytes are not UTF-8 and shown as U+FFFD; edit_file can change what is around \
                 them",
                self.replaced
            ));
        }
        if self.unfinished {
            note("no newline at the end");
        }
        let summary = match self.lines {
            1 => "1 line".to_owned(),
            lines => format!("{lines} lines"),
        };
        Output::new(text, summary)
    }
}

/// A name on one line.
fn printable(name: &str) -> String {
    let mut printable = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_control() {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::tests::Folder;
    use crate::secret::Mask;

    fn read(folder: &Folder, arguments: &str) -> Output {
        Arguments::parse(arguments, &Mask::default())
            .and_then(|arguments| ReadFile(folder.workspace()).run(arguments, Deadline::NONE))
            .unwrap_or_else(Output::from)
    }

    #[track_caller]
    fn check_text(content: &[u8], expected: &str) {
        let folder = Folder::new();
        folder.write("f", content);
        assert_eq!(read(&folder, "{\"path\":\"f\"}").text, expected);
    }

    #[test]
    fn lines_are_numbered() {
        check_text(b"a\n\n  b\n", "     1\ta\n     2\t\n     3\t  b\n");
        check_text(b"a\nb", "     1\ta\n     2\tb\n[no newline at the end]\n");
    }

    #[test]
    fn line_endings_are_told_and_not_shown() {
        let note = "[line endings are CRLF; edit_file matches LF against them and keeps them]\n";
        check_text(b"a\r\n\r\n", &format!("     1\ta\n     2\t\n{note}"));
        let note = "[line endings are mixed, LF and CRLF; edit_file matches LF against both and \
                    keeps what is there]\n";
        check_text(b"a\r\nb\n", &format!("     1\ta\n     2\tb\n{note}"));
    }

    #[test]
    fn a_byte_order_mark_is_not_shown() {
        check_text(b"\xEF\xBB\xBFa\n", "     1\ta\n");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_counted() {
        check_text(
            b"caf\xE9 \xFF\n",
            "     1\tcaf\u{fffd} \u{fffd}\n[2 bytes are not UTF-8 and shown as U+FFFD; edit_file \
             can change what is around them]\n",
        );
    }

    #[test]
    fn an_empty_or_binary_file_says_so() {
        check_text(b"", "[the file is empty]");
        let folder = Folder::new();
        folder.write("f", b"\x7fELF\0\0");
        let output = read(&folder, "{\"path\":\"f\"}");
        let start = "[a binary file, with a NUL byte at offset 4: not shown";
        assert!(output.text.starts_with(start), "{}", output.text);
        assert_eq!(output.summary, "binary");
    }

    #[test]
    fn a_long_file_is_read_page_by_page() {
        let folder = Folder::new();
        let content: String = (1..=4_500).map(|n| format!("line {n}\n")).collect();
        folder.write("f", &content);
        let mut seen = String::new();
        let mut offset = 1;
        for _ in 0..3 {
            let page = read(&folder, &format!("{{\"path\":\"f\",\"offset\":{offset}}}")).text;
            seen.extend(page.lines().filter_map(|line| line.split_once('\t')).map(
                |(number, line)| {
                    assert_eq!(line, format!("line {}", number.trim()));
                    format!("{line}\n")
                },
            ));
            offset = page
                .rsplit_once("the rest is left out, read on with offset=")
                .map_or(0, |(_, next)| next.trim_end_matches("]\n").parse().unwrap());
        }
        assert_eq!((seen, offset), (content, 0));
    }

    #[test]
    fn offset_and_limit_choose_the_lines() {
        let folder = Folder::new();
        folder.write("f", "a\nb\nc\n");
        assert_eq!(
            read(&folder, r#"{"path":"f","offset":2,"limit":1}"#).text,
            "     2\tb\n[lines 2 to 2; the rest is left out, read on with offset=3]\n"
        );
        assert_eq!(read(&folder, r#"{"path":"f","offset":3,"limit":1}"#).text, "     3\tc\n");
        assert_eq!(
            read(&folder, r#"{"path":"f","offset":4}"#).text,
            "error: f: offset 4 is past the end: the file has 3 lines"
        );
    }

    #[test]
    fn an_offset_and_a_limit_of_0_are_none() {
        let folder = Folder::new();
        folder.write("f", "a\nb\n");
        let text = read(&folder, r#"{"path":"f","offset":0,"limit":0}"#).text;
        assert_eq!(text, "     1\ta\n     2\tb\n");
    }

    #[test]
    fn without_a_shell_none_is_advised() {
        let folder = Folder::new();
        folder.write("binary", b"\0");
        folder.write("long", "x".repeat(3_000));
        for number in 0..LINES_MAX {
            folder.write(&number.to_string(), "");
        }
        for path in ["binary", "long", "."] {
            let text = |has_shell| {
                let workspace = Workspace { has_shell, ..folder.workspace() };
                let arguments = format!("{{\"path\":\"{path}\"}}");
                let arguments = Arguments::parse(&arguments, &Mask::default()).unwrap();
                ReadFile(workspace).run(arguments, Deadline::NONE).unwrap().text
            };
            assert!(text(true).contains("shell") && !text(false).contains("shell"), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_advice_for_a_long_line_shows_what_follows() {
        let folder = Folder::new();
        let name = "-it's \u{1f642} $HOME.txt";
        let line = format!("{}{}", "\u{1f642}".repeat(LINE_MAX), "x".repeat(100));
        folder.write(name, format!("\u{feff}{line}\nshort\n"));
        let text = read(&folder, &format!("{{\"path\":\"{name}\"}}")).text;
        let (_, command) = text.rsplit_once("use the shell: ").unwrap();
        let command = command.trim_end_matches("]\n");
        let shell = crate::tools::Shell::new(folder.path(), [], None, std::sync::Arc::default());
        let finished = shell.unwrap().run(command, None, Deadline::NONE).unwrap();
        assert_eq!(finished.output.text, format!("{}\n[exit 0]", "x".repeat(100)));
    }

    #[test]
    fn a_page_of_long_lines_has_at_most_50_kb() {
        let folder = Folder::new();
        folder.write("f", format!("{}\n", "x".repeat(1_000)).repeat(100));
        let output = read(&folder, "{\"path\":\"f\"}");
        assert!(output.text.len() < BYTES_MAX + 200, "{}", output.text.len());
        assert!(output.text.ends_with("read on with offset=51]\n"), "{}", output.summary);
    }

    #[test]
    fn an_endless_line_is_cut_and_says_by_how_much() {
        let folder = Folder::new();
        folder.write("f", format!("{}\r\nlast\n", "\u{1f642}".repeat(500_000)));
        let text = read(&folder, "{\"path\":\"f\"}").text;
        let line = format!(
            "     1\t{} [1992000 bytes of this line left out]\n     2\tlast\n[lines of more \
             than 2000 characters are cut; to see more of this one, use the shell: sed -n 1p f | \
             cut -b 8001-12000]\n",
            "\u{1f642}".repeat(2_000)
        );
        assert!(text.starts_with(&line), "{}", &text[8_000..]);
    }

    #[test]
    fn a_key_is_masked_before_its_line_is_cut() {
        let folder = Folder::new();
        let key = "sk-TESTKEY-1";
        for fill in [LINE_MAX - 20, LINE_MAX - 6, LINE_MAX] {
            for filling in ["x", "\u{1f642}"] {
                folder.write("f", format!("{}{key}{key}", filling.repeat(fill)));
                let text = read(&folder, r#"{"path":"f"}"#).text;
                assert!(!text.contains("sk-"), "{fill}");
            }
        }
        // Where so much is masked that all that is held of the line is shown.
        let key = format!("sk-{}", "KEY".repeat(20));
        folder.write("f", key.repeat(1_000));
        let secret = crate::secret::Secret::parse(&key).unwrap();
        let mask = Mask::new(secret);
        let workspace = Workspace { mask, ..folder.workspace() };
        let arguments = Arguments::parse(r#"{"path":"f"}"#, &Mask::default()).unwrap();
        let text = ReadFile(workspace).run(arguments, Deadline::NONE).unwrap().text;
        assert!(text.contains("[api key] [") && !text.contains("sk-"), "{text}");
    }

    #[test]
    fn a_directory_is_listed_in_order() {
        let folder = Folder::new();
        folder.write("b.txt", "");
        folder.write("a\n.txt", "");
        fs::create_dir(folder.path().join("src")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("src", folder.path().join("link")).unwrap();
        let output = read(&folder, r#"{"path":"."}"#);
        assert_eq!(output.text, "[a directory]\na\\n.txt\nb.txt\nlink -> src\nsrc/\n");
        assert_eq!(output.summary, "4 names");
        assert_eq!(read(&folder, r#"{"path":"src/"}"#).text, "[the directory is empty]");
    }

    #[test]
    fn a_large_directory_shows_the_names_that_come_first() {
        let folder = Folder::new();
        for number in 0..2_005 {
            folder.write(&format!("{number:04}"), "");
        }
        let text = read(&folder, r#"{"path":"."}"#).text;
        let end = "\n1999\n[5 more names left out; list them with the shell]\n";
        assert!(text.starts_with("[a directory]\n0000\n0001\n") && text.ends_with(end), "{text}");
    }

    #[test]
    fn what_can_not_be_read_is_named_as_it_was_given() {
        let folder = Folder::new();
        let text = read(&folder, r#"{"path":"no/such"}"#).text;
        assert!(text.starts_with("error: no/such: No such file or directory"), "{text}");
        assert_eq!(read(&folder, r#"{"path":""}"#).text, "error: : the path is empty");
        let long = "x".repeat(300);
        let text = read(&folder, &format!("{{\"path\":\"{long}\"}}")).text;
        assert!(text.starts_with(&format!("error: {long}: ")), "{text}");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_and_a_fifo_are_refused() {
        let folder = Folder::new();
        crate::fs::tests::make_fifo(&folder.path().join("pipe"));
        assert_eq!(
            read(&folder, r#"{"path":"/dev/zero"}"#).text,
            "error: /dev/zero: it is a device, not a regular file"
        );
        assert_eq!(
            read(&folder, r#"{"path":"pipe"}"#).text,
            "error: pipe: it is a FIFO, not a regular file"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_open_file_of_a_process_is_refused() {
        use std::os::fd::AsRawFd as _;
        let folder = Folder::new();
        let file = File::open(folder.write("f", "for somebody else\n")).unwrap();
        let text = read(&folder, &format!("{{\"path\":\"/dev/fd/{}\"}}", file.as_raw_fd())).text;
        assert!(text.contains("it is an open stream of a process"), "{text}");
    }

    #[test]
    fn many_lines_and_many_names_are_given_up_when_the_time_is_over() {
        let folder = Folder::new();
        folder.write("f", "\n".repeat(10_000));
        for arguments in [r#"{"path":"f","offset":9999}"#, r#"{"path":"."}"#] {
            let arguments = Arguments::parse(arguments, &Mask::default()).unwrap();
            let over = Deadline::after(Some(std::time::Duration::ZERO));
            let error = ReadFile(folder.workspace()).run(arguments, over).unwrap_err();
            assert!(error.to_string().ends_with("the run's time was over"), "{error}");
        }
    }

    #[test]
    fn a_file_without_end_is_given_up_when_the_time_is_over() {
        let folder = Folder::new();
        let file = File::create(folder.path().join("f")).unwrap();
        io::Write::write_all(&mut &file, &[b'x'; HEAD]).unwrap();
        file.set_len(1 << 40).unwrap();
        let arguments = Arguments::parse(r#"{"path":"f"}"#, &Mask::default()).unwrap();
        let over = Deadline::after(Some(std::time::Duration::ZERO));
        let error = ReadFile(folder.workspace()).run(arguments, over).unwrap_err();
        assert_eq!(error.to_string(), "f: the run's time was over");
        let mut tool = ReadFile(folder.workspace());
        tool.0.call_max = std::time::Duration::from_millis(10);
        for arguments in [r#"{"path":"f"}"#, r#"{"path":"f","offset":2}"#] {
            let arguments = Arguments::parse(arguments, &Mask::default()).unwrap();
            let error = tool.run(arguments, Deadline::NONE).unwrap_err();
            let told = "f: given up after 0 seconds, the most that a call may take";
            assert_eq!(error.to_string(), told);
        }
    }
}
