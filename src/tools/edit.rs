//! The `edit_file` tool: one text in a file is exchanged for another.
//!
//! It works on bytes: what does not belong to the change stays as it is, be it UTF-8 or not. It
//! never guesses: the text stands there exactly once, or every place is meant, or nothing is done
//! and the result says what stands where. The only freedom is that of line endings, see
//! [`matches`](super::matches).

use std::io::{self, Read as _, Write};
use std::ops::Range;
use std::path::Path;

use crate::file;
use crate::json::Json;
use crate::provider::ToolDefinition;
use crate::secret::Mask;
use crate::time::Deadline;

use super::arguments::Arguments;
use super::lines::number_line;
use super::matches::{Endings, Needle, after, before};
use super::nearest::{common, why_not};
use super::replace::Target;
use super::{Output, Tool, ToolError, Workspace};

/// The most bytes of a file that can be edited: it is read as a whole.
const FILE_MAX: u64 = 256 * 1024 * 1024;

/// The most places that a result lists.
const PLACES_MAX: usize = 20;

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

    fn run(&mut self, mut arguments: Arguments<'_>, _: Deadline) -> Result<Output, ToolError> {
        let given = arguments.string("path")?;
        let old = arguments.string("old_string")?;
        let new = arguments.string("new_string")?;
        let all = arguments.optional_bool("replace_all")?.unwrap_or(false);
        let edited = self.edit(&given, &old, &new, all).map_err(|failure| match failure {
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
    fn edit(&self, given: &str, old: &str, new: &str, all: bool) -> Result<Output, Failure> {
        let path = file::resolve(&self.0.directory, given)?;
        let change = Change::new(old, new)?;
        let target = Target::find(&path)?;
        let file = self.read(&path)?;
        let found = change.find(&file);
        let Some(first) = &found.first else {
            let why = why_not(&file, old, &self.0.mask);
            return Err(Failure::Text(format!(
                "old_string was not found in {given}; nothing was changed: {why}"
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
        let replaced = target.replace(&|out| change.write(&file, out))?;
        let places = match found.count {
            1 => "1 place".to_owned(),
            count => format!("{count} places"),
        };
        let in_place = if replaced.in_place { " (written in place)" } else { "" };
        let mut text = format!("{places}, at {}{in_place}\n", found.places());
        show(&mut text, &file, first, &self.0.mask);
        Ok(Output::new(text, places))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let (file, metadata) = file::open(path)?;
        let mut bytes = Vec::new();
        if metadata.len() <= FILE_MAX {
            let length = usize::try_from(metadata.len()).map_err(io::Error::other)?;
            bytes.reserve_exact(length.saturating_add(1));
            file.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
        }
        if metadata.len().max(bytes.len() as u64) > FILE_MAX {
            let advice = if self.0.has_shell { "; edit it with the shell" } else { "" };
            return Err(invalid(format!("it has more than {FILE_MAX} bytes{advice}")));
        }
        Ok(bytes)
    }
}

fn invalid(message: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// The exchange of one text for another.
struct Change<'a> {
    old: Needle<'a>,
    /// What both texts start and end with. It stays as the file has it.
    start: &'a [u8],
    end: &'a [u8],
    /// What comes in between, for a place with LF and for one with CRLF.
    lf: &'a [u8],
    crlf: Vec<u8>,
}

/// The exchange at one place of a file.
struct Splice<'a> {
    /// Where the old text starts.
    place: usize,
    /// What goes, without what both texts have in common.
    range: Range<usize>,
    text: &'a [u8],
}

/// What there is to exchange in a file.
struct Found<'a> {
    count: usize,
    /// The lines of the first places.
    lines: Vec<usize>,
    first: Option<Splice<'a>>,
    /// Whether the exchange makes a difference anywhere.
    differs: bool,
}

impl<'a> Change<'a> {
    fn new(old: &'a str, new: &'a str) -> io::Result<Change<'a>> {
        if old.is_empty() {
            let message =
                "old_string is empty; to create a file or replace all of it, use write_file";
            return Err(invalid(message));
        }
        if old == new {
            return Err(invalid("old_string and new_string are the same: nothing would change"));
        }
        let needle = Needle::new(old);
        let (old, new) = (old.as_bytes(), new.as_bytes());
        // Texts that spell out their line endings are exchanged whole and as they are.
        let is_literal = needle.is_literal() || new.contains(&b'\r');
        let (start, end) = if is_literal { (0, 0) } else { common(old, new) };
        let lf = &new[start..new.len() - end];
        let crlf = if is_literal { lf.to_vec() } else { with_crlf(lf) };
        let (start, end) = (&old[..start], &old[old.len() - end..]);
        Ok(Change { old: needle, start, end, lf, crlf })
    }

    fn splices<'b>(&'b self, file: &'b [u8]) -> impl Iterator<Item = Splice<'b>> {
        let mut endings = Endings::of(file);
        self.old.matches(file).map(move |found| {
            let range = after(file, found.start, self.start)..before(file, found.end, self.end);
            let has_newline = self.crlf.len() > self.lf.len();
            let is_crlf = has_newline && endings.are_crlf(found.start, range.start);
            Splice { place: found.start, range, text: if is_crlf { &self.crlf } else { self.lf } }
        })
    }

    fn find<'b>(&'b self, file: &'b [u8]) -> Found<'b> {
        let mut found = Found { count: 0, lines: Vec::new(), first: None, differs: false };
        let (mut line, mut at) = (1, 0);
        for splice in self.splices(file) {
            found.count += 1;
            found.differs |= file[splice.range.clone()] != *splice.text;
            if found.lines.len() < PLACES_MAX {
                line += newlines(&file[at..splice.place]);
                at = splice.place;
                found.lines.push(line);
            }
            found.first.get_or_insert(splice);
        }
        found
    }

    fn write(&self, file: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let mut at = 0;
        for splice in self.splices(file) {
            out.write_all(&file[at..splice.range.start])?;
            out.write_all(splice.text)?;
            at = splice.range.end;
        }
        out.write_all(&file[at..])
    }
}

impl Found<'_> {
    fn places(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(usize::to_string).collect();
        let more = if self.count > lines.len() { ", ..." } else { "" };
        let noun = if self.count == 1 { "line" } else { "lines" };
        format!("{noun} {}{more}", lines.join(", "))
    }
}

fn with_crlf(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + newlines(text));
    for &byte in text {
        if byte == b'\n' {
            out.push(b'\r');
        }
        out.push(byte);
    }
    out
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

/// The most lines of the changed file that a result shows.
const SHOWN_MAX: usize = 20;

/// The most characters of each of them.
const SHOWN_LINE_MAX: usize = 500;

/// The most bytes before a change that are shown, so that a long line does not hide it.
const BEFORE_MAX: usize = 400;

/// Lines above and below the change.
const AROUND: usize = 2;

/// Shows the first place as it is now. Nothing is changed before it, so its line numbers are those
/// of the old file.
fn show(out: &mut String, file: &[u8], splice: &Splice<'_>, mask: &Mask) {
    let Range { start: at, end } = splice.range;
    let is_newline = |byte: &u8| *byte == b'\n';
    let lines_above = file[..at].rsplitn(AROUND + 2, is_newline).take(AROUND + 1);
    let above = lines_above.map(|line| line.len() + 1).sum::<usize>() - 1;
    let earliest = at - above.min(BEFORE_MAX);
    let starts_character = |&index: &usize| file[index] & 0xC0 != 0x80;
    let from = (earliest..at).find(starts_character).unwrap_or(at);
    let lines_below = file[end..].splitn(AROUND + 2, is_newline).take(AROUND + 1);
    let below = lines_below.map(|line| line.len() + 1).sum::<usize>() - 1;

    let mut now = file[from..at].to_vec();
    now.extend_from_slice(splice.text);
    now.extend_from_slice(&file[end..end + below]);
    let number = 1 + newlines(&file[..from]);
    if above > BEFORE_MAX {
        now.splice(..mask.open_start(&now), *b"... ");
    }
    let now = mask.bytes(now);
    let now = now.strip_suffix(b"\n").unwrap_or(&now);
    let mut lines = now.split(is_newline).zip(number..);
    for (line, number) in lines.by_ref().take(SHOWN_MAX) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        number_line(out, number as u64, line, line.len() as u64, SHOWN_LINE_MAX);
    }
    let left_out = lines.count();
    if left_out > 0 {
        out.push_str(&format!("[{left_out} more lines left out]\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tests::Folder;

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
        check_all(b"aaaaa", "aa", "b", b"bba");
        check_all(b"a a a", "a", "", b"  ");
    }

    #[test]
    fn a_text_that_stands_there_more_than_once_is_refused_with_its_lines() {
        check_error(
            b"}\n\nfn a\n}\n\nfn b\n}\n\nfn c\n",
            "}\n\nfn ",
            "old_string was found 3 times in f, at lines 1, 4, 7; nothing was changed: include more \
             surrounding lines, or set replace_all to true",
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
             old_string has \"    return;\" there",
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
        let text = call(&folder, "new", &"x\n".repeat(100), false);
        assert!(text.ends_with("    21\tx\n[85 more lines left out]\n"), "{text}");
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
        for fill in [SHOWN_LINE_MAX - 15, SHOWN_LINE_MAX - 6, 200 - 15, 200 - 6] {
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
    fn a_million_places_in_one_line_take_no_time() {
        let folder = Folder::new();
        folder.write("f", format!("x\r\n{}", "a".repeat(1_000_000)));
        let text = call(&folder, "a", "\n", true);
        assert!(text.starts_with("edited f: 1000000 places, at lines 2, 2, "), "{text}");
        assert_eq!(folder.read("f"), format!("x\r\n{}", "\r\n".repeat(1_000_000)).as_bytes());
    }

    /// Random files over a small alphabet, so that texts repeat, and a random piece of each as the
    /// text to exchange. What comes out is compared with a simple exchange at the places that a
    /// byte by byte comparison finds.
    #[test]
    fn random_edits_leave_everything_else_as_it_was() {
        let mut random = Random(0x5eed);
        let mut edited = 0;
        for _ in 0..3_000 {
            let bytes = |random: &mut Random, length, alphabet: &[&[u8]]| -> Vec<u8> {
                (0..length).flat_map(|_| alphabet[random.below(alphabet.len())].to_vec()).collect()
            };
            let length = random.below(60);
            let file = bytes(
                &mut random,
                length,
                &[b"a", b"b", b"\n", b"\r\n", b"\xE9", b"\0", b"\r", b"\xEF\xBB\xBF"],
            );
            let length = 1 + random.below(4);
            let old = String::from_utf8(bytes(&mut random, length, &[b"a", b"b", b"\n"])).unwrap();
            let length = random.below(4);
            let new = String::from_utf8(bytes(&mut random, length, &[b"a", b"c", b"\n"])).unwrap();
            if old == new {
                continue;
            }
            let places = places(&file, old.as_bytes());
            let change = Change::new(&old, &new).unwrap();
            let mut out = Vec::new();
            change.write(&file, &mut out).unwrap();
            assert_eq!(change.find(&file).count, places.len());
            // Between the places not a byte differs; in them it is the new text, whatever its line
            // endings.
            let mut rest = &out[..];
            let mut at = 0;
            for place in &places {
                rest = rest.strip_prefix(&file[at..place.start]).unwrap();
                for &byte in new.as_bytes() {
                    rest = match (byte, rest) {
                        (b'\n', [b'\r', b'\n', rest @ ..]) => rest,
                        (byte, [first, rest @ ..]) if byte == *first => rest,
                        _ => panic!("{file:?} {old:?} {new:?} {out:?}"),
                    };
                }
                at = place.end;
            }
            assert_eq!(rest, &file[at..], "{file:?} {old:?} {new:?}");
            edited += places.len();
        }
        assert!(edited > 1_000, "{edited}");
    }

    /// Where `old` stands, found the slow way.
    fn places(file: &[u8], old: &[u8]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        let mut at = 0;
        'places: while at < file.len() {
            let mut end = at;
            for &byte in old {
                match file[end..] {
                    [b'\r', b'\n', ..] if byte == b'\n' => end += 2,
                    [first, ..] if first == byte => end += 1,
                    _ => {
                        at += 1;
                        continue 'places;
                    }
                }
            }
            places.push(at..end);
            at = end;
        }
        places
    }

    /// A small generator of the xorshift kind (Marsaglia).
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % bound as u64) as usize
        }
    }
}
