//! The flags: one table, from which the parser, the environment, the help and the README come.
//!
//! A row says how a flag looks and what it means; its setter checks one value and stores it in the
//! `RawArgs`. A setter never names the flag, since the same value may have come from a variable:
//! whoever calls it does.

use super::flag::{Flag, Group, Kind, ROW};
use super::values::{accept, count, format, limit, path, retries, store, text, time, word};
use super::{Origin, Request};
use crate::openai::Header;
use crate::wire::{ExtraBody, Stream};

/// What stands on the command line beside flags, and what it means.
pub(in crate::cli) const OPERANDS: &[(&str, &str)] = &[
    ("PROMPT...", "the prompt; the words are joined by one space"),
    ("-", "read the prompt from standard input; after other words, add it with a blank line"),
    ("--", "all words after it belong to the prompt"),
];

/// Every flag, in the order of the help.
pub(in crate::cli) const FLAGS: &[Flag] = &[
    Flag {
        long: "prompt-file",
        group: Group::Prompt,
        short: Some('f'),
        kind: Kind::Value("FILE", |raw, value| store(&mut raw.prompt_file, path(value))),
        help: "read the prompt from FILE",
        details: "A regular UTF-8 file of at most 16 MB. A byte order mark and newlines at the end \
                  are dropped. For standard input give - instead.",
        daily: true,
        ..ROW
    },
    Flag {
        long: "model",
        group: Group::Endpoint,
        short: Some('m'),
        kind: Kind::Value("ID", |raw, value| store(&mut raw.model, word(value))),
        env: &["UNCUT_MODEL"],
        help: "the model to ask; required, except with --replay",
        daily: true,
        ..ROW
    },
    Flag {
        long: "base-url",
        group: Group::Endpoint,
        kind: Kind::Value("URL", |raw, value| {
            store(&mut raw.base_url, text(value).map(|url| (value.origin.clone(), url)))
        }),
        env: &["UNCUT_BASE_URL", "OPENAI_BASE_URL"],
        default: Some("https://api.openai.com/v1"),
        help: "the endpoint",
        details: "/chat/completions is added where it is missing, before any query string.",
        daily: true,
        ..ROW
    },
    Flag {
        long: "api-key",
        group: Group::Endpoint,
        kind: Kind::Value("KEY", |raw, value| {
            raw.common.api_key = Some((value.origin.clone(), value.text.to_owned()));
            Ok(())
        }),
        env: &["UNCUT_API_KEY", "OPENAI_API_KEY"],
        help: "the key to send; without one, no key is sent",
        details: "An empty KEY sends none. Other users of the machine can see the arguments of a \
                  program; a variable or a file is safer. The first of these counts: \
                  --api-key or --api-key-file, UNCUT_API_KEY, UNCUT_API_KEY_FILE, OPENAI_API_KEY.",
        ..ROW
    },
    Flag {
        long: "api-key-file",
        group: Group::Endpoint,
        kind: Kind::Value("FILE", |raw, value| store(&mut raw.common.api_key_file, path(value))),
        env: &["UNCUT_API_KEY_FILE"],
        help: "read the key from FILE",
        daily: true,
        ..ROW
    },
    Flag {
        long: "header",
        group: Group::Endpoint,
        kind: Kind::Value("'NAME: VALUE'", |raw, value| {
            let header = text(value).and_then(|header| Header::parse(&header))?;
            raw.settings.headers.push(header);
            Ok(())
        }),
        help: "a header to add to every request",
        details: "An Authorization header replaces the key.",
        repeatable: true,
        ..ROW
    },
    Flag {
        long: "extra-body",
        group: Group::Endpoint,
        kind: Kind::Value("JSON", |raw, value| {
            store(
                &mut raw.settings.form.extra_body,
                text(value).and_then(|json| ExtraBody::parse(&json)),
            )
        }),
        env: &["UNCUT_EXTRA_BODY"],
        help: "members to add to every request, such as temperature and seed",
        details: "A JSON object. It can't set members that the run sets itself.",
        ..ROW
    },
    Flag {
        long: "accept",
        group: Group::Endpoint,
        kind: Kind::Value("QUIRK", accept),
        env: &["UNCUT_ACCEPT"],
        help: "tolerate a known quirk of the endpoint",
        details: "missing-ids: tool calls without an id. finish-reason:WORD: an unknown finish \
                  reason, taken for stop. no-reasoning-echo: earlier reasoning is not sent back, \
                  for endpoints that refuse it. Several are separated by commas.",
        repeatable: true,
        ..ROW
    },
    Flag {
        long: "no-stream",
        group: Group::Endpoint,
        kind: Kind::Switch(|raw, _| raw.settings.form.stream = Stream::Off),
        env: &["UNCUT_NO_STREAM"],
        help: "ask for one JSON body instead of a stream",
        details: "A slow model is then silent until it is done; see --idle-timeout.",
        ..ROW
    },
    Flag {
        long: "ca-file",
        group: Group::Endpoint,
        kind: Kind::Value("FILE", |raw, value| store(&mut raw.settings.ca_file, path(value))),
        env: &["UNCUT_CA_FILE", "SSL_CERT_FILE"],
        help: "also trust the issuers in FILE",
        details: "A PEM file. Issuers in the directories of SSL_CERT_DIR are trusted too.",
        ..ROW
    },
    Flag {
        long: "replay",
        group: Group::Endpoint,
        kind: Kind::Value("FILE", |raw, value| store(&mut raw.replay, path(value))),
        help: "read the completions from FILE, one on each line, without network",
        ..ROW
    },
    Flag {
        long: "max-steps",
        group: Group::Limits,
        kind: Kind::Value("N", |raw, value| store(&mut raw.max_steps, count(value))),
        env: &["UNCUT_MAX_STEPS"],
        default: Some("32"),
        help: "how many completions the run may take",
        daily: true,
        ..ROW
    },
    Flag {
        long: "timeout",
        group: Group::Limits,
        kind: Kind::Value("D", |raw, value| store(&mut raw.common.timeout, time(value))),
        env: &["UNCUT_TIMEOUT"],
        default: Some("0"),
        help: "how long the whole run may take; 0: no limit",
        details: "Durations are 90, 90s, 5m or 1h30m; a plain number is seconds.",
        daily: true,
        ..ROW
    },
    Flag {
        long: "max-tokens",
        group: Group::Limits,
        kind: Kind::Value("N", |raw, value| store(&mut raw.settings.max_tokens, limit(value))),
        env: &["UNCUT_MAX_TOKENS"],
        default: Some("0"),
        help: "how many tokens one completion may take; 0: not sent",
        ..ROW
    },
    Flag {
        long: "max-total-tokens",
        group: Group::Limits,
        kind: Kind::Value("N", |raw, value| {
            store(&mut raw.settings.max_total_tokens, limit(value))
        }),
        env: &["UNCUT_MAX_TOTAL_TOKENS"],
        default: Some("0"),
        help: "how many tokens the run may take, prompts included; 0: no limit",
        details: "Counted as the endpoint reports them.",
        ..ROW
    },
    Flag {
        long: "request-timeout",
        group: Group::Limits,
        kind: Kind::Value("D", |raw, value| store(&mut raw.settings.request_timeout, time(value))),
        env: &["UNCUT_REQUEST_TIMEOUT"],
        default: Some("0"),
        help: "how long one request may take; 0: no limit",
        ..ROW
    },
    Flag {
        long: "idle-timeout",
        group: Group::Limits,
        kind: Kind::Value("D", |raw, value| store(&mut raw.settings.idle_timeout, time(value))),
        env: &["UNCUT_IDLE_TIMEOUT"],
        default: Some("300s"),
        help: "how long the endpoint may be silent; 0: no limit",
        ..ROW
    },
    Flag {
        long: "command-timeout",
        group: Group::Limits,
        kind: Kind::Value("D", |raw, value| store(&mut raw.settings.command_timeout, time(value))),
        env: &["UNCUT_COMMAND_TIMEOUT"],
        default: Some("120s"),
        help: "how long a command may take; 0: no limit",
        details: "The model may ask for up to 10 times as much.",
        ..ROW
    },
    Flag {
        long: "max-retries",
        group: Group::Limits,
        kind: Kind::Value("N", |raw, value| store(&mut raw.settings.max_retries, retries(value))),
        env: &["UNCUT_MAX_RETRIES"],
        default: Some("4"),
        help: "how many times a transient failure is retried",
        details: "The first pause is 0.5 s and each next one twice as long, unless the endpoint \
                  asks for another. Waiting for a server that loads its model does not count; it \
                  ends after 10 minutes.",
        ..ROW
    },
    Flag {
        long: "directory",
        group: Group::Work,
        short: Some('C'),
        kind: Kind::Value("DIR", |raw, value| store(&mut raw.directory, path(value))),
        default: Some("."),
        help: "the working directory of the run",
        details: "Other flags name files relative to where uncut was started.",
        daily: true,
        ..ROW
    },
    Flag {
        long: "verify",
        group: Group::Work,
        kind: Kind::Value("CMD", |raw, value| store(&mut raw.settings.verify, word(value))),
        env: &["UNCUT_VERIFY"],
        help: "a command that must exit with 0 before an answer counts",
        details: "It runs as the model's own commands do. If it fails, its output goes back to the \
                  model, and the model goes on.",
        daily: true,
        ..ROW
    },
    Flag {
        long: "verify-attempts",
        group: Group::Work,
        kind: Kind::Value("N", |raw, value| store(&mut raw.verify_attempts, count(value))),
        env: &["UNCUT_VERIFY_ATTEMPTS"],
        default: Some("3"),
        help: "how many answers may fail verification",
        ..ROW
    },
    Flag {
        long: "agents-md",
        group: Group::Work,
        kind: Kind::Value("FILE", |raw, value| path(value).map(|file| raw.agents_md.push(file))),
        help: "read FILE instead of the AGENTS.md files that would be found",
        repeatable: true,
        ..ROW
    },
    Flag {
        long: "no-agents-md",
        group: Group::Work,
        kind: Kind::Switch(|raw, origin| raw.no_agents_md = Some(origin.clone())),
        env: &["UNCUT_NO_AGENTS_MD"],
        help: "ignore AGENTS.md files",
        details: "The variable takes 1, true, yes, on or 0, false, no, off.",
        ..ROW
    },
    Flag {
        long: "system-prompt-file",
        group: Group::Work,
        kind: Kind::Value("FILE", |raw, value| {
            store(&mut raw.settings.system_prompt_file, path(value))
        }),
        help: "read the system prompt from FILE; AGENTS.md still follows",
        ..ROW
    },
    Flag {
        long: "session",
        group: Group::Session,
        kind: Kind::Value("FILE", |raw, value| store(&mut raw.settings.session, path(value))),
        env: &["UNCUT_SESSION"],
        help: "log the conversation in FILE; continue it if FILE exists",
        daily: true,
        ..ROW
    },
    Flag {
        long: "show-session",
        group: Group::Session,
        kind: Kind::Switch(|raw, origin| raw.show_session = Some(origin.clone())),
        help: "print the session in readable form, and exit",
        details: "The file is not locked and not changed. Long results and arguments are cut.",
        daily: true,
        ..ROW
    },
    Flag {
        long: "repair-session",
        group: Group::Session,
        kind: Kind::Switch(|raw, origin| raw.repair_session = Some(origin.clone())),
        help: "move the damaged part of the session to a file beside it",
        details: "It moves everything from the first damaged line on to FILE.damaged-1, -2 and so \
                  on. Then the run goes on if there is a prompt. Standard input is read only \
                  for -.",
        ..ROW
    },
    Flag {
        long: "output",
        group: Group::Output,
        kind: Kind::Value("FORMAT", |raw, value| store(&mut raw.common.format, format(value))),
        env: &["UNCUT_OUTPUT"],
        default: Some("text"),
        help: "the form of stdout: text, json or jsonl",
        details: "text: the answer. json: one object, the result, whatever the outcome. jsonl: \
                  one object on a line for each event, and the result as the last line.",
        daily: true,
        ..ROW
    },
    Flag {
        long: "output-file",
        group: Group::Output,
        short: Some('o'),
        kind: Kind::Value("FILE", |raw, value| store(&mut raw.common.output_file, path(value))),
        help: "also write the output of stdout to FILE",
        details: "At the end and as a whole, replacing FILE. A failing run in text format leaves \
                  FILE empty.",
        daily: true,
        ..ROW
    },
    Flag {
        long: "quiet",
        group: Group::Output,
        short: Some('q'),
        kind: Kind::Switch(|raw, origin| raw.common.quiet = Some(origin.clone())),
        help: "report errors only",
        daily: true,
        ..ROW
    },
    Flag {
        long: "verbose",
        group: Group::Output,
        short: Some('v'),
        kind: Kind::Switch(|raw, origin| raw.common.verbose = Some(origin.clone())),
        help: "report every step with its tokens",
        daily: true,
        ..ROW
    },
    Flag {
        long: "check",
        group: Group::Other,
        kind: Kind::Switch(|raw, origin| raw.check = Some(origin.clone())),
        help: "check whether the endpoint can serve a run, and exit",
        details: "It asks for two small completions and runs no tool.",
        daily: true,
        ..ROW
    },
    Flag {
        long: "help",
        group: Group::Other,
        short: Some('h'),
        kind: Kind::Switch(|raw, origin| {
            let full = matches!(origin, Origin::Flag(typed) if typed == "--help");
            raw.request = Some(Request::Help { full });
        }),
        help: "print the flags of daily use (-h) or everything (--help)",
        daily: true,
        ..ROW
    },
    Flag {
        long: "version",
        group: Group::Other,
        short: Some('V'),
        kind: Kind::Switch(|raw, _| raw.request = Some(Request::Version)),
        help: "print the version and exit",
        daily: true,
        ..ROW
    },
];

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::cli::args::flag::ArgValue;
    use crate::cli::args::resolve::RawArgs;

    #[test]
    fn names_are_unique_and_of_legal_characters() {
        let mut longs = Vec::new();
        let mut shorts = Vec::new();
        for flag in FLAGS {
            let legal = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(flag.long.len() >= 2 && flag.long.chars().all(legal), "{}", flag.long);
            assert!(flag.long.starts_with(|c: char| c.is_ascii_lowercase()), "{}", flag.long);
            assert!(!longs.contains(&flag.long), "{} stands twice", flag.long);
            longs.push(flag.long);
            if let Some(short) = flag.short {
                assert!(short.is_ascii_alphabetic(), "{short}");
                assert!(!shorts.contains(&short), "{short} stands twice");
                shorts.push(short);
            }
        }
    }

    #[test]
    fn a_variable_belongs_to_one_flag_and_our_own_carry_its_name() {
        let mut seen = Vec::new();
        for flag in FLAGS {
            for variable in flag.env {
                assert!(!seen.contains(variable), "{variable} stands twice");
                seen.push(variable);
            }
            if let Some(first) = flag.env.first() {
                let own = format!("UNCUT_{}", flag.long.to_uppercase().replace('-', "_"));
                assert_eq!(*first, own);
            }
        }
    }

    #[test]
    fn the_flags_of_a_group_stand_together() {
        assert!(FLAGS.is_sorted_by_key(|flag| flag.group));
    }

    #[test]
    fn every_flag_says_what_it_means() {
        for flag in FLAGS {
            assert!(!flag.help.is_empty() && flag.help.len() <= 66, "{}", flag.long);
            assert!(!flag.help.ends_with('.') && !flag.help.contains('\n'), "{}", flag.long);
            let details = flag.details;
            assert!(details.is_empty() || details.ends_with('.'), "{}", flag.long);
            if let Some(name) = flag.value_name() {
                let is_plain = |c: char| c.is_ascii_uppercase() || "': ".contains(c);
                assert!(name.chars().all(is_plain), "{}", flag.long);
            } else {
                assert!(flag.default.is_none() && !flag.repeatable, "{}", flag.long);
            }
        }
    }

    #[test]
    fn every_default_is_a_value_that_the_flag_takes() {
        for flag in FLAGS {
            if let (Some(default), Kind::Value(_, set)) = (flag.default, &flag.kind) {
                let origin = Origin::Default(flag.long);
                let value = ArgValue { text: OsStr::new(default), origin: &origin };
                assert_eq!(set(&mut RawArgs::default(), value), Ok(()), "{}", flag.long);
            }
        }
    }
}
