//! Any bytes as an image of any type: decoding ends, and what it accepts encodes to something that says the same and
//! encodes to itself. The first byte chooses the type, whose magic numbers are put before the others.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tranship_recode::catalogue::IMAGE_TYPES;
use tranship_recode::image::{Image, start, unknown_field};

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, contents)) = bytes.split_first() else { return };
    let of = &IMAGE_TYPES[usize::from(*choice) % IMAGE_TYPES.len()];
    let file = [&start(of), contents].concat();
    let Ok(image) = Image::decode(of, of.name, &&file[..]) else { return };
    let encoded = image.encode(&&file[..]).expect("what was decoded encodes");
    let again = Image::decode(of, of.name, &&encoded[..]).expect("what was encoded decodes");
    assert_eq!(image.entries.len(), again.entries.len());
    // Fields that CRIU does not define come back in any order.
    if again.entries.iter().all(|entry| unknown_field(&*entry.message).is_none()) {
        assert_eq!(again.encode(&&encoded[..]).expect("and encodes"), encoded);
    }
});
