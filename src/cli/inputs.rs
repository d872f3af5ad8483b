//! Reads what the options name: the prompt, the key, the working directory.
//!
//! Every read is bounded, and everything that is unusable is a usage error: nothing has been sent,
//! run or written yet.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::args::{KeySource, Origin, PathArg, PromptSource, PromptText, UsageError};
use crate::fs::open_regular;
use crate::secret::Secret;

/// The longest prompt, in bytes; far beyond the context of any model.
const PROMPT_MAX: u64 = 16 << 20;

/// The longest file with a key, in bytes.
const KEY_MAX: u64 = 64 << 10;

/// What a run may need beside its options.
pub(super) struct Inputs<'a> {
    pub(super) env: &'a [(OsString, OsString)],
    pub(super) directory: Option<PathBuf>,
    /// The key that is sent and where it came from, or why it can't be used.
    pub(super) key: Result<Option<(Secret, Origin)>, UsageError>,
    pub(super) stdin: &'a mut dyn Read,
    pub(super) stdin_is_terminal: bool,
    pub(super) owns_process: bool,
}

impl Inputs<'_> {
    pub(super) fn base_dir(&self) -> BaseDir<'_> {
        BaseDir(self.directory.as_deref())
    }
}

/// Where uncut was started, and relative paths are meant to start; none where the system can't
/// tell, because the directory was removed.
#[derive(Clone, Copy)]
pub(super) struct BaseDir<'a>(pub(super) Option<&'a Path>);

impl BaseDir<'_> {
    /// A path as it was meant.
    pub(super) fn resolve(self, path: &Path) -> PathBuf {
        self.0.map_or_else(|| path.to_owned(), |start| start.join(path))
    }
}

/// The working directory of the run, without the dots that mean nothing.
pub(super) fn directory(start: BaseDir<'_>, directory: &PathArg) -> Result<PathBuf, UsageError> {
    let path: PathBuf = start.resolve(&directory.path).components().collect();
    if !path.is_absolute() {
        let problem =
            "the current directory can't be determined (was it removed?); give an absolute path";
        return Err(UsageError::new(&directory.origin, problem));
    }
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(path),
        Ok(_) => Err(unusable(&directory.origin, &path, "is not a directory")),
        Err(error) => Err(unusable(&directory.origin, &path, error)),
    }
}

/// The prompt. Standard input is touched for `-`, or when there is no prompt at all and nobody sits
/// there.
pub(super) fn prompt(
    source: &PromptSource,
    start: BaseDir<'_>,
    stdin: &mut dyn Read,
    stdin_is_terminal: bool,
) -> Result<String, UsageError> {
    let (mut prompt, place) = match &source.text {
        PromptText::Words(words) => (words.clone(), "PROMPT".to_owned()),
        PromptText::File(PathArg { origin, path }) => {
            let path = start.resolve(path);
            let text = open_regular(&path).and_then(|(mut file, _)| read(&mut file, PROMPT_MAX));
            (text.map_err(|problem| unusable(origin, &path, problem))?, origin.to_string())
        }
        PromptText::None if stdin_is_terminal && !source.stdin => {
            let problem = "is missing; give it in words, with --prompt-file or on standard input";
            return Err(UsageError::new("PROMPT", problem));
        }
        PromptText::None => (String::new(), "standard input".to_owned()),
    };
    if source.stdin || source.text == PromptText::None {
        let text = read(stdin, PROMPT_MAX)
            .map_err(|problem| UsageError::new("standard input", problem))?;
        if !prompt.is_empty() && !text.is_empty() {
            prompt.push_str("\n\n");
        }
        prompt.push_str(&text);
    }
    if prompt.trim().is_empty() {
        return Err(UsageError::new(place, "the prompt is empty; say what is to be done"));
    }
    Ok(prompt)
}

/// The key, and where it comes from.
pub(super) fn key(
    source: &KeySource,
    start: BaseDir<'_>,
) -> Result<Option<(Secret, Origin)>, UsageError> {
    match source {
        KeySource::None => Ok(None),
        KeySource::Given { origin, secret } => Ok(Some((secret.clone(), origin.clone()))),
        KeySource::File(PathArg { origin, path }) => {
            let secret = read_key(&start.resolve(path))
                // Without the name of the file: sooner or later somebody gives the key itself.
                .map_err(|problem| UsageError::new(origin, format_args!("the file: {problem}")))?;
            Ok(Some((secret, origin.clone())))
        }
    }
}

fn read_key(path: &Path) -> Result<Secret, String> {
    let text = open_regular(path).and_then(|(mut file, _)| read(&mut file, KEY_MAX));
    let secret = Secret::parse(&text.map_err(|error| error.to_string())?)?;
    secret.ok_or_else(|| "is empty".to_owned())
}

pub(super) fn unusable(origin: &Origin, path: &Path, problem: impl fmt::Display) -> UsageError {
    UsageError::new(origin, format_args!("{}: {problem}", path.display()))
}

/// Text as editors and shells leave it: without byte order mark and line ends at the end.
fn read(source: &mut dyn Read, max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    source.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::other(format!("is longer than {max} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        io::Error::other(format!("byte {} is not UTF-8; convert it", valid + 1))
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: BaseDir<'static> = BaseDir(None);

    #[track_caller]
    fn check(text: PromptText, stdin: bool, input: &[u8], expected: Result<&str, &str>) {
        let source = PromptSource { text, stdin };
        let prompt = prompt(&source, NOWHERE, &mut &*input, false);
        let prompt = prompt.map_err(|error| error.to_string());
        assert_eq!(prompt.as_deref().map_err(String::as_str), expected);
    }

    fn words(words: &str) -> PromptText {
        PromptText::Words(words.to_owned())
    }

    #[test]
    fn standard_input_stands_behind_the_words_and_a_blank_line() {
        check(words("a b"), true, b"c\nd\n", Ok("a b\n\nc\nd"));
        check(words("a b"), true, b"", Ok("a b"));
        check(words(""), true, b"c", Ok("c"));
        check(PromptText::None, true, b"c", Ok("c"));
        check(PromptText::None, false, b"c", Ok("c"));
    }

    #[test]
    fn standard_input_is_left_alone_when_there_are_words() {
        let mut input: &[u8] = b"1\n2\n";
        let source = PromptSource { text: words("a"), stdin: false };
        assert_eq!(prompt(&source, NOWHERE, &mut input, false), Ok("a".to_owned()));
        assert_eq!(input, b"1\n2\n");
    }

    #[test]
    fn nobody_is_waited_for_at_a_terminal() {
        let source = PromptSource { text: PromptText::None, stdin: false };
        let mut input: &[u8] = b"typed";
        let error = prompt(&source, NOWHERE, &mut input, true).unwrap_err().to_string();
        assert!(error.starts_with("PROMPT: is missing; give it"), "{error}");
        assert_eq!(input, b"typed");
        let asked = PromptSource { text: PromptText::None, stdin: true };
        assert_eq!(prompt(&asked, NOWHERE, &mut input, true), Ok("typed".to_owned()));
    }

    #[test]
    fn a_prompt_of_white_space_is_empty() {
        let problem = "the prompt is empty; say what is to be done";
        check(words(" \t\n"), false, b"c", Err(&format!("PROMPT: {problem}")));
        check(words(" "), true, b"\n", Err(&format!("PROMPT: {problem}")));
        check(PromptText::None, false, b" \r\n", Err(&format!("standard input: {problem}")));
    }

    #[test]
    fn a_byte_order_mark_and_line_ends_at_the_end_are_no_part_of_the_prompt() {
        check(PromptText::None, false, b"\xef\xbb\xbf  a\r\nb \r\n\r\n", Ok("  a\r\nb "));
    }

    #[test]
    fn input_that_is_not_utf8_is_refused_with_its_place() {
        let problem = "standard input: byte 3 is not UTF-8; convert it";
        check(PromptText::None, false, b"ab\xff", Err(problem));
    }

    #[test]
    fn reading_stops_at_the_limit() {
        let error = read(&mut io::repeat(b'a'), 10).unwrap_err();
        assert_eq!(error.to_string(), "is longer than 10 bytes");
        assert_eq!(read(&mut io::repeat(b'a').take(10), 10).unwrap(), "aaaaaaaaaa");
    }

    #[test]
    fn without_a_current_directory_an_absolute_one_is_needed() {
        let named =
            |path: &Path| PathArg { origin: Origin::Flag("-C".to_owned()), path: path.into() };
        let temporary = std::env::temp_dir();
        assert_eq!(directory(NOWHERE, &named(&temporary)), Ok(temporary));
        let error = directory(NOWHERE, &named(Path::new("."))).unwrap_err().to_string();
        assert!(error.starts_with("-C: the current directory can't be determined"), "{error}");
    }
}
