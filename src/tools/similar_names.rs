//! The names that are most like one that is not there.

use std::fs;
use std::io;
use std::path::Path;

use super::text_search::common;
use super::time_limit::TimeLimit;

/// The most names of a directory that are looked at, and the most that are told.
const ENTRIES_MAX: usize = 10_000;
const TOLD_MAX: usize = 5;

/// The error of opening `path`, with the names that are most like the part of it that is not there.
/// Where no name is like it, those that come first. Paths in `directory` are told relative to it.
pub(super) fn with_names(
    error: io::Error,
    directory: &Path,
    path: &Path,
    time: TimeLimit,
) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound || path.symlink_metadata().is_ok() {
        return error;
    }
    let missing = path.ancestors().find_map(|path| {
        let parent = path.parent()?;
        parent.is_dir().then_some((parent, path.file_name()?.to_string_lossy()))
    });
    let Some((parent, missing)) = missing else { return error };
    let told = |path: &Path| path.strip_prefix(directory).unwrap_or(path).display().to_string();
    let place = match told(parent) {
        place if place.is_empty() => "there".to_owned(),
        place => format!("in {place}"),
    };
    let names = names_like(parent, &missing, time);
    let told = match names.is_empty() {
        true => format!("{error}; nothing is {place}"),
        false => {
            let names: Vec<String> = names.iter().map(|name| told(&parent.join(name))).collect();
            format!("{error}; the nearest names {place} are {}", names.join(", "))
        }
    };
    io::Error::new(error.kind(), told)
}

/// The names in a directory that are most like `missing`; nothing where the time is over.
fn names_like(directory: &Path, missing: &str, time: TimeLimit) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let names = entries.take_while(|_| time.check().is_ok()).take(ENTRIES_MAX).flatten();
    let mut names: Vec<(usize, String)> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.contains(|character: char| character.is_control()))
        .map(|name| (difference(&name, missing), name))
        .collect();
    names.sort();
    let is_like =
        |(difference, name): &(usize, String)| 2 * difference <= name.len().max(missing.len());
    if names.iter().any(is_like) {
        names.retain(is_like);
    }
    names.truncate(TOLD_MAX);
    names.into_iter().map(|(_, name)| name).collect()
}

/// How many bytes of the longer name are neither at its start nor at its end those of the other,
/// whatever their case.
fn difference(name: &str, other: &str) -> usize {
    let (name, other) = (name.to_lowercase(), other.to_lowercase());
    let (start, end) = common(name.as_bytes(), other.as_bytes());
    name.len().max(other.len()) - start - end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::tests::Folder;
    use crate::time::Deadline;
    use crate::tools::time_limit::CALL_MAX;

    #[track_caller]
    fn check(folder: &Folder, path: &str, expected: &str) {
        let time = TimeLimit::new(Deadline::NONE, CALL_MAX);
        let missing = io::Error::new(io::ErrorKind::NotFound, "it is not there");
        let path = folder.path().join(path);
        let error = with_names(missing, folder.path(), &path, time);
        assert_eq!(error.to_string(), format!("it is not there{expected}"));
    }

    #[test]
    fn the_names_that_are_most_like_it_come_first() {
        let folder = Folder::new();
        check(&folder, "a", "; nothing is there");
        fs::create_dir_all(folder.path().join("src/tools")).unwrap();
        for name in ["src/reader.rs", "src/read.rs", "src/Main.rs", "src/x"] {
            folder.write(name, "");
        }
        check(&folder, "scr/main.rs", "; the nearest names there are src");
        check(&folder, "src/main.rs", "; the nearest names in src are src/Main.rs");
        check(&folder, "src/tool/a.rs", "; the nearest names in src are src/tools");
        let told = "; the nearest names in src are src/x, src/tools, src/Main.rs, src/read.rs, \
                    src/reader.rs";
        check(&folder, "src/zzz", told);
        check(&folder, "src/x", "");
    }

    #[test]
    fn other_errors_and_time_that_is_over_stay_as_they_are() {
        let folder = Folder::new();
        folder.write("f", "");
        let error = io::Error::other("broken");
        let time = TimeLimit::new(Deadline::NONE, CALL_MAX);
        let path = folder.path().join("g");
        assert_eq!(with_names(error, folder.path(), &path, time).to_string(), "broken");
    }
}
