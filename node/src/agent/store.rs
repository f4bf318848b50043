//! The node's store of translated objects: files named by the SHA-256 of their contents.

use crate::error::{NodeError, Result};
use crate::progress::Progress;
use crate::protocol::{Channel, Digest};
use crate::trust::hex;
use crate::unit::paths::objects;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{self, Write};

/// Those of `digests` that are not there.
pub(super) fn missing(digests: Vec<Digest>) -> Result<Vec<Digest>> {
    digests.iter().try_for_each(|digest| check_form(digest))?;
    Ok(digests.into_iter().filter(|digest| !objects().join(digest).exists()).collect())
}

/// Take in the object `digest`, which is the body of `length` bytes that follows.
pub(super) fn put(client: &mut Channel, digest: &str, length: u64) -> Result<()> {
    check_form(digest)?;
    let path = objects().join(digest);
    let next = objects().join(format!(".{digest}.{:?}", std::thread::current().id()));
    let file = File::create(&next).map_err(NodeError::at("making", &next))?;
    let mut writer = Hashing { file, hash: Sha256::new() };
    let outcome = client.copy_body(length, &mut writer, &Progress::default()).and_then(|()| {
        let found = hex(&writer.hash.finalize());
        match found == digest {
            true => fs::rename(&next, &path).map_err(NodeError::at("storing", &path)),
            false => Err(NodeError::Digest { expected: digest.to_owned(), found }),
        }
    });
    if outcome.is_err() {
        let _ = fs::remove_file(&next);
    }
    outcome
}

fn check_form(digest: &str) -> Result<()> {
    let fine = digest.len() == 64 && digest.bytes().all(|c| c.is_ascii_hexdigit());
    if fine { Ok(()) } else { Err(NodeError::BadPath { path: digest.to_owned() }) }
}

struct Hashing {
    file: File,
    hash: Sha256,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.hash.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
