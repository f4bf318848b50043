//! An image set: a directory as CRIU writes it, every file of it known to the catalogue.

use crate::catalogue::{ImageType, Layout, Rule, image_type};
use crate::error::{RecodeError, Result};
use crate::image::{self, Image, Source};
use crate::proto::Search;
use protobuf::Message;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Name of the symbolic link to the set that pages marked as the parent's are in.
pub(crate) const PARENT: &str = "parent";

/// A directory of images. Nothing is loaded until it is asked for, page contents never.
pub struct ImageSet {
    directory: PathBuf,
    files: BTreeMap<String, &'static ImageType>,
    bytes_read: Cell<u64>,
}

/// Where a message starts in its file, and its bytes.
type Frame<'b> = (u64, &'b [u8]);

impl ImageSet {
    /// Look at the files in `directory`; a file that the catalogue does not have is an error.
    pub fn open(directory: &Path) -> Result<ImageSet> {
        let io = |e| RecodeError::io("listing", directory, e);
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(directory).map_err(io)? {
            let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
            if name == PARENT {
                continue;
            }
            let of = image_type(&name).ok_or(RecodeError::UnknownImage { file: name.clone() })?;
            files.insert(name, of);
        }
        Ok(ImageSet { directory: directory.to_owned(), files, bytes_read: Cell::new(0) })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Names and types of all files.
    pub fn files(&self) -> impl Iterator<Item = (&str, &'static ImageType)> {
        self.files.iter().map(|(name, of)| (name.as_str(), *of))
    }

    /// Whether there is a file of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Bytes of images, pages included, that were read through this value so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.get()
    }

    pub(crate) fn count_read(&self, bytes: u64) {
        self.bytes_read.set(self.bytes_read.get() + bytes);
    }

    /// The directory that the `parent` link leads to, where there is one.
    pub fn parent(&self) -> Option<PathBuf> {
        let link = self.directory.join(PARENT);
        link.symlink_metadata().is_ok().then_some(link)
    }

    /// The whole image of a file, decoded without loading what is outside its messages.
    pub fn image(&self, name: &str) -> Result<Image> {
        let of = self.type_of(name)?;
        match of.layout {
            Layout::Messages(_) | Layout::Headed(..) => Image::decode(of, name, &&self.bytes(name)?[..]),
            _ => Image::decode(of, name, &self.source(name)?),
        }
    }

    /// A file's bytes where they are.
    pub fn source(&self, name: &str) -> Result<FileSource> {
        FileSource::open(&self.directory.join(name))
    }

    /// All messages of an image that has messages of one type only. A field that `M` does not define is an error:
    /// who asks for messages is going to act on them.
    pub fn messages<M: Message + Search>(&self, name: &str) -> Result<Vec<M>> {
        let bytes = self.bytes(name)?;
        self.frames(name, &bytes)?.into_iter().map(|frame| parse(name, frame)).collect()
    }

    /// The only message of an image.
    pub fn message<M: Message + Search>(&self, name: &str) -> Result<M> {
        let mut messages = self.messages(name)?;
        match (messages.pop(), messages.len()) {
            (Some(message), 0) => Ok(message),
            (_, others) => {
                let found = others + 1;
                Err(RecodeError::damaged(name, 0, format!("holds {found} messages instead of one")))
            }
        }
    }

    /// The first message of an image, of one type, and the others, of another.
    pub fn headed<H: Message + Search, M: Message + Search>(&self, name: &str) -> Result<(H, Vec<M>)> {
        let bytes = self.bytes(name)?;
        let mut frames = self.frames(name, &bytes)?.into_iter();
        let head = frames.next().ok_or_else(|| RecodeError::damaged(name, 0, "has no head"))?;
        Ok((parse(name, head)?, frames.map(|frame| parse(name, frame)).collect::<Result<_>>()?))
    }

    fn type_of(&self, name: &str) -> Result<&'static ImageType> {
        let of = self.files.get(name).copied();
        of.ok_or_else(|| RecodeError::Missing { file: name.to_owned() })
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>> {
        self.type_of(name)?;
        let path = self.directory.join(name);
        let bytes = std::fs::read(&path).map_err(|e| RecodeError::io("reading", &path, e))?;
        self.count_read(bytes.len() as u64);
        Ok(bytes)
    }

    fn frames<'b>(&self, name: &str, bytes: &'b [u8]) -> Result<Vec<Frame<'b>>> {
        image::frames(self.type_of(name)?, name, bytes)
    }

    /// Stop at the first file that may not cross.
    pub fn refuse(&self) -> Result<()> {
        for (name, of) in self.files() {
            if let Rule::Refuse(why) = of.rule {
                return Err(RecodeError::refused(name, why));
            }
        }
        Ok(())
    }
}

fn parse<M: Message + Search>(name: &str, (offset, bytes): Frame) -> Result<M> {
    let message = M::parse_from_bytes(bytes)
        .map_err(|e| RecodeError::damaged(name, offset, format!("not a {}: {e}", M::NAME)))?;
    match message.unknown_field() {
        Some(field) => Err(RecodeError::UnknownField { file: name.to_owned(), field, offset }),
        None => Ok(message),
    }
}

/// A file as a [`Source`].
pub struct FileSource {
    file: File,
    length: u64,
}

impl FileSource {
    /// Open a file for reading.
    pub fn open(path: &Path) -> Result<FileSource> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length, file) = opened.map_err(|e| RecodeError::io("opening", path, e))?;
        Ok(FileSource { file, length })
    }
}

impl Source for FileSource {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }
}
