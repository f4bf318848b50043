//! Any bytes as a guest ELF file: parsing and discovery end, in time that the bytes account for, and what they
//! say is consistent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tranship_translate::{discover::discover, elf::GuestElf};

fuzz_target!(|bytes: &[u8]| {
    let Ok(elf) = GuestElf::parse(bytes.to_vec()) else { return };
    let found = discover(&elf);
    assert!(found.report.covered_bytes + found.report.padding_bytes <= found.report.text_bytes);
    for region in &found.regions {
        assert!(region.blocks.contains_key(&region.entry), "{region}");
        assert!(region.loop_headers.iter().all(|header| region.blocks.contains_key(header)), "{region}");
        for block in region.blocks.values() {
            assert!(block.exit.successors().all(|next| region.blocks.contains_key(&next)), "{region}");
        }
    }
});
