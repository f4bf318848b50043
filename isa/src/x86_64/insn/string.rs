//! String instructions. SDM vol. 2. A repeated one is exact after every element: a fault in the middle finds
//! rcx, rsi and rdi at the element that faulted, and executing it again goes on from there.

use crate::machine::{BinOp, Width};
use crate::x86_64::flags::set_compare_flags;
use crate::x86_64::operand::{X86, gpr, linear, low32, read_part, write_part};
use crate::x86_64::{Flag, Insn, Reg};
use iced_x86::{Mnemonic, OpKind, Register};

extension! { "string";
    /// Copy from rsi to rdi.
    [Movsb, Movsw, Movsd, Movsq] if i.is_string_instruction(), exact (m, i) {
        let string = StringInsn::of(i);
        let width = string.width;
        let mut element = |m: &mut M| {
            let from = string.source(m, i);
            let value = m.load(from, width);
            let to = string.pointer(m, gpr::RDI);
            m.store(to, value);
            string.advance(m, &[gpr::RSI, gpr::RDI]);
        };
        if !repeats(i) {
            element(m);
        } else if string.is_plain(i) && m.in_bulk(RCX) {
            let backward = m.get(Flag::Df);
            let forward = m.not(backward);
            m.when(forward, &mut |m| m.copy_forward(RDI, RSI, RCX, width));
            m.when(backward, &mut |m| string.repeat(m, &mut element, None));
        } else {
            string.repeat(m, &mut element, None);
        }
    }
    "movsb [rdi],[rsi]" = "a4", "movsw [rdi],[rsi]" = "66a5", "movsd [rdi],[rsi]" = "a5",
    "movsq [rdi],[rsi]" = "48a5", "rep movsb [rdi],[rsi]" = "f3a4", "rep movsw [rdi],[rsi]" = "f366a5",
    "rep movsd [rdi],[rsi]" = "f3a5", "rep movsq [rdi],[rsi]" = "f348a5";

    /// Store al, ax, eax or rax at rdi.
    [Stosb, Stosw, Stosd, Stosq], exact (m, i) {
        let string = StringInsn::of(i);
        let value = read_part(m, gpr::RAX, string.width);
        let mut element = |m: &mut M| {
            let to = string.pointer(m, gpr::RDI);
            m.store(to, value);
            string.advance(m, &[gpr::RDI]);
        };
        if !repeats(i) {
            element(m);
        } else if string.is_plain(i) && m.in_bulk(RCX) {
            let backward = m.get(Flag::Df);
            let forward = m.not(backward);
            m.when(forward, &mut |m| m.fill_forward(RDI, RCX, value));
            m.when(backward, &mut |m| string.repeat(m, &mut element, None));
        } else {
            string.repeat(m, &mut element, None);
        }
    }
    "stosb [rdi]" = "aa", "stosw [rdi]" = "66ab", "stosd [rdi]" = "ab", "stosq [rdi]" = "48ab",
    "rep stosb [rdi]" = "f3aa", "rep stosw [rdi]" = "f366ab", "rep stosd [rdi]" = "f3ab",
    "rep stosq [rdi]" = "f348ab";

    /// Load from rsi into al, ax, eax or rax.
    [Lodsb, Lodsw, Lodsd, Lodsq], exact (m, i) {
        let string = StringInsn::of(i);
        let mut element = |m: &mut M| {
            let from = string.source(m, i);
            let value = m.load(from, string.width);
            write_part(m, gpr::RAX, value);
            string.advance(m, &[gpr::RSI]);
        };
        if repeats(i) { string.repeat(m, &mut element, None) } else { element(m) }
    }
    "lodsb [rsi]" = "ac", "lodsw [rsi]" = "66ad", "lodsd [rsi]" = "ad", "lodsq [rsi]" = "48ad",
    "rep lodsb [rsi]" = "f3ac", "rep lodsq [rsi]" = "f348ad";

    /// Compare al, ax, eax or rax with what is at rdi.
    [Scasb, Scasw, Scasd, Scasq], exact (m, i) {
        let string = StringInsn::of(i);
        let a = read_part(m, gpr::RAX, string.width);
        let mut element = |m: &mut M| {
            let at = string.pointer(m, gpr::RDI);
            let b = m.load(at, string.width);
            set_compare_flags(m, a, b);
            string.advance(m, &[gpr::RDI]);
        };
        if repeats(i) { string.repeat(m, &mut element, Some(i.has_repe_prefix())) } else { element(m) }
    }
    "scasb [rdi]" = "ae", "scasw [rdi]" = "66af", "scasd [rdi]" = "af", "scasq [rdi]" = "48af",
    "repne scasb [rdi]" = "f2ae", "repe scasw [rdi]" = "f366af", "repne scasd [rdi]" = "f2af",
    "repe scasq [rdi]" = "f348af";

    /// Compare what is at rsi with what is at rdi.
    [Cmpsb, Cmpsw, Cmpsd, Cmpsq] if i.is_string_instruction(), exact (m, i) {
        let string = StringInsn::of(i);
        let mut element = |m: &mut M| {
            let (first, second) = (string.source(m, i), string.pointer(m, gpr::RDI));
            let (a, b) = (m.load(first, string.width), m.load(second, string.width));
            set_compare_flags(m, a, b);
            string.advance(m, &[gpr::RSI, gpr::RDI]);
        };
        if repeats(i) { string.repeat(m, &mut element, Some(i.has_repe_prefix())) } else { element(m) }
    }
    "cmpsb [rsi],[rdi]" = "a6", "cmpsw [rsi],[rdi]" = "66a7", "cmpsd [rsi],[rdi]" = "a7",
    "cmpsq [rsi],[rdi]" = "48a7", "repe cmpsb [rsi],[rdi]" = "f3a6", "repne cmpsw [rsi],[rdi]" = "f266a7",
    "repe cmpsd [rsi],[rdi]" = "f3a7", "repne cmpsq [rsi],[rdi]" = "f248a7";
}

const RCX: Reg = Reg::Gpr(gpr::RCX);
const RSI: Reg = Reg::Gpr(gpr::RSI);
const RDI: Reg = Reg::Gpr(gpr::RDI);

fn repeats(i: &Insn) -> bool {
    i.has_rep_prefix() || i.has_repne_prefix()
}

/// The widths of a string instruction.
#[derive(Clone, Copy)]
struct StringInsn {
    /// Of an element.
    width: Width,
    /// Of rsi, rdi and rcx: 32 bits with an address-size prefix.
    address: Width,
}

impl StringInsn {
    fn of(i: &Insn) -> StringInsn {
        use Mnemonic as N;
        let width = match i.mnemonic() {
            N::Movsb | N::Stosb | N::Lodsb | N::Scasb | N::Cmpsb => Width::W8,
            N::Movsw | N::Stosw | N::Lodsw | N::Scasw | N::Cmpsw => Width::W16,
            N::Movsd | N::Stosd | N::Lodsd | N::Scasd | N::Cmpsd => Width::W32,
            _ => Width::W64,
        };
        let short = (0..i.op_count()).any(|op| matches!(i.op_kind(op), OpKind::MemorySegESI | OpKind::MemoryESEDI));
        StringInsn { width, address: if short { Width::W32 } else { Width::W64 } }
    }

    /// 64-bit pointers and no segment base: what the bulk operations do.
    fn is_plain(self, i: &Insn) -> bool {
        self.address == Width::W64 && !matches!(i.memory_segment(), Register::FS | Register::GS)
    }

    /// The address in a register.
    fn pointer<M: X86>(self, m: &mut M, number: u8) -> M::Int {
        let value = m.gpr(number);
        if self.address == Width::W32 { low32(m, value) } else { value }
    }

    /// The source address, which a segment override applies to.
    fn source<M: X86>(self, m: &mut M, i: &Insn) -> M::Int {
        let offset = self.pointer(m, gpr::RSI);
        linear(m, i, offset)
    }

    /// Move pointers on by an element, as DF says.
    fn advance<M: X86>(self, m: &mut M, numbers: &[u8]) {
        let size = u64::from(self.width.bytes());
        let (up, down) = (m.int(self.address, size), m.int(self.address, size.wrapping_neg()));
        let backward = m.get(Flag::Df);
        let step = m.select(backward, down, up);
        for &number in numbers {
            let old = read_part(m, number, self.address);
            let new = m.bin(BinOp::Add, old, step);
            write_part(m, number, new);
        }
    }

    /// Do `element` rcx times, or as long as ZF is `while_equal`.
    fn repeat<M: X86>(self, m: &mut M, element: &mut dyn FnMut(&mut M), while_equal: Option<bool>) {
        let count = read_part(m, gpr::RCX, self.address);
        let any = m.is_nonzero(count);
        m.when(any, &mut |m| {
            m.repeat(&mut |m| {
                element(m);
                let count = read_part(m, gpr::RCX, self.address);
                let left = m.bin_const(BinOp::Sub, count, 1);
                write_part(m, gpr::RCX, left);
                let more = m.is_nonzero(left);
                match while_equal {
                    None => more,
                    Some(equal) => {
                        let zero = m.get(Flag::Zf);
                        let goes_on = if equal { zero } else { m.not(zero) };
                        m.and(more, goes_on)
                    }
                }
            });
        });
    }
}
