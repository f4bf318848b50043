//! Symbolic execution of a path that leads to an indirect jump.

use super::effects::{VOLATILE, written_gprs};
use super::path::Path;
use super::{Insn, op0_bits};
use iced_x86::{ConditionCode, FlowControl, Mnemonic, OpKind, Register};
use std::collections::BTreeMap;

/// The read of a table's entry that decides where a jump goes.
pub(super) struct TableRead {
    /// As in [`crate::region::JumpTable`].
    pub(super) at: u64,
    /// As in [`crate::region::JumpTable`].
    pub(super) index: u8,
    /// How many indices there are, where the path bounds them.
    pub(super) count: Option<u64>,
    /// The bound comes from a comparison, so that the table is as long; masks and widths may exceed it.
    pub(super) compared: bool,
    /// Address of the entry of index 0.
    pub(super) table: u64,
    /// Bytes.
    pub(super) entry_size: u64,
    /// Whether entries are sign-extended.
    pub(super) signed: bool,
    /// What is added to an entry.
    pub(super) base: Option<u64>,
    /// The index was read from memory again, which is taken to be unchanged.
    pub(super) reread: bool,
}

/// A 64-bit value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    Constant(u64),
    /// An index into [`Evaluation::symbols`].
    Symbol(usize),
    /// `symbol * scale + plus`.
    Scaled(Scaled),
    /// An entry of a table, extended from `size` bytes, and what was added to it.
    Entry {
        scaled: Scaled,
        size: u64,
        signed: bool,
        base: Option<u64>,
    },
}

/// A multiple of a symbol, and where a register had the symbol itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Scaled {
    symbol: usize,
    scale: u64,
    plus: u64,
    at: u64,
    register: u8,
}

/// What is known of an unknown value.
#[derive(Clone)]
struct Symbol {
    /// It is below 2^bits.
    bits: u32,
    /// It is the low bits of another symbol: which one, and how many.
    part_of: Option<(usize, u32)>,
    /// It is at most this.
    at_most: u64,
    /// Its low bits, this many, are at most this.
    low_at_most: Vec<(u32, u64)>,
    /// It was read from memory more than once, or written there and read.
    reread: bool,
}

/// Registers, stack slots and what is known of them.
pub(super) struct Evaluation {
    registers: [Value; 16],
    symbols: Vec<Symbol>,
    /// Memory by base symbol, displacement and size.
    slots: BTreeMap<(usize, u64, u32), Value>,
    /// The comparison whose flags are in force: low bits of a symbol, with a number.
    compared: Option<(usize, u32, u64)>,
    unknown_bases: u16,
    /// A value that is no plain symbol was written to memory and read.
    reread: bool,
}

impl Evaluation {
    /// General registers with their values as far as they are known.
    pub(super) fn new(known: [Option<u64>; 16]) -> Evaluation {
        let mut evaluation = Evaluation {
            registers: [Value::Constant(0); 16],
            symbols: Vec::new(),
            slots: BTreeMap::new(),
            compared: None,
            unknown_bases: 0,
            reread: false,
        };
        // The symbols of registers come first, so that a symbol below 16 is the register of that number.
        for (r, known) in known.into_iter().enumerate() {
            let symbol = evaluation.unknown(64);
            evaluation.registers[r] = known.map_or(symbol, Value::Constant);
        }
        evaluation
    }

    /// Registers (bit n is register n) whose initial values were used like the address of a table.
    pub(super) fn unknown_bases(&self) -> u16 {
        self.unknown_bases
    }

    /// Execute `path`, whose last instruction is an indirect jump.
    pub(super) fn run(&mut self, path: &Path) -> Option<TableRead> {
        let ((jump, _), before) = path.steps.split_last()?;
        for (i, taken) in before {
            self.step(i, *taken);
        }
        let target = match jump.op0_kind() {
            OpKind::Register => self.registers[jump.op0_register().number() & 15],
            OpKind::Memory => self.load(jump, 8),
            _ => return None,
        };
        let Value::Entry { scaled, size, signed, base } = target else { return None };
        let at_most = self.at_most(scaled.symbol, 8);
        let natural = self.symbols.get(scaled.symbol).map_or(u64::MAX, |s| s.at_most);
        Some(TableRead {
            at: scaled.at,
            index: scaled.register,
            count: (at_most < u64::from(u32::MAX)).then(|| at_most + 1),
            compared: at_most < natural,
            table: scaled.plus,
            entry_size: size,
            signed,
            base,
            reread: self.reread || self.is_reread(scaled.symbol, 8),
        })
    }

    fn unknown(&mut self, bits: u32) -> Value {
        let at_most = if bits < 64 { (1 << bits) - 1 } else { u64::MAX };
        self.symbols.push(Symbol { bits, part_of: None, at_most, low_at_most: Vec::new(), reread: false });
        Value::Symbol(self.symbols.len() - 1)
    }

    fn unknown_at_most(&mut self, at_most: u64) -> Value {
        let value = self.unknown(64 - at_most.leading_zeros());
        if let Some(symbol) = self.symbols.last_mut() {
            symbol.at_most = at_most;
        }
        value
    }

    /// The low `bits` of `value`, zero-extended; for the purpose here sign-extension is the same, since a
    /// bounded index is not negative.
    fn low(&mut self, value: Value, bits: u32) -> Value {
        match value {
            Value::Constant(c) => Value::Constant(c & (u64::MAX >> (64 - bits))),
            Value::Symbol(s) if self.symbols[s].bits <= bits => value,
            Value::Symbol(s) => {
                let low = self.unknown(bits);
                if let Some(symbol) = self.symbols.last_mut() {
                    symbol.part_of = Some((s, bits));
                }
                low
            }
            Value::Entry { size, .. } if size * 8 <= u64::from(bits) => value,
            _ => self.unknown(bits),
        }
    }

    /// The largest value that a symbol can have, following what it is part of `depth` times.
    fn at_most(&self, symbol: usize, depth: u32) -> u64 {
        let Some(s) = self.symbols.get(symbol) else { return u64::MAX };
        let own = s.low_at_most.iter().filter(|(bits, _)| *bits >= s.bits).map(|&(_, max)| max);
        let whole = s.part_of.filter(|_| depth > 0).map(|(whole, bits)| {
            let part =
                self.symbols[whole].low_at_most.iter().filter(|(b, _)| *b >= bits).map(|&(_, max)| max);
            part.min().unwrap_or(u64::MAX).min(self.at_most(whole, depth - 1))
        });
        own.chain(whole).fold(s.at_most, u64::min)
    }

    fn is_reread(&self, symbol: usize, depth: u32) -> bool {
        self.symbols.get(symbol).is_some_and(|s| {
            s.reread || s.part_of.is_some_and(|(whole, _)| depth > 0 && self.is_reread(whole, depth - 1))
        })
    }

    fn step(&mut self, i: &Insn, taken: bool) {
        match i.flow_control() {
            FlowControl::ConditionalBranch => self.branch(i, taken),
            FlowControl::Call | FlowControl::IndirectCall if i.mnemonic() != Mnemonic::Syscall => {
                self.forget(VOLATILE);
                self.compared = None;
            }
            _ => {
                if i.mnemonic() == Mnemonic::Cdqe {
                    self.registers[0] = self.sign_extended(self.registers[0]);
                    return;
                }
                let result = self.result(i);
                self.compare(i);
                let written = written_gprs(i);
                self.forget(written);
                if i.op0_kind() == OpKind::Register && i.op0_register().is_gpr32() {
                    let number = i.op0_register().number() & 15;
                    if written >> number & 1 != 0 {
                        self.registers[number] = self.unknown(32);
                    }
                }
                match (i.op0_kind(), result) {
                    (OpKind::Register, Some(value)) => {
                        self.registers[i.op0_register().full_register().number() & 15] = value;
                    }
                    (OpKind::Memory, _) if !matches!(i.mnemonic(), Mnemonic::Cmp | Mnemonic::Test) => {
                        self.store(i, result);
                    }
                    _ => {}
                }
            }
        }
    }

    fn forget(&mut self, registers: u16) {
        for r in (0..16).filter(|r| registers >> r & 1 != 0) {
            self.registers[r] = self.unknown(64);
        }
    }

    /// What a conditional branch tells about what was compared.
    fn branch(&mut self, i: &Insn, taken: bool) {
        let Some((symbol, bits, number)) = self.compared else { return };
        let at_most = match (i.condition_code(), taken) {
            (ConditionCode::a, false) | (ConditionCode::be, true) | (ConditionCode::e, true) => Some(number),
            (ConditionCode::ae, false) | (ConditionCode::b, true) => number.checked_sub(1),
            _ => None,
        };
        let Some(at_most) = at_most else { return };
        if let Some(s) = self.symbols.get_mut(symbol) {
            s.low_at_most.push((bits, at_most));
            if let Some((whole, part)) = s.part_of
                && bits >= part
            {
                self.symbols[whole].low_at_most.push((part, at_most));
            }
        }
    }

    fn compare(&mut self, i: &Insn) {
        if i.mnemonic() == Mnemonic::Cmp {
            let bits = op0_bits(i);
            let number = match i.op1_kind() {
                OpKind::Register => self.read_register(i.op1_register()),
                OpKind::Memory => None,
                _ => Some(Value::Constant(i.immediate(1) & (u64::MAX >> (64 - bits)))),
            };
            self.compared = match (self.operand(i, 0), number) {
                (Some(Value::Symbol(s)), Some(Value::Constant(n))) => Some((s, bits, n)),
                _ => None,
            };
        } else if i.rflags_modified() != 0 {
            self.compared = None;
        }
    }

    /// The register's value as far as its low bits are those of the whole register.
    fn read_register(&mut self, register: Register) -> Option<Value> {
        let high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
        (register.is_gpr() && !high).then(|| self.registers[register.full_register().number() & 15])
    }

    fn operand(&mut self, i: &Insn, op: u32) -> Option<Value> {
        match i.op_kind(op) {
            OpKind::Register => self.read_register(i.op_register(op)),
            OpKind::Memory => Some(self.load(i, i.memory_size().size() as u64)),
            OpKind::Immediate8to64
            | OpKind::Immediate32to64
            | OpKind::Immediate64
            | OpKind::Immediate32
            | OpKind::Immediate8to32
            | OpKind::Immediate8 => Some(Value::Constant(i.immediate(op))),
            _ => None,
        }
    }

    /// The value of operand 0 after the instruction, where it is something that matters.
    fn result(&mut self, i: &Insn) -> Option<Value> {
        let bits = op0_bits(i);
        if bits < 32 && !(i.op0_kind() == OpKind::Memory && i.mnemonic() == Mnemonic::Mov) {
            return None;
        }
        let value = match i.mnemonic() {
            Mnemonic::Mov => self.operand(i, 1)?,
            Mnemonic::Movzx | Mnemonic::Movsx => {
                let source = self.operand(i, 1)?;
                let source_bits = if i.op1_kind() == OpKind::Memory {
                    i.memory_size().size() as u32 * 8
                } else {
                    i.op1_register().size() as u32 * 8
                };
                self.low(source, source_bits)
            }
            Mnemonic::Movsxd => {
                let source = self.operand(i, 1)?;
                self.sign_extended(source)
            }
            Mnemonic::Lea => self.lea(i),
            Mnemonic::Add => {
                let (a, b) = (self.operand(i, 0)?, self.operand(i, 1)?);
                self.sum(a, b)?
            }
            Mnemonic::And => match self.operand(i, 1)? {
                Value::Constant(mask) if i.op1_kind() != OpKind::Register => {
                    let mask = if bits == 32 { u64::from(mask as u32) } else { mask };
                    self.unknown_at_most(mask)
                }
                _ => return None,
            },
            Mnemonic::Xor if i.op0_register() == i.op1_register() => Value::Constant(0),
            Mnemonic::Shr if i.op1_kind() == OpKind::Immediate8 => {
                self.unknown_at_most((u64::MAX >> (64 - bits)) >> (i.immediate8() as u32 & (bits - 1)))
            }
            Mnemonic::Shl if i.op1_kind() == OpKind::Immediate8 && bits == 64 => {
                let (at, register) = (i.ip(), i.op0_register().number() as u8);
                match self.operand(i, 0)? {
                    Value::Symbol(symbol) if i.immediate8() <= 3 => {
                        Value::Scaled(Scaled { symbol, scale: 1 << i.immediate8(), plus: 0, at, register })
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(if bits == 32 { self.low(value, 32) } else { value })
    }

    fn sign_extended(&mut self, value: Value) -> Value {
        match value {
            Value::Entry { scaled, size: 4, base: None, .. } => {
                Value::Entry { scaled, size: 4, signed: true, base: None }
            }
            value => self.low(value, 32),
        }
    }

    fn sum(&mut self, a: Value, b: Value) -> Option<Value> {
        match (a, b) {
            (Value::Constant(a), Value::Constant(b)) => Some(Value::Constant(a.wrapping_add(b))),
            (Value::Constant(c), Value::Scaled(s)) | (Value::Scaled(s), Value::Constant(c)) => {
                Some(Value::Scaled(Scaled { plus: s.plus.wrapping_add(c), ..s }))
            }
            (Value::Constant(c), Value::Entry { scaled, size: 4, signed, base: None })
            | (Value::Entry { scaled, size: 4, signed, base: None }, Value::Constant(c)) => {
                Some(Value::Entry { scaled, size: 4, signed, base: Some(c) })
            }
            (Value::Symbol(s), Value::Entry { .. }) | (Value::Entry { .. }, Value::Symbol(s)) => {
                self.note_base(s);
                None
            }
            _ => None,
        }
    }

    fn note_base(&mut self, symbol: usize) {
        if symbol < 16 {
            self.unknown_bases |= 1 << symbol;
        }
    }

    /// `lea r,[base+entry]` is a sum too.
    fn lea(&mut self, i: &Insn) -> Value {
        let plain = i.memory_index_scale() == 1 && i.memory_displacement64() == 0;
        if plain && i.memory_base().is_gpr64() && i.memory_index().is_gpr64() {
            let (a, b) =
                (self.registers[i.memory_base().number()], self.registers[i.memory_index().number()]);
            if let Some(sum @ Value::Entry { .. }) = self.sum(a, b) {
                return sum;
            }
        }
        self.address(i)
    }

    /// What a memory operand's address is.
    fn address(&mut self, i: &Insn) -> Value {
        if i.memory_base() == Register::RIP {
            return Value::Constant(i.memory_displacement64());
        }
        if !matches!(i.memory_segment(), Register::DS | Register::SS | Register::None) {
            return self.unknown(64);
        }
        let mut plus = i.memory_displacement64();
        let mut unknown = None;
        for (register, scale) in [(i.memory_base(), 1), (i.memory_index(), i.memory_index_scale().into())] {
            if register == Register::None {
                continue;
            }
            let number = register.number() as u8;
            let term = match self.registers[register.number() & 15] {
                Value::Constant(c) => {
                    plus = plus.wrapping_add(c.wrapping_mul(scale));
                    continue;
                }
                Value::Symbol(symbol) => Scaled { symbol, scale, plus: 0, at: i.ip(), register: number },
                Value::Scaled(s) if scale == 1 => s,
                _ => return self.unknown(64),
            };
            if let Some(Scaled { symbol, scale: 1, .. }) = unknown.replace(term) {
                self.note_base(symbol);
                return self.unknown(64);
            }
        }
        match unknown {
            None => Value::Constant(plus),
            Some(s) if s.scale == 1 && s.plus.wrapping_add(plus) == 0 => Value::Symbol(s.symbol),
            Some(s) => Value::Scaled(Scaled { plus: s.plus.wrapping_add(plus), ..s }),
        }
    }

    /// What `size` bytes at the instruction's memory operand hold.
    fn load(&mut self, i: &Insn, size: u64) -> Value {
        match self.address(i) {
            Value::Scaled(scaled) if scaled.scale == size && size >= 4 => {
                Value::Entry { scaled, size, signed: false, base: None }
            }
            Value::Scaled(Scaled { symbol, scale: 1, plus, .. }) => self.slot((symbol, plus, size as u32)),
            Value::Symbol(symbol) => self.slot((symbol, 0, size as u32)),
            _ => self.unknown(if size < 8 { 8 * size as u32 } else { 64 }),
        }
    }

    fn slot(&mut self, key: (usize, u64, u32)) -> Value {
        if let Some(&value) = self.slots.get(&key) {
            match value {
                Value::Symbol(s) => self.symbols[s].reread = true,
                _ => self.reread = true,
            }
            return value;
        }
        let value = self.unknown(key.2.min(8) * 8);
        self.slots.insert(key, value);
        value
    }

    fn store(&mut self, i: &Insn, value: Option<Value>) {
        let size = i.memory_size().size() as u32;
        let key = match self.address(i) {
            Value::Scaled(Scaled { symbol, scale: 1, plus, .. }) => (symbol, plus, size),
            Value::Symbol(symbol) => (symbol, 0, size),
            _ => return,
        };
        match value {
            Some(value) if size <= 8 => {
                let value = if size < 8 { self.low(value, 8 * size) } else { value };
                self.slots.insert(key, value);
            }
            _ => {
                self.slots.remove(&key);
            }
        }
    }
}
