//! Chat completions over HTTP.
//!
//! The only code that names the HTTP and the TLS library. None of their defaults is relied upon:
//! they turn a refusal into an error without its body, follow redirects, read the proxy variables
//! in their own way, wait for ever and replace what is not UTF-8. Everything is spelled out in
//! `agent` and `OpenAi::post`, and connections are opened by `Connect`.
//!
//! A connection is kept for the next request when its response has been read to the end. One that
//! the other side has closed by then costs nothing: that is seen before it is used again, or else
//! the request goes out once more on a new one.

mod body;
mod connect;
mod deadline;
mod dial;
mod endpoint;
mod errors;
mod fallback;
mod headers;
mod limits;
mod lookup;
mod plain;
mod progress;
mod tls;
mod tunnel;

use std::fmt;
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ureq::config::{Config, IpFamily};
use ureq::http::{HeaderMap, HeaderValue, Response, Uri, header};
use ureq::{Agent, Body};

use crate::provider::{Completion, CompletionRequest, Notice, Notify, Provider, ProviderError};
use crate::proxy::Proxy;
use crate::retry;
use crate::secret::{Mask, Secret};
use crate::time::Deadline;
use crate::wire::{self, RequestForm};

use body::{BodyError, BodyReader, encoding, is_chunked, is_cut, retry_after, shown};
use connect::Connect;
use deadline::ReadDeadline;
pub(crate) use endpoint::parts_of_url;
pub use endpoint::{Endpoint, secrets_of_url};
use errors::is_closed;
pub use headers::Header;
use limits::{CONNECT_TIMEOUT, Limits};
use lookup::NoLookup;
pub use progress::Progress;
use progress::SharedProgress;
pub use tls::Roots;
use tls::Tls;
use tunnel::ProxyHop;

/// The `User-Agent`.
const USER_AGENT: &str = concat!("uncut/", env!("CARGO_PKG_VERSION"));

/// The most bytes of a body that are read.
const BODY_MAX: usize = 64 << 20;

/// The same of the body of a refusal, and how long it may take.
const REFUSAL_MAX: usize = 1 << 20;
const REFUSAL_TIME: Duration = Duration::from_secs(10);

/// How long a connection may lie unused and still be taken for the next request. Somewhere between
/// the two sides it may be forgotten without a word, and then nothing would come until the idle
/// time-out.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// A connection that had been closed shows it within this time of its use. What comes later is a
/// server that had the request.
const STALE_MAX: Duration = Duration::from_secs(1);

/// How much of a body that is too large stands in the error.
const EXCESS_KEPT: usize = 64 << 10;

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
    /// Whose certificates are trusted.
    pub roots: Roots,
    /// What is masked in requests and in errors: the key, and what [`secrets_of_url`] and
    /// [`Header::secrets`] give of the rest.
    pub mask: Mask,
}

/// An OpenAI-compatible endpoint.
pub struct OpenAi {
    settings: Settings,
    agent: Agent,
    uri: Uri,
    authorization: Option<HeaderValue>,
    read_deadline: ReadDeadline,
    progress: SharedProgress,
}

impl OpenAi {
    /// Prepares everything; nothing is sent or looked up.
    ///
    /// # Errors
    ///
    /// What of the settings can't be used, without any part of a URL or key.
    pub fn new(settings: Settings) -> Result<OpenAi, String> {
        let uri: Uri = settings.endpoint.url().parse().map_err(|_| "the base URL is not a URL")?;
        let hop = settings.proxy.as_ref().map(ProxyHop::new).transpose()?;
        let proxy = settings.proxy.as_ref().map(Proxy::uri).map(|uri| uri.parse());
        let proxy = proxy.transpose().map_err(|_| "the proxy can't be used")?;
        let (key, basic) = (settings.key.as_ref(), settings.endpoint.basic());
        let authorization = key
            .map(|key| format!("Bearer {}", key.expose()))
            .or_else(|| basic.map(|basic| format!("Basic {}", basic.expose())));
        let authorization = authorization.map(sensitive).transpose()?;
        let read_deadline = ReadDeadline::default();
        let tls = Tls::new(&settings.roots)?;
        let progress = SharedProgress::default();
        let connect = Connect {
            endpoint: settings.endpoint.clone(),
            proxy: hop,
            uri: proxy.unwrap_or_else(|| uri.clone()),
            tls,
            read_deadline: read_deadline.clone(),
            progress: progress.clone(),
            worked: Mutex::default(),
        };
        Ok(OpenAi { agent: agent(connect), uri, authorization, settings, read_deadline, progress })
    }

    /// How far the last request came.
    pub fn progress(&self) -> Progress {
        self.progress.get()
    }

    /// Sends the body once and reads what comes back.
    fn attempt(&self, body: &[u8], deadline: Deadline) -> Result<Completion, ProviderError> {
        let request = Deadline::after(self.settings.request_timeout);
        let limits = || Limits::new(&self.settings, request, deadline);
        let begun = Instant::now();
        self.read_deadline.start();
        self.progress.renew();
        let response = match self.post(body, &limits()) {
            Err(ureq::Error::Io(error)) if self.is_stale(&error) && begun.elapsed() < STALE_MAX => {
                self.post(body, &limits())
            }
            response => response,
        };
        let limits = limits();
        let response = response.map_err(|error| self.error(error, "no response from", &limits))?;
        let (parts, body) = response.into_parts();
        if is_chunked(parts.version, &parts.headers) {
            self.read_deadline.expect_chunks();
        }
        let mut body = BodyReader::new(body.into_reader(), self.read_deadline.clone());
        let status = parts.status.as_u16();
        // Some gateways answer 201, and some that change a body 203.
        if !matches!(status, 200 | 201 | 203) {
            // However the body ends, the status is what matters, unless the run's time is over.
            self.read_deadline.limit(REFUSAL_TIME);
            let _ = body.read_all(REFUSAL_MAX);
            if deadline.has_passed() {
                return Err(ProviderError::Deadline);
            }
            let location = parts.headers.get(header::LOCATION).map(shown);
            let retry_after = retry_after(&parts.headers);
            return Err(wire::status_error(status, location, retry_after, body.into_bytes()));
        }
        if let Some(encoding) = encoding(&parts.headers) {
            let detail = format!("the response is encoded as {encoding}, which was not asked for");
            return Err(ProviderError::Response { detail, body: Vec::new() });
        }
        let received = match body.is_stream(&parts.headers) {
            Ok(true) => {
                self.progress.note(|progress| progress.streamed = true);
                body.read_stream()
            }
            Ok(false) => self.read_body(&mut body, &parts.headers),
            Err(error) => Err(BodyError::Connection(error)),
        };
        received.map_err(|broken| match broken {
            BodyError::Content(error) => error,
            BodyError::Connection(error) => {
                let doing = format!("after {} bytes of the response of", body.received());
                let error = self.read_deadline.take_cut().unwrap_or_else(|| error.into());
                self.error(error, &doing, &limits)
            }
        })
    }

    /// Whether an error without a response only says that a connection of an earlier request had
    /// been closed in the meantime. There is never a second one to be taken for the same request.
    fn is_stale(&self, error: &io::Error) -> bool {
        !self.progress.get().opened && is_closed(error)
    }

    /// Tells which addresses of the host cost time and did not answer. There is one telling, since
    /// the one that did answer is tried first from then on.
    fn tell_of_silence(&self, notify: Notify<'_>) {
        let Progress { silent, connected, .. } = self.progress.get();
        if let Some(used) = connected
            && !silent.is_empty()
        {
            (notify.0)(&Notice::Silent { silent: &silent, used });
        }
    }

    fn read_body(
        &self,
        body: &mut BodyReader<impl io::Read>,
        headers: &HeaderMap,
    ) -> Result<Completion, BodyError> {
        body.read_all(BODY_MAX).map_err(BodyError::Connection)?;
        let mut bytes = body.take_bytes();
        if bytes.len() > BODY_MAX {
            bytes.truncate(EXCESS_KEPT);
            let detail = format!("the response is larger than {} MB", BODY_MAX >> 20);
            return Err(BodyError::Content(ProviderError::Response { detail, body: bytes }));
        }
        if is_cut(headers, &bytes) {
            let detail = format!("{} closed the connection in the middle", self.settings.endpoint);
            return Err(BodyError::Content(ProviderError::Transport { detail }));
        }
        wire::completion(bytes).map_err(BodyError::Content)
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
            ureq::Error::Other(error) => match error.downcast::<ProviderError>() {
                Ok(error) => return *error,
                Err(error) => error.to_string(),
            },
            other => other.to_string(),
        };
        let proxy = self.settings.proxy.as_ref();
        let through = proxy.map(|proxy| format!(" through the proxy {}", proxy.authority()));
        let through = through.unwrap_or_default();
        // Where the host is an address, the error of the only one that was tried begins with it.
        let name = format!("{endpoint}: ");
        let reason = reason.strip_prefix(&name).unwrap_or(&reason);
        ProviderError::Transport { detail: format!("{doing} {endpoint}{through}: {reason}") }
    }
}

impl Provider for OpenAi {
    fn complete(&mut self, request: &CompletionRequest<'_>) -> Result<Completion, ProviderError> {
        loop {
            let body = wire::request_body(request, &self.settings.form, &self.settings.mask);
            let mask = &self.settings.mask;
            // At once, since each error that is followed by a retry is told of.
            let attempt = || {
                let result = self.attempt(&body, request.deadline);
                self.tell_of_silence(request.notify);
                result.map_err(|error| error.masked(mask))
            };
            let result = match request.closing {
                Some(_) => attempt(),
                None => {
                    let retries = self.settings.max_retries;
                    retry::run(retries, request.deadline, request.notify, attempt)
                }
            };
            let error = match result {
                Ok(completion) => return Ok(completion),
                Err(error) => error,
            };
            // Each of these can happen once, and is remembered for the rest of the run.
            match fallback::after(&self.settings.form, request.max_tokens.is_some(), &error) {
                Some((form, what)) => {
                    (request.notify.0)(&Notice::Without { what });
                    self.settings.form = form;
                }
                None => return Err(error),
            }
        }
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenAi").field(&self.settings).finish()
    }
}

fn sensitive(value: String) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::try_from(value).map_err(|_| "the key fits in no header")?;
    value.set_sensitive(true);
    Ok(value)
}

fn agent(connect: Connect) -> Agent {
    let config = Config::builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .https_only(false)
        .ip_family(IpFamily::Any)
        // Proxies are the connector's.
        .proxy(None)
        .no_delay(true)
        .user_agent(USER_AGENT)
        .accept("application/json")
        // Without the header any encoding would be acceptable.
        .accept_encoding("identity")
        .max_response_header_size(64 << 10)
        // Larger than the head, which has to fit in.
        .input_buffer_size(128 << 10)
        .output_buffer_size(64 << 10)
        .max_idle_connections(1)
        .max_idle_connections_per_host(1)
        .max_idle_age(IDLE_MAX)
        .build();
    Agent::with_parts(config, connect, NoLookup)
}
