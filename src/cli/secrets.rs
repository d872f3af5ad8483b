//! Everything that is secret, collected before anything is said, written or sent.

use std::ffi::OsString;
use std::path::Path;

use super::args::flags::FLAGS;
use super::args::parse::lookup;
use super::args::{Origin, Request, UsageError};
use super::inputs::{self, BaseDir};
use crate::openai::{self, Header};
use crate::secret::{Hidden, Mask, Secret, is_placeholder};
use crate::tools;

/// The fewest characters of a variable's value that is masked.
const VARIABLE_MIN: usize = 12;

/// What was found.
pub(super) struct Secrets {
    pub(super) mask: Mask,
    /// The key that is sent and where it came from, or why it can't be used.
    pub(super) key: Result<Option<(Secret, Origin)>, UsageError>,
}

/// Collects them, from flags, the environment and the key file, whether they will be used or not:
/// so that no message shows one, not even about a line that was not understood.
pub(super) fn collect(
    args: &[OsString],
    env: &[(OsString, OsString)],
    request: Option<&Request>,
    start: BaseDir<'_>,
) -> Secrets {
    let common = request.and_then(Request::common);
    let key = common.map_or(Ok(None), |common| inputs::key(&common.key, start));
    let sent = key.iter().flatten().map(|(secret, _)| secret.expose().to_owned());
    let keys = given("api-key", args, env).into_iter().map(|key| key.trim().to_owned());
    let keys = sent.chain(keys).filter_map(|key| Hidden::key(&key));
    let urls = given("base-url", args, env).into_iter().chain(proxies(env));
    let urls = urls.flat_map(openai::secrets_of_url);
    let headers = given("header", args, env).into_iter();
    let headers = headers.filter_map(|header| Header::parse(header).ok());
    let headers = headers.flat_map(|header| header.secrets());
    let directory = request.and_then(Request::directory).map(|path| start.resolve(path));
    let directory = directory.as_deref().or(start.0);
    let variables = env.iter().filter_map(|(name, value)| name.to_str().zip(value.to_str()));
    let variables = variables.flat_map(|(name, value)| variable(name, value, directory));
    let all = keys.chain(urls).chain(headers).chain(variables);
    let mask = Mask::new(all.map(Some)).with_names(&tools::NAMES);
    Secrets { mask, key }
}

/// What is secret of a variable, by its name and its value.
fn variable(name: &str, value: &str, directory: Option<&Path>) -> Vec<Hidden> {
    let value = value.trim();
    let is_short = value.chars().count() < VARIABLE_MIN;
    if !is_secret(name) || is_short || is_placeholder(value) || Path::new(value).is_absolute() {
        return Vec::new();
    }
    // A folder may be called like a project whose name is in the variable.
    if directory.is_some_and(|path| path.display().to_string().contains(value)) {
        return Vec::new();
    }
    let mut all = Vec::new();
    if value.contains("://") && !value.contains('\n') {
        for part in openai::parts_of_url(value) {
            all.extend(Hidden::variable(name, &part));
        }
        if all.is_empty() {
            return all;
        }
    }
    all.extend(Hidden::variable(name, value));
    all
}

/// Whether the name of a variable says that its value is secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let ends = |word: &&str| {
        name.strip_suffix(*word).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
    };
    name.contains("PASSWORD") || ["TOKEN", "KEY", "SECRET", "CREDENTIALS"].iter().any(ends)
}

/// The URLs of proxies, whichever of them will be used.
fn proxies(env: &[(OsString, OsString)]) -> impl Iterator<Item = &str> {
    let is_proxy = |name: &str| name.to_ascii_lowercase().ends_with("_proxy");
    let variables = env.iter().filter(move |(name, _)| name.to_str().is_some_and(is_proxy));
    variables.filter_map(|(_, url)| url.to_str())
}

/// Every value that a flag may have been given, as far as it is UTF-8.
fn given<'a>(long: &str, args: &'a [OsString], env: &'a [(OsString, OsString)]) -> Vec<&'a str> {
    let flag = FLAGS.iter().filter(|flag| flag.long == long);
    let variables = flag.flat_map(|flag| flag.env);
    let variables = variables.filter_map(|name| lookup(env, name)?.to_str());
    let name = format!("--{long}");
    let attached =
        args.iter().filter_map(|word| word.to_str()?.strip_prefix(&*name)?.strip_prefix('='));
    let following = args.windows(2).filter(|pair| pair[0] == *name);
    let following = following.filter_map(|pair| pair[1].to_str());
    variables.chain(attached).chain(following).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_secret_by_its_name_and_its_value() {
        let long = "abcdef-123456";
        for name in [
            "GITHUB_TOKEN",
            "token",
            "Npm_Key",
            "KEY",
            "DB_PASSWORD_2",
            "mypassword",
            "X_SECRET",
            "AWS_CREDENTIALS",
        ] {
            assert_eq!(variable(name, long, None).len(), 1, "{name}");
        }
        for name in ["MONKEY", "TOKENS", "TOKEN_FILE", "KEYBOARD", "HOME", "PASSWD"] {
            assert_eq!(variable(name, long, None), [], "{name}");
        }
        let here = Some(Path::new("/work/abcdef-123456/x"));
        assert_eq!(variable("KEY", long, here), []);
        for value in [
            "abcdef-1234",
            "/abcdef/123456",
            "https://host.example/abcdef",
            "xxxxxxxxxxxxxxx",
            "No-Key-Required",
        ] {
            assert_eq!(variable("KEY", value, here), [], "{value}");
        }
        let url = "https://user:p%40ss-word-1@host.example/";
        let mask = Mask::new(variable("KEY", url, here).into_iter().map(Some));
        for text in [url, "p%40ss-word-1", "p@ss-word-1"] {
            assert_eq!(mask.text(text), "[KEY]");
        }
    }
}
