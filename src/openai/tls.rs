//! TLS: whose certificates are trusted, the handshake, and what its failures mean to people.
//!
//! The HTTP library has a TLS of its own, which trusts either the issuers that are built in or
//! those that it is given. Here the given ones are added, so that naming a private issuer never
//! takes the public ones away. There is no way to turn the check of a certificate off.

use std::fmt;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, RootCertStore};
use rustls::{Error, StreamOwned};
use ureq::unversioned::transport::{
    Buffers, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

use super::dial::Attempt;
use super::errors::{is_closed, refused};
use super::limits::HANDSHAKE_TIMEOUT;
use super::plain::Plain;
use crate::time::rfc3339;

/// The issuers whose certificates are trusted: those built in, which are the ones that browsers
/// trust, and those that were added.
#[derive(Clone, Debug)]
pub struct Roots(RootCertStore);

impl Default for Roots {
    fn default() -> Roots {
        Roots(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() })
    }
}

impl Roots {
    /// Adds the certificates of a PEM file, and returns how many of them can't be used. What else
    /// there is in the file, such as a key, is skipped.
    ///
    /// # Errors
    ///
    /// That there is no usable certificate in it, or that it is damaged; then nothing is added.
    pub fn add_pem(&mut self, pem: &[u8]) -> Result<usize, String> {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let found = found.map_err(|error| format!("is damaged: {}", pem_problem(&error)))?;
        if found.is_empty() {
            return Err("has no certificate in it (PEM, -----BEGIN CERTIFICATE-----)".to_owned());
        }
        match self.0.add_parsable_certificates(found) {
            (0, count) => Err(format!("none of its certificates can be used ({count})")),
            (_, unusable) => Ok(unusable),
        }
    }
}

/// Without the lines of the file, which may be those of a key.
fn pem_problem(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "a -----BEGIN line has no -----END line",
        pem::Error::IllegalSectionStart { .. } => "a -----BEGIN line does not end in -----",
        pem::Error::Base64Decode(_) => "what stands between its lines is not base64",
        _ => "it can't be read as PEM",
    }
}

/// Speaks TLS on connections that exist already.
#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

impl Tls {
    /// Trusts these issuers and no others.
    pub(super) fn new(roots: &Roots) -> Result<Tls, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS can't be set up: {error}"))?
            .with_root_certificates(roots.0.clone())
            .with_no_client_auth();
        Ok(Tls(Arc::new(config)))
    }

    /// Makes the handshake; `peer` names the other side in errors.
    pub(super) fn wrap(
        &self,
        stream: Box<dyn Transport>,
        host: &str,
        peer: &str,
        attempt: &Attempt<'_>,
    ) -> Result<Box<dyn Transport>, ureq::Error> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            let detail = format!("no certificate can be for the name of {peer}");
            refused(detail, "use the name that stands in its certificate")
        })?;
        let mut connection = ClientConnection::new(Arc::clone(&self.0), name)
            .map_err(|error| io_error(io::Error::other(error), peer))?;
        let stream = Box::new(Plain::below_tls(stream, peer.to_owned()));
        let mut socket = attempt.adapter(stream, HANDSHAKE_TIMEOUT)?;
        connection.complete_io(&mut socket).map_err(|error| {
            let words = format!(
                "connected, but {peer} did not answer the TLS handshake: does it speak http? \
                 (where there is no TLS, give http://)"
            );
            attempt.unanswered(handshake_error(error, peer), words)
        })?;
        Ok(Box::new(TlsTransport {
            stream: StreamOwned::new(connection, socket),
            buffers: attempt.buffers(),
            peer: peer.to_owned(),
        }))
    }
}

struct TlsTransport {
    stream: StreamOwned<ClientConnection, TransportAdapter>,
    buffers: LazyBuffers,
    peer: String,
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TlsTransport({})", self.peer)
    }
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        let output = &self.buffers.output()[..amount];
        self.stream.write_all(output).map_err(|error| io_error(error, &self.peer))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        let input = self.buffers.input_append_buf();
        let read = self.stream.read(input).map_err(|error| io_error(error, &self.peer))?;
        self.buffers.input_appended(read);
        Ok(read > 0)
    }

    /// Nothing may have come behind the response that was read: not in the socket, nor in the
    /// buffer above it, nor decrypted already. It would be taken for the next one.
    fn is_open(&mut self) -> bool {
        let state = self.stream.conn.process_new_packets();
        let is_quiet = state
            .is_ok_and(|state| state.plaintext_bytes_to_read() == 0 && !state.peer_has_closed());
        let socket = self.stream.sock.get_mut();
        is_quiet && socket.buffers().input().is_empty() && socket.is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

fn handshake_error(error: io::Error, peer: &str) -> ureq::Error {
    if !is_closed(&error) {
        return io_error(error, peer);
    }
    // It may be restarting, so this is worth another try; but some servers without TLS do so too.
    let text = "the connection was closed during the TLS handshake \
                (where there is no TLS, give http://)";
    ureq::Error::Io(io::Error::new(ErrorKind::ConnectionAborted, text))
}

/// What an error below TLS or of TLS means to the run.
fn io_error(error: io::Error, peer: &str) -> ureq::Error {
    let Some(tls) = error.get_ref().and_then(|source| source.downcast_ref::<Error>()) else {
        // Takes an error of the HTTP library, such as a time limit, out of its wrapping.
        return error.into();
    };
    match explained(tls, peer) {
        Some((detail, advice)) => refused(detail, advice),
        None => {
            ureq::Error::Io(io::Error::new(ErrorKind::ConnectionAborted, format!("TLS: {tls}")))
        }
    }
}

/// What will fail again the same way, and what to do about it; none where a new connection may
/// well succeed.
fn explained(error: &Error, peer: &str) -> Option<(String, &'static str)> {
    Some(match error {
        Error::InvalidCertificate(error) => certificate_explained(error, peer),
        Error::InvalidMessage(_) => {
            (format!("{peer} does not speak TLS"), "give http:// where there is no TLS")
        }
        Error::AlertReceived(AlertDescription::InternalError | AlertDescription::UserCanceled) => {
            return None;
        }
        Error::AlertReceived(alert) => {
            let detail = format!("{peer} refused the TLS connection: {alert:?}");
            (detail, "see its log; client certificates are not supported")
        }
        Error::PeerIncompatible(reason) => {
            let detail = format!("{peer} has no TLS in common with this program: {reason:?}");
            (detail, "TLS 1.2 with ECDHE or TLS 1.3 is needed")
        }
        Error::NoCertificatesPresented => {
            (format!("{peer} showed no certificate"), "give the server a certificate")
        }
        _ => return None,
    })
}

fn certificate_explained(error: &CertificateError, peer: &str) -> (String, &'static str) {
    use CertificateError as E;
    const ISSUER: &str = "--ca-file FILE adds an issuer";
    const CLOCK: &str = "check the clock of this machine, or renew the certificate";
    const NAME: &str = "use a name that stands in the certificate";
    let of = format!("the certificate of {peer}");
    match error {
        E::UnknownIssuer => (format!("{of} comes from an issuer that is not trusted"), ISSUER),
        E::BadSignature => (format!("{of} was not signed by the issuer that it names"), ISSUER),
        E::ExpiredContext { time, not_after } => {
            let (end, now) = (date(*not_after), date(*time));
            (format!("{of} expired on {end}; here it is {now}"), CLOCK)
        }
        E::NotValidYetContext { time, not_before } => {
            let (start, now) = (date(*not_before), date(*time));
            (format!("{of} is not valid before {start}; here it is {now}"), CLOCK)
        }
        E::Expired => (format!("{of} has expired"), CLOCK),
        E::NotValidYet => (format!("{of} is not valid yet"), CLOCK),
        E::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            let names: Vec<_> = presented.iter().map(|name| bare(name)).collect();
            (format!("{of} is for another name: {}", names.join(", ")), NAME)
        }
        E::NotValidForName | E::NotValidForNameContext { .. } => {
            (format!("{of} is not for that name"), NAME)
        }
        // There is no variant for it.
        E::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => (
            format!("{of} is that of an issuer, and can't be a server's too (self-signed?)"),
            "issue one that is no CA (openssl req -x509 -addext \
             basicConstraints=critical,CA:FALSE)",
        ),
        other => (format!("{of} can't be used: {other}"), "give the server another certificate"),
    }
}

/// The name in `DnsName("api.example")`.
fn bare(presented: &str) -> &str {
    presented.split('"').nth(1).unwrap_or(presented)
}

fn date(time: UnixTime) -> String {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(time.as_secs()));
    time.map_or_else(|| "a date far ahead".to_owned(), rfc3339)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_stands_beside_the_built_in_issuers() {
        let built_in = Roots::default().0.len();
        assert!(built_in > 100, "{built_in}");
        let certified = rcgen::generate_simple_self_signed(["h".to_owned()]).unwrap();
        let (certificate, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
        let mut roots = Roots::default();
        let bundle = format!("comment \u{e9}\r\n{key}\n{certificate}more\n{certificate}");
        assert_eq!(roots.add_pem(bundle.as_bytes()), Ok(0));
        assert_eq!(roots.0.len(), built_in + 2);
        let odd = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        assert_eq!(roots.add_pem(format!("{odd}{certificate}").as_bytes()), Ok(1));
        assert_eq!(roots.0.len(), built_in + 3);
    }

    #[test]
    fn a_file_without_certificates_adds_nothing_and_is_not_quoted() {
        let certified = rcgen::generate_simple_self_signed(["h".to_owned()]).unwrap();
        let certificate = certified.cert.pem();
        let cut = certificate.strip_suffix("-----END CERTIFICATE-----\n").unwrap();
        let odd = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        let mut roots = Roots::default();
        let built_in = roots.0.len();
        for (pem, expected) in [
            (certified.cert.der().to_vec(), "has no certificate in it"),
            (certified.signing_key.serialize_pem().into(), "has no certificate in it"),
            (b"".to_vec(), "has no certificate in it"),
            (cut.into(), "is damaged: a -----BEGIN line has no -----END line"),
            (certificate.replace('M', "*").into(), "is damaged: what stands between"),
            (b"-----BEGIN SECRET\n".to_vec(), "is damaged: a -----BEGIN line does not end"),
            (odd.into(), "none of its certificates can be used (1)"),
        ] {
            let problem = roots.add_pem(&pem).unwrap_err();
            assert!(problem.starts_with(expected), "{problem}");
            assert!(!problem.contains("SECRET"), "{problem}");
        }
        assert_eq!(roots.0.len(), built_in);
    }
}
