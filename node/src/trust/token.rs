//! What an operator takes from a node to have it join: a secret, by which the node knows the operator, and the
//! fingerprint of the node's provisional certificate, by which the operator knows the node.

use super::identity::unusable;
use super::{NoClock, hex, provider, random};
use crate::error::{NodeError, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, PeerIncompatible, SignatureScheme,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A token that a node gives out, good for joining once. As text: secret and fingerprint in hexadecimal, with a
/// full stop in between.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JoinToken {
    secret: Secret,
    fingerprint: [u8; 32],
}

/// What only a node and whoever has its token know.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Secret([u8; 16]);

impl Secret {
    pub(super) fn new() -> Result<Secret> {
        random().map(Secret)
    }
}

/// The time that it takes says nothing about how much of it is right.
impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        Sha256::digest(self.0) == Sha256::digest(other.0)
    }
}

impl Eq for Secret {}

impl JoinToken {
    /// Of a node with this secret and provisional certificate.
    pub(super) fn of(secret: &Secret, certificate: &CertificateDer<'_>) -> JoinToken {
        JoinToken { secret: secret.clone(), fingerprint: fingerprint(certificate) }
    }

    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// To connect to the node that gave it out, and to no other.
    pub(crate) fn client(&self) -> Result<Arc<ClientConfig>> {
        let algorithms = provider().signature_verification_algorithms;
        let verifier = Fingerprint { fingerprint: self.fingerprint, algorithms };
        let mut config = ClientConfig::builder_with_details(provider(), Arc::new(NoClock))
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.resumption = rustls::client::Resumption::disabled();
        config.enable_sni = false;
        Ok(Arc::new(config))
    }
}

fn fingerprint(certificate: &CertificateDer<'_>) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

impl fmt::Display for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", hex(&self.secret.0), hex(&self.fingerprint))
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinToken(….{})", hex(&self.fingerprint))
    }
}

impl FromStr for JoinToken {
    type Err = NodeError;

    fn from_str(text: &str) -> Result<JoinToken> {
        let parse = || {
            let (secret, fingerprint) = text.split_once('.')?;
            Some(JoinToken { secret: Secret(from_hex(secret)?), fingerprint: from_hex(fingerprint)? })
        };
        let what = "that is no token of a node: it has 32 hexadecimal digits, a full stop, and 64 more";
        parse().ok_or_else(|| NodeError::Malformed { what: what.to_owned() })
    }
}

impl TryFrom<String> for JoinToken {
    type Error = NodeError;

    fn try_from(text: String) -> Result<JoinToken> {
        text.parse()
    }
}

impl From<JoinToken> for String {
    fn from(token: JoinToken) -> String {
        token.to_string()
    }
}

fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Believes one certificate, whatever it says.
#[derive(Debug)]
struct Fingerprint {
    fingerprint: [u8; 32],
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Fingerprint {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, Error> {
        match fingerprint(certificate) == self.fingerprint {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        Err(Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_is_written() {
        let token = JoinToken { secret: Secret([7; 16]), fingerprint: [0xab; 32] };
        let text = token.to_string();
        assert_eq!(text.parse(), Ok(token));
        for wrong in
            ["", ".", &text[1..], &text[..text.len() - 1], &text.replace('a', "g"), &text.replace("ab", "é")]
        {
            assert!(wrong.parse::<JoinToken>().is_err(), "{wrong}");
        }
    }
}
