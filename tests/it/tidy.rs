//! What the project promises about its own text: who imports whom, how long a file may be, which
//! words stay where, and that README and help say the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

pub(crate) struct Source {
    /// Below `src`, without the ending: `tools/shell`.
    pub(crate) module: String,
    text: String,
}

impl Source {
    /// The first part of the module's path, which is what the map lists.
    fn top(&self) -> &str {
        self.module.split('/').next().unwrap()
    }

    /// The lines before the tests.
    pub(crate) fn code(&self) -> &str {
        self.text.split("\n#[cfg(test)]\n").next().unwrap()
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The text of all sources and tests.
#[cfg(unix)]
pub(crate) fn everything() -> String {
    let all = ["src", "tests"].iter().flat_map(|folder| files(&root().join(folder)));
    all.map(|path| fs::read_to_string(path).unwrap()).collect()
}

pub(crate) fn sources() -> Vec<Source> {
    let src = root().join("src");
    let module = |path: &Path| path.with_extension("").strip_prefix(&src).unwrap().to_path_buf();
    files(&src)
        .into_iter()
        .map(|path| Source {
            module: module(&path).to_str().unwrap().replace('\\', "/"),
            text: fs::read_to_string(&path).unwrap(),
        })
        .collect()
}

/// The table of the crate docs: module to level.
fn levels() -> BTreeMap<String, u32> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("//! |")?.split('|').map(str::trim);
        let level = cells.next()?.parse().ok()?;
        let (module, _) =
            cells.next()?.trim_start_matches('[').strip_prefix('`')?.split_once('`')?;
        Some((module.to_owned(), level))
    };
    read("src/lib.rs").lines().filter_map(row).collect()
}

#[test]
fn a_module_imports_from_its_own_level_downwards_and_never_in_a_circle() {
    let levels = levels();
    let mut imports: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources().iter().filter(|source| !["lib", "main"].contains(&source.top())) {
        let own = *levels.get(source.top()).unwrap_or_else(|| {
            panic!("src/{}.rs is missing in the table of the crate docs", source.module)
        });
        for (index, _) in source.code().match_indices("crate::") {
            let rest = &source.code()[index + "crate::".len()..];
            let other = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
            let level = levels.get(other).unwrap_or_else(|| panic!("no module {other}"));
            let module = &source.module;
            assert!(*level <= own, "{module} (level {own}) imports {other} (level {level})");
            if other != source.top() {
                imports.entry(source.top().to_owned()).or_default().push(other.to_owned());
            }
        }
    }
    for module in imports.keys() {
        let mut reached = imports[module].clone();
        for index in 0.. {
            let Some(next) = reached.get(index).cloned() else { break };
            assert_ne!(next, *module, "{module} imports itself, by way of {reached:?}");
            let further = imports.get(&next).into_iter().flatten().cloned();
            let new: Vec<_> = further.filter(|other| !reached.contains(other)).collect();
            reached.extend(new);
        }
    }
}

/// What std can't do.
const UNSAFE: &[&str] = &[
    "fs/xattr",
    "process/console",
    "process/job",
    "process/signals",
    "process/standard",
    "process/unix",
    "process/wait",
];

/// The modules that know the mask of what they show, or only hold what has been masked. Other
/// modules leave text whole: of a key that is cut in two, no mask knows the parts.
const CUT: &[&str] = &[
    "cli/check",
    "cli/events",
    "cli/report",
    "cli/show",
    "cli/watch",
    "provider/error",
    "text",
    "tools",
    "tools/arguments",
];

#[test]
fn what_belongs_in_one_place_stands_there_only() {
    let rules: &[(&str, &[&str])] = &[
        ("ureq::", &["openai"]),
        ("rustls::", &["openai"]),
        ("ring::digest", &["agents_md"]),
        ("windows_sys::", &["process/console", "process/job"]),
        ("unsafe {", UNSAFE),
        ("unsafe_code", UNSAFE),
        (
            "libc::",
            &[
                "process/unix",
                "process/signals",
                "process/wait",
                "process/standard",
                "session/storage",
                "fs/open",
                "fs/xattr",
            ],
        ),
        ("Command::new", &["process/unix", "process/windows"]),
        ("env::var", &["main", "fuzz"]),
        ("env::args", &["main"]),
        ("env::current_dir", &["main"]),
        ("env::set_current_dir", &[]),
        ("thread::spawn", &[]),
        ("thread::Builder", &["process", "time"]),
        ("process::exit", &["process/windows"]),
        ("println!", &["fuzz"]),
        // Where text of others is cut it has been masked.
        ("message_line(", CUT),
        ("one_line(", CUT),
        ("both_ends(", CUT),
    ];
    for source in sources() {
        for (word, places) in rules {
            let allowed = places.iter().any(|place| {
                source.module == *place || source.module.starts_with(&format!("{place}/"))
            });
            let code = source.code().lines().filter(|line| !line.trim_start().starts_with("//"));
            let found = code.into_iter().find(|line| line.contains(word));
            assert!(found.is_none() || allowed, "{}: {word} in {found:?}", source.module);
        }
    }
}

#[test]
fn files_are_short_ascii_and_finished() {
    // Put together, so that this file does not hold them itself.
    let unfinished =
        [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["#[ign", "ore"]].map(|w| w.concat());
    for source in sources() {
        let lines = source.code().lines().count();
        assert!(lines <= 400, "src/{}.rs has {lines} lines before its tests", source.module);
    }
    for path in ["src", "tests"].iter().flat_map(|folder| files(&root().join(folder))) {
        let text = fs::read_to_string(&path).unwrap();
        let is_source = path.starts_with(root().join("src"));
        for (number, line) in text.lines().enumerate() {
            let place = format!("{}:{}", path.display(), number + 1);
            assert!(line.is_ascii(), "{place}: not ASCII");
            // The formatter leaves comments and texts as they are. A row of a table can't be
            // wrapped, and what a test sends or expects may be one line.
            let is_row = line.starts_with("//! |");
            let is_held = (is_source || line.trim_start().starts_with("//")) && !is_row;
            assert!(line.len() <= 100 || !is_held, "{place}: longer than 100 columns");
            assert!(!unfinished.iter().any(|word| line.contains(word)), "{place}: unfinished");
        }
    }
    assert!(read("src/main.rs").lines().count() <= 30, "main only hands over");
}

#[test]
fn the_readme_shows_the_flags_and_exit_codes_that_there_are() {
    let readme = read("README.md");
    let table = uncut::cli::help::readme_table();
    assert!(readme.contains(&table), "README.md should contain:\n{table}");
    let mut lines = readme.lines().skip_while(|line| *line != "### Exit codes");
    for row in uncut::cli::help::readme_exit_codes() {
        let line = lines.find(|line| line.starts_with(&row));
        let line = line.unwrap_or_else(|| panic!("README.md lacks, or lacks here: {row}"));
        let next = line[row.len()..].strip_suffix(" |").unwrap_or_default();
        assert!(next.trim().len() > 10, "README.md does not say what to do next: {line}");
    }
}

#[test]
fn each_direct_dependency_has_its_reason_and_the_readme_tells_of_all_unsafe_code() {
    let readme = read("README.md");
    let manifest = read("Cargo.toml");
    let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
    let (dependencies, _) = dependencies.split_once("[dev-dependencies]").unwrap();
    let mut is_explained = false;
    for line in dependencies.lines() {
        if let Some((name, _)) = line.split_once(" = ") {
            assert!(is_explained, "Cargo.toml does not say why {name} is there");
            assert!(readme.contains(&format!("`{name}`")), "{name} is missing in README.md");
        }
        // A target's table stands between the reason and the only package in it.
        is_explained = line.starts_with("# ") || (is_explained && line.starts_with('['));
    }
    for source in sources().iter().filter(|source| source.code().contains("unsafe {")) {
        let file = format!("`src/{}.rs`", source.module);
        assert!(readme.contains(&file), "README.md does not say what is unsafe in {file}");
    }
}

/// Everything that the binary is linked from, on any platform.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8(output.stderr).unwrap());
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

#[test]
fn every_dependency_has_a_licence_that_binaries_can_carry() {
    const LICENCES: &[&str] = &[
        "0BSD OR MIT OR Apache-2.0",
        "Apache-2.0 AND ISC",
        "Apache-2.0 OR ISC OR MIT",
        "Apache-2.0 OR MIT",
        "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "BSD-3-Clause",
        "CDLA-Permissive-2.0",
        "ISC",
        "MIT",
        "MIT OR Apache-2.0",
        "MIT OR Zlib OR Apache-2.0",
        "MIT/Apache-2.0",
        "Unlicense OR MIT",
        "Zlib",
    ];
    for package in packages().iter().filter(|package| package["name"] != "uncut") {
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(LICENCES.contains(&licence), "{}: {licence}", package["name"]);
    }
}

#[test]
fn every_dependency_comes_from_the_registry_by_its_checksum() {
    let lock = read("Cargo.lock");
    let value = |package: &str, key: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned())
    };
    let packages: Vec<&str> = lock.split("[[package]]").skip(1).collect();
    assert!(packages.len() > 30, "{lock}");
    for package in packages.iter().filter(|package| !package.contains("name = \"uncut\"\n")) {
        let source = value(package, "source");
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        assert_eq!(source.as_deref(), Some(registry), "{package}");
        assert_eq!(
            value(package, "checksum").map(|checksum| checksum.len()),
            Some(64),
            "{package}"
        );
    }
}

#[test]
fn the_dependency_tree_is_small_and_has_each_package_once() {
    for target in
        ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "x86_64-pc-windows-gnu"]
    {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"])
            .args(["--target", target])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8(output.stderr).unwrap());
        let tree = String::from_utf8(output.stdout).unwrap();
        let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in tree.lines() {
            let mut words = line.split(' ');
            let (name, version) = (words.next().unwrap(), words.next().unwrap());
            let known = versions.entry(name).or_default();
            if !known.contains(&version) {
                known.push(version);
            }
        }
        assert!(versions.contains_key("ureq"), "{tree}");
        assert!(versions.len() <= 50, "{} packages", versions.len());
        for (name, versions) in versions {
            assert_eq!(versions.len(), 1, "{name}: {versions:?}");
        }
    }
}
