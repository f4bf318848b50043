//! Which encodings are tested: every example of every block, and random variations of each that decode to
//! the same block: other registers, widths, addressing modes, immediates and prefixes.

use super::{CODE, Executor, Interpreter, Outcome, Random, SANDBOX, SANDBOX_BYTES, State};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind, Register};
use std::collections::HashSet;
use tranship_isa::x86_64::insn::{self, Block};
use tranship_isa::x86_64::{Insn, decode};

/// One instruction to test.
#[derive(Clone, Debug)]
pub struct Case {
    /// The encoding.
    pub code: Vec<u8>,
    /// Decoded at [`CODE`].
    pub insn: Insn,
    /// The extension whose block it is.
    pub extension: &'static str,
}

/// Mnemonics that single-instruction comparison cannot judge, and why.
pub const NOT_COMPARED: &[(Mnemonic, &str)] = &[
    (Mnemonic::Syscall, "leaves for the kernel"),
    (Mnemonic::Cpuid, "answers for the CPU we present, not for this one"),
    (Mnemonic::Rdtsc, "reads a clock"),
    (Mnemonic::Rdtscp, "reads a clock"),
    (Mnemonic::Int1, "virtual machines report it at the instruction, not behind it"),
    (Mnemonic::Xgetbv, "depends on what the kernel enables"),
];

/// Every example, each with up to `variations` random ones.
pub fn cases(random: &mut Random, variations: usize) -> Vec<Case> {
    let mut seen = HashSet::new();
    let mut list = vec![];
    for block in insn::blocks() {
        for example in block.examples {
            let original = bytes(example.hex);
            let variants = (0..variations).filter_map(|_| vary(random, block, &original));
            let case = |code| case(block.extension, code);
            let new: Vec<_> = variants.filter_map(case).filter(|case| is_covered(&case.code)).collect();
            let all = case(original).into_iter().chain(new);
            list.extend(all.filter(|case| seen.insert(case.code.clone())));
        }
    }
    list
}

/// Whether a block covers the variation: a far jump has the mnemonic of a near one, but no block.
fn is_covered(code: &[u8]) -> bool {
    Interpreter.run(&mut State::new(), code) != Outcome::Absent
}

fn case(extension: &'static str, mut code: Vec<u8>) -> Option<Case> {
    aim_displacement(&mut code);
    let insn = decode(&code, CODE).ok()?;
    let comparable = NOT_COMPARED.iter().all(|&(mnemonic, _)| mnemonic != insn.mnemonic());
    // A jump to itself never ends where more than one instruction is executed.
    let own = (CODE..insn.next_ip()).contains(&insn.near_branch_target());
    (comparable && !own).then_some(Case { code, insn, extension })
}

/// Point a memory operand without registers into the sandbox, and a long branch far away.
fn aim_displacement(code: &mut [u8]) {
    let mut decoder = Decoder::with_ip(64, code, CODE, DecoderOptions::NONE);
    let insn = decoder.decode();
    let place = decoder.get_constant_offsets(&insn);
    if insn.near_branch_target() != 0 && place.immediate_size() == 4 {
        // Not to another case, where they lie one behind the other: at least 2^29 bytes.
        let top = &mut code[place.immediate_offset() + 3];
        *top = if *top & 0x80 == 0 { *top | 0x20 } else { *top & !0x20 };
        return;
    }
    let target = SANDBOX + SANDBOX_BYTES as u64 / 2;
    let displacement = if insn.is_ip_rel_memory_operand() {
        target.wrapping_sub(insn.next_ip())
    } else if insn.memory_base() == Register::None && insn.memory_index() == Register::None {
        target
    } else {
        return;
    };
    let (at, len) = (place.displacement_offset(), place.displacement_size());
    if len >= 4 {
        code[at..at + len].copy_from_slice(&displacement.to_le_bytes()[..len]);
    }
}

/// The bytes that hex digits stand for.
pub fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|n| u8::from_str_radix(&hex[n..n + 2], 16).unwrap()).collect()
}

/// An encoding near `original` that the same block covers, if one is found soon.
fn vary(random: &mut Random, block: &Block, original: &[u8]) -> Option<Vec<u8>> {
    (0..40).find_map(|_| {
        let mut code = original.to_vec();
        // An operand that grows needs more bytes.
        code.extend(random.bits().to_le_bytes());
        for _ in 0..=random.below(2) {
            mutate(random, &mut code, original.len());
        }
        let insn = decode(&code, CODE).ok()?;
        code.truncate(insn.len());
        let acceptable = block.mnemonics.contains(&insn.mnemonic()) && has_one_meaning(&code, &insn);
        (acceptable && code != original).then_some(code)
    })
}

fn mutate(random: &mut Random, code: &mut Vec<u8>, len: usize) {
    let at = random.below(len as u64) as usize;
    match random.below(4) {
        0 => code[at] ^= 1 << random.below(8),
        1 => code[at] = random.bits() as u8,
        2 => code[at] ^= random.bits() as u8 & 0x3f,
        _ => {
            let rex = 0x40 | random.below(16) as u8;
            let prefix = random.pick(&[0x66, 0x67, 0x64, 0x65, 0xf0, 0xf2, 0xf3, rex, rex]);
            // Legacy prefixes go before REX, which goes before the opcode.
            let after_prefixes = code.iter().take_while(|byte| LEGACY_PREFIXES.contains(byte)).count();
            code.insert(if prefix == rex { after_prefixes } else { 0 }, prefix);
        }
    }
}

const LEGACY_PREFIXES: [u8; 7] = [0x66, 0x67, 0x64, 0x65, 0xf0, 0xf2, 0xf3];

/// Whether these bytes mean the same on the CPUs of all vendors.
fn has_one_meaning(code: &[u8], insn: &Insn) -> bool {
    let prefixes = &code[..code.iter().take_while(|byte| LEGACY_PREFIXES.contains(byte)).count()];
    let has = |prefix: u8| prefixes.contains(&prefix);
    match insn.mnemonic() {
        // Bits shifted in by more than 16 are undefined.
        Mnemonic::Shld | Mnemonic::Shrd if insn.op2_kind() == OpKind::Immediate8 => {
            insn.op1_register().size() > 2 || insn.immediate8() & 31 <= 16
        }
        // With a 16-bit destination, some load two bytes and others four.
        Mnemonic::Movsxd => insn.op0_register().size() != 2,
        // A repeat prefix changes the condition on AMD's, an operand-size prefix truncates the target.
        Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne => prefixes.iter().all(|byte| *byte == 0x67),
        // With REX.B it exchanges r8 and rax on AMD's.
        Mnemonic::Pause => code == [0xf3, 0x90],
        // Likewise.
        _ => insn.flow_control() == FlowControl::Next || !has(0x66),
    }
}
