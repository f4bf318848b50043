//! An image set that takes the place of the one that it was made from: for engines, which know one directory of images
//! and pack it up.

use crate::catalogue::Rule;
use crate::error::{RecodeError, Result};
use crate::flatten::{FlatFile, Piece, flatten};
use crate::layout::Target;
use crate::output::Report;
use crate::recode;
use crate::set::ImageSet;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Recode the image set in `directory` for `target`, and leave the new set there, without a parent. A directory beside it,
/// of the same name with `.recoded` at its end, is used meanwhile.
///
/// Page contents stay where they are up to the first page that goes: those behind are copied. The set is as it was after an
/// error in recoding; after one in writing it is worth nothing.
pub fn recode_in_place(directory: &Path, target: &Target) -> Result<Report> {
    let scratch = fresh_beside(directory, "recoded")?;
    let recoded = recode_in(directory, &scratch, target);
    // What is left there is in the way of nothing but the next recoding, which removes it, too.
    let _ = fs::remove_dir_all(&scratch);
    recoded
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

fn recode_in(directory: &Path, scratch: &Path, target: &Target) -> Result<Report> {
    let report = recode(directory, scratch, target)?;
    let files = flatten(scratch)?;
    let outdated = outdated(directory, &files)?;
    let ready: Vec<Ready> =
        files.iter().map(|file| Ready::of(file, directory, scratch)).collect::<Result<_>>()?;
    ready.iter().try_for_each(|file| file.settle(directory))?;
    for name in outdated.iter().map(|name| directory.join(name)).filter(|path| path.exists()) {
        fs::remove_file(&name).map_err(|e| RecodeError::io("removing", &name, e))?;
    }
    Ok(report)
}

/// Images of the old set that the new one does not have. What describes the dump stays.
fn outdated(directory: &Path, files: &[FlatFile]) -> Result<Vec<String>> {
    let new: BTreeSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let old = ImageSet::open(directory)?;
    let goes = old.files().filter(|(name, of)| of.rule != Rule::Leave && !new.contains(name));
    Ok(goes.map(|(name, _)| name.to_owned()).collect())
}

/// A file of the new set, ready to take its place.
struct Ready<'f> {
    name: &'f str,
    /// Its contents, or what follows the part of another file that it begins with.
    contents: PathBuf,
    /// A file of the old set, and how many of its first bytes are the first of this one.
    begins_with: Option<(&'f Path, u64)>,
}

impl<'f> Ready<'f> {
    fn of(file: &'f FlatFile, directory: &Path, scratch: &Path) -> Result<Ready<'f>> {
        let linked = scratch.join(&file.name);
        if let [Piece::FileRange { path, .. }] = &file.pieces[..]
            && *path == linked
        {
            return Ok(Ready { name: &file.name, contents: linked, begins_with: None });
        }
        let (begins_with, rest) = match &file.pieces[..] {
            [Piece::FileRange { path, offset: 0, length }, rest @ ..] if is_in(path, directory) => {
                (Some((path.as_path(), *length)), rest)
            }
            pieces => (None, pieces),
        };
        let contents = scratch.join(format!("{}.new", file.name));
        write(&contents, rest).map_err(|e| RecodeError::io("writing", &contents, e))?;
        Ok(Ready { name: &file.name, contents, begins_with })
    }

    fn settle(&self, directory: &Path) -> Result<()> {
        let place = directory.join(self.name);
        let settled = match self.begins_with {
            None => fs::rename(&self.contents, &place),
            Some((beginning, bytes)) => {
                append(beginning, bytes, &self.contents).and_then(|()| fs::rename(beginning, &place))
            }
        };
        settled.map_err(|e| RecodeError::io("writing", &place, e))
    }
}

/// Whether the file lies in that directory, by whatever path.
fn is_in(file: &Path, directory: &Path) -> bool {
    let parent = file.parent().and_then(|parent| parent.canonicalize().ok());
    parent.is_some() && parent == directory.canonicalize().ok()
}

fn write(path: &Path, pieces: &[Piece]) -> std::io::Result<()> {
    let mut to = File::create(path)?;
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => to.write_all(bytes)?,
            Piece::FileRange { path, offset, length } => {
                let mut from = File::open(path)?;
                from.seek(SeekFrom::Start(*offset))?;
                std::io::copy(&mut from.take(*length), &mut to)?;
            }
        }
    }
    Ok(())
}

fn append(to: &Path, bytes: u64, contents: &Path) -> std::io::Result<()> {
    let mut to = File::options().write(true).open(to)?;
    to.set_len(bytes)?;
    to.seek(SeekFrom::End(0))?;
    std::io::copy(&mut File::open(contents)?, &mut to).map(drop)
}
