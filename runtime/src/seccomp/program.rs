//! Programs of the classic Berkeley packet filter, as seccomp(2) takes them: `kernel/seccomp.c`,
//! `net/core/filter.c`, `include/uapi/linux/bpf_common.h`.

/// An instruction: `struct sock_filter` as one little-endian word.
#[derive(Clone, Copy)]
struct Insn {
    code: u16,
    jump_true: u8,
    jump_false: u8,
    k: u32,
}

impl Insn {
    fn decode(word: u64) -> Insn {
        let [c0, c1, jump_true, jump_false, k @ ..] = word.to_le_bytes();
        Insn { code: u16::from_le_bytes([c0, c1]), jump_true, jump_false, k: u32::from_le_bytes(k) }
    }
}

/// `struct seccomp_data`: what a program looks at.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    pub(super) number: u32,
    pub(super) machine: u32,
    pub(super) instruction_pointer: u64,
    pub(super) args: [u64; 6],
}

const DATA_BYTES: u32 = size_of::<Data>() as u32;

impl Data {
    /// The word at offset `at`, a multiple of 4 below the size.
    fn word(&self, at: u32) -> u32 {
        let half = |value: u64| if at & 4 == 0 { value as u32 } else { (value >> 32) as u32 };
        match at {
            0 => self.number,
            4 => self.machine,
            8 | 12 => half(self.instruction_pointer),
            _ => self.args.get((at as usize - 16) / 8).copied().map_or(0, half),
        }
    }
}

/// Scratch memory, in words.
const CELLS: usize = 16;
/// Opcodes: class, size or operation, operand.
const LD_ABS: u16 = 0x20;
const LD_LEN: u16 = 0x80;
const LD_IMM: u16 = 0x00;
const LD_MEM: u16 = 0x60;
const LDX_LEN: u16 = 0x81;
const LDX_IMM: u16 = 0x01;
const LDX_MEM: u16 = 0x61;
const ST: u16 = 0x02;
const STX: u16 = 0x03;
const NEG: u16 = 0x84;
const JA: u16 = 0x05;
const RET_K: u16 = 0x06;
const RET_A: u16 = 0x16;
const TAX: u16 = 0x07;
const TXA: u16 = 0x87;
const CLASS: u16 = 7;
const ALU: u16 = 4;
const JMP: u16 = 5;
/// The operand is X, not the constant.
const USE_X: u16 = 8;
const OPERATION: u16 = 0xf0;
const DIV: u16 = 0x30;
const LSH: u16 = 0x60;
const RSH: u16 = 0x70;

/// Would the kernel take the program that consists of these words?
pub(super) fn is_valid(program: &[u64]) -> bool {
    let checked = program.iter().enumerate().all(|(at, &word)| {
        let insn = Insn::decode(word);
        let left = program.len() - at - 1;
        is_known(&insn) && jumps_inside(&insn, left)
    });
    let last = program.last().map(|&word| Insn::decode(word).code);
    checked && matches!(last, Some(RET_K | RET_A)) && reads_only_what_it_wrote(program)
}

fn is_known(insn: &Insn) -> bool {
    match insn.code {
        LD_ABS => insn.k < DATA_BYTES && insn.k.is_multiple_of(4),
        LD_MEM | LDX_MEM | ST | STX => (insn.k as usize) < CELLS,
        LD_LEN | LD_IMM | LDX_LEN | LDX_IMM | NEG | JA | RET_K | RET_A | TAX | TXA => true,
        code if code & !(OPERATION | USE_X) == ALU => match (code & OPERATION, code & USE_X) {
            (DIV, 0) => insn.k != 0,
            (LSH | RSH, 0) => insn.k < 32,
            // add, sub, mul, div, or, and, shifts; xor.
            (operation, _) => operation <= RSH || operation == 0xa0,
        },
        // jeq, jgt, jge, jset.
        code if code & !(OPERATION | USE_X) == JMP => matches!(code & OPERATION, 0x10..=0x40),
        _ => false,
    }
}

fn jumps_inside(insn: &Insn, left: usize) -> bool {
    match (insn.code, insn.code & CLASS) {
        (JA, _) => (insn.k as usize) < left,
        (_, JMP) => usize::from(insn.jump_true.max(insn.jump_false)) < left,
        _ => true,
    }
}

/// Jumps go forward only, so one pass sees every way to an instruction before it.
fn reads_only_what_it_wrote(program: &[u64]) -> bool {
    const MAX: usize = super::MAX_INSNS;
    let mut written = [u16::MAX; MAX];
    let Some(written) = written.get_mut(..program.len()) else { return false };
    let mut valid = 0;
    for (at, &word) in program.iter().enumerate() {
        let insn = Insn::decode(word);
        valid &= written[at];
        match insn.code {
            ST | STX => valid |= 1 << insn.k,
            LD_MEM | LDX_MEM if valid >> insn.k & 1 == 0 => return false,
            JA => {
                written[at + 1 + insn.k as usize] &= valid;
                valid = u16::MAX;
            }
            code if code & CLASS == JMP => {
                written[at + 1 + usize::from(insn.jump_true)] &= valid;
                written[at + 1 + usize::from(insn.jump_false)] &= valid;
                valid = u16::MAX;
            }
            _ => {}
        }
    }
    true
}

/// Run a valid program.
pub(super) fn run(program: &[u64], data: &Data) -> u32 {
    let (mut a, mut x, mut cells) = (0_u32, 0_u32, [0_u32; CELLS]);
    let mut at = 0;
    // Whatever is not valid ends in killing the process: 0 is that of a thread.
    while let Some(&word) = program.get(at) {
        let insn = Insn::decode(word);
        let operand = if insn.code & USE_X != 0 { x } else { insn.k };
        let cell = insn.k as usize % CELLS;
        at += 1;
        match insn.code {
            LD_ABS => a = data.word(insn.k),
            LD_LEN => a = DATA_BYTES,
            LD_IMM => a = insn.k,
            LD_MEM => a = cells[cell],
            LDX_LEN => x = DATA_BYTES,
            LDX_IMM => x = insn.k,
            LDX_MEM => x = cells[cell],
            ST => cells[cell] = a,
            STX => cells[cell] = x,
            TAX => x = a,
            TXA => a = x,
            NEG => a = a.wrapping_neg(),
            RET_K => return insn.k,
            RET_A => return a,
            JA => at += insn.k as usize,
            code if code & CLASS == JMP => {
                let taken = match code & OPERATION {
                    0x10 => a == operand,
                    0x20 => a > operand,
                    0x30 => a >= operand,
                    _ => a & operand != 0,
                };
                at += usize::from(if taken { insn.jump_true } else { insn.jump_false });
            }
            code => match compute(code & OPERATION, a, operand) {
                Some(result) => a = result,
                None => return 0,
            },
        }
    }
    0
}

/// The kernel's: a division by zero ends the program with 0, shifts count modulo 32.
fn compute(operation: u16, a: u32, operand: u32) -> Option<u32> {
    Some(match operation {
        0x00 => a.wrapping_add(operand),
        0x10 => a.wrapping_sub(operand),
        0x20 => a.wrapping_mul(operand),
        DIV => return a.checked_div(operand),
        0x40 => a | operand,
        0x50 => a & operand,
        LSH => a.wrapping_shl(operand),
        RSH => a.wrapping_shr(operand),
        _ => a ^ operand,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insn(code: u16, jump_true: u8, jump_false: u8, k: u32) -> u64 {
        u64::from(code) | u64::from(jump_true) << 16 | u64::from(jump_false) << 24 | u64::from(k) << 32
    }

    #[test]
    fn programs_look_at_the_call() {
        let args = [1, 2, 0x1_0000_0003, 4, 5, 6];
        let data = Data { number: 39, machine: 7, instruction_pointer: 0x5_0000_0009, args };
        let load = |at| run(&[insn(LD_ABS, 0, 0, at), insn(RET_A, 0, 0, 0)], &data);
        assert_eq!([0, 4, 8, 12, 16, 32, 36].map(load), [39, 7, 9, 5, 1, 3, 1]);
        let jump = [insn(LD_ABS, 0, 0, 0), insn(0x15, 0, 1, 39), insn(RET_K, 0, 0, 5), insn(RET_K, 0, 0, 6)];
        assert!(is_valid(&jump));
        assert_eq!(run(&jump, &data), 5);
        assert_eq!(run(&jump, &Data { number: 40, ..data }), 6);
    }

    #[test]
    fn what_the_kernel_refuses_is_refused() {
        let end = insn(RET_K, 0, 0, 0);
        for bad in [
            insn(LD_ABS, 0, 0, 64),
            insn(LD_ABS, 0, 0, 2),
            insn(0x28, 0, 0, 0),
            insn(LD_MEM, 0, 0, 0),
            insn(ST, 0, 0, 16),
            insn(0x34, 0, 0, 0),
            insn(0x64, 0, 0, 32),
            insn(0x94, 0, 0, 1),
            insn(0x15, 1, 0, 0),
            insn(JA, 0, 0, 1),
            insn(0x30, 0, 0, 0),
        ] {
            assert!(!is_valid(&[bad, end]), "{bad:#x}");
        }
        assert!(!is_valid(&[]) && !is_valid(&[insn(LD_IMM, 0, 0, 0)]));
        assert!(is_valid(&[insn(ST, 0, 0, 3), insn(LD_MEM, 0, 0, 3), end]));
    }
}
