//! Archives in cpio's "newc" form, which is what the kernel unpacks as its first file system
//! (Documentation/driver-api/early-userspace/buffer-format.rst). Several in a row are one.

use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

/// A file: its path without leading slash, its permissions, its contents.
pub(crate) type Member = (String, u32, Vec<u8>);

const DIRECTORY: u32 = 0o040755;
const REGULAR: u32 = 0o100000;

/// Write an archive of directories and files.
pub(crate) fn archive(path: &Path, directories: &[&str], files: &[Member]) -> Result<()> {
    let mut writer = BufWriter::new(File::create(path)?);
    for directory in directories {
        member(&mut writer, directory, DIRECTORY, &[])?;
    }
    for (name, permissions, contents) in files {
        member(&mut writer, name, REGULAR | permissions, contents)?;
    }
    member(&mut writer, "TRAILER!!!", 0, &[])?;
    writer.flush()
}

fn member(to: &mut impl Write, name: &str, mode: u32, contents: &[u8]) -> Result<()> {
    let too_large = |_| std::io::Error::other(format!("{name} is too large for an archive"));
    let length = u32::try_from(contents.len()).map_err(too_large)?;
    let name_length = name.len() as u32 + 1;
    // c_ino c_mode c_uid c_gid c_nlink c_mtime c_filesize c_maj c_min c_rmaj c_rmin c_namesize c_chksum
    let fields = [0, mode, 0, 0, 1, 0, length, 0, 0, 0, 0, name_length, 0];
    to.write_all(b"070701")?;
    for field in fields {
        write!(to, "{field:08x}")?;
    }
    to.write_all(name.as_bytes())?;
    to.write_all(&[0])?;
    pad(to, 6 + 13 * 8 + name_length as usize)?;
    to.write_all(contents)?;
    pad(to, contents.len())
}

/// Zeros to the next multiple of four.
fn pad(to: &mut impl Write, length: usize) -> Result<()> {
    to.write_all(&[0; 3][..length.next_multiple_of(4) - length])
}
