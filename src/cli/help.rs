//! The help and the tables of the README, rendered from the table of flags and that of outcomes.

use std::fmt::Write as _;

use super::args::flag::{Flag, Group};
use super::args::flags::{FLAGS, OPERANDS};
use crate::outcome::Outcome;

/// How the program is called.
pub(super) const USAGE: &str = "usage: uncut [OPTIONS] [PROMPT...]   (uncut --help says more)";

const ABOUT: &str = "\
Gives PROMPT to a model behind an OpenAI-compatible endpoint, lets it run commands and read, write
and edit files in the working directory, and prints its answer. It never asks a person. Either a
complete answer is on stdout and the exit code is 0, or stdout is empty, and the exit code and the
last line on stderr say why.";

const MORE: &str = "\
The key comes from UNCUT_API_KEY or OPENAI_API_KEY; a local server needs none. Exit code 0: a
complete answer is on stdout. Every other code names a failure, and 75 means: try again later.
uncut --help lists all flags, variables and exit codes.";

const PRECEDENCE: &str = "\
A flag wins over its variable, which wins over the default. An empty variable counts as unset.
If a flag that is not repeatable is given twice, the last one counts.";

const EXAMPLES: &str = "\
Examples:
  uncut -m gpt-5 'why does the build fail?'
  git diff | uncut -m qwen3 --base-url http://localhost:11434/v1 'review this change' -
  uncut -f task.md -C service --session task.jsonl --max-steps 80 --timeout 30m";

/// The columns that a line of the help may fill.
const WIDTH: usize = 98;

/// Where the text of a flag starts.
const INDENT: usize = 32;

/// What `-h` prints: the flags of daily use, on one screen.
pub(super) fn short() -> String {
    let mut help = heading();
    let mut last = None;
    for flag in FLAGS.iter().filter(|flag| flag.daily) {
        group(&mut help, &mut last, flag.group);
        entry(&mut help, &name(flag), flag.help);
    }
    help.push('\n');
    help.push_str(MORE);
    help
}

/// What `--help` prints, without the newline at the end.
pub(super) fn full() -> String {
    let mut help = heading();
    help.push('\n');
    help.push_str(ABOUT);
    help.push('\n');
    let mut last = None;
    for flag in FLAGS {
        group(&mut help, &mut last, flag.group);
        entry(&mut help, &name(flag), flag.help);
        wrapped(&mut help, flag.details.split_whitespace());
        wrapped(&mut help, notes(flag).iter().map(String::as_str));
    }
    help.push('\n');
    help.push_str(PRECEDENCE);
    help.push_str("\n\nExit codes:\n");
    for (outcome, word, meaning) in Outcome::ALL {
        entry(&mut help, &format!("  {:>3}  {word}", outcome.code()), meaning);
    }
    help.push('\n');
    help.push_str(EXAMPLES);
    help
}

fn heading() -> String {
    format!(
        "uncut {}: a headless coding agent\n\nUsage: uncut [OPTIONS] [PROMPT...]\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// Starts a group of flags where it is not the one of the flag before. The operands belong to the
/// first one.
fn group(help: &mut String, last: &mut Option<Group>, group: Group) {
    if *last == Some(group) {
        return;
    }
    let is_first = last.is_none();
    *last = Some(group);
    let _ = write!(help, "\n{}:\n", group.title());
    if is_first {
        for (name, meaning) in OPERANDS {
            entry(help, &format!("  {name}"), meaning);
        }
    }
}

fn name(flag: &Flag) -> String {
    let short = flag.short.map_or("    ".to_owned(), |short| format!("-{short}, "));
    format!("  {short}{}", long(flag))
}

/// The flags as a table of the README, in Markdown.
pub fn readme_table() -> String {
    let mut table = "| flag | environment | default | meaning |\n|---|---|---|---|\n".to_owned();
    for (name, meaning) in OPERANDS {
        row(&mut table, &[code(name), String::new(), String::new(), cell(meaning)]);
    }
    let mut last = Group::Prompt;
    for flag in FLAGS {
        if flag.group != last {
            last = flag.group;
            let title = format!("**{}**", last.title());
            row(&mut table, &[title, String::new(), String::new(), String::new()]);
        }
        let name = match flag.short {
            Some(short) => format!("-{short}, {}", long(flag)),
            None => long(flag),
        };
        let env: Vec<String> = flag.env.iter().map(|variable| code(variable)).collect();
        let mut meaning = flag.help.to_owned();
        if flag.repeatable {
            meaning.push_str("; repeatable");
        }
        if !flag.details.is_empty() {
            meaning = format!("{meaning}. {}", flag.details);
        }
        let default = flag.default.map(code).unwrap_or_default();
        row(&mut table, &[code(&name), env.join(", "), default, cell(&meaning)]);
    }
    table
}

/// The starts of the rows of the README's table of exit codes, in Markdown. The README adds what to
/// do next.
pub fn readme_exit_codes() -> Vec<String> {
    let start = |(outcome, word, meaning): &(Outcome, &str, &str)| {
        format!("| {} | {} | {} |", outcome.code(), code(word), cell(meaning))
    };
    Outcome::ALL.iter().map(start).collect()
}

fn long(flag: &Flag) -> String {
    match flag.value_name() {
        Some(name) => format!("--{} {name}", flag.long),
        None => format!("--{}", flag.long),
    }
}

/// Where else the value comes from, and whether there may be several.
fn notes(flag: &Flag) -> Vec<String> {
    let repeatable = flag.repeatable.then(|| "[repeatable]".to_owned());
    let env = (!flag.env.is_empty()).then(|| format!("[env: {}]", flag.env.join(", ")));
    let default = flag.default.map(|default| format!("[default: {default}]"));
    [repeatable, env, default].into_iter().flatten().collect()
}

/// A name and, in its column, what it means.
fn entry(help: &mut String, name: &str, meaning: &str) {
    let mut text = String::new();
    wrapped(&mut text, meaning.split_whitespace());
    // Writing to a String can't fail.
    let _ = writeln!(help, "{name:INDENT$}{}", text.trim());
}

/// Words in the column of the meanings, with a newline behind each line.
fn wrapped<'a>(help: &mut String, words: impl Iterator<Item = &'a str>) {
    let mut column = 0;
    for word in words {
        if column == 0 {
            help.push_str(&" ".repeat(INDENT));
            column = INDENT;
        } else if column + 1 + word.len() > WIDTH {
            help.push('\n');
            help.push_str(&" ".repeat(INDENT));
            column = INDENT;
        } else {
            help.push(' ');
            column += 1;
        }
        help.push_str(word);
        column += word.len();
    }
    if column > 0 {
        help.push('\n');
    }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Text that can't end the cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn row(table: &mut String, cells: &[String]) {
    let _ = writeln!(table, "| {} |", cells.join(" | "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_tells_every_flag_variable_default_and_exit_code() {
        let help = full();
        for flag in FLAGS {
            assert!(help.contains(&format!("--{} ", flag.long)), "{}", flag.long);
            assert!(help.contains(flag.help), "{}", flag.long);
            if let Some(short) = flag.short {
                assert!(help.contains(&format!("  -{short}, --{}", flag.long)), "{short}");
            }
            for variable in flag.env {
                assert!(help.contains(variable), "{variable}");
            }
            if let Some(default) = flag.default {
                assert!(help.contains(&format!("[default: {default}]")), "{}", flag.long);
            }
        }
        for (outcome, word, _) in Outcome::ALL {
            assert!(help.contains(&format!("{:>5}  {word} ", outcome.code())), "{word}");
        }
    }

    #[test]
    fn the_help_is_plain_and_fits_a_window() {
        for text in [short(), full()] {
            for line in text.lines() {
                assert!(line.len() <= WIDTH, "{line}");
                assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line}");
                assert_eq!(line.trim_end(), line);
            }
            assert!(!text.ends_with('\n'));
        }
    }

    #[test]
    fn the_short_help_is_one_screen_of_the_flags_of_daily_use() {
        let help = short();
        assert!(help.lines().count() <= 50, "{help}");
        for flag in FLAGS {
            assert_eq!(help.contains(&name(flag)), flag.daily, "{}", flag.long);
        }
    }

    #[test]
    fn a_flag_is_a_row_of_the_readme() {
        let table = readme_table();
        let row = "| `--max-steps N` | `UNCUT_MAX_STEPS` | `32` | \
                   how many completions the run may take |";
        assert!(table.lines().any(|line| line == row), "{table}");
        let titles = table.lines().filter(|line| line.starts_with("| **")).count();
        assert_eq!(titles, Group::Other as usize, "{table}");
        assert_eq!(table.lines().count(), 2 + OPERANDS.len() + titles + FLAGS.len());
        for line in table.lines() {
            assert_eq!(line.replace("\\|", "").matches('|').count(), 5, "{line}");
        }
        let codes = readme_exit_codes();
        assert_eq!(codes.len(), Outcome::ALL.len());
        assert!(codes.contains(&"| 124 | `deadline` | --timeout is over |".to_owned()));
    }
}
