//! The extended state that XSAVE and its like manage: what the guest's operating system has enabled, and where the
//! standard format has it (SDM vol. 1, chapter 13). CPUID, XGETBV, the instructions, signal frames and checkpoints all
//! go by this.

/// XCR0 as XGETBV shows it: x87, SSE, AVX. Programs that were told of AVX-512 at home may have more in use; that is
/// saved and restored too, but offered to nobody.
pub const XCR0: u64 = feature::X87 | feature::SSE | feature::AVX;

/// Bits of XCR0, XSTATE_BV and XCOMP_BV.
#[allow(missing_docs)]
pub mod feature {
    pub const X87: u64 = 1 << 0;
    pub const SSE: u64 = 1 << 1;
    pub const AVX: u64 = 1 << 2;
    pub const OPMASK: u64 = 1 << 5;
    pub const ZMM_HI256: u64 = 1 << 6;
    pub const HI16_ZMM: u64 = 1 << 7;
    pub const PKRU: u64 = 1 << 9;
    pub const AVX512: u64 = OPMASK | ZMM_HI256 | HI16_ZMM;
    /// All of these.
    pub const ALL: u64 = X87 | SSE | AVX | AVX512 | PKRU;
}

/// Offset of the header: XSTATE_BV, then XCOMP_BV.
pub const HEADER: usize = 512;
/// Where the compacted format begins after the header, and the first component is in the standard one.
pub const EXTENDED: usize = 576;

/// A part of the state beyond the FXSAVE image.
#[derive(Clone, Copy, Debug)]
pub struct Component {
    /// Its [`feature`] bit's number.
    pub number: u32,
    /// Where the standard format has it.
    pub offset: usize,
    /// How long it is.
    pub bytes: usize,
}

impl Component {
    /// The component that is [`feature`] `feature`; CPUs that have no MPX may place those beyond AVX elsewhere.
    pub const fn of(feature: u64) -> Component {
        let (offset, bytes) = match feature {
            feature::AVX => (EXTENDED, 256),
            feature::OPMASK => (1088, 64),
            feature::ZMM_HI256 => (1152, 512),
            feature::HI16_ZMM => (1664, 1024),
            _ => (2688, 8),
        };
        Component { number: feature.trailing_zeros(), offset, bytes }
    }

    /// Where it ends.
    pub const fn end(self) -> usize {
        self.offset + self.bytes
    }
}

/// Those that instructions save and restore, in the order of their numbers.
pub const COMPONENTS: [Component; 4] = [
    Component::of(feature::AVX),
    Component::of(feature::OPMASK),
    Component::of(feature::ZMM_HI256),
    Component::of(feature::HI16_ZMM),
];
