//! Why a TLS handshake failed, for people.

use rustls::{CertificateError, Error};

/// What is wrong, and the remedy. `None` means that the server closed the connection.
pub(crate) fn explained(error: Option<&Error>) -> String {
    const ANYBODY: &str = "or --insecure for a server of your own";
    match error {
        None => {
            "the server ended the connection in the middle of the TLS handshake; check that it \
                 speaks TLS there, and its log"
                .to_owned()
        }
        Some(Error::InvalidMessage(_)) => {
            "the server does not speak TLS there; check the port, or use http://".to_owned()
        }
        Some(Error::AlertReceived(alert)) => {
            format!("the server refused the TLS handshake ({alert:?}); look at its log")
        }
        Some(Error::InvalidCertificate(wrong)) => match wrong {
            // The latter two mean another authority with the same name.
            CertificateError::UnknownIssuer
            | CertificateError::BadSignature
            | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => format!(
                "no trusted authority has signed the server's certificate; give its authority with \
                 --ca, {ANYBODY}"
            ),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("{}; use a name that it is for, {ANYBODY}", lower_case(wrong))
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => {
                format!("{}; renew it or set the clock, {ANYBODY}", lower_case(wrong))
            }
            // The library has no variant for this, only a text.
            CertificateError::Other(other)
                if format!("{other:?}").contains("CaUsedAsEndEntity") =>
            {
                format!(
                    "the server's certificate is an authority's own (CA:TRUE), which is no server's \
                     even where it is trusted; make one with basicConstraints=CA:FALSE (openssl req \
                     -addext), {ANYBODY}"
                )
            }
            wrong => format!(
                "the server's certificate cannot be taken ({wrong}); use another, {ANYBODY}"
            ),
        },
        Some(error) => format!("TLS failed ({error}); look at the server's log"),
    }
}

/// The library's words without its prefix, as in "certificate expired: ...".
fn lower_case(wrong: &CertificateError) -> String {
    let said = wrong.to_string();
    format!("the server's {}", said.trim_start_matches("invalid peer ").trim_end_matches('.'))
}
