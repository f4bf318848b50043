//! The messages of CRIU's images, one module per file in `criu/`. A crate of its own, since it is large, depends on
//! nothing of ours and so is compiled once.
#![allow(missing_docs, unreachable_pub, clippy::all, clippy::unwrap_used, clippy::panic)]

include!(concat!(env!("OUT_DIR"), "/criu/mod.rs"));

/// What can be searched for fields that a message has and its definition does not. Reflection can do so as well, but first builds
/// tables for far longer than a process takes that reads one image set.
pub trait Search {
    /// The number of such a field, in the message itself or in one inside it.
    fn unknown_field(&self) -> Option<u32>;
}

impl<M: Search> Search for protobuf::MessageField<M> {
    fn unknown_field(&self) -> Option<u32> {
        self.as_ref()?.unknown_field()
    }
}

impl<M: Search> Search for Vec<M> {
    fn unknown_field(&self) -> Option<u32> {
        self.iter().find_map(M::unknown_field)
    }
}

fn own(fields: &protobuf::SpecialFields) -> Option<u32> {
    fields.unknown_fields().iter().next().map(|(number, _)| number)
}
