//! Compiled code for a process that runs (`tranship_abi::block::Supply`), as seen from outside: what it wants, and how
//! it gets it.

use super::state_area::StateArea;
use crate::error::{NodeError, Result};
use std::mem::offset_of;
use tranship_abi::block::{
    ARENA_ALIGNMENT, ARENA_BYTES, ARENA_OFFSET, MAX_SUPPLIED, MAX_WANTED, ObjectEntry, ObjectHeader,
    ProcessBlock, Supplied, Supply,
};

/// A translated process that code can be supplied to.
#[derive(Debug)]
pub struct Consumer {
    area: StateArea,
    generation: u64,
    seen: u64,
}

/// A translated object as it is to lie in the arena, all offsets being relative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where in them the object's header is.
    pub header: usize,
}

impl Image {
    /// Where the object can be entered, in guest addresses as linked.
    pub fn entries(&self) -> impl Iterator<Item = u64> {
        self.rows()
            .unwrap_or_default()
            .iter()
            .map(|row| row.first_chunk().map_or(0, |guest| u64::from_le_bytes(*guest)))
    }

    fn rows(&self) -> Option<&[[u8; size_of::<ObjectEntry>()]]> {
        let header = self.bytes.get(self.header..)?;
        let count = header.get(offset_of!(ObjectHeader, entry_count)..)?.first_chunk()?;
        let table = header.get(offset_of!(ObjectHeader, entries)..)?.first_chunk()?;
        let table = self.header.checked_add_signed(isize::try_from(i64::from_le_bytes(*table)).ok()?)?;
        let (rows, _) = self.bytes.get(table..)?.as_chunks();
        rows.get(..u32::from_le_bytes(*count) as usize)
    }
}

/// Offset of a field of [`Supply`] from the state area's start.
macro_rules! field {
    ($field:ident) => {
        (offset_of!(ProcessBlock, supply) + offset_of!(Supply, $field)) as u64
    };
}

impl Consumer {
    /// Process `pid`, if it is translated and has started.
    pub fn open(pid: u32) -> Result<Option<Consumer>> {
        let Some(area) = StateArea::find(pid)? else { return Ok(None) };
        let generation = area.long(area.base() + field!(generation))?;
        Ok((generation != 0).then_some(Consumer { area, generation, seen: 0 }))
    }

    /// The process's memory.
    pub fn memory(&self) -> &StateArea {
        &self.area
    }

    /// Whether it still runs the program that it ran when it was opened.
    pub fn is_current(&self) -> bool {
        self.area.long(self.area.base() + field!(generation)).is_ok_and(|now| now == self.generation)
    }

    /// What has been wanted since this was asked last; the oldest are lost if there were too many.
    pub fn wanted(&mut self) -> Result<Vec<u64>> {
        let count = self.area.long(self.area.base() + field!(wanted_count))?;
        let first = self.seen.max(count.saturating_sub(MAX_WANTED as u64));
        self.seen = count;
        let place = |n: u64| self.area.base() + field!(wanted) + n % MAX_WANTED as u64 * 8;
        (first..count).map(|n| self.area.long(place(n))).collect()
    }

    /// Put an object into the arena, for the process to take. False if there is no room.
    pub fn supply(&self, image: &Image) -> Result<bool> {
        let base = self.area.base();
        let (count, taken) =
            (self.area.long(base + field!(supplied_count))?, self.area.long(base + field!(taken_count))?);
        let used = self.area.long(base + field!(arena_used))?;
        let end = used.saturating_add(image.bytes.len() as u64).next_multiple_of(ARENA_ALIGNMENT);
        if end > ARENA_BYTES || count.wrapping_sub(taken) >= MAX_SUPPLIED as u64 {
            return Ok(false);
        }
        if image.header >= image.bytes.len() {
            return Err(NodeError::io("supplying an object", "its header is outside of it"));
        }
        // In this order a child that is forked meanwhile finds nothing that is half there.
        self.area.set_long(base + field!(arena_used), end)?;
        let start = base + ARENA_OFFSET + used;
        self.area.write(start, &image.bytes)?;
        let place = base + field!(supplied) + count % MAX_SUPPLIED as u64 * size_of::<Supplied>() as u64;
        let words = [start, image.bytes.len() as u64, start + image.header as u64];
        self.area.write(place, words.map(u64::to_le_bytes).as_flattened())?;
        self.area.set_long(base + field!(supplied_count), count + 1)?;
        Ok(true)
    }
}
