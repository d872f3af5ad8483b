//! Chat completions over HTTP.
//!
//! The only code that names the HTTP and the TLS library. None of their defaults is relied upon:
//! they turn a refusal into an error without its body, follow redirects, read the proxy variables
//! in their own way, wait for ever and replace what is not UTF-8. Everything is spelled out in
//! `agent` and `OpenAi::post`.
//!
//! One request has one connection. Keeping it for the next saves a handshake that no model's
//! answer lets anybody notice, and costs an error each time the other side has closed it.

mod endpoint;
mod fallback;
mod headers;

use std::fmt;
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ureq::config::{Config, IpFamily};
use ureq::http::{HeaderMap, HeaderValue, Response, Uri, header};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body, ProxyProtocol};

use crate::provider::{Completion, CompletionRequest, Notice, Provider, ProviderError};
use crate::proxy::Proxy;
use crate::retry;
use crate::secret::{Mask, Secret};
use crate::time::{Deadline, parse_http_date};
use crate::wire::{self, RequestForm};

pub use endpoint::Endpoint;
pub use headers::Header;

/// The most bytes of a body that are read.
const BODY_MAX: usize = 64 << 20;

/// How much of a body that is too large stands in the error.
const EXCESS_KEPT: usize = 64 << 10;

/// How long finding and reaching the other side may take, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest limit that is passed on. The clock of the library can't tell a time that lies too
/// far ahead.
const LIMIT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What there is to choose. `Debug` shows no secret.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the requests go.
    pub endpoint: Endpoint,
    /// Sent as Bearer. Where there is a key, user and password of the URL are not sent.
    pub key: Option<Secret>,
    /// How long the endpoint may be silent.
    pub idle_timeout: Option<Duration>,
    /// How long one request may take, from looking the host up to the last byte of the body.
    pub request_timeout: Option<Duration>,
    /// How often a request is sent again.
    pub max_retries: u32,
    /// What of a request there is to choose.
    pub form: RequestForm,
    /// Further headers of every request; of one that we would send too, only this is sent.
    pub headers: Vec<Header>,
    /// The proxy to go through.
    pub proxy: Option<Proxy>,
    /// What is masked in requests and in errors, beside the key and what the URLs hold.
    pub mask: Mask,
}

/// An OpenAI-compatible endpoint.
pub struct OpenAi {
    settings: Settings,
    agent: Agent,
    uri: Uri,
    authorization: Option<HeaderValue>,
}

impl OpenAi {
    /// Prepares everything; nothing is sent or looked up.
    ///
    /// # Errors
    ///
    /// What of the settings can't be used, without any part of a URL or key.
    pub fn new(mut settings: Settings) -> Result<OpenAi, String> {
        settings.mask.extend(settings.key.clone());
        settings.mask.extend(settings.endpoint.secrets());
        settings.mask.extend(settings.headers.iter().filter_map(Header::secret));
        settings.mask.extend(settings.proxy.iter().flat_map(Proxy::secrets));
        let uri = settings.endpoint.url().parse().map_err(|_| "the base URL is not a URL")?;
        let proxy = settings.proxy.as_ref().map(proxy).transpose()?;
        let (key, basic) = (settings.key.as_ref(), settings.endpoint.basic());
        let authorization = key
            .map(|key| format!("Bearer {}", key.expose()))
            .or_else(|| basic.map(|basic| format!("Basic {}", basic.expose())));
        let authorization = authorization.map(sensitive).transpose()?;
        Ok(OpenAi { agent: agent(proxy), uri, authorization, settings })
    }

    /// Everything that is masked: what the settings say, the key, and what the URLs hold.
    pub fn mask(&self) -> &Mask {
        &self.settings.mask
    }

    /// Sends the body once and reads what comes back.
    fn attempt(&self, body: &[u8], deadline: Deadline) -> Result<Completion, ProviderError> {
        let limits = Limits::new(&self.settings, deadline);
        let response = self
            .post(body, &limits)
            .map_err(|error| self.error(error, "no response from", &limits))?;
        let (parts, body) = response.into_parts();
        let (body, end) = read(body);
        let length = body.len();
        let status = parts.status.as_u16();
        if status != 200 {
            // However the body ended, the status is what matters.
            let location = parts.headers.get(header::LOCATION).map(shown);
            let retry_after = retry_after(&parts.headers);
            return Err(wire::status_error(status, location, retry_after, body));
        }
        if let Err(error) = end {
            let doing = format!("after {length} bytes of the response of");
            return Err(self.error(error, &doing, &limits));
        }
        if length > BODY_MAX {
            let detail = format!("the response is larger than {} MB", BODY_MAX >> 20);
            let body = body[..EXCESS_KEPT].to_vec();
            return Err(ProviderError::Response { detail, body });
        }
        if let Some(encoding) = encoding(&parts.headers) {
            let detail = format!("the response is encoded as {encoding}, which was not asked for");
            return Err(ProviderError::Response { detail, body });
        }
        if is_cut(&parts.headers, &body) {
            let detail = format!("{} closed the connection in the middle", self.settings.endpoint);
            return Err(ProviderError::Transport { detail });
        }
        wire::completion(body)
    }

    fn post(&self, body: &[u8], limits: &Limits) -> Result<Response<Body>, ureq::Error> {
        let mut request = self
            .agent
            .post(&self.uri)
            .config()
            .timeout_global(limits.whole)
            .timeout_per_call(None)
            .timeout_resolve(Some(limits.connect))
            .timeout_connect(Some(limits.connect))
            .timeout_send_request(None)
            .timeout_await_100(None)
            .timeout_send_body(None)
            .timeout_recv_response(None)
            .timeout_recv_body(None)
            .timeout_per_read(limits.idle)
            .timeout_per_write(limits.idle)
            .build()
            .header(header::CONTENT_TYPE, "application/json");
        let own = self.authorization.as_ref().map(|value| (header::AUTHORIZATION, value));
        let own = own.filter(|(name, _)| !self.settings.headers.iter().any(|h| h.name == name));
        let given = self.settings.headers.iter().map(|header| (header.name.clone(), &header.value));
        for (name, value) in given.chain(own) {
            request = request.header(name, value);
        }
        request.send(body)
    }

    /// What the failure of a request means; `doing` comes before the name of the other side.
    fn error(&self, error: ureq::Error, doing: &str, limits: &Limits) -> ProviderError {
        let endpoint = &self.settings.endpoint;
        let reason = match error {
            ureq::Error::Timeout(timeout) => match limits.error(timeout) {
                Some(error) => return error,
                None => format!("no connection within {CONNECT_TIMEOUT:?}"),
            },
            ureq::Error::Protocol(error) => {
                let detail = format!("{doing} {endpoint}: what came is not HTTP: {error}");
                return ProviderError::Response { detail, body: Vec::new() };
            }
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                "the connection was closed".to_owned()
            }
            ureq::Error::Io(error) => error.to_string(),
            other => other.to_string(),
        };
        let proxy = self.settings.proxy.as_ref();
        let through = proxy.map(|proxy| format!(" through the proxy {}", proxy.authority()));
        let through = through.unwrap_or_default();
        ProviderError::Transport { detail: format!("{doing} {endpoint}{through}: {reason}") }
    }
}

impl Provider for OpenAi {
    fn complete(&mut self, request: &CompletionRequest<'_>) -> Result<Completion, ProviderError> {
        loop {
            let body = wire::request_body(request, &self.settings.form, &self.settings.mask);
            let attempt = || self.attempt(&body, request.deadline);
            let result =
                retry::run(self.settings.max_retries, request.deadline, request.notify, attempt);
            let error = match result {
                Ok(completion) => return Ok(completion),
                Err(error) => error,
            };
            // Each of these can happen once, and is remembered for the rest of the run.
            match fallback::after(&self.settings.form, &error) {
                Some((form, what)) => {
                    (request.notify.0)(&Notice::Without { what });
                    self.settings.form = form;
                }
                None => return Err(error.masked(&self.settings.mask)),
            }
        }
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenAi").field(&self.settings).finish()
    }
}

/// The time limits of one request.
struct Limits {
    /// The shorter of what is left of the run and the limit of a request.
    whole: Option<Duration>,
    whole_is_deadline: bool,
    idle: Option<Duration>,
    connect: Duration,
}

impl Limits {
    fn new(settings: &Settings, deadline: Deadline) -> Limits {
        let capped = |limit: Option<Duration>| limit.map(|limit| limit.min(LIMIT_MAX));
        let (left, request) = (deadline.remaining(), settings.request_timeout);
        let whole_is_deadline =
            left.is_some_and(|left| request.is_none_or(|request| left <= request));
        let idle = capped(settings.idle_timeout);
        Limits {
            whole: capped(if whole_is_deadline { left } else { request }),
            whole_is_deadline,
            idle,
            connect: idle.map_or(CONNECT_TIMEOUT, |idle| idle.min(CONNECT_TIMEOUT)),
        }
    }

    /// The error for a limit of ours; none where it is the fixed one of connecting.
    fn error(&self, timeout: ureq::Timeout) -> Option<ProviderError> {
        match timeout {
            ureq::Timeout::Global if self.whole_is_deadline => Some(ProviderError::Deadline),
            ureq::Timeout::Global => {
                let after = self.whole?;
                Some(ProviderError::Timeout { limit: "--request-timeout", after })
            }
            // Connecting is limited by whichever is shorter.
            ureq::Timeout::Resolve | ureq::Timeout::Connect if self.connect == CONNECT_TIMEOUT => {
                None
            }
            _ => Some(ProviderError::Timeout { limit: "--idle-timeout", after: self.idle? }),
        }
    }
}

/// How long the endpoint asks to wait: `retry-after-ms` as OpenAI and Azure have it, or
/// `retry-after` in seconds, whole or not, or as a date (RFC 9110 section 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str, unit: f64| {
        let seconds: f64 = text.parse::<f64>().ok()? * unit;
        Duration::try_from_secs_f64(seconds).ok()
    };
    if let Some(wait) = text("retry-after-ms").and_then(|text| number(text, 0.001)) {
        return Some(wait);
    }
    let text = text("retry-after")?;
    number(text, 1.0).or_else(|| {
        let date = parse_http_date(text)?;
        // A date that has passed asks for no pause.
        Some(date.duration_since(SystemTime::now()).unwrap_or_default())
    })
}

/// A header for people.
fn shown(value: &HeaderValue) -> String {
    value.as_bytes().escape_ascii().to_string()
}

/// Reads a body to its end or the limit, whichever comes first, and keeps what came.
fn read(body: Body) -> (Vec<u8>, Result<(), ureq::Error>) {
    let mut bytes = Vec::new();
    let end = body.into_reader().take(BODY_MAX as u64 + 1).read_to_end(&mut bytes);
    (bytes, end.map(drop).map_err(ureq::Error::from))
}

/// The encoding of the body, where there is one.
fn encoding(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_ENCODING)?;
    let plain = value.is_empty() || value.as_bytes().eq_ignore_ascii_case(b"identity");
    (!plain).then(|| value.as_bytes().escape_ascii().to_string())
}

/// Whether a body that only the end of the connection delimits was cut off by it.
fn is_cut(headers: &HeaderMap, body: &[u8]) -> bool {
    let delimited = headers.contains_key(header::CONTENT_LENGTH)
        || headers.contains_key(header::TRANSFER_ENCODING);
    let is_eof = |error: serde_json::Error| error.is_eof();
    !delimited && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_err_and(is_eof)
}

fn sensitive(value: String) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::try_from(value).map_err(|_| "the key fits in no header")?;
    value.set_sensitive(true);
    Ok(value)
}

fn proxy(proxy: &Proxy) -> Result<ureq::Proxy, String> {
    let protocol = if proxy.https { ProxyProtocol::Https } else { ProxyProtocol::Http };
    let mut builder = ureq::Proxy::builder(protocol)
        .host(&crate::url::bracketed(&proxy.host))
        .port(proxy.port)
        .resolve_target(false);
    if let Some(user_info) = &proxy.user_info {
        builder = builder.username(&user_info.user).password(&user_info.password);
    }
    builder.build().map_err(|_| "the proxy can't be used".to_owned())
}

fn agent(proxy: Option<ureq::Proxy>) -> Agent {
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::WebPki)
        .client_cert(None)
        .use_sni(true)
        .disable_verification(false)
        .build();
    let config = Config::builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .https_only(false)
        .ip_family(IpFamily::Any)
        .tls_config(tls)
        .proxy(proxy)
        .no_delay(true)
        .user_agent(concat!("uncut/", env!("CARGO_PKG_VERSION")))
        .accept("application/json")
        // Without the header any encoding would be acceptable.
        .accept_encoding("identity")
        .max_response_header_size(64 << 10)
        .input_buffer_size(64 << 10)
        .output_buffer_size(64 << 10)
        .max_idle_connections(0)
        .max_idle_connections_per_host(0)
        .build();
    Agent::with_parts(config, DefaultConnector::new(), Lookup(DefaultResolver::default()))
}

/// Looks hosts up as the system does, but knows `localhost` by itself: an empty container has no
/// file that lists it, and some servers listen on one of its two addresses only.
#[derive(Debug)]
struct Lookup(DefaultResolver);

impl Resolver for Lookup {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().unwrap_or_default();
        if host != "localhost" {
            let error = |error| match error {
                ureq::Error::Io(source) => {
                    let text = format!("can't look up {host}: {source}");
                    ureq::Error::Io(io::Error::new(source.kind(), text))
                }
                other => other,
            };
            return self.0.resolve(uri, config, timeout).map_err(error);
        }
        let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(default);
        let mut addresses = self.empty();
        // The old one first: without IPv6 in the kernel the other is an error and not a refusal.
        addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        addresses.push(SocketAddr::from((Ipv6Addr::LOCALHOST, port)));
        Ok(addresses)
    }
}
