//! An image set that takes the place of the one that it was made from: for engines, which know one directory of images
//! and pack it up.

use crate::catalogue::Rule;
use crate::error::{RecodeError, Result};
use crate::flatten::Piece;
use crate::layout::Target;
use crate::output::Output;
use crate::recoded;
use crate::set::ImageSet;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes that are moved at once.
const CHUNK: usize = 1 << 18;

/// Recode the image set in `directory` for `target`, and leave the new set there, without a parent. Images are written over, so
/// none of them may be another set's, too.
///
/// Page contents stay where they are up to the first page that goes: those behind are copied. The set is as it was after an
/// error in recoding; after one in writing it is worth nothing.
pub fn recode_in_place(directory: &Path, target: &Target) -> Result<()> {
    let set = ImageSet::open(directory)?;
    let (output, _) = recoded(&set, target)?;
    let new = New::of(&output)?;
    new.write(directory)?;
    let outdated = set.files().filter(|(name, of)| of.rule != Rule::Leave && !new.has(name));
    for path in outdated.map(|(name, _)| directory.join(name)).filter(|path| path.exists()) {
        fs::remove_file(&path).map_err(|e| RecodeError::io("removing", &path, e))?;
    }
    Ok(())
}

/// The path of a directory beside `directory`, on the same file system, of the same name with `.suffix` at its end. What
/// an earlier one has left there is removed.
pub fn fresh_beside(directory: &Path, suffix: &str) -> Result<PathBuf> {
    let mut name = directory.file_name().map_or_else(OsString::new, OsString::from);
    name.push(format!(".{suffix}"));
    let beside = directory.with_file_name(name);
    if beside.exists() {
        fs::remove_dir_all(&beside).map_err(|e| RecodeError::io("removing", &beside, e))?;
    }
    Ok(beside)
}

/// The new set.
struct New<'o> {
    /// Images that stay as they are.
    stay: BTreeSet<&'o str>,
    /// Images and their new contents.
    images: Vec<(String, Contents<'o>)>,
}

enum Contents<'o> {
    Bytes(&'o [u8]),
    Pagemap(Vec<u8>),
    Pages(Vec<Piece>),
}

impl<'o> New<'o> {
    /// Made of `output`; what stays is known to be good then.
    fn of(output: &'o Output) -> Result<New<'o>> {
        let stay = output.links()?.into_iter().collect();
        let written = output.images.iter().filter_map(|(name, bytes)| Some((name, bytes.as_ref()?)));
        let mut images: Vec<_> =
            written.map(|(name, bytes)| (name.clone(), Contents::Bytes(bytes))).collect();
        for (pagemap, memory) in &output.memories {
            images.push((pagemap.clone(), Contents::Pagemap(memory.pagemap()?)));
            images.push((memory.name(), Contents::Pages(memory.pages())));
        }
        Ok(New { stay, images })
    }

    fn has(&self, name: &str) -> bool {
        self.stay.contains(name) || self.images.iter().any(|(image, _)| image == name)
    }

    fn write(&self, directory: &Path) -> Result<()> {
        for (name, contents) in &self.images {
            let path = directory.join(name);
            let written = match contents {
                Contents::Bytes(bytes) => write_over(&path, bytes),
                Contents::Pagemap(bytes) => write_over(&path, bytes),
                Contents::Pages(pieces) => put_together(&path, pieces, directory),
            };
            written.map_err(|e| RecodeError::io("writing", &path, e))?;
        }
        Ok(())
    }
}

/// A new file would take far longer on some file systems.
fn write_over(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::options().create(true).truncate(false).write(true).open(path)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

/// Have `pieces` at `path`; a file in `directory` that they begin with goes there.
fn put_together(path: &Path, pieces: &[Piece], directory: &Path) -> std::io::Result<()> {
    match pieces {
        [Piece::FileRange { path: beginning, offset: 0, length }, rest @ ..]
            if is_in(beginning, directory) =>
        {
            let mut file = File::options().read(true).write(true).open(beginning)?;
            // Behind all that is there, since some of it comes from there.
            let end = file.seek(SeekFrom::End(0))?;
            append(&mut file, rest)?;
            move_down(&file, end, *length)?;
            fs::rename(beginning, path)
        }
        pieces => append(&mut File::create(path)?, pieces),
    }
}

/// Whether the file lies in that directory, by whatever path.
fn is_in(file: &Path, directory: &Path) -> bool {
    let parent = file.parent().and_then(|parent| parent.canonicalize().ok());
    parent.is_some() && parent == directory.canonicalize().ok()
}

fn append(to: &mut File, pieces: &[Piece]) -> std::io::Result<()> {
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => to.write_all(bytes)?,
            Piece::FileRange { path, offset, length } => {
                let mut from = File::open(path)?;
                from.seek(SeekFrom::Start(*offset))?;
                std::io::copy(&mut from.take(*length), to)?;
            }
        }
    }
    Ok(())
}

/// Have what is in `file` from `from` on begin at `to`, which is before that.
fn move_down(file: &File, from: u64, to: u64) -> std::io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut moved = 0;
    loop {
        match file.read_at(&mut buffer, from + moved)? {
            0 => return file.set_len(to + moved),
            bytes => {
                file.write_all_at(&buffer[..bytes], to + moved)?;
                moved += bytes as u64;
            }
        }
    }
}
