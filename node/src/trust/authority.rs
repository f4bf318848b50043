//! The operator's certificate authority: a key, and the certificate by which everybody knows it.

use super::{Identity, OPERATOR, certificate_for, new_key, subject_of_node};
use crate::error::{NodeError, Result};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ED25519, PublicKeyData, SignatureAlgorithm,
};
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What its own certificate says.
const SUBJECT: &str = "authority.tranship";
/// What precedes an Ed25519 key where certificates have it (RFC 8410, 4).
const ED25519: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// A certificate authority. Whoever has its key can ask anything of every node that has joined it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// Private key, as PEM.
    key: String,
    /// Its own certificate, as PEM.
    certificate: String,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// A node's key, of which only the node has the private half.
struct PublicKey([u8; 32]);

impl PublicKey {
    /// The key in a certificate. Whoever showed it in a handshake has proved to have the private half.
    fn of(certificate: &CertificateDer<'_>) -> Result<PublicKey> {
        let failed = |why| NodeError::io("reading the node's certificate", why);
        let parsed = ParsedCertificate::try_from(certificate).map_err(failed)?;
        let info = parsed.subject_public_key_info();
        let key = info.strip_prefix(&ED25519).and_then(|key| key.try_into().ok());
        key.map(PublicKey).ok_or_else(|| NodeError::protocol("a node's key that is no Ed25519 key"))
    }
}

impl PublicKeyData for PublicKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ED25519
    }
}

impl Authority {
    /// A new one.
    pub fn new() -> Result<Authority> {
        let key = new_key()?;
        let certificate = parameters()?.self_signed(&key);
        let certificate = certificate.map_err(|why| NodeError::io("making an authority", why))?.pem();
        Ok(Authority { key: key.serialize_pem(), certificate })
    }

    /// The one in `directory` (`ca.key`, which nobody else may read, and `ca.pem`), if there is one.
    pub fn load(directory: &Path) -> Result<Option<Authority>> {
        let (key, certificate) = (directory.join("ca.key"), directory.join("ca.pem"));
        match fs::read_to_string(&key) {
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(None),
            Err(why) => Err(NodeError::at("reading", &key)(why)),
            Ok(key) => {
                let text = fs::read_to_string(&certificate);
                let certificate = text.map_err(NodeError::at("reading", &certificate))?;
                Ok(Some(Authority { key, certificate }))
            }
        }
    }

    /// Write it there. A key that is there already is not replaced.
    pub fn save(&self, directory: &Path) -> Result<()> {
        let (key, certificate) = (directory.join("ca.key"), directory.join("ca.pem"));
        fs::write(&certificate, &self.certificate).map_err(NodeError::at("writing", &certificate))?;
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&key);
        let written = file.and_then(|mut file| file.write_all(self.key.as_bytes()));
        written.map_err(NodeError::at("writing", &key))
    }

    /// The certificate by which others know it, as PEM.
    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// An identity for the operator, who can act for the authority whenever it is at hand: so it is made anew each time.
    pub fn operator(&self) -> Result<Identity> {
        self.identity(OPERATOR, vec![ExtendedKeyUsagePurpose::ClientAuth])
    }

    /// An identity for a node that gets its key from us.
    ///
    /// # Errors
    /// `name` is none.
    pub fn node(&self, name: &str) -> Result<Identity> {
        self.identity(&subject_of_node(name)?, node_usages())
    }

    /// A certificate for the node `name`, as PEM, that has made its key itself.
    ///
    /// It is the one of `shown`, the certificate with which the node has set up a connection.
    pub(crate) fn certify(&self, name: &str, shown: &CertificateDer<'_>) -> Result<String> {
        self.sign(&subject_of_node(name)?, node_usages(), &PublicKey::of(shown)?)
    }

    fn identity(&self, subject: &str, usages: Vec<ExtendedKeyUsagePurpose>) -> Result<Identity> {
        let key = new_key()?;
        let certificate = self.sign(subject, usages, &key)?;
        Ok(Identity { key: key.serialize_pem(), certificate, authority: self.certificate.clone() })
    }

    fn sign(
        &self,
        subject: &str,
        usages: Vec<ExtendedKeyUsagePurpose>,
        key: &impl PublicKeyData,
    ) -> Result<String> {
        let own =
            KeyPair::from_pem(&self.key).map_err(|why| NodeError::io("reading the authority's key", why))?;
        let mut params = certificate_for(subject)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = usages;
        let signed = params.signed_by(key, &Issuer::new(parameters()?, own));
        Ok(signed.map_err(|why| NodeError::io(format!("signing a certificate for {subject}"), why))?.pem())
    }
}

fn node_usages() -> Vec<ExtendedKeyUsagePurpose> {
    vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth]
}

/// What an authority's certificate is made from.
fn parameters() -> Result<CertificateParams> {
    let mut params = certificate_for(SUBJECT)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    Ok(params)
}
