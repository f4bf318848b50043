//! RCPPS and RSQRTPS stay within the error that they state, for every significand that makes a difference.

use tranship_tests::differential::{Executor, Interpreter, Outcome, State, bytes};

/// As the blocks state it; the manual allows 1.5 × 2^-12.
const BOUND: f64 = 1.0 / 8192.0;

#[test]
fn reciprocals_are_within_their_bound() {
    check("0f53ca", |x| 1.0 / x);
}

#[test]
fn reciprocal_square_roots_are_within_their_bound() {
    check("0f52ca", |x| 1.0 / x.sqrt());
}

/// Run `op xmm1,xmm2` on values of all significands of 17 bits, with an odd and an even exponent.
fn check(hex: &str, exact: impl Fn(f64) -> f64) {
    let code = bytes(hex);
    let mut state = State::new();
    let bits: Vec<u32> = (0..1 << 17).map(|n| 0x3f80_0000 + n * 0x80 + 0x3f).collect();
    for four in bits.chunks_exact(4) {
        for (n, value) in four.iter().enumerate() {
            state.cpu.vec[2][4 * n..4 * n + 4].copy_from_slice(&value.to_le_bytes());
        }
        state.cpu.rip = tranship_tests::differential::CODE;
        assert_eq!(Interpreter.run(&mut state, &code), Outcome::Completed);
        for (n, value) in four.iter().enumerate() {
            let found = f32::from_le_bytes(state.cpu.vec[1][4 * n..4 * n + 4].try_into().unwrap());
            let x = f64::from(f32::from_bits(*value));
            let error = (f64::from(found) / exact(x) - 1.0).abs();
            assert!(error < BOUND, "{x}: {found} is off by {error}");
        }
    }
}
