//! Short random sequences of instructions, with jumps over some of them: where an optimiser and flags that are only
//! computed if they are read go wrong.

use super::{CODE, Case, Random, State, approximate, undefined};
use iced_x86::{Code, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use std::collections::HashSet;
use tranship_isa::x86_64::insn::{self, Level, from_decoder};
use tranship_isa::x86_64::{Flag, Insn, decode};

/// Instructions that are executed one after the other, but for short jumps ahead.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Their encodings.
    pub code: Vec<u8>,
    /// Decoded from [`CODE`] on.
    pub insns: Vec<Insn>,
    /// Flags, at their places in RFLAGS, that may be undefined at the end.
    undefined: u64,
}

/// Instructions in a sequence, jumps not counted.
const LENGTH: std::ops::RangeInclusive<u64> = 3..=10;

/// `pushfq`, `popfq`: flags that nothing reads any more would not be computed.
const SHOW_FLAGS: [u8; 2] = [0x9c, 0x9d];

impl Sequence {
    /// Clear undefined flags in a final state, in memory too.
    pub fn clear_undefined(&self, state: &mut State) {
        for flag in Flag::ALL.into_iter().filter(|flag| self.undefined >> flag.bit() & 1 != 0) {
            state.cpu.flags[flag as usize] = 0;
        }
        let pushed = state.cpu.gpr[RSP].wrapping_sub(8);
        for (byte, mask) in state.bytes_at(pushed, 8).into_iter().flatten().zip(self.undefined.to_le_bytes())
        {
            *byte &= !mask;
        }
    }

    /// Status flags, at their places in RFLAGS, that a handler of a fault at `address` may find otherwise than the CPU has
    /// them: set before ways last parted or met, and overwritten on every way from here before they are read.
    pub fn overwritten_at(&self, address: u64) -> u64 {
        let Some(here) = self.insns.iter().position(|insn| insn.ip() == address) else { return 0 };
        let jumps = || self.insns.iter().filter(|insn| insn.flow_control() != FlowControl::Next);
        let border = |insn: &&Insn| {
            jumps().any(|jump| [jump.next_ip(), jump.near_branch_target()].contains(&insn.ip()))
        };
        let Some(start) = self.insns[..=here].iter().rposition(|insn| border(&insn)) else { return 0 };
        let set_since = self.insns[start..here].iter().fold(0, |set, insn| set | always_written(insn));
        from_decoder(!(set_since | self.live_at(address)))
    }

    /// Flags, in the decoder's notation, that are read from `address` on before they are written.
    fn live_at(&self, address: u64) -> u32 {
        let Some(insn) = self.insns.iter().find(|insn| insn.ip() == address) else { return 0 };
        let mut after = self.live_at(insn.next_ip());
        if insn.flow_control() != FlowControl::Next {
            after |= self.live_at(insn.near_branch_target());
        }
        insn.rflags_read() | after & !always_written(insn)
    }
}

/// Flags, in the decoder's notation, that the instruction writes whatever its operands are.
fn always_written(i: &Insn) -> u32 {
    let has_constant = (0..i.op_count()).any(|op| i.op_kind(op) == OpKind::Immediate8);
    if undefined::keeps_flags_at_times(i) && !has_constant { 0 } else { i.rflags_modified() }
}

const RSP: usize = 4;

/// `count` sequences of what is in `cases`.
pub fn sequences(random: &mut Random, cases: &[Case], count: usize) -> Vec<Sequence> {
    let fit: Vec<&Case> = cases.iter().filter(|case| is_fit(&case.insn)).collect();
    (0..count).map(|_| Builder::default().build(random, &fit)).collect()
}

/// Whether every executor must agree on what the instruction leaves, whatever came before.
fn is_fit(i: &Insn) -> bool {
    let exact = insn::blocks()
        .filter(|block| block.mnemonics.contains(&i.mnemonic()))
        .all(|block| block.level == Level::Exact);
    // MXCSR's exceptions may be lost, and not every host flushes as it says; the others raise traps later.
    let apart = matches!(
        i.mnemonic(),
        Mnemonic::Stmxcsr
            | Mnemonic::Ldmxcsr
            | Mnemonic::Vstmxcsr
            | Mnemonic::Vldmxcsr
            | Mnemonic::Popf
            | Mnemonic::Popfq
            // Zeros that are known: LLVM subtracts them without a look at the rounding mode, which gives their sign.
            | Mnemonic::Vzeroall
            | Mnemonic::Vzeroupper
            | Mnemonic::Wrfsbase
            | Mnemonic::Wrgsbase
    );
    // What a count over 16 gives is undefined.
    let any_count = matches!(i.mnemonic(), Mnemonic::Shld | Mnemonic::Shrd) && i.op1_register().size() == 2;
    i.flow_control() == FlowControl::Next
        && exact
        && !apart
        && !any_count
        && !approximate::chooses_nans(i.mnemonic())
        && !approximate::is_fused(i.mnemonic())
}

#[derive(Default)]
struct Builder {
    code: Vec<u8>,
    /// In the decoder's notation.
    undefined: u32,
    written: HashSet<Register>,
    addressing: HashSet<Register>,
    /// Where the displacement of the jump is that goes over what comes now, and over how many instructions more.
    jump: Option<(usize, u64)>,
}

impl Builder {
    fn build(mut self, random: &mut Random, cases: &[&Case]) -> Sequence {
        let mut left = LENGTH.start() + random.below(LENGTH.end() - LENGTH.start() + 1);
        while left > 0 {
            if self.jump.is_none() && random.one_in(4) {
                self.begin_jump(random);
            }
            let case = random.pick(cases);
            if self.admits(&case.insn) {
                self.add(case);
                left -= 1;
            }
        }
        self.end_jump();
        self.code.extend(SHOW_FLAGS);
        let mut insns = vec![];
        let mut at = 0;
        while at < self.code.len() {
            let insn = decode(&self.code[at..], CODE + at as u64).unwrap();
            at += insn.len();
            insns.push(insn);
        }
        Sequence { code: self.code, insns, undefined: from_decoder(self.undefined) }
    }

    /// A conditional jump, if one can be told where it goes.
    fn begin_jump(&mut self, random: &mut Random) {
        let jump = [0x70 | random.below(16) as u8, 0];
        let condition = decode(&jump, CODE).unwrap();
        if condition.rflags_read() & self.undefined == 0 {
            self.code.extend(jump);
            self.jump = Some((self.code.len() - 1, 1 + random.below(3)));
        }
    }

    fn end_jump(&mut self) {
        if let Some((at, _)) = self.jump.take() {
            self.code[at] = (self.code.len() - at - 1) as u8;
        }
    }

    /// Whether the instruction reads nothing undefined, and its addresses can be chosen beforehand.
    fn admits(&self, i: &Insn) -> bool {
        let addresses = addresses(i);
        let stack_alone = addresses.iter().all(|register| *register == Register::RSP);
        let chosen = stack_alone || addresses.is_disjoint(&self.addressing);
        let moves_stack = i.stack_pointer_increment() == 0 && writes(i).contains(&Register::RSP);
        i.rflags_read() & self.undefined == 0
            && addresses.is_disjoint(&self.written)
            && chosen
            && !moves_stack
            && i.code() != Code::Enterq_imm16_imm8
    }

    fn add(&mut self, case: &Case) {
        let i = &case.insn;
        self.code.extend(&case.code);
        self.addressing.extend(addresses(i));
        self.written.extend(writes(i).into_iter().filter(|register| *register != Register::RSP));
        self.undefined = undefined::after(i, self.undefined, self.jump.is_some());
        if let Some((at, left)) = self.jump {
            self.jump = Some((at, left - 1));
            if left == 1 {
                self.end_jump();
            }
        }
    }
}

/// General registers that the instruction's addresses are made of.
fn addresses(i: &Insn) -> HashSet<Register> {
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(i).used_memory().iter().flat_map(|m| [m.base(), m.index()]);
    used.filter(|register| register.is_gpr()).map(Register::full_register).collect()
}

/// General registers that it writes.
fn writes(i: &Insn) -> HashSet<Register> {
    let mut factory = InstructionInfoFactory::new();
    let reads_only = |access| {
        matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess)
    };
    let used = factory.info(i).used_registers().iter().filter(|used| !reads_only(used.access()));
    used.map(|used| used.register())
        .filter(|register| register.is_gpr())
        .map(Register::full_register)
        .collect()
}
