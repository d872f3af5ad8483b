//! The flags: one table, from which the parser, the environment, the help and the README come.
//!
//! A row says how a flag looks and what it means; its setter checks one value and stores it in the
//! [`Draft`]. A setter never names the flag, since the same value may have come from a variable:
//! whoever calls it does.

use std::ffi::OsStr;

use super::draft::{Draft, Special};
use super::options::Origin;
use super::values::{accept, count, format, limit, path, retries, store, text, time, word};
use crate::openai::Header;
use crate::wire::{ExtraBody, Stream};

/// One flag.
pub(super) struct Flag {
    /// The long name, without the dashes.
    pub(super) long: &'static str,
    /// The short name, without the dash.
    pub(super) short: Option<char>,
    /// What follows it, and what it does.
    pub(super) takes: Takes,
    /// The variables that stand in for it, the first one that is set.
    pub(super) env: &'static [&'static str],
    /// The value without flag and variable.
    pub(super) default: Option<&'static str>,
    /// What it means, in a few words.
    pub(super) help: &'static str,
    /// What else there is to know, in sentences.
    pub(super) details: &'static str,
    /// Whether giving it again adds to it; otherwise the last one counts.
    pub(super) repeatable: bool,
}

/// What follows a flag.
pub(super) enum Takes {
    /// Nothing: it is a switch.
    Nothing(fn(&mut Draft, &Origin)),
    /// A value, by the name that it has in the help.
    Value(&'static str, fn(&mut Draft, Given<'_>) -> Result<(), String>),
}

/// A value as it was given.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) text: &'a OsStr,
    pub(super) origin: &'a Origin,
}

/// What stands on the command line beside flags, and what it means.
pub(super) const OPERANDS: &[(&str, &str)] = &[
    ("PROMPT...", "the prompt; the words are joined by one space"),
    ("-", "read the prompt from standard input, or add that to the prompt, behind a blank line"),
    ("--", "every word after it belongs to the prompt"),
];

/// Filled up in the rows, which say only what is special about them.
const ROW: Flag = Flag {
    long: "",
    short: None,
    takes: Takes::Nothing(|_, _| ()),
    env: &[],
    default: None,
    help: "",
    details: "",
    repeatable: false,
};

/// Every flag, in the order of the help.
pub(super) const FLAGS: &[Flag] = &[
    Flag {
        long: "prompt-file",
        short: Some('f'),
        takes: Takes::Value("FILE", |draft, given| store(&mut draft.prompt_file, path(given))),
        help: "read the prompt from FILE",
        details: "A regular file of UTF-8, at most 16 MB; a byte order mark and line ends at the \
                  end are dropped. To read standard input, give - by itself.",
        ..ROW
    },
    Flag {
        long: "model",
        short: Some('m'),
        takes: Takes::Value("ID", |draft, given| store(&mut draft.model, word(given))),
        env: &["UNCUT_MODEL"],
        help: "the model to ask; required, except with --replay",
        ..ROW
    },
    Flag {
        long: "base-url",
        takes: Takes::Value("URL", |draft, given| {
            store(&mut draft.base_url, text(given).map(|url| (given.origin.clone(), url)))
        }),
        env: &["UNCUT_BASE_URL", "OPENAI_BASE_URL"],
        default: Some("https://api.openai.com/v1"),
        help: "the endpoint",
        details: "/chat/completions is added where it is missing, before any query string.",
        ..ROW
    },
    Flag {
        long: "api-key",
        takes: Takes::Value("KEY", |draft, given| {
            draft.common.api_key = Some((given.origin.clone(), given.text.to_owned()));
            Ok(())
        }),
        env: &["UNCUT_API_KEY", "OPENAI_API_KEY"],
        help: "the key to send; without one none is sent",
        details: "An empty KEY sends none. Other users of the machine can see the arguments of a \
                  program; a variable or a file is safer. In this order the first one counts: \
                  --api-key or --api-key-file, UNCUT_API_KEY, UNCUT_API_KEY_FILE, OPENAI_API_KEY.",
        ..ROW
    },
    Flag {
        long: "api-key-file",
        takes: Takes::Value("FILE", |draft, given| {
            store(&mut draft.common.api_key_file, path(given))
        }),
        env: &["UNCUT_API_KEY_FILE"],
        help: "read the key from FILE",
        ..ROW
    },
    Flag {
        long: "max-tokens",
        takes: Takes::Value("N", |draft, given| {
            store(&mut draft.settings.max_tokens, limit(given))
        }),
        env: &["UNCUT_MAX_TOKENS"],
        default: Some("0"),
        help: "the most tokens of one completion; 0 leaves it to the endpoint",
        ..ROW
    },
    Flag {
        long: "max-steps",
        takes: Takes::Value("N", |draft, given| store(&mut draft.max_steps, count(given))),
        env: &["UNCUT_MAX_STEPS"],
        default: Some("32"),
        help: "the most completions of the run",
        ..ROW
    },
    Flag {
        long: "max-total-tokens",
        takes: Takes::Value("N", |draft, given| {
            store(&mut draft.settings.max_total_tokens, limit(given))
        }),
        env: &["UNCUT_MAX_TOTAL_TOKENS"],
        default: Some("0"),
        help: "the most tokens of the run, prompts included; 0 is no limit",
        details: "Counted as the endpoint reports them.",
        ..ROW
    },
    Flag {
        long: "timeout",
        takes: Takes::Value("D", |draft, given| store(&mut draft.common.timeout, time(given))),
        env: &["UNCUT_TIMEOUT"],
        default: Some("0"),
        help: "the time that the whole run may take; 0 is no limit",
        details: "Durations are 90, 90s, 5m or 1h30m; a plain number is seconds.",
        ..ROW
    },
    Flag {
        long: "request-timeout",
        takes: Takes::Value("D", |draft, given| {
            store(&mut draft.settings.request_timeout, time(given))
        }),
        env: &["UNCUT_REQUEST_TIMEOUT"],
        default: Some("0"),
        help: "the time that one request may take; 0 is no limit",
        ..ROW
    },
    Flag {
        long: "idle-timeout",
        takes: Takes::Value("D", |draft, given| {
            store(&mut draft.settings.idle_timeout, time(given))
        }),
        env: &["UNCUT_IDLE_TIMEOUT"],
        default: Some("300s"),
        help: "the time that the endpoint may be silent; 0 is no limit",
        ..ROW
    },
    Flag {
        long: "command-timeout",
        takes: Takes::Value("D", |draft, given| {
            store(&mut draft.settings.command_timeout, time(given))
        }),
        env: &["UNCUT_COMMAND_TIMEOUT"],
        default: Some("120s"),
        help: "the time that a command may take; 0 is no limit",
        details: "The model may ask for up to 10 times as much.",
        ..ROW
    },
    Flag {
        long: "max-retries",
        takes: Takes::Value("N", |draft, given| {
            store(&mut draft.settings.max_retries, retries(given))
        }),
        env: &["UNCUT_MAX_RETRIES"],
        default: Some("4"),
        help: "how often a request that failed for now is sent again",
        details: "After 0.5 s, then twice as long each time, or as the endpoint asks. A server \
                  that loads its model is waited for beside that, for up to 10 minutes.",
        ..ROW
    },
    Flag {
        long: "no-stream",
        takes: Takes::Nothing(|draft, _| draft.settings.form.stream = Stream::Off),
        env: &["UNCUT_NO_STREAM"],
        help: "ask for one JSON body in place of a stream",
        details: "Without a stream a slow model is silent until it is done; see --idle-timeout.",
        ..ROW
    },
    Flag {
        long: "extra-body",
        takes: Takes::Value("JSON", |draft, given| {
            store(
                &mut draft.settings.form.extra_body,
                text(given).and_then(|json| ExtraBody::parse(&json)),
            )
        }),
        env: &["UNCUT_EXTRA_BODY"],
        help: "members to add to every request, such as temperature and seed",
        details: "A JSON object. What the run itself sets can't be set in it.",
        ..ROW
    },
    Flag {
        long: "header",
        takes: Takes::Value("'NAME: VALUE'", |draft, given| {
            let header = text(given).and_then(|header| Header::parse(&header))?;
            draft.settings.headers.push(header);
            Ok(())
        }),
        help: "a header to add to every request",
        details: "An Authorization header takes the place of the key.",
        repeatable: true,
        ..ROW
    },
    Flag {
        long: "accept",
        takes: Takes::Value("QUIRK", accept),
        env: &["UNCUT_ACCEPT"],
        help: "an oddity of the endpoint to live with",
        details: "missing-ids: tool calls without an id. finish-reason:WORD: an unknown finish \
                  reason, taken for stop. no-reasoning-echo: earlier reasoning is not sent back, \
                  for endpoints that refuse it. Several are separated by commas.",
        repeatable: true,
        ..ROW
    },
    Flag {
        long: "ca-file",
        takes: Takes::Value("FILE", |draft, given| store(&mut draft.settings.ca_file, path(given))),
        env: &["UNCUT_CA_FILE", "SSL_CERT_FILE"],
        help: "trust the issuers in FILE too, beside those built in",
        details: "PEM. For TLS, what is in the directories of SSL_CERT_DIR is trusted as well.",
        ..ROW
    },
    Flag {
        long: "directory",
        short: Some('C'),
        takes: Takes::Value("DIR", |draft, given| store(&mut draft.directory, path(given))),
        default: Some("."),
        help: "the working directory of the run",
        details: "Files named by other flags are looked up where uncut was started.",
        ..ROW
    },
    Flag {
        long: "session",
        takes: Takes::Value("FILE", |draft, given| store(&mut draft.settings.session, path(given))),
        env: &["UNCUT_SESSION"],
        help: "log the conversation in FILE, and go on with it when FILE exists",
        ..ROW
    },
    Flag {
        long: "repair-session",
        takes: Takes::Nothing(|draft, origin| draft.repair_session = Some(origin.clone())),
        help: "move what is damaged of the session to a file beside it",
        details: "From the first line that can't be read to the end, into FILE.damaged-1, -2 and \
                  so on. Then the run goes on, if there is a prompt; standard input is only read \
                  for -.",
        ..ROW
    },
    Flag {
        long: "show-session",
        takes: Takes::Nothing(|draft, origin| draft.show_session = Some(origin.clone())),
        help: "print the session readably and exit",
        details: "It is neither locked nor changed. Long results and arguments are cut.",
        ..ROW
    },
    Flag {
        long: "agents-md",
        takes: Takes::Value("FILE", |draft, given| {
            path(given).map(|file| draft.agents_md.push(file))
        }),
        help: "read FILE in place of the AGENTS.md files that would be found",
        repeatable: true,
        ..ROW
    },
    Flag {
        long: "no-agents-md",
        takes: Takes::Nothing(|draft, origin| draft.no_agents_md = Some(origin.clone())),
        env: &["UNCUT_NO_AGENTS_MD"],
        help: "read no AGENTS.md",
        details: "The variable takes 1, true, yes, on or 0, false, no, off.",
        ..ROW
    },
    Flag {
        long: "system-prompt-file",
        takes: Takes::Value("FILE", |draft, given| {
            store(&mut draft.settings.system_prompt_file, path(given))
        }),
        help: "read the system prompt from FILE; AGENTS.md still follows",
        ..ROW
    },
    Flag {
        long: "output",
        takes: Takes::Value("FORMAT", |draft, given| {
            store(&mut draft.common.format, format(given))
        }),
        env: &["UNCUT_OUTPUT"],
        default: Some("text"),
        help: "what stands on stdout: text, json or jsonl",
        details: "text: the answer. json: the result, one object, whatever the outcome. jsonl: \
                  each event as an object on a line, and last the result.",
        ..ROW
    },
    Flag {
        long: "output-file",
        short: Some('o'),
        takes: Takes::Value("FILE", |draft, given| {
            store(&mut draft.common.output_file, path(given))
        }),
        help: "write what goes to stdout to FILE as well",
        details: "At the end and as a whole, in place of what FILE held before. A run that fails \
                  has no text for it, and leaves it empty.",
        ..ROW
    },
    Flag {
        long: "verify",
        takes: Takes::Value("CMD", |draft, given| store(&mut draft.settings.verify, word(given))),
        env: &["UNCUT_VERIFY"],
        help: "a command that has to exit with 0 before an answer counts",
        details: "It runs as one of the model's would. What it prints otherwise goes back to the \
                  model, which goes on.",
        ..ROW
    },
    Flag {
        long: "verify-attempts",
        takes: Takes::Value("N", |draft, given| store(&mut draft.verify_attempts, count(given))),
        env: &["UNCUT_VERIFY_ATTEMPTS"],
        default: Some("3"),
        help: "so many answers may fail --verify",
        ..ROW
    },
    Flag {
        long: "check",
        takes: Takes::Nothing(|draft, origin| draft.check = Some(origin.clone())),
        help: "see whether the endpoint is fit for a run, and exit",
        details: "Two small completions are asked for, and no tool is run.",
        ..ROW
    },
    Flag {
        long: "replay",
        takes: Takes::Value("FILE", |draft, given| store(&mut draft.replay, path(given))),
        help: "take the completions from FILE, line by line, with no network",
        ..ROW
    },
    Flag {
        long: "quiet",
        short: Some('q'),
        takes: Takes::Nothing(|draft, origin| draft.common.quiet = Some(origin.clone())),
        help: "report errors only",
        ..ROW
    },
    Flag {
        long: "verbose",
        short: Some('v'),
        takes: Takes::Nothing(|draft, origin| draft.common.verbose = Some(origin.clone())),
        help: "report every step with its tokens",
        ..ROW
    },
    Flag {
        long: "help",
        short: Some('h'),
        takes: Takes::Nothing(|draft, _| draft.special = Some(Special::Help)),
        help: "print this text and exit",
        ..ROW
    },
    Flag {
        long: "version",
        short: Some('V'),
        takes: Takes::Nothing(|draft, _| draft.special = Some(Special::Version)),
        help: "print the version and exit",
        ..ROW
    },
];

#[cfg(test)]
mod tests {
    use super::*;

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
    fn every_flag_says_what_it_means() {
        for flag in FLAGS {
            assert!(!flag.help.is_empty() && flag.help.len() <= 66, "{}", flag.long);
            assert!(!flag.help.ends_with('.') && !flag.help.contains('\n'), "{}", flag.long);
            let details = flag.details;
            assert!(details.is_empty() || details.ends_with('.'), "{}", flag.long);
            if let Takes::Value(name, _) = flag.takes {
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
            if let (Some(default), Takes::Value(_, set)) = (flag.default, &flag.takes) {
                let origin = Origin::Default(flag.long);
                let given = Given { text: OsStr::new(default), origin: &origin };
                assert_eq!(set(&mut Draft::default(), given), Ok(()), "{}", flag.long);
            }
        }
    }
}
