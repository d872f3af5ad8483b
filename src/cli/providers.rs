//! Where completions come from, made from options; and what its failures mean to the user.

use std::ffi::OsString;

use super::args::parse;
use super::args::{Completions, Options, Origin, PathArg, UsageError};
use super::certificates::{self, Certificates};
use super::failure::Failure;
use super::inputs;
use super::inputs::Inputs;
use super::report::Reporter;
use crate::error::Error;
use crate::openai::{Endpoint, OpenAi, Settings};
use crate::provider::{Meaning, Provider, ProviderError, StatusError};
use crate::proxy::Proxy;
use crate::replay::Replay;
use crate::secret::Secret;

/// The endpoint, or the recording in place of one.
pub(super) fn provider(
    options: &Options,
    inputs: &Inputs<'_>,
    key: Option<Secret>,
    reporter: &mut Reporter<'_>,
) -> Result<Box<dyn Provider>, UsageError> {
    match &options.completions {
        Completions::Replay(PathArg { origin, path }) => {
            let path = inputs.base_dir().resolve(path);
            let replay = Replay::open(&path);
            let replay = replay.map_err(|error| inputs::unusable(origin, &path, error))?;
            Ok(Box::new(replay.with_mask(reporter.mask().clone())))
        }
        Completions::Endpoint(endpoint) => {
            Ok(Box::new(openai(options, endpoint, inputs, key, reporter)?))
        }
    }
}

/// The endpoint.
pub(super) fn openai(
    options: &Options,
    endpoint: &Endpoint,
    inputs: &Inputs<'_>,
    key: Option<Secret>,
    reporter: &mut Reporter<'_>,
) -> Result<OpenAi, UsageError> {
    let proxy = proxy(inputs.env, endpoint)?;
    let tls = endpoint.is_https() || proxy.as_ref().is_some_and(|proxy| proxy.https);
    let Certificates { roots, warnings } = certificates(options, inputs, tls)?;
    reporter.warnings(&warnings);
    let settings = Settings {
        endpoint: endpoint.clone(),
        key,
        idle_timeout: options.settings.idle_timeout,
        request_timeout: options.settings.request_timeout,
        max_retries: options.settings.max_retries,
        form: options.settings.form.clone(),
        headers: options.settings.headers.clone(),
        proxy,
        roots,
        mask: reporter.mask().clone(),
    };
    OpenAi::new(settings).map_err(|problem| UsageError::new("endpoint", problem))
}

fn certificates(
    options: &Options,
    inputs: &Inputs<'_>,
    tls: bool,
) -> Result<Certificates, UsageError> {
    let mut certificates = Certificates::default();
    if let Some(file) = &options.settings.ca_file {
        certificates.add_file(file, inputs.base_dir(), tls)?;
    }
    if let Some(list) = parse::lookup(inputs.env, certificates::DIRECTORIES)
        && tls
    {
        certificates.add_directories(list, inputs.base_dir());
    }
    Ok(certificates)
}

fn proxy(env: &[(OsString, OsString)], endpoint: &Endpoint) -> Result<Option<Proxy>, UsageError> {
    let lookup = |name: &str| {
        let (_, value) = env.iter().find(|(other, _)| other == name)?;
        Some(value.clone())
    };
    Proxy::from_env(&lookup, endpoint.is_https(), endpoint.host(), endpoint.port())
        .map_err(|problem| UsageError::new("proxy", problem))
}

/// What to do about credentials that were refused: it depends on which were sent.
pub(super) fn credentials(options: &Options, key: Option<&Origin>) -> String {
    match (key, &options.completions) {
        (_, Completions::Replay(_)) => "the recorded response says so".to_owned(),
        (Some(origin), _) => format!("check the key, which came from {origin}"),
        (None, Completions::Endpoint(endpoint)) if endpoint.has_user() => {
            "check the user and password in the base URL".to_owned()
        }
        (None, _) => "no key was sent; set UNCUT_API_KEY".to_owned(),
    }
}

pub(super) fn failure(error: Error, credentials: &str) -> Failure {
    let refused = matches!(
        &error,
        Error::Provider(ProviderError::Status(StatusError {
            status: 401 | 403,
            meaning: Meaning::Refused,
            ..
        }))
    );
    let failure = Failure::from(error);
    if refused { Failure { advice: Some(credentials.to_owned()), ..failure } } else { failure }
}
