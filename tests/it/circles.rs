//! No two files of the sources import each other, however long the way round.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::{Source, sources};

/// The paths of a `use`, with its braces taken apart: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn paths(tree: &str) -> Vec<String> {
    let Some((head, rest)) = tree.split_once('{') else { return vec![tree.trim().to_owned()] };
    let inner = &rest[..rest.rfind('}').unwrap()];
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (index, character) in inner.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    parts.flat_map(paths).map(|part| format!("{}{part}", head.trim())).collect()
}

/// The module that a path starts in, and what follows: `super` is the folder of the module.
fn absolute(module: &str, path: &str) -> Option<Vec<String>> {
    let mut place: Vec<&str> = module.split('/').collect();
    let mut words = path.split("::").peekable();
    match words.peek() {
        Some(&"crate") => {
            words.next();
            place.clear();
        }
        Some(&"self") => drop(words.next()),
        Some(&"super") => {
            while words.next_if_eq(&"super").is_some() {
                place.pop();
            }
        }
        _ => return None,
    }
    Some(place.into_iter().chain(words).map(str::to_owned).collect())
}

/// The files that a file imports, but for those above and below itself: a module and its parts may
/// know each other.
fn imports(source: &Source, all: &BTreeSet<String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (index, _) in source.code().match_indices("use ") {
        let (before, statement) = source.code().split_at(index);
        // The word may stand in a sentence too.
        let line = before.rsplit('\n').next().unwrap();
        if !["", "pub ", "pub(crate) ", "pub(super) "].contains(&line) {
            continue;
        }
        let statement = &statement["use ".len()..];
        let Some(end) = statement.find(';') else { continue };
        for path in paths(&statement[..end]) {
            let Some(words) = absolute(&source.module, &path) else { continue };
            let mut names = (1..=words.len()).rev().map(|length| words[..length].join("/"));
            let Some(file) = names.find(|name| all.contains(name)) else { continue };
            let below =
                |one: &str, other: &str| one == other || one.starts_with(&format!("{other}/"));
            if !below(&file, &source.module) && !below(&source.module, &file) {
                found.insert(file);
            }
        }
    }
    found
}

#[test]
fn no_file_imports_itself_by_way_of_others() {
    let sources = sources();
    let all: BTreeSet<String> = sources.iter().map(|source| source.module.clone()).collect();
    let graph: BTreeMap<&str, BTreeSet<String>> =
        sources.iter().map(|source| (source.module.as_str(), imports(source, &all))).collect();
    // As many as the sources have today: a reader of imports that sees none would prove nothing.
    assert!(graph.values().map(BTreeSet::len).sum::<usize>() > 200, "{graph:?}");
    for (file, direct) in &graph {
        let mut reached: Vec<(String, String)> =
            direct.iter().map(|other| (other.clone(), format!("{file} -> {other}"))).collect();
        let mut seen: BTreeSet<String> = direct.clone();
        for index in 0.. {
            let Some((next, way)) = reached.get(index).cloned() else { break };
            assert_ne!(next, *file, "{way}");
            for other in &graph[next.as_str()] {
                if seen.insert(other.clone()) {
                    reached.push((other.clone(), format!("{way} -> {other}")));
                }
            }
        }
    }
}
