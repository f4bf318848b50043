//! An image set as a list of files that need no parent set: what goes over the wire, so that the receiver only
//! writes files.

use crate::catalogue::Layout;
use crate::error::{RecodeError, Result};
use crate::memory::{self, Memory};
use crate::proto::pagemap::{Pagemap_entry, Pagemap_head};
use crate::set::ImageSet;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A piece of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A range of a file on this machine.
    FileRange {
        /// The file.
        path: PathBuf,
        /// Where the range starts, in bytes.
        offset: u64,
        /// Its length in bytes.
        length: u64,
    },
}

/// A file of a flattened set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatFile {
    /// Its name in the set's directory.
    pub name: String,
    /// Its contents, in order.
    pub pieces: Vec<Piece>,
}

impl FlatFile {
    /// Length in bytes.
    pub fn length(&self) -> u64 {
        let length = |piece: &Piece| match piece {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::FileRange { length, .. } => *length,
        };
        self.pieces.iter().map(length).sum()
    }
}

/// The files of the set in `directory`, with the pages that it has in parent sets brought in. Nothing but pagemaps
/// is read.
pub fn flatten(directory: &Path) -> Result<Vec<FlatFile>> {
    let set = ImageSet::open(directory)?;
    let mut files = Vec::new();
    let mut pages_written = BTreeSet::new();
    for (name, _) in set.files().filter(|(_, of)| matches!(of.layout, Layout::Headed(..))) {
        let (head, _): (Pagemap_head, Vec<Pagemap_entry>) = set.headed(name)?;
        let memory = Memory::open(&set, name)?;
        let pagemap = memory::without_parent(memory.extents(), head.pages_id())?;
        files.push(FlatFile { name: name.to_owned(), pieces: vec![Piece::Bytes(pagemap)] });
        let pages = memory::pages_name(head.pages_id());
        let paths: Vec<PathBuf> = memory.files().cloned().collect();
        let pieces = memory::pieces(memory.extents(), &paths, &[]);
        files.push(FlatFile { name: pages.clone(), pieces });
        if !pages_written.insert(pages.clone()) {
            return Err(RecodeError::refused(name, format!("shares {pages} with another process")));
        }
    }
    let rest = set
        .files()
        .filter(|(name, of)| !matches!(of.layout, Layout::Headed(..)) && !name.starts_with("pages-"));
    for (name, _) in rest {
        files.push(FlatFile { name: name.to_owned(), pieces: vec![whole(&set.directory().join(name))?] });
    }
    Ok(files)
}

fn whole(path: &Path) -> Result<Piece> {
    let length = path.metadata().map_err(|e| RecodeError::io("looking at", path, e))?.len();
    Ok(Piece::FileRange { path: path.to_owned(), offset: 0, length })
}
