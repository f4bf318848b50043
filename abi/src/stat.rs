//! `struct stat`: x86-64 has its own, arm64 and riscv64 share the generic one
//! (`arch/x86/include/uapi/asm/stat.h`, `include/uapi/asm-generic/stat.h`).

/// x86-64's `struct stat`.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct X86Stat {
    pub dev: u64,
    pub ino: u64,
    pub nlink: u64,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub pad: u32,
    pub rdev: u64,
    pub size: i64,
    pub blksize: i64,
    pub blocks: i64,
    /// Seconds and nanoseconds of access, modification and change.
    pub times: [[u64; 2]; 3],
    pub unused: [i64; 3],
}

/// The generic `struct stat`.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct GenericStat {
    pub dev: u64,
    pub ino: u64,
    pub mode: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u64,
    pub pad1: u64,
    pub size: i64,
    pub blksize: i32,
    pub pad2: i32,
    pub blocks: i64,
    /// Seconds and nanoseconds of access, modification and change.
    pub times: [[u64; 2]; 3],
    pub unused: [u32; 2],
}

impl From<GenericStat> for X86Stat {
    fn from(from: GenericStat) -> X86Stat {
        X86Stat {
            dev: from.dev,
            ino: from.ino,
            nlink: from.nlink.into(),
            mode: from.mode,
            uid: from.uid,
            gid: from.gid,
            pad: 0,
            rdev: from.rdev,
            size: from.size,
            blksize: from.blksize.into(),
            blocks: from.blocks,
            times: from.times,
            unused: [0; 3],
        }
    }
}

const _: () = assert!(size_of::<X86Stat>() == 144 && size_of::<GenericStat>() == 128);
