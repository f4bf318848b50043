//! Single bits, bit scans and counts, byte order. SDM vol. 2.

use crate::machine::{BinOp, UnOp, Width};
use crate::x86_64::operand::{
    X86, atomic_op, memory_address, memory_address_plus, operand_width, read, read_gpr, write, write_gpr,
};
use crate::x86_64::{Flag, Insn, coprocessor};
use iced_x86::OpKind;

extension! { "bit";
    /// A bit into CF.
    [Bt], exact (m, i) {
        let bit = BitOperand::of(m, i);
        let word = bit.read(m, i);
        bit.put_carry(m, word);
    }
    "bt eax,5" = "0fbae005", "bt [rdi],eax" = "0fa307", "bt rax,rbx" = "480fa3d8", "bt [rsi],cx" = "660fa30e",
    "bt qword ptr [rdi],0x3f" = "480fba273f", "bt [rdi],r9" = "4c0fa30f", "bt [r12d],ecx" = "67410fa30c24";

    /// A bit into CF, then set.
    [Bts], exact (m, i) {
        let bit = BitOperand::of(m, i);
        let word = bit.update(m, i, BinOp::Or, bit.mask);
        bit.put_carry(m, word);
    }
    "bts eax,5" = "0fbae805", "bts [rdi],eax" = "0fab07", "lock bts [rdi],rax" = "f0480fab07",
    "bts cx,dx" = "660fabd1", "lock bts dword ptr [rsi],9" = "f00fba2e09";

    /// A bit into CF, then cleared.
    [Btr], exact (m, i) {
        let bit = BitOperand::of(m, i);
        let others = m.un(UnOp::Not, bit.mask);
        let word = bit.update(m, i, BinOp::And, others);
        bit.put_carry(m, word);
    }
    "btr eax,5" = "0fbaf005", "btr [rdi],eax" = "0fb307", "lock btr [rdi],rax" = "f0480fb307",
    "btr cx,dx" = "660fb3d1", "lock btr dword ptr [rsi],9" = "f00fba3609";

    /// A bit into CF, then complemented.
    [Btc], exact (m, i) {
        let bit = BitOperand::of(m, i);
        let word = bit.update(m, i, BinOp::Xor, bit.mask);
        bit.put_carry(m, word);
    }
    "btc eax,5" = "0fbaf805", "btc [rdi],eax" = "0fbb07", "lock btc [rdi],rax" = "f0480fbb07",
    "btc cx,dx" = "660fbbd1", "lock btc dword ptr [rsi],9" = "f00fba3e09";

    /// Index of the lowest set bit; the destination stays if there is none (AMD's manual; all CPUs do).
    [Bsf], exact (m, i) {
        let source = read(m, i, 1);
        let index = m.un(UnOp::TrailingZeros, source);
        scan(m, i, source, index);
    }
    "bsf eax,ebx" = "0fbcc3", "bsf rax,[rdi]" = "480fbc07", "bsf cx,dx" = "660fbcca";

    /// Index of the highest set bit; the destination stays if there is none (AMD's manual; all CPUs do).
    [Bsr], exact (m, i) {
        let source = read(m, i, 1);
        let zeros = m.un(UnOp::LeadingZeros, source);
        let index = m.bin_const(BinOp::Xor, zeros, u64::from(operand_width(i, 1).bits()) - 1);
        scan(m, i, source, index);
    }
    "bsr eax,ebx" = "0fbdc3", "bsr rax,[rdi]" = "480fbd07", "bsr cx,dx" = "660fbdca";

    /// Number of trailing zeros.
    [Tzcnt], exact (m, i) {
        let source = read(m, i, 1);
        let count = m.un(UnOp::TrailingZeros, source);
        count_zeros(m, i, source, count);
    }
    "tzcnt eax,ebx" = "f30fbcc3", "tzcnt rax,[rdi]" = "f3480fbc07", "tzcnt cx,dx" = "66f30fbcca";

    /// Number of leading zeros.
    [Lzcnt], exact (m, i) {
        let source = read(m, i, 1);
        let count = m.un(UnOp::LeadingZeros, source);
        count_zeros(m, i, source, count);
    }
    "lzcnt eax,ebx" = "f30fbdc3", "lzcnt rax,[rdi]" = "f3480fbd07", "lzcnt cx,dx" = "66f30fbdca";

    /// Number of ones.
    [Popcnt], exact (m, i) {
        let source = read(m, i, 1);
        let count = m.un(UnOp::CountOnes, source);
        write(m, i, 0, count);
        let zero = m.is_zero(source);
        m.put(Flag::Zf, zero);
        m.put_known(&[Flag::Cf, Flag::Of, Flag::Sf, Flag::Af, Flag::Pf], false);
    }
    "popcnt eax,ebx" = "f30fb8c3", "popcnt rax,[rdi]" = "f3480fb807", "popcnt cx,dx" = "66f30fb8ca";

    /// Byte order reversed. The manual leaves 16 bits undefined; CPUs give zero.
    [Bswap], exact (m, i) {
        let value = read(m, i, 0);
        let swapped = match operand_width(i, 0) {
            Width::W16 => m.like(value, 0),
            _ => m.un(UnOp::SwapBytes, value),
        };
        write(m, i, 0, swapped);
    }
    "bswap eax" = "0fc8", "bswap r9" = "490fc9";

    /// Move with the byte order reversed.
    [Movbe], exact (m, i) {
        let value = read(m, i, 1);
        let swapped = m.un(UnOp::SwapBytes, value);
        write(m, i, 0, swapped);
    }
    "movbe eax,[rdi]" = "0f38f007", "movbe [rsi],rdx" = "480f38f116", "movbe cx,[rdi]" = "660f38f00f";

    /// CRC-32C step.
    [Crc32], exact (m, i) {
        let (crc, data) = (read(m, i, 0), read(m, i, 1));
        let crc = m.resize(crc, Width::W32);
        let (crc, data) = (m.zext(crc, Width::W128), m.zext(data, Width::W128));
        let bytes = operand_width(i, 1).bytes();
        let crc = m.coprocessor(coprocessor::CRC32C + bytes.trailing_zeros(), crc, data);
        let crc = m.trunc(crc, operand_width(i, 0));
        write(m, i, 0, crc);
    }
    "crc32 eax,bl" = "f20f38f0c3", "crc32 eax,dword ptr [rdi]" = "f20f38f107",
    "crc32 rax,rbx" = "f2480f38f1c3", "crc32 ecx,dx" = "66f20f38f1ca",
    "crc32 rcx,byte ptr [rsi]" = "f2480f38f00e";
}

/// The word that holds the bit a BT-like instruction names, and the bit's place in it. A memory operand
/// with the index in a register is a bit string: the index, signed, reaches any word.
struct BitOperand<M: X86> {
    /// Where the word is, if in memory.
    address: Option<M::Int>,
    /// The bit in the word.
    mask: M::Int,
}

impl<M: X86> BitOperand<M> {
    fn of(m: &mut M, i: &Insn) -> Self {
        let width = operand_width(i, 0);
        let index = read(m, i, 1);
        let address = match (i.op0_kind(), i.op1_kind()) {
            (OpKind::Register, _) => None,
            (_, OpKind::Register) => {
                let words = m.sext(index, Width::W64);
                let words = m.bin_const(BinOp::AShr, words, width.bits().trailing_zeros().into());
                let bytes = m.bin_const(BinOp::Shl, words, width.bytes().trailing_zeros().into());
                Some(memory_address_plus(m, i, bytes))
            }
            _ => Some(memory_address(m, i)),
        };
        let index = m.resize(index, width);
        let index = m.bin_const(BinOp::And, index, u64::from(width.bits()) - 1);
        let one = m.int(width, 1);
        BitOperand { address, mask: m.bin(BinOp::Shl, one, index) }
    }

    fn read(&self, m: &mut M, i: &Insn) -> M::Int {
        match self.address {
            None => read_gpr(m, i.op0_register()),
            Some(address) => m.load(address, operand_width(i, 0)),
        }
    }

    /// Replace the word by `word op b`, atomically if locked; yields the old word.
    fn update(&self, m: &mut M, i: &Insn, op: BinOp, b: M::Int) -> M::Int {
        match self.address {
            Some(address) if i.has_lock_prefix() => m.atomic(atomic_op(op), address, b),
            _ => {
                let old = self.read(m, i);
                let new = m.bin(op, old, b);
                match self.address {
                    None => write_gpr(m, i.op0_register(), new),
                    Some(address) => m.store(address, new),
                }
                old
            }
        }
    }

    /// CF is the bit as it was; ZF stays, and so do the others, which are undefined.
    fn put_carry(&self, m: &mut M, word: M::Int) {
        let bit = m.bin(BinOp::And, word, self.mask);
        let carry = m.is_nonzero(bit);
        m.put(Flag::Cf, carry);
    }
}

/// BSF and BSR: write `index` unless `source` is zero. Only ZF is defined.
fn scan<M: X86>(m: &mut M, i: &Insn, source: M::Int, index: M::Int) {
    let zero = m.is_zero(source);
    let found = m.not(zero);
    m.when(found, &mut |m| write(m, i, 0, index));
    m.put(Flag::Zf, zero);
    m.put_known(&[Flag::Cf, Flag::Of, Flag::Sf, Flag::Af, Flag::Pf], false);
}

/// TZCNT and LZCNT: CF says that the source was zero, ZF that the count is. The others are undefined.
fn count_zeros<M: X86>(m: &mut M, i: &Insn, source: M::Int, count: M::Int) {
    write(m, i, 0, count);
    let none = m.is_zero(source);
    m.put(Flag::Cf, none);
    let zero = m.is_zero(count);
    m.put(Flag::Zf, zero);
    m.put_known(&[Flag::Of, Flag::Sf, Flag::Af, Flag::Pf], false);
}
