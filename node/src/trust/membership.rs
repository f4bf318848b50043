//! Whether a node has joined an authority: `identity.json` in its state directory, which nobody else may read. It is
//! replaced atomically and read for every connection, so what it says holds at once.

use super::identity::{certificate, provisional_server};
use super::token::Secret;
use super::{Identity, JoinToken, certificate_for, new_key};
use crate::error::{NodeError, Result};
use crate::unit::paths::STATE;
use rustix::fs::{FlockOperation, flock};
use rustls::ServerConfig;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Its file in a node's state directory.
pub const FILE: &str = "identity.json";
/// How often a token may be guessed wrong before it is void.
const TRIES: u32 = 3;

/// A node's standing.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Membership {
    /// It waits for an operator who has its token.
    Waiting(Candidate),
    /// It has joined.
    Joined(Identity),
}

/// A node that nobody has vouched for.
#[derive(Serialize, Deserialize)]
pub struct Candidate {
    /// Private key, as PEM.
    key: String,
    /// Signed with the key itself: it says whose it is, and no more.
    certificate: String,
    secret: Secret,
    /// How often the secret may still be guessed wrong.
    tries: u32,
}

/// What an operator says to a node that is to join.
#[derive(Debug, Serialize, Deserialize)]
pub struct Join {
    /// The node's.
    pub(crate) token: JoinToken,
    /// For the key that the node showed, as PEM.
    pub(crate) certificate: String,
    /// The authority's certificate, as PEM.
    pub(crate) authority: String,
}

impl Candidate {
    fn new() -> Result<Candidate> {
        let key = new_key()?;
        let certificate = certificate_for("candidate.tranship")?.self_signed(&key);
        let certificate = certificate.map_err(|why| NodeError::io("making a certificate", why))?.pem();
        Ok(Candidate { key: key.serialize_pem(), certificate, secret: Secret::new()?, tries: TRIES })
    }

    /// What an operator needs to have the node join.
    pub fn token(&self) -> Result<JoinToken> {
        Ok(JoinToken::of(&self.secret, &certificate(&self.certificate)?))
    }

    /// Whether its token was guessed wrong too often.
    fn is_void(&self) -> bool {
        self.tries == 0
    }
}

impl Membership {
    /// This node's. One that has none yet makes a key, and waits; so does one whose token is void.
    pub fn begin() -> Result<Membership> {
        let _lock = lock()?;
        match Membership::load_if_any()? {
            Some(Membership::Waiting(candidate)) if candidate.is_void() => {}
            Some(membership) => return Ok(membership),
            None => {}
        }
        let membership = Membership::Waiting(Candidate::new()?);
        membership.save()?;
        Ok(membership)
    }

    /// This node's, which an agent has begun.
    pub fn load() -> Result<Membership> {
        Membership::load_if_any()?.ok_or(NodeError::NotJoined)
    }

    /// Who this node is to others.
    ///
    /// # Errors
    /// It has not joined.
    pub fn identity() -> Result<Identity> {
        match Membership::load()? {
            Membership::Joined(identity) => Ok(identity),
            Membership::Waiting(_) => Err(NodeError::NotJoined),
        }
    }

    /// Leave the authority, if the node has joined one, and wait for another with a new key. Returns the new token.
    pub fn leave() -> Result<JoinToken> {
        let _lock = lock()?;
        let candidate = Candidate::new()?;
        let token = candidate.token()?;
        Membership::Waiting(candidate).save()?;
        Ok(token)
    }

    /// Join as asked, if the token is right. Either way it is used: for good, or for one of a few wrong guesses.
    pub(crate) fn join(asked: &Join) -> Result<()> {
        let _lock = lock()?;
        let Membership::Waiting(mut candidate) = Membership::load()? else {
            return Err(NodeError::Token { tries: 0 });
        };
        if candidate.is_void() {
            return Err(NodeError::Token { tries: 0 });
        }
        if *asked.token.secret() != candidate.secret {
            candidate.tries -= 1;
            let tries = candidate.tries;
            Membership::Waiting(candidate).save()?;
            return Err(NodeError::Token { tries });
        }
        let (certificate, authority) = (asked.certificate.clone(), asked.authority.clone());
        let identity = Identity { key: candidate.key, certificate, authority };
        // What is of no use is not kept.
        identity.server()?;
        Membership::Joined(identity).save()
    }

    /// To be connected to as.
    pub(crate) fn server(&self) -> Result<Arc<ServerConfig>> {
        match self {
            Membership::Waiting(candidate) => provisional_server(&candidate.key, &candidate.certificate),
            Membership::Joined(identity) => identity.server(),
        }
    }

    /// As the contents of a new node's `identity.json`.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        serde_json::to_vec_pretty(self).map_err(NodeError::at("writing", Path::new(FILE)))
    }

    fn load_if_any() -> Result<Option<Membership>> {
        let path = path();
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(NodeError::at("reading", &path)),
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(None),
            Err(why) => Err(NodeError::at("reading", &path)(why)),
        }
    }

    fn save(&self) -> Result<()> {
        let (path, next) = (path(), path().with_extension("json.next"));
        let text = self.to_json()?;
        let write = || {
            let _ = fs::remove_file(&next);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&next, &path)
        };
        write().map_err(NodeError::at("writing", &path))
    }
}

fn path() -> PathBuf {
    Path::new(STATE).join(FILE)
}

/// Held while it is changed, against other threads and processes.
fn lock() -> Result<File> {
    let path = Path::new(STATE).join("identity.lock");
    let file = File::create(&path).map_err(NodeError::at("making", &path))?;
    flock(&file, FlockOperation::LockExclusive).map_err(NodeError::at("locking", &path))?;
    Ok(file)
}
