//! The path that a tool call names.
//!
//! A path is taken as it is given: nothing is expanded, decoded or trimmed. Where nothing of that
//! name is there, and the shell, a URL or a slip of the pen would mean another file, the call is
//! refused and told what to give instead. So no file gets such a name by mistake. A path that
//! starts with `./` is what it says.

use std::io;
use std::path::{Path, PathBuf, is_separator};

/// The path that `given` names, seen from `directory`.
///
/// # Errors
///
/// An empty path, one that no system can open, or one that probably means another.
pub(super) fn resolve(directory: &Path, given: &str) -> io::Result<PathBuf> {
    let path = directory.join(given);
    let why = if given.is_empty() {
        Some("the path is empty".to_owned())
    } else if given.contains('\0') {
        Some("the path holds a NUL character".to_owned())
    } else if path.symlink_metadata().is_ok() {
        None
    } else {
        why_not_meant(given)
    };
    match why {
        Some(why) => Err(io::Error::new(io::ErrorKind::InvalidInput, why)),
        None => Ok(path),
    }
}

/// Why a path of which there is no file is not meant like that.
fn why_not_meant(given: &str) -> Option<String> {
    if given.trim() != given {
        return Some(format!("the path starts or ends with white space: give {:?}", given.trim()));
    }
    if let Some(control) = given.chars().find(|character| character.is_control()) {
        return Some(format!("the path holds a control character ({control:?}): leave it out"));
    }
    if let Some(inner) = without_quotes(given) {
        return Some(format!("the path stands in quotes: give it without them, as {inner}"));
    }
    if let Some((scheme, rest)) = url(given) {
        return Some(match file_of(scheme, rest) {
            Some(path) => format!("it is a URL: give the path, {path}"),
            None => "it is a URL, and not a path of this machine".to_owned(),
        });
    }
    let first = given.split(is_separator).next().unwrap_or_default();
    let has_more = first.len() < given.len();
    let is_home = first == "~" || (first.starts_with('~') && has_more);
    (is_home || is_variable(first)).then(|| {
        format!(
            "{first} is not expanded: give the path that it stands for, or ./{given} if it is \
             really called that"
        )
    })
}

/// What stands between quotes of one kind.
fn without_quotes(given: &str) -> Option<&str> {
    let inner = |quote| given.strip_prefix(quote)?.strip_suffix(quote);
    ['"', '\'', '`'].into_iter().find_map(inner)
}

/// Whether a name is `$NAME`, `${NAME}` or `%NAME%`.
fn is_variable(name: &str) -> bool {
    let inner = name
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .or_else(|| name.strip_prefix('$'))
        .or_else(|| name.strip_prefix('%')?.strip_suffix('%'));
    inner.is_some_and(|inner| {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !inner.is_empty() && inner.bytes().all(is_word)
    })
}

/// The scheme of a URL, and what follows the colon: all of `file:/`, others with `//`.
fn url(given: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = given.split_once(':')?;
    let is_scheme = scheme.len() > 1
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let is_file = scheme.eq_ignore_ascii_case("file") && rest.starts_with('/');
    (is_scheme && (is_file || rest.starts_with("//"))).then_some((scheme, rest))
}

/// The path in a `file:` URL of this machine, without its percent signs.
fn file_of(scheme: &str, rest: &str) -> Option<String> {
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            rest.strip_prefix("localhost").filter(|rest| rest.starts_with('/')).unwrap_or(rest)
        }
        None => rest,
    };
    let mut bytes = Vec::new();
    let mut left = path.strip_prefix('/')?.bytes();
    bytes.push(b'/');
    while let Some(byte) = left.next() {
        let mut digit = || char::from(left.next()?).to_digit(16);
        let byte = match byte {
            b'%' => u8::try_from(16 * digit()? + digit()?).ok()?,
            byte => byte,
        };
        bytes.push(byte);
    }
    let path = String::from_utf8(bytes).ok().filter(|path| !path.contains('\0'))?;
    // A drive of Windows comes behind the slash.
    let is_drive = path.as_bytes().get(2) == Some(&b':');
    Some(if cfg!(windows) && is_drive { path[1..].to_owned() } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::tests::Folder;

    #[track_caller]
    fn why(given: &str) -> String {
        let folder = Folder::new();
        match resolve(folder.path(), given) {
            Ok(path) => {
                assert_eq!(path, folder.path().join(given));
                String::new()
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_the_shell_would_expand_is_refused() {
        for (given, first) in [
            ("~", "~"),
            ("~/x", "~"),
            ("~user/x", "~user"),
            ("$HOME/x", "$HOME"),
            ("${HOME}/x", "${HOME}"),
            ("%USERPROFILE%/x", "%USERPROFILE%"),
            ("$TMPDIR", "$TMPDIR"),
        ] {
            let expected = format!(
                "{first} is not expanded: give the path that it stands for, or ./{given} if it is \
                 really called that"
            );
            assert_eq!(why(given), expected);
            assert_eq!(why(&format!("./{given}")), "");
        }
        for given in ["~$report.docx", "a~", "x/~/y", "$", "$a.tsx", "routes/$id", "100%", "%a/b%"]
        {
            assert_eq!(why(given), "", "{given}");
        }
    }

    #[test]
    fn a_url_is_refused_with_its_path() {
        for (given, path) in [
            ("file:///tmp/x", "/tmp/x"),
            ("file:/tmp/x", "/tmp/x"),
            ("FILE://localhost/a%20b/%C3%A9", "/a b/\u{e9}"),
        ] {
            assert_eq!(why(given), format!("it is a URL: give the path, {path}"));
        }
        let others = ["http://x/y", "file://host/x", "file:///%zz", "file:///%ff", "file:///%00"];
        for given in others.into_iter().chain(["file://localhostess/x", "vscode-remote://x"]) {
            assert_eq!(why(given), "it is a URL, and not a path of this machine", "{given}");
        }
        for given in ["file:x", "a:b", "src/a.rs:10", "a b://c"] {
            assert_eq!(why(given), "", "{given}");
        }
    }

    #[test]
    fn what_does_not_belong_to_a_path_is_refused() {
        for given in ["\"a.txt\"", "'a.txt'", "`a.txt`"] {
            let expected = "the path stands in quotes: give it without them, as a.txt";
            assert_eq!(why(given), expected);
        }
        for given in [" a.txt", "a.txt\n", "\ta.txt "] {
            let expected = "the path starts or ends with white space: give \"a.txt\"";
            assert_eq!(why(given), expected);
        }
        assert_eq!(why(""), "the path is empty");
        assert_eq!(why(" "), "the path starts or ends with white space: give \"\"");
        assert_eq!(why("a\0b"), "the path holds a NUL character");
        assert_eq!(why("a\nb"), "the path holds a control character ('\\n'): leave it out");
        for given in ["a b", "it's", "\"a\" b", "'"] {
            assert_eq!(why(given), "", "{given}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_there_is_meant() {
        let folder = Folder::new();
        std::fs::create_dir(folder.path().join("~")).unwrap();
        for name in ["~/x", "$HOME", "'a'", " a", "a\nb"] {
            folder.write(name, "");
            assert_eq!(resolve(folder.path(), name).unwrap(), folder.path().join(name));
        }
        let link = folder.path().join("`link`");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert_eq!(resolve(folder.path(), "`link`").unwrap(), link);
    }
}
