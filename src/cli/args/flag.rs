//! What a flag is: its names, its place in the help, and where its value goes.

use std::ffi::OsStr;

use super::Origin;
use super::resolve::RawArgs;

/// One flag.
pub(in crate::cli) struct Flag {
    /// The heading below which it stands in the help.
    pub(in crate::cli) group: Group,
    /// Whether `-h` lists it; `--help` lists every flag.
    pub(in crate::cli) daily: bool,
    /// The long name, without the dashes.
    pub(in crate::cli) long: &'static str,
    /// The short name, without the dash.
    pub(in crate::cli) short: Option<char>,
    /// Whether it takes a value, and where that goes.
    pub(super) kind: Kind,
    /// The variables that stand in for it, the first one that is set.
    pub(in crate::cli) env: &'static [&'static str],
    /// The value without flag and variable.
    pub(in crate::cli) default: Option<&'static str>,
    /// What it means, in a few words.
    pub(in crate::cli) help: &'static str,
    /// What else there is to know, in sentences.
    pub(in crate::cli) details: &'static str,
    /// Whether giving it again adds to it; otherwise the last one counts.
    pub(in crate::cli) repeatable: bool,
}

impl Flag {
    /// The name of the value in the help; none for a switch.
    pub(in crate::cli) fn value_name(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Value(name, _) => Some(name),
            Kind::Switch(_) => None,
        }
    }
}

/// What flags are about, in the order of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum Group {
    Prompt,
    Endpoint,
    Limits,
    Work,
    Session,
    Output,
    Other,
}

impl Group {
    /// The heading in the help.
    pub(in crate::cli) fn title(self) -> &'static str {
        match self {
            Group::Prompt => "Prompt",
            Group::Endpoint => "Model and endpoint",
            Group::Limits => "Limits",
            Group::Work => "Working directory and verification",
            Group::Session => "Session",
            Group::Output => "Output",
            Group::Other => "Other",
        }
    }
}

/// Whether a value follows a flag.
pub(super) enum Kind {
    /// No value.
    Switch(fn(&mut RawArgs, &Origin)),
    /// A value, by the name that it has in the help.
    Value(&'static str, fn(&mut RawArgs, ArgValue<'_>) -> Result<(), String>),
}

/// A value as it was given.
#[derive(Clone, Copy)]
pub(super) struct ArgValue<'a> {
    pub(super) text: &'a OsStr,
    pub(super) origin: &'a Origin,
}

/// Filled up in the rows, which say only what is special about them.
pub(super) const ROW: Flag = Flag {
    group: Group::Other,
    daily: false,
    long: "",
    short: None,
    kind: Kind::Switch(|_, _| ()),
    env: &[],
    default: None,
    help: "",
    details: "",
    repeatable: false,
};
