//! Trust between the operator and nodes. The operator has a small certificate authority; whoever shows a certificate of
//! it and its key is let in, over TLS 1.3, on both sides of every connection. A node makes its key itself, and its
//! certificate says its name, so that a client knows that it talks to the node it means.
//!
//! Nodes may start with a clock of 1970, so certificates are valid from then on for ever, and no clock is asked: they
//! are judged as of [`AS_OF`]. A certificate with limits in time is refused rather than its limits ignored.

mod authority;
mod identity;
mod membership;
mod token;

pub use authority::Authority;
pub use identity::Identity;
pub use membership::{Candidate, FILE as MEMBERSHIP_FILE, Join, Membership};
pub use token::JoinToken;

use crate::error::{NodeError, Result};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::time_provider::TimeProvider;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The moment at which every certificate is judged, in seconds of Unix time: the beginning of 2000.
const AS_OF: Duration = Duration::from_secs(946_684_800);
/// What the operator's certificates say.
const OPERATOR: &str = "operator.tranship";
/// What follows a node's name in its certificate.
const NODE: &str = "node.tranship";

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    /// The operator, who may ask for anything.
    Operator,
    /// Another node.
    Node,
}

impl Guest {
    /// Who showed this certificate, which our authority has signed.
    pub(crate) fn with(certificate: &CertificateDer<'_>) -> Result<Guest> {
        let failed = |why| NodeError::io("reading the other side's certificate", why);
        let parsed = ParsedCertificate::try_from(certificate).map_err(failed)?;
        let operator = ServerName::try_from(OPERATOR).map_err(|why| NodeError::io(OPERATOR, why))?;
        Ok(if verify_server_name(&parsed, &operator).is_ok() { Guest::Operator } else { Guest::Node })
    }
}

/// Check that `name` can be a node's: small letters, digits and, inside, `-`; at most 63 of them.
pub fn check_node_name(name: &str) -> Result<()> {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let ends = name.starts_with('-') || name.ends_with('-');
    if name.is_empty() || name.len() > 63 || ends || !name.chars().all(fine) {
        let what = format!("{name:?} is no node's name (small letters, digits and '-' inside; at most 63)");
        return Err(NodeError::Malformed { what });
    }
    Ok(())
}

/// What the certificate of the node called `name` says.
fn subject_of_node(name: &str) -> Result<String> {
    check_node_name(name)?;
    Ok(format!("{name}.{NODE}"))
}

/// The same for a client that means this node.
pub(crate) fn server_name(node: &str) -> Result<ServerName<'static>> {
    let subject = subject_of_node(node)?;
    ServerName::try_from(subject).map_err(|why| NodeError::io("naming a node", why))
}

/// The time is [`AS_OF`].
#[derive(Debug)]
struct NoClock;

impl NoClock {
    fn now() -> UnixTime {
        UnixTime::since_unix_epoch(AS_OF)
    }
}

impl TimeProvider for NoClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(NoClock::now())
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn new_key() -> Result<KeyPair> {
    KeyPair::generate_for(&PKCS_ED25519).map_err(|why| NodeError::io("making a key", why))
}

/// A certificate to be signed: for `subject`, for ever.
fn certificate_for(subject: &str) -> Result<CertificateParams> {
    let mut params = CertificateParams::new([subject.to_owned()])
        .map_err(|why| NodeError::io(format!("naming {subject}"), why))?;
    params.not_before = rcgen::date_time_ymd(1970, 1, 1);
    // RFC 5280, 4.1.2.5: what has no good end ends so.
    params.not_after = rcgen::date_time_ymd(9999, 12, 31);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, subject);
    Ok(params)
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes that nobody can guess, or has had before.
pub(crate) fn random() -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    let path = Path::new("/dev/urandom");
    File::open(path).and_then(|mut f| f.read_exact(&mut bytes)).map_err(NodeError::at("reading", path))?;
    Ok(bytes)
}
