//! Checkpoints on the wire: image files, then the output logs, then the unit's record.

use super::paths::UnitDir;
use crate::error::{NodeError, Result};
use crate::progress::Progress;
use crate::protocol::{Channel, ImageMessage, Output, Received};
use crate::record::UnitRecord;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use tranship_recode::{FlatFile, Piece, flatten};

/// Send the canonical checkpoint in `images/SET` and the logs of `unit`.
pub fn send(
    channel: &mut Channel,
    unit: &UnitDir,
    set: &str,
    record: &UnitRecord,
    progress: &Progress,
) -> Result<()> {
    let files = flatten(&unit.images(set)).map_err(|why| NodeError::Recode { why: why.to_string() })?;
    progress.enter("images", files.iter().map(FlatFile::length).sum());
    for file in &files {
        let mut contents = Contents { pieces: file.pieces.iter(), current: None };
        let message = ImageMessage::Image(file.name.clone());
        let had = channel.send_with_stream(&message, file.length(), &mut contents, progress)?;
        if had != file.length() {
            return Err(NodeError::io(format!("sending {}", file.name), "an image file shrank meanwhile"));
        }
    }
    for output in Output::ALL {
        let path = unit.output(output);
        let mut log = File::open(&path).map_err(NodeError::at("opening", &path))?;
        let length = log.metadata().map_err(NodeError::at("opening", &path))?.len();
        channel.send_with_stream(&ImageMessage::Log { output }, length, &mut log, progress)?;
    }
    channel.send(&ImageMessage::End(Box::new(record.clone())))
}

/// The pieces of a file, one after the other.
struct Contents<'a> {
    pieces: std::slice::Iter<'a, Piece>,
    current: Option<Box<dyn Read + 'a>>,
}

impl Read for Contents<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            if let Some(current) = &mut self.current {
                match current.read(buffer)? {
                    0 => self.current = None,
                    n => return Ok(n),
                }
            }
            match self.pieces.next() {
                None => return Ok(0),
                Some(Piece::Bytes(bytes)) => self.current = Some(Box::new(bytes.as_slice())),
                Some(Piece::FileRange { path, offset, length }) => {
                    let mut file = File::open(path)?;
                    file.seek(SeekFrom::Start(*offset))?;
                    self.current = Some(Box::new(file.take(*length)));
                }
            }
        }
    }
}

/// Receive a checkpoint into `images/received` and the logs of `unit`. Also returns the record that came with it.
pub fn receive(channel: &mut Channel, unit: &UnitDir) -> Result<(Received, UnitRecord)> {
    let directory = unit.fresh_images("received")?;
    let progress = Progress::default();
    let mut received = Received::default();
    loop {
        let frame = channel.receive::<ImageMessage>()?;
        let path = match frame.message {
            ImageMessage::Image(name) => directory.join(plain(name)?),
            ImageMessage::Log { output } => unit.output(output),
            ImageMessage::End(record) => return Ok((received, *record)),
        };
        let mut file = File::create(&path).map_err(NodeError::at("making", &path))?;
        channel.copy_body(frame.body, &mut file, &progress)?;
        received.entries += 1;
        received.bytes += frame.body;
    }
}

/// `name` if it is one of a file in a directory.
fn plain(name: String) -> Result<String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(fine) {
        return Err(NodeError::BadPath { path: name });
    }
    Ok(name)
}
