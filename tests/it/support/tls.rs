//! An endpoint behind TLS, and certificates for it.

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::server::{Server, drain, read_body, read_head};

/// An issuer of certificates that nobody trusts by himself.
pub(crate) struct Issuer(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Issuer {
    pub(crate) fn new(name: &str) -> Issuer {
        Issuer(CertifiedIssuer::self_signed(ca(name), KeyPair::generate().unwrap()).unwrap())
    }

    /// Its own certificate, to be trusted.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate for a name or address.
    pub(crate) fn issue(&self, name: &str) -> Identity {
        self.issue_with(name, |_| ())
    }

    /// The same, with something odd about it.
    pub(crate) fn issue_with(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Identity {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Identity { certificate: certificate.der().clone(), key: key.into() }
    }

    /// Its own certificate and key, as a server that was set up in a hurry would use them.
    pub(crate) fn into_identity(self) -> Identity {
        let certificate = self.0.der().clone();
        let key = self.0.key().serialize_der();
        Identity { certificate, key: PrivateKeyDer::Pkcs8(key.into()) }
    }
}

fn ca(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// Answers every request with the text "over TLS".
pub(crate) fn endpoint(identity: Identity) -> Server {
    serve(identity, |stream| {
        let head = read_head(stream)?;
        read_body(stream, &head)?;
        stream.write_all(response(&json!({"content": "over TLS"})).as_bytes())?;
        stream.conn.send_close_notify();
        stream.flush()
    })
}

/// What the server has of a connection.
pub(crate) type Stream = StreamOwned<ServerConnection, TcpStream>;

/// Serves each connection in this way, once TLS is agreed on.
pub(crate) fn serve(
    identity: Identity,
    serve: impl Fn(&mut Stream) -> io::Result<()> + Send + 'static,
) -> Server {
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate], identity.key)
        .unwrap();
    let config = Arc::new(config);
    Server::start(move |stream| {
        let connection = ServerConnection::new(Arc::clone(&config)).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, stream);
        // Where there was no TLS, an alert has been sent.
        serve(&mut stream).or_else(|_| drain(stream.sock))
    })
}

/// A whole response with this message; a call has its own finish reason.
pub(crate) fn response(message: &Value) -> String {
    let finish_reason = if message["tool_calls"].is_array() { "tool_calls" } else { "stop" };
    let body = json!({"choices": [{"finish_reason": finish_reason, "message": message}]});
    let body = body.to_string();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}
