//! A translated object, an ELF file, as the memory that it would be mapped as.

use crate::{Result, ServiceError};
use object::LittleEndian;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use std::mem::offset_of;
use tranship_abi::block::ObjectHeader;
use tranship_node::unit::supply::Image;

/// The memory of `elf`, for a guest that was loaded with `bias`.
pub(crate) fn of(elf: &[u8], bias: u64) -> Result<Image> {
    let endian = LittleEndian;
    let header = FileHeader64::<LittleEndian>::parse(elf)?;
    let mut bytes = Vec::new();
    for segment in header.program_headers(endian, elf)?.iter().filter(|s| s.p_type(endian) == PT_LOAD) {
        let contents = segment.data(endian, elf).map_err(|()| shape("a segment is not in the file"))?;
        let (start, len) = (to_usize(segment.p_vaddr(endian))?, to_usize(segment.p_memsz(endian))?);
        let end =
            start.checked_add(len).filter(|end| *end < 1 << 30).ok_or_else(|| shape("it is too large"))?;
        bytes.resize(end.max(bytes.len()), 0);
        let place = bytes.get_mut(start..start + contents.len().min(len));
        place
            .ok_or_else(|| shape("a segment is nowhere"))?
            .copy_from_slice(&contents[..contents.len().min(len)]);
    }
    let header = to_usize(header.e_entry(endian))?;
    let mut image = Image { bytes, header };
    set_bias(&mut image, bias).ok_or_else(|| shape("its header is incomplete"))?;
    Ok(image)
}

fn set_bias(image: &mut Image, bias: u64) -> Option<()> {
    let field = image.header.checked_add(offset_of!(ObjectHeader, bias_slot))?;
    let offset = i64::from_le_bytes(*image.bytes.get(field..)?.first_chunk()?);
    let slot = image.header.checked_add_signed(isize::try_from(offset).ok()?)?;
    *image.bytes.get_mut(slot..)?.first_chunk_mut()? = bias.to_le_bytes();
    Some(())
}

fn to_usize(number: u64) -> Result<usize> {
    usize::try_from(number).map_err(|_| shape("an address is out of range"))
}

fn shape(why: &str) -> ServiceError {
    ServiceError::Object { why: why.to_owned() }
}
