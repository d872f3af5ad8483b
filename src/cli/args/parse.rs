//! Reads arguments and environment into options, and does nothing else: no file is opened, nothing
//! is printed.
//!
//! The form is the usual one: flags stand anywhere before `--`, as `--name value`, `--name=value`,
//! `-m value`, `-mvalue` or `-m=value`, and short switches in groups. A flag that takes a value
//! takes the word that follows, whatever it looks like, as `getopt_long` does: a file may be called
//! `-v`, and guessing otherwise would make scripts fail for some values only. The last one counts
//! where a flag that is not repeatable is repeated.

use std::ffi::{OsStr, OsString};
use std::slice;

use super::flag::{ArgValue, Flag, Kind};
use super::flags::FLAGS;
use super::resolve::RawArgs;
use super::{Origin, Request, UsageError};
use crate::text::Lossy;

/// Reads the words behind the program's name, and the variables that stand in for flags.
///
/// Help and version are found before anything behind them is looked at.
///
/// # Errors
///
/// The first thing that is wrong, named as it was typed.
pub(in crate::cli) fn parse(
    args: &[OsString],
    environment: &[(OsString, OsString)],
) -> Result<Request, UsageError> {
    let mut parser = Parser { words: args.iter(), raw: RawArgs::default(), given: Vec::new() };
    while let Some(word) = parser.words.next() {
        parser.word(word)?;
        if let Some(request) = parser.raw.request.take() {
            return Ok(request);
        }
    }
    let Parser { mut raw, given, .. } = parser;
    for flag in FLAGS.iter().filter(|flag| !given.contains(&flag.long)) {
        fall_back(flag, environment, &mut raw)?;
    }
    raw.resolve()
}

struct Parser<'a> {
    words: slice::Iter<'a, OsString>,
    raw: RawArgs,
    /// The long names of the flags that were given.
    given: Vec<&'static str>,
}

impl Parser<'_> {
    fn word(&mut self, word: &OsStr) -> Result<(), UsageError> {
        match word.as_encoded_bytes() {
            b"-" => {
                self.raw.stdin = true;
                Ok(())
            }
            b"--" => {
                while let Some(word) = self.words.next() {
                    self.prompt_word(word)?;
                }
                Ok(())
            }
            [b'-', b'-', ..] => self.long(word),
            [b'-', ..] => self.short(word),
            _ => self.prompt_word(word),
        }
    }

    fn prompt_word(&mut self, word: &OsStr) -> Result<(), UsageError> {
        let text = word.to_str().ok_or_else(|| {
            UsageError::new(
                format_args!("PROMPT word {}", self.raw.words.len() + 1),
                format_args!("\"{}\" is not UTF-8", word.display()),
            )
        })?;
        self.raw.words.push(text.to_owned());
        Ok(())
    }

    fn long(&mut self, word: &OsStr) -> Result<(), UsageError> {
        let bytes = word.as_encoded_bytes();
        let equals = bytes.iter().position(|byte| *byte == b'=');
        let name = &bytes[..equals.unwrap_or(bytes.len())];
        let flag = FLAGS.iter().find(|flag| flag.long.as_bytes() == &name[2..]);
        let flag = flag.ok_or_else(|| unknown(Lossy::new(name).text.into_owned()))?;
        let attached = equals.map(|equals| skip(word, equals + 1));
        self.set(flag, format!("--{}", flag.long), attached)
    }

    /// Reads a group of switches, of which the last may be a flag with a value.
    fn short(&mut self, word: &OsStr) -> Result<(), UsageError> {
        let bytes = word.as_encoded_bytes();
        for (index, byte) in bytes.iter().enumerate().skip(1) {
            let short = char::from(*byte);
            let Some(flag) = FLAGS.iter().find(|flag| flag.short == Some(short)) else {
                // Not the whole word: a key may be glued to a flag that is misspelt.
                let rest = bytes[index..].utf8_chunks().next();
                let typed = rest.and_then(|rest| rest.valid().chars().next());
                return Err(unknown(format!("-{}", typed.unwrap_or('\u{fffd}'))));
            };
            let rest = &bytes[index + 1..];
            let takes_rest = matches!(flag.kind, Kind::Value(..)) && !rest.is_empty();
            let attached = if rest.first() == Some(&b'=') {
                Some(skip(word, index + 2))
            } else {
                takes_rest.then(|| skip(word, index + 1))
            };
            let last = attached.is_some();
            self.set(flag, format!("-{short}"), attached)?;
            if last {
                break;
            }
        }
        Ok(())
    }

    fn set(
        &mut self,
        flag: &Flag,
        typed: String,
        attached: Option<OsString>,
    ) -> Result<(), UsageError> {
        self.given.push(flag.long);
        let origin = Origin::Flag(typed);
        match (&flag.kind, attached) {
            (Kind::Switch(_), Some(_)) => Err(UsageError::new(
                origin,
                "takes no value; leave out what follows it after \"=\"",
            )),
            (Kind::Switch(set), None) => {
                set(&mut self.raw, &origin);
                Ok(())
            }
            (Kind::Value(name, set), attached) => {
                let text = match &attached {
                    Some(text) => text.as_os_str(),
                    None => self.words.next().map(OsString::as_os_str).ok_or_else(|| {
                        UsageError::new(
                            &origin,
                            format_args!("needs a value; give {origin} {name}"),
                        )
                    })?,
                };
                set(&mut self.raw, ArgValue { text, origin: &origin })
                    .map_err(|problem| UsageError::new(&origin, problem))
            }
        }
    }
}

/// Takes the value of a flag that was not given from its variables or its default.
fn fall_back(
    flag: &Flag,
    environment: &[(OsString, OsString)],
    raw: &mut RawArgs,
) -> Result<(), UsageError> {
    let set = flag.env.iter().find_map(|name| Some((*name, lookup(environment, name)?)));
    let (origin, text) = match (set, flag.default) {
        (Some((name, text)), _) => (Origin::Variable(name), text),
        (None, Some(default)) => (Origin::Default(flag.long), OsStr::new(default)),
        (None, None) => return Ok(()),
    };
    let result = match flag.kind {
        Kind::Value(_, set) => set(raw, ArgValue { text, origin: &origin }),
        Kind::Switch(set) => switch(text).map(|on| {
            if on {
                set(raw, &origin);
            }
        }),
    };
    result.map_err(|problem| UsageError::new(origin, problem))
}

/// The value of a variable. One that is empty or blank counts as unset: it is what a pipeline
/// leaves where it has nothing to say.
pub(in crate::cli) fn lookup<'a>(
    environment: &'a [(OsString, OsString)],
    name: &str,
) -> Option<&'a OsStr> {
    let same = |other: &OsStr| match cfg!(windows) {
        true => other.eq_ignore_ascii_case(name),
        false => other == name,
    };
    let (_, value) = environment.iter().find(|(other, _)| same(other))?;
    (!value.as_encoded_bytes().trim_ascii().is_empty()).then_some(value)
}

/// Whether a variable that stands in for a switch turns it on.
fn switch(text: &OsStr) -> Result<bool, String> {
    let text = Lossy::new(text.as_encoded_bytes()).text;
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(format!("\"{text}\" is neither 1 nor 0")),
    }
}

/// `word` without its first bytes, which are ASCII. The standard library splits no `OsStr`.
#[cfg(unix)]
fn skip(word: &OsStr, bytes: usize) -> OsString {
    use std::os::unix::ffi::OsStrExt as _;
    OsStr::from_bytes(&word.as_bytes()[bytes..]).to_owned()
}

/// `word` without its first bytes, which are ASCII. The standard library splits no `OsStr`.
#[cfg(windows)]
fn skip(word: &OsStr, bytes: usize) -> OsString {
    use std::os::windows::ffi::{OsStrExt as _, OsStringExt as _};
    OsString::from_wide(&word.encode_wide().skip(bytes).collect::<Vec<_>>())
}

fn unknown(name: String) -> UsageError {
    let advice = match nearest(&name) {
        Some(flag) => format!("the nearest is --{flag}"),
        None => "uncut --help lists all of them".to_owned(),
    };
    UsageError::new(
        name,
        format_args!("unknown flag; {advice}, and a prompt that starts with \"-\" goes behind --"),
    )
}

/// The flag that is meant by a misspelt one, if it is near enough to be a guess worth making.
fn nearest(typed: &str) -> Option<&'static str> {
    let typed = typed.strip_prefix("--")?;
    let (distance, flag) =
        FLAGS.iter().map(|flag| (distance(typed, flag.long), flag.long)).min()?;
    (distance <= 1 + typed.len() / 4).then_some(flag)
}

/// How many characters must be added, taken out or changed to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (index, character) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, candidate) in other.chars().enumerate() {
            let change = diagonal + usize::from(character != candidate);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::{
        Completions, KeySource, Options, PathArg, PromptSource, PromptText, Verbosity,
    };
    use crate::prompt::AgentsMd;
    use crate::wire::Stream;

    fn words(line: &[&str]) -> Vec<OsString> {
        line.iter().map(OsString::from).collect()
    }

    fn variables(variables: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    /// The options of a line that is right.
    #[track_caller]
    fn options(line: &[&str]) -> Options {
        match parse(&words(line), &[]) {
            Ok(Request::Run(options)) => *options,
            other => panic!("{line:?}: {other:?}"),
        }
    }

    /// What is wrong with a line.
    #[track_caller]
    fn problem(line: &[&str]) -> String {
        match parse(&words(line), &[]) {
            Err(error) => error.to_string(),
            Ok(request) => panic!("{line:?}: {request:?}"),
        }
    }

    fn flag_file(flag: &str, path: &str) -> PathArg {
        PathArg { origin: Origin::Flag(flag.to_owned()), path: path.into() }
    }

    fn said(text: &str) -> PromptSource {
        PromptSource { text: PromptText::Words(text.to_owned()), stdin: false }
    }

    #[test]
    fn a_value_may_be_attached_or_follow() {
        for line in [
            &["--model", "x", "hi"][..],
            &["--model=x", "hi"],
            &["-m", "x", "hi"],
            &["-mx", "hi"],
            &["-m=x", "hi"],
            &["hi", "-m", "x"],
            &["-qmx", "hi"],
            &["-qm", "x", "hi"],
            &["--model", "y", "hi", "--model=x"],
        ] {
            let options = options(line);
            assert_eq!((options.model.as_str(), options.prompt), ("x", said("hi")), "{line:?}");
        }
        assert_eq!(options(&["--model=a=b", "hi"]).model, "a=b");
    }

    #[test]
    fn a_flag_takes_the_word_that_follows_whatever_it_looks_like() {
        assert_eq!(options(&["-m", "--quiet", "hi"]).model, "--quiet");
        assert_eq!(options(&["-m", "--", "hi"]).model, "--");
        assert_eq!(options(&["-mx", "-C", "-v", "hi"]).directory, flag_file("-C", "-v"));
        assert_eq!(problem(&["hi", "-m"]), "-m: needs a value; give -m ID");
        assert_eq!(problem(&["hi", "--model"]), "--model: needs a value; give --model ID");
    }

    #[test]
    fn words_are_joined_and_everything_behind_two_dashes_is_a_word() {
        assert_eq!(options(&["-mx", "a", "b c", "", "d"]).prompt, said("a b c  d"));
        assert_eq!(
            options(&["-mx", "a", "--", "-v", "-", "--", "--help"]).prompt,
            said("a -v - -- --help")
        );
    }

    #[test]
    fn one_dash_asks_for_standard_input() {
        let text = |line| options(line).prompt;
        let (none, stdin) = (PromptText::None, true);
        assert_eq!(text(&["-mx"]), PromptSource { text: PromptText::None, stdin: false });
        assert_eq!(text(&["-mx", "-"]), PromptSource { text: none, stdin });
        assert_eq!(text(&["-mx", "a", "-", "b"]), PromptSource { stdin, ..said("a b") });
        let file = PromptText::File(flag_file("-f", "p"));
        assert_eq!(text(&["-mx", "-fp", "-"]), PromptSource { text: file, stdin });
    }

    #[test]
    fn help_and_version_are_found_before_what_follows() {
        let help = |full| Ok(Request::Help { full });
        for line in [&["-h"][..], &["-h", "--nonsense"], &["-qh"], &["hi", "-h", "--version"]] {
            assert_eq!(parse(&words(line), &[]), help(false), "{line:?}");
        }
        assert_eq!(parse(&words(&["--help", "--nonsense"]), &[]), help(true));
        assert_eq!(parse(&words(&["-V", "-h"]), &[]), Ok(Request::Version));
        let broken = variables(&[("UNCUT_TIMEOUT", "x")]);
        assert_eq!(parse(&words(&["--help"]), &broken), help(true));
        assert!(problem(&["--nonsense", "--help"]).starts_with("--nonsense: unknown flag"));
    }

    #[test]
    fn an_unknown_flag_is_named_with_the_nearest_and_without_its_value() {
        let problem = |word| problem(&[word, "hi"]);
        let tail = ", and a prompt that starts with \"-\" goes behind --";
        for (word, shown, advice) in [
            ("--max-token=sk-1", "--max-token", "the nearest is --max-tokens"),
            ("--max_steps", "--max_steps", "the nearest is --max-steps"),
            ("--modle", "--modle", "the nearest is --model"),
            ("--colour", "--colour", "uncut --help lists all of them"),
            ("--=", "--", "uncut --help lists all of them"),
            ("-ksk-1", "-k", "uncut --help lists all of them"),
            ("-qk", "-k", "uncut --help lists all of them"),
            ("-1", "-1", "uncut --help lists all of them"),
            ("-\u{e9}a", "-\u{e9}", "uncut --help lists all of them"),
        ] {
            assert_eq!(problem(word), format!("{shown}: unknown flag; {advice}{tail}"));
        }
    }

    #[test]
    fn a_switch_takes_no_value() {
        for word in ["--quiet=1", "--quiet=", "-q=1", "-q="] {
            let name = word.split('=').next().unwrap();
            assert!(problem(&[word]).starts_with(&format!("{name}: takes no value")), "{word}");
        }
    }

    #[test]
    fn numbers_are_whole_and_not_negative() {
        let problem = |value| problem(&["-mx", "--max-steps", value, "hi"]);
        assert_eq!(problem("-1"), "--max-steps: \"-1\" is negative; give a whole number");
        assert_eq!(problem("0"), "--max-steps: must be at least 1");
        assert_eq!(problem(""), "--max-steps: is empty");
        for value in ["abc", "1.5", "1e3", "+1", "0x10", "1_000", "\u{661}"] {
            assert_eq!(problem(value), format!("--max-steps: \"{value}\" is not a whole number"));
        }
        for value in ["4294967296", "99999999999999999999999"] {
            assert!(problem(value).ends_with("is too large"), "{value}");
        }
        let options =
            options(&["-mx", "--max-tokens=0", "--max-total-tokens", "18446744073709551615", "hi"]);
        assert_eq!(
            (options.settings.max_tokens, options.settings.max_total_tokens.unwrap().get()),
            (None, u64::MAX)
        );
    }

    #[test]
    fn quirks_add_up_and_refusing_finish_reasons_are_none() {
        let accept = options(&[
            "-mx",
            "--accept",
            "missing-ids, finish-reason:eos",
            "--accept=finish-reason:Done,no-reasoning-echo",
            "hi",
        ]);
        assert!(accept.settings.form.omit_reasoning);
        assert!(accept.settings.accept.missing_ids);
        assert_eq!(accept.settings.accept.finish_reasons, ["eos", "Done"]);
        for (quirk, problem_start) in [
            ("missing", "\"missing\" is unknown; give missing-ids, "),
            ("missing-ids,", "\"\" is unknown"),
            ("finish-reason:", "finish-reason: needs a word"),
            ("finish-reason:length", "finish-reason:length can't be accepted"),
            ("finish-reason:MAX_TOKENS", "finish-reason:MAX_TOKENS can't be accepted"),
            ("finish-reason:content_filter", "finish-reason:content_filter can't be accepted"),
            ("finish-reason:stop", "finish-reason:stop needs no acceptance"),
            ("", "is empty"),
        ] {
            let problem = problem(&["-mx", "--accept", quirk, "hi"]);
            assert!(problem.starts_with(&format!("--accept: {problem_start}")), "{problem}");
        }
    }

    #[test]
    fn what_contradicts_is_refused_by_the_names_that_were_typed() {
        for (line, expected) in [
            (&["-qv"][..], "-q: contradicts -v; give one of them"),
            (&["--verbose", "-q"], "-q: contradicts --verbose; give one of them"),
            (
                &["--replay=r", "--base-url=http://h"],
                "--replay: contradicts --base-url; give one of them",
            ),
            (
                &["--agents-md=a", "--no-agents-md"],
                "--agents-md: contradicts --no-agents-md; give one of them",
            ),
            (
                &["--api-key=a", "--api-key-file=b"],
                "--api-key: contradicts --api-key-file; give one of them",
            ),
            (&["-f", "p"], "-f: there is a prompt in the arguments too (\"hi\"); give one of them"),
        ] {
            assert_eq!(problem(&[&["-mx", "hi"], line].concat()), expected);
        }
        assert_eq!(options(&["-mx", "-q", "-q", "hi"]).common.verbosity, Verbosity::Quiet);
    }

    #[test]
    fn a_model_is_needed_where_an_endpoint_is_asked() {
        assert_eq!(problem(&["hi"]), "--model: is missing; set UNCUT_MODEL or give --model ID");
        assert_eq!(problem(&["-m", " ", "hi"]), "-m: is empty");
        let replayed = options(&["--replay", "r", "hi"]);
        assert_eq!(replayed.completions, Completions::Replay(flag_file("--replay", "r")));
    }

    #[test]
    fn paths_have_names() {
        assert_eq!(problem(&["-mx", "--session=", "hi"]), "--session: the name is empty");
        let problem = problem(&["-mx", "-f", "-"]);
        assert!(problem.starts_with("-f: \"-\" is not a name; "), "{problem}");
        let files = options(&["-mx", "--agents-md", "a", "--agents-md=b", "hi"]).agents_md;
        assert_eq!(files, AgentsMd::Files(vec!["a".into(), "b".into()]));
    }

    /// A flag with a variable: two values that are neither equal nor its default, and how to see
    /// which of them the options hold.
    struct Case(&'static str, [&'static str; 2], fn(&Options) -> String);

    const CASES: &[Case] = &[
        Case("model", ["one", "two"], |o| o.model.clone()),
        Case("base-url", ["http://one/v1", "http://two/v1"], |o| format!("{:?}", o.completions)),
        Case("api-key", ["sk-one", "sk-two"], |o| match &o.common.key {
            KeySource::Given { secret, .. } => secret.expose().to_owned(),
            other => format!("{other:?}"),
        }),
        Case("api-key-file", ["one", "two"], |o| match &o.common.key {
            KeySource::File(file) => file.path.display().to_string(),
            other => format!("{other:?}"),
        }),
        Case("max-tokens", ["1", "2"], |o| format!("{:?}", o.settings.max_tokens)),
        Case("max-steps", ["1", "2"], |o| format!("{:?}", o.max_steps)),
        Case("max-total-tokens", ["1", "2"], |o| format!("{:?}", o.settings.max_total_tokens)),
        Case("timeout", ["1", "2"], |o| format!("{:?}", o.common.timeout)),
        Case("request-timeout", ["1s", "2s"], |o| format!("{:?}", o.settings.request_timeout)),
        Case("idle-timeout", ["0", "2m"], |o| format!("{:?}", o.settings.idle_timeout)),
        Case("command-timeout", ["0", "2h"], |o| format!("{:?}", o.settings.command_timeout)),
        Case("extra-body", ["{\"seed\":1}", "{\"seed\":2}"], |o| {
            format!("{:?}", o.settings.form.extra_body)
        }),
        Case("max-retries", ["0", "9"], |o| o.settings.max_retries.to_string()),
        Case("accept", ["missing-ids", "finish-reason:eos"], |o| {
            format!("{:?}", o.settings.accept)
        }),
        Case("ca-file", ["one", "two"], |o| {
            o.settings
                .ca_file
                .as_ref()
                .map_or(String::new(), |file| file.path.display().to_string())
        }),
        Case("output", ["json", "jsonl"], |o| format!("{:?}", o.common.format)),
        Case("verify", ["make", "make test"], |o| format!("{:?}", o.settings.verify)),
        Case("verify-attempts", ["1", "2"], |o| o.verify_attempts.to_string()),
        Case("session", ["one", "two"], |o| {
            o.settings
                .session
                .as_ref()
                .map_or(String::new(), |file| file.path.display().to_string())
        }),
    ];

    #[test]
    fn a_flag_wins_over_its_variables_which_win_over_the_default() {
        let taken =
            |line: &[String], variables: &[(OsString, OsString)], show: fn(&Options) -> String| {
                let line: Vec<OsString> = line.iter().map(OsString::from).collect();
                match parse(&line, variables) {
                    Ok(Request::Run(options)) => show(&options),
                    other => format!("{other:?}"),
                }
            };
        for flag in FLAGS.iter().filter(|flag| !flag.env.is_empty()) {
            if matches!(flag.kind, Kind::Switch(_)) {
                let own = ["no-agents-md", "no-stream"].contains(&flag.long);
                assert!(own, "{} has no test of its own", flag.long);
                continue;
            }
            let Case(long, [one, two], show) =
                CASES.iter().find(|case| case.0 == flag.long).expect(flag.long);
            let mut base = vec!["hi".to_owned()];
            if *long != "model" {
                base.push("-mx".to_owned());
            }
            let given = |value| [&base[..], &[format!("--{long}={value}")]].concat();
            let default = taken(&base, &[], *show);
            let (first, second) = (taken(&given(one), &[], *show), taken(&given(two), &[], *show));
            assert!(first != second && first != default && second != default, "{long}");
            assert!(!first.contains("Err") && !second.contains("Err"), "{long}: {first} {second}");
            for (index, variable) in flag.env.iter().enumerate() {
                let set = variables(&[(variable, one)]);
                assert_eq!(taken(&base, &set, *show), first, "{variable} counts");
                assert_eq!(taken(&given(two), &set, *show), second, "--{long} over {variable}");
                let broken = variables(&[(variable, "\u{1}")]);
                assert_eq!(
                    taken(&given(two), &broken, *show),
                    second,
                    "{variable} is not looked at"
                );
                for blank in ["", " "] {
                    let set = variables(&[(variable, blank)]);
                    assert_eq!(taken(&base, &set, *show), default, "a blank {variable} is unset");
                }
                for later in &flag.env[index + 1..] {
                    let set = variables(&[(later, two), (variable, one)]);
                    assert_eq!(taken(&base, &set, *show), first, "{variable} over {later}");
                }
            }
        }
        for flag in FLAGS {
            if let (Some(default), Kind::Value(..)) = (flag.default, &flag.kind) {
                let line = words(&["hi", "-mx"]);
                let said = words(&["hi", "-mx", &format!("--{}={default}", flag.long)]);
                let unnamed = |line: &[OsString]| {
                    let typed = format!("Flag(\"--{}\")", flag.long);
                    let silent = format!("Default(\"{}\")", flag.long);
                    format!("{:?}", parse(line, &[])).replace(&typed, &silent)
                };
                assert_eq!(unnamed(&line), unnamed(&said), "{}", flag.long);
            }
        }
    }

    #[test]
    fn a_variable_that_is_wrong_is_named() {
        for (name, value, start) in [
            ("UNCUT_MAX_STEPS", "many", "UNCUT_MAX_STEPS: \"many\" is not a whole number"),
            ("UNCUT_TIMEOUT", "5x", "UNCUT_TIMEOUT: \"5x\" is not a duration"),
            ("UNCUT_NO_AGENTS_MD", "maybe", "UNCUT_NO_AGENTS_MD: \"maybe\" is neither 1 nor 0"),
            ("OPENAI_BASE_URL", "localhost:8080", "OPENAI_BASE_URL: "),
            ("OPENAI_API_KEY", "sk-ab\ncd", "OPENAI_API_KEY: character 6 of the key is a control"),
        ] {
            let error = parse(&words(&["-mx", "hi"]), &variables(&[(name, value)])).unwrap_err();
            assert!(error.to_string().starts_with(start), "{error}");
            assert!(!error.to_string().contains("sk-"), "{error}");
        }
    }

    #[test]
    fn a_switch_is_set_by_its_variable() {
        let agents_md = |line: &[&str], value| match parse(
            &words(line),
            &variables(&[("UNCUT_NO_AGENTS_MD", value)]),
        ) {
            Ok(Request::Run(options)) => options.agents_md,
            other => panic!("{value}: {other:?}"),
        };
        for on in ["1", "true", "YES", "on"] {
            assert_eq!(agents_md(&["-mx", "hi"], on), AgentsMd::None, "{on}");
            let files = agents_md(&["-mx", "hi", "--agents-md=a"], on);
            assert_eq!(files, AgentsMd::Files(vec!["a".into()]), "a flag wins over {on}");
        }
        for off in ["0", "False", "no", "off", ""] {
            assert_eq!(agents_md(&["-mx", "hi"], off), AgentsMd::Discover, "{off}");
            assert_eq!(agents_md(&["-mx", "hi", "--no-agents-md"], off), AgentsMd::None, "{off}");
        }
    }

    #[test]
    fn a_stream_is_the_default() {
        let stream = |line: &[&str]| options(line).settings.form.stream;
        assert_eq!(stream(&["-mx", "hi"]), Stream::WithUsage);
        assert_eq!(stream(&["-mx", "hi", "--no-stream"]), Stream::Off);
        let set = variables(&[("UNCUT_NO_STREAM", "1")]);
        let Ok(Request::Run(options)) = parse(&words(&["-mx", "hi"]), &set) else { panic!() };
        assert_eq!(options.settings.form.stream, Stream::Off);
    }

    #[test]
    fn headers_add_up_and_are_not_shown() {
        let line = ["-mx", "hi", "--header", "X-A: secret-1", "--header=X-B: secret-2"];
        let options = options(&line);
        assert_eq!(options.settings.headers.len(), 2);
        assert!(!format!("{options:?}").contains("secret"));
        let problem = problem(&["-mx", "hi", "--header", "secret"]);
        assert_eq!(problem, "--header: there is no colon; give NAME: VALUE");
    }

    /// The sources of a key from the strongest to the weakest, each as arguments and variables.
    #[test]
    fn the_nearest_key_counts() {
        let own = ("UNCUT_API_KEY", "own");
        let own_file = ("UNCUT_API_KEY_FILE", "own-file");
        let shared = ("OPENAI_API_KEY", "shared");
        for (line, set, expected) in [
            (&["--api-key=flag"][..], &[own, own_file, shared][..], "--api-key flag"),
            (&["--api-key-file=file"], &[own, own_file, shared], "--api-key-file file"),
            (&[], &[own, own_file, shared], "UNCUT_API_KEY own"),
            (&[], &[own_file, shared], "UNCUT_API_KEY_FILE own-file"),
            (&[], &[shared], "OPENAI_API_KEY shared"),
            (&[], &[], "none"),
            (&["--api-key="], &[own, own_file, shared], "none"),
        ] {
            let line = words(&[&["-mx", "hi"], line].concat());
            let found = match parse(&line, &variables(set)) {
                Ok(Request::Run(options)) => match options.common.key {
                    KeySource::None => "none".to_owned(),
                    KeySource::Given { origin, secret } => {
                        format!("{origin} {}", secret.expose())
                    }
                    KeySource::File(PathArg { origin, path }) => {
                        format!("{origin} {}", path.display())
                    }
                },
                other => format!("{other:?}"),
            };
            assert_eq!(found, expected, "{line:?} {set:?}");
        }
    }

    const NASTY: &[&[u8]] = &[
        b"",
        b" ",
        b"-",
        b"--",
        b"---",
        b"--=",
        b"-=",
        b"--model",
        b"--model=",
        b"--model=x",
        b"-m",
        b"-m=",
        b"-mX",
        b"-mq",
        b"-qm",
        b"-qv",
        b"-q",
        b"--quiet=1",
        b"-1",
        b"--max-steps",
        b"--max-steps=0",
        b"--accept",
        b"--accept=,",
        b"-C",
        b"--no-agents-md",
        b"--agents-md=a",
        b"--replay=r",
        b"--base-url=",
        b"-f",
        b"--api-key",
        b"--api-key=sk-TESTKEY",
        b"-\xc3\xa9",
        b"--\xc3\xa9=",
        b"=",
        b"\n",
        b"-h",
        b"--version",
        b"word",
        b"\xff",
        b"-\xff",
        b"--\xff=x",
        b"--model=\xff",
        b"-C\xff",
        b"-m\xff",
    ];

    /// What the vocabulary can be on this system.
    fn nasty() -> Vec<OsString> {
        #[cfg(unix)]
        let word = |bytes: &&[u8]| {
            let word: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(bytes);
            Some(word.to_owned())
        };
        #[cfg(not(unix))]
        let word = |bytes: &&[u8]| std::str::from_utf8(bytes).ok().map(OsString::from);
        NASTY.iter().filter_map(word).collect()
    }

    fn check_error(line: &[OsString], error: &str) {
        let subject = error.split(": ").next().unwrap_or_default();
        let named = line.iter().any(|word| {
            let word = Lossy::new(word.as_encoded_bytes()).text;
            let in_group = word.starts_with('-') && subject.chars().all(|c| word.contains(c));
            word.starts_with(subject) || in_group || error.contains(&format!("\"{word}\""))
        });
        assert!(named || error.starts_with("--model: is missing"), "{line:?}: {error}");
        let start = crate::cli::inputs::BaseDir(None);
        let secrets = crate::cli::secrets::collect(line, &[], None, start);
        let masked = secrets.mask.text(error);
        assert!(!masked.contains("sk-"), "{line:?}: {masked}");
    }

    /// Every line of up to three words: parsing ends, does not panic, and what is wrong is put down
    /// to one of the words.
    #[test]
    fn every_short_line_is_understood_or_refused_by_name() {
        let vocabulary = nasty();
        let mut lines: Vec<Vec<OsString>> = vec![vec![]];
        let mut done = 0;
        for _ in 0..3 {
            let longer: Vec<_> = lines[done..]
                .iter()
                .flat_map(|line| {
                    vocabulary.iter().map(|word| [line.clone(), vec![word.clone()]].concat())
                })
                .collect();
            done = lines.len();
            lines.extend(longer);
        }
        assert!(lines.len() > 50_000);
        for line in &lines {
            if let Err(error) = parse(line, &[]) {
                check_error(line, &error.to_string());
            }
        }
    }
}
