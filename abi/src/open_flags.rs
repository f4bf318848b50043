//! O_* flags of open(2) and its kin: arm64 numbers four of them differently from x86-64 and riscv64
//! (`include/uapi/asm-generic/fcntl.h`, `arch/arm64/include/uapi/asm/fcntl.h`).

use crate::host::Host;

/// O_* flags as the x86-64 guest numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuestOpenFlags(pub u32);

/// O_* flags as some host numbers them; the raw flags in its `/proc/PID/fdinfo` and CRIU images.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostOpenFlags(pub u32);

/// Flags that arm64 numbers differently: x86-64 bit, arm64 bit.
const ARM64: [(u32, u32); 4] = [
    (0o0040000, 0o0200000), // O_DIRECT
    (0o0100000, 0o0400000), // O_LARGEFILE
    (0o0200000, 0o0040000), // O_DIRECTORY
    (0o0400000, 0o0100000), // O_NOFOLLOW
];

const fn renumber(flags: u32, pairs: &[(u32, u32)], to_host: bool) -> u32 {
    let (mut kept, mut moved, mut i) = (flags, 0, 0);
    while i < pairs.len() {
        let (from, to) = if to_host { pairs[i] } else { (pairs[i].1, pairs[i].0) };
        kept &= !from;
        if flags & from != 0 {
            moved |= to;
        }
        i += 1;
    }
    kept | moved
}

const fn renumbered(host: Host) -> &'static [(u32, u32)] {
    match host {
        Host::Aarch64 => &ARM64,
        Host::X86_64 | Host::Riscv64 => &[],
    }
}

impl GuestOpenFlags {
    /// The same flags for `host`.
    pub const fn to_host(self, host: Host) -> HostOpenFlags {
        HostOpenFlags(renumber(self.0, renumbered(host), true))
    }
}

impl HostOpenFlags {
    /// The same flags for the guest.
    pub const fn to_guest(self, host: Host) -> GuestOpenFlags {
        GuestOpenFlags(renumber(self.0, renumbered(host), false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O_TMPFILE contains O_DIRECTORY, so it moves with it.
    #[test]
    fn arm64_numbers() {
        let tmpfile = GuestOpenFlags(0o20200000);
        assert_eq!(tmpfile.to_host(Host::Aarch64), HostOpenFlags(0o20040000));
        assert_eq!(GuestOpenFlags(0o100000).to_host(Host::Aarch64), HostOpenFlags(0o400000));
        assert_eq!(tmpfile.to_host(Host::Riscv64), HostOpenFlags(0o20200000));
    }

    #[test]
    fn there_and_back_is_identity() {
        for host in [Host::X86_64, Host::Aarch64, Host::Riscv64] {
            for bit in 0..32 {
                let flags = GuestOpenFlags(1 << bit | 0o40000);
                assert_eq!(flags.to_host(host).to_guest(host), flags);
            }
        }
    }
}
