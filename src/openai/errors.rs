//! Errors of a connection, sorted and made.

use std::io::{self, ErrorKind};

use crate::provider::ProviderError;

/// Whether the other side has closed the connection, in one of the ways to say so.
pub(super) fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
    )
}

/// An error that is final, on its way through the HTTP library.
pub(super) fn refused(detail: String, advice: &'static str) -> ureq::Error {
    ureq::Error::Other(Box::new(ProviderError::Tls { detail, advice }))
}
