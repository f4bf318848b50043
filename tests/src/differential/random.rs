//! Random numbers that a seed repeats, with a taste for the values at which instructions go wrong.

/// A splitmix64 generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of `seed`.
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A seed that no run had before.
    pub fn fresh_seed() -> u64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Random::new(now.as_nanos() as u64 ^ u64::from(std::process::id()) << 32).bits()
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// An integer: often zero, small, all ones, or at the limits of a width.
    pub fn integer(&mut self) -> u64 {
        let width = self.pick(&[8, 16, 32, 64]);
        let mask = u64::MAX >> (64 - width);
        match self.below(10) {
            0 => 0,
            1 => u64::MAX,
            2 => self.below(65),
            3 => self.below(65).wrapping_neg(),
            4 => 1 << (width - 1),
            5 => (1 << (width - 1)) - 1,
            6 => 1 << self.below(64),
            7 => self.bits() & mask,
            _ => self.bits(),
        }
    }

    /// The bits of a binary32 or binary64: often zero, infinite, a NaN, subnormal, integral or near a limit.
    pub fn float(&mut self, double: bool) -> u64 {
        let (exponent_bits, fraction_bits) = if double { (11, 52) } else { (8, 23) };
        let top = (1 << exponent_bits) - 1;
        let bias = top / 2;
        let exponent = match self.below(8) {
            0 => 0,
            1 => top,
            2 => self.pick(&[1, top - 1]),
            3 | 4 => bias + self.below(70),
            5 => bias - self.below(bias),
            _ => self.below(top),
        };
        let fraction = match self.below(5) {
            0 => 0,
            1 => 1 << (fraction_bits - 1),
            2 => (1 << fraction_bits) - 1,
            3 => self.pick(&[1, 2, 1 << (fraction_bits / 2)]),
            _ => self.bits() & ((1 << fraction_bits) - 1),
        };
        self.below(2) << (exponent_bits + fraction_bits) | exponent << fraction_bits | fraction
    }
}
