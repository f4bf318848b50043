//! What somebody proves who they are by, and whom they believe: a key, a certificate for it, and the authority's.

use super::{NoClock, provider};
use crate::error::{NodeError, Result};
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// An identity, everything as PEM.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Private key.
    pub(super) key: String,
    /// Certificate of it.
    pub(super) certificate: String,
    /// Certificate of the authority that has signed that one, and those of everybody who is believed.
    pub(super) authority: String,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Identity {
    /// To connect to nodes as.
    pub(crate) fn client(&self) -> Result<Arc<ClientConfig>> {
        let verifier = WebPkiServerVerifier::builder_with_provider(self.believed()?, provider()).build();
        let verifier = verifier.map_err(unusable)?;
        let config = ClientConfig::builder_with_details(provider(), Arc::new(NoClock))
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_webpki_verifier(verifier)
            .with_client_auth_cert(vec![certificate(&self.certificate)?], key(&self.key)?);
        let mut config = config.map_err(unusable)?;
        config.resumption = rustls::client::Resumption::disabled();
        // It would say the node's name in the clear.
        config.enable_sni = false;
        Ok(Arc::new(config))
    }

    /// To be connected to as.
    pub(crate) fn server(&self) -> Result<Arc<ServerConfig>> {
        let verifier = WebPkiClientVerifier::builder_with_provider(self.believed()?, provider()).build();
        let config = ServerConfig::builder_with_details(provider(), Arc::new(NoClock))
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(verifier.map_err(unusable)?)
            .with_single_cert(vec![certificate(&self.certificate)?], key(&self.key)?);
        Ok(Arc::new(without_resumption(config.map_err(unusable)?)))
    }

    fn believed(&self) -> Result<Arc<RootCertStore>> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate(&self.authority)?).map_err(unusable)?;
        Ok(Arc::new(roots))
    }
}

/// To be connected to with a key that nobody has vouched for yet, by clients that need not say who they are.
pub(super) fn provisional_server(key_pem: &str, certificate_pem: &str) -> Result<Arc<ServerConfig>> {
    let config = ServerConfig::builder_with_details(provider(), Arc::new(NoClock))
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate(certificate_pem)?], key(key_pem)?);
    Ok(Arc::new(without_resumption(config.map_err(unusable)?)))
}

/// Everybody proves who they are each time; there is nothing that could be replayed.
fn without_resumption(mut config: ServerConfig) -> ServerConfig {
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    config
}

pub(super) fn certificate(pem: &str) -> Result<CertificateDer<'static>> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|why| NodeError::io("reading a certificate", why))
}

fn key(pem: &str) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|why| NodeError::io("reading a key", why))
}

pub(super) fn unusable(why: impl fmt::Display) -> NodeError {
    NodeError::io("using keys and certificates", why)
}
