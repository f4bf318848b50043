//! One image file as CRIU lays it out: magic numbers, then messages, each preceded by its length and, in some
//! types, followed by bytes that are not part of it. Such bytes are never loaded: an [`Image`] knows where they are.

use crate::catalogue::{ImageType, Layout, MessageType, followed, plain};
use crate::error::{RecodeError, Result};
use crate::proto::ghost_file::{Ghost_chunk_entry, Ghost_file_entry};
use crate::proto::ipc_msg::{Ipc_msg, Ipc_msg_entry};
use protobuf::reflect::{ReflectValueRef, RuntimeFieldType, RuntimeType};
use protobuf::{CodedOutputStream, MessageDyn};
use std::ops::Range;

/// Where an image's bytes come from.
pub trait Source {
    /// Length in bytes.
    fn length(&self) -> u64;
    /// Fill `buffer` from `offset` on.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()>;
}

impl Source for &[u8] {
    fn length(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| std::io::ErrorKind::UnexpectedEof)?;
        let bytes = self.get(start..start.saturating_add(buffer.len()));
        buffer.copy_from_slice(bytes.ok_or(std::io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A message, and where the bytes that belong to it lie in the file.
pub struct Entry {
    /// Offset of the message's length field.
    pub offset: u64,
    /// The message.
    pub message: Box<dyn MessageDyn>,
    /// Bytes that follow the message.
    pub trailer: Range<u64>,
}

/// A decoded image.
pub struct Image {
    /// Its row in the catalogue.
    pub of: &'static ImageType,
    /// Its messages; a raw image has none.
    pub entries: Vec<Entry>,
}

impl Image {
    /// Decode the image called `file`, of type `of`.
    pub fn decode(of: &'static ImageType, file: &str, source: &dyn Source) -> Result<Image> {
        let mut image = Image { of, entries: Vec::new() };
        if matches!(of.layout, Layout::Raw) {
            return Ok(image);
        }
        let mut reader = Reader { file, source, at: 0 };
        reader.magic(of)?;
        while !reader.at_end() {
            match of.layout {
                Layout::Raw => {}
                Layout::Messages(of) | Layout::Trailed(of) => image.entries.push(reader.entry(of)?),
                Layout::Headed(head, of) => {
                    let of = if image.entries.is_empty() { head } else { of };
                    image.entries.push(reader.entry(of)?);
                }
                Layout::GhostFile => reader.ghost_file(&mut image.entries)?,
                Layout::MessageQueues => reader.message_queue(&mut image.entries)?,
            }
        }
        Ok(image)
    }

    /// The image's bytes, those outside messages copied from `source`, which it was decoded from.
    pub fn encode(&self, source: &dyn Source) -> std::io::Result<Vec<u8>> {
        if matches!(self.of.layout, Layout::Raw) {
            let mut bytes = vec![0; source.length() as usize];
            source.read_at(0, &mut bytes)?;
            return Ok(bytes);
        }
        let mut bytes = start(self.of);
        for entry in &self.entries {
            append(&mut bytes, &*entry.message)?;
            let at = bytes.len();
            bytes.resize(at + (entry.trailer.end - entry.trailer.start) as usize, 0);
            source.read_at(entry.trailer.start, &mut bytes[at..])?;
        }
        Ok(bytes)
    }
}

/// The magic numbers that an image of this type opens with.
pub fn start(of: &ImageType) -> Vec<u8> {
    let prefix = of.prefix.magic().into_iter().flat_map(u32::to_le_bytes);
    prefix.chain(of.magic.to_le_bytes()).collect()
}

/// Append one message with its length.
pub fn append(bytes: &mut Vec<u8>, message: &dyn MessageDyn) -> std::io::Result<()> {
    message.check_initialized_dyn()?;
    let length = u32::try_from(message.compute_size_dyn()).map_err(std::io::Error::other)?;
    bytes.extend(length.to_le_bytes());
    // `write_to_bytes_dyn` would ask reflection for its name.
    let mut stream = CodedOutputStream::vec(bytes);
    message.write_to_with_cached_sizes_dyn(&mut stream)?;
    Ok(stream.flush()?)
}

/// The messages of an image that has nothing but messages, still encoded, with the offset of each.
pub fn frames<'b>(of: &ImageType, file: &str, bytes: &'b [u8]) -> Result<Vec<(u64, &'b [u8])>> {
    let mut reader = Reader { file, source: &bytes, at: 0 };
    let mut frames = Vec::new();
    reader.magic(of)?;
    while !reader.at_end() {
        let offset = reader.at;
        let length = reader.u32()?;
        let range = reader.skip(u64::from(length))?;
        frames.push((offset, &bytes[range.start as usize..range.end as usize]));
    }
    Ok(frames)
}

/// The number of a field, in `message` or in one inside it, that its definition does not have. Where its type is known,
/// [`Search`](crate::proto::Search) is faster.
pub fn unknown_field(message: &dyn MessageDyn) -> Option<u32> {
    if let Some((field, _)) = message.unknown_fields_dyn().iter().next() {
        return Some(field);
    }
    message.descriptor_dyn().fields().find_map(|field| match field.runtime_field_type() {
        RuntimeFieldType::Singular(RuntimeType::Message(_)) => unknown_in(field.get_singular(message)?),
        RuntimeFieldType::Repeated(RuntimeType::Message(_)) => {
            field.get_repeated(message).into_iter().find_map(unknown_in)
        }
        _ => None,
    })
}

fn unknown_in(value: ReflectValueRef) -> Option<u32> {
    match value {
        ReflectValueRef::Message(message) => unknown_field(&*message),
        _ => None,
    }
}

struct Reader<'s> {
    file: &'s str,
    source: &'s dyn Source,
    at: u64,
}

impl Reader<'_> {
    fn at_end(&self) -> bool {
        self.at == self.source.length()
    }

    fn damaged(&self, what: impl Into<String>) -> RecodeError {
        RecodeError::damaged(self.file, self.at, what)
    }

    /// Step over `bytes` bytes, which must be there.
    fn skip(&mut self, bytes: u64) -> Result<Range<u64>> {
        let end = self.at.checked_add(bytes).filter(|end| *end <= self.source.length());
        let end = end.ok_or_else(|| {
            let left = self.source.length() - self.at;
            self.damaged(format!("{bytes} bytes should follow, the file has {left}"))
        })?;
        let range = self.at..end;
        self.at = end;
        Ok(range)
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let read = self.source.read_at(offset, buffer);
        read.map_err(|e| RecodeError::damaged(self.file, offset, format!("reading: {e}")))
    }

    fn bytes(&mut self, count: u64) -> Result<Vec<u8>> {
        let range = self.skip(count)?;
        let mut bytes = vec![0; count as usize];
        self.read(range.start, &mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        let range = self.skip(4)?;
        let mut bytes = [0; 4];
        self.read(range.start, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn magic(&mut self, of: &ImageType) -> Result<()> {
        for expected in of.prefix.magic().into_iter().chain([of.magic]) {
            let found = self.u32()?;
            if found != expected {
                return Err(RecodeError::WrongMagic { file: self.file.to_owned(), found, expected });
            }
        }
        Ok(())
    }

    fn entry(&mut self, of: MessageType) -> Result<Entry> {
        let offset = self.at;
        let length = self.u32()?;
        let bytes = self.bytes(u64::from(length))?;
        let (message, trailer) = (of.parse)(&bytes)
            .map_err(|e| RecodeError::damaged(self.file, offset, format!("not a {}: {e}", of.name)))?;
        Ok(Entry { offset, message, trailer: self.skip(trailer)? })
    }

    fn ghost_file(&mut self, entries: &mut Vec<Entry>) -> Result<()> {
        let mut file = self.entry(plain::<Ghost_file_entry>())?;
        let in_chunks = file.message.downcast_ref().is_some_and(Ghost_file_entry::chunks);
        if !in_chunks {
            file.trailer = self.skip(self.source.length() - self.at)?;
        }
        entries.push(file);
        while in_chunks && !self.at_end() {
            entries.push(self.entry(followed::<Ghost_chunk_entry>())?);
        }
        Ok(())
    }

    fn message_queue(&mut self, entries: &mut Vec<Entry>) -> Result<()> {
        let queue = self.entry(plain::<Ipc_msg_entry>())?;
        let count = queue.message.downcast_ref().map_or(0, Ipc_msg_entry::qnum);
        entries.push(queue);
        for _ in 0..count {
            entries.push(self.entry(followed::<Ipc_msg>())?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{self, Search};
    use protobuf::MessageFull;
    use protobuf::reflect::{MessageDescriptor, ReflectValueBox};

    const UNKNOWN: u32 = 999;

    /// Messages of this type with an unknown field in themselves or in one that they have inside, each possible one down to
    /// that depth.
    fn with_unknown_field(of: &MessageDescriptor, depth: u32) -> Vec<Box<dyn MessageDyn>> {
        let mut found = vec![of.new_instance()];
        found[0].mut_unknown_fields_dyn().add_varint(UNKNOWN, 1);
        for field in of.fields().filter(|_| depth > 0) {
            let (RuntimeFieldType::Singular(RuntimeType::Message(inner))
            | RuntimeFieldType::Repeated(RuntimeType::Message(inner))) = field.runtime_field_type()
            else {
                continue;
            };
            found.extend(with_unknown_field(&inner, depth - 1).into_iter().map(|inner| {
                let (mut outer, inner) = (of.new_instance(), ReflectValueBox::Message(inner));
                if field.is_repeated() {
                    field.mut_repeated(&mut *outer).push(inner);
                } else {
                    field.set_singular_field(&mut *outer, inner);
                }
                outer
            }));
        }
        found
    }

    fn finds<M: MessageFull + Search>(least: usize) {
        assert_eq!(M::default().unknown_field(), None);
        let all = with_unknown_field(&M::descriptor(), 4);
        assert!(all.len() >= least, "{} has only {}", M::NAME, all.len());
        for message in all {
            assert_eq!(unknown_field(&*message), Some(UNKNOWN));
            let message = message.downcast_box::<M>().unwrap();
            assert_eq!(message.unknown_field(), Some(UNKNOWN), "{message:?}");
        }
    }

    #[test]
    fn unknown_fields_are_found_wherever_they_are() {
        finds::<proto::criu_core::Core_entry>(30);
        finds::<proto::mm::Mm_entry>(3);
        finds::<proto::fdinfo::File_entry>(30);
        finds::<proto::pstree::Pstree_entry>(1);
        finds::<proto::pagemap::Pagemap_entry>(1);
        finds::<proto::seccomp::Seccomp_entry>(2);
        finds::<proto::mnt::Mnt_entry>(1);
        finds::<proto::cgroup::Cgroup_entry>(5);
        finds::<proto::timens::Timens_entry>(3);
    }
}
