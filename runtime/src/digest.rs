//! SHA-256 (FIPS 180-4), to tell which guest file a translated object belongs to.

const fn root_bits(cube: bool, n: u64) -> u32 {
    // First 32 bits of the fraction of n's square or cube root: the largest r with r^k <= n << 32k.
    let (mut low, mut high) = (0_u128, 1 << 40);
    while high - low > 1 {
        let middle = (low + high) / 2;
        let fits = if cube {
            // middle < 2^36 for every prime that is used, so that this does not overflow.
            middle * middle * middle <= (n as u128) << 96
        } else {
            middle * middle <= (n as u128) << 64
        };
        if fits {
            low = middle;
        } else {
            high = middle;
        }
    }
    low as u32
}

const fn primes<const N: usize>() -> [u64; N] {
    let (mut found, mut count, mut candidate) = ([0; N], 0, 2);
    while count < N {
        let (mut i, mut prime) = (0, true);
        while i < count {
            prime &= candidate % found[i] != 0;
            i += 1;
        }
        if prime {
            found[count] = candidate;
            count += 1;
        }
        candidate += 1;
    }
    found
}

const fn roots<const N: usize>(cube: bool) -> [u32; N] {
    let (primes, mut roots, mut i) = (primes::<N>(), [0; N], 0);
    while i < N {
        roots[i] = root_bits(cube, primes[i]);
        i += 1;
    }
    roots
}

const ROUND: [u32; 64] = roots(true);
const INITIAL: [u32; 8] = roots(false);

/// A digest in the making.
pub struct Sha256 {
    state: [u32; 8],
    block: [u8; 64],
    bytes: u64,
}

impl Sha256 {
    /// Of nothing yet.
    pub const fn new() -> Sha256 {
        Sha256 { state: INITIAL, block: [0; 64], bytes: 0 }
    }

    /// Add `data`.
    pub fn update(&mut self, data: &[u8]) {
        for &byte in data {
            self.block[self.bytes as usize % 64] = byte;
            self.bytes += 1;
            if self.bytes.is_multiple_of(64) {
                self.compress();
            }
        }
    }

    /// The digest.
    pub fn finish(mut self) -> [u8; 32] {
        let bits = self.bytes * 8;
        self.update(&[0x80]);
        while self.bytes % 64 != 56 {
            self.update(&[0]);
        }
        self.update(&bits.to_be_bytes());
        let mut digest = [0; 32];
        for (bytes, word) in digest.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        digest
    }

    fn compress(&mut self) {
        let mut w = [0_u32; 64];
        for (word, bytes) in w.iter_mut().zip(self.block.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        for t in 16..64 {
            let (x, y) = (w[t - 15], w[t - 2]);
            let s0 = x.rotate_right(7) ^ x.rotate_right(18) ^ x >> 3;
            let s1 = y.rotate_right(17) ^ y.rotate_right(19) ^ y >> 10;
            w[t] = w[t - 16].wrapping_add(s0).wrapping_add(w[t - 7]).wrapping_add(s1);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = self.state;
        for t in 0..64 {
            let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = e & f ^ !e & g;
            let t1 = h.wrapping_add(s1).wrapping_add(choice).wrapping_add(ROUND[t]).wrapping_add(w[t]);
            let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let t2 = s0.wrapping_add(a & b ^ a & c ^ b & c);
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(t1), c, b, a, t1.wrapping_add(t2));
        }
        for (word, add) in self.state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *word = word.wrapping_add(add);
        }
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Sha256::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::{format, io::Write, string::String, vec::Vec};

    #[test]
    fn agrees_with_coreutils() {
        for len in [0, 3, 55, 56, 63, 64, 65, 1000] {
            let data: Vec<u8> = (0..len).map(|n| (n * 7) as u8).collect();
            let mut child =
                Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(&data).unwrap();
            let theirs = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
            let mut digest = Sha256::new();
            digest.update(&data);
            let ours: String = digest.finish().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(ours, theirs[..64], "{len} bytes");
        }
    }
}
