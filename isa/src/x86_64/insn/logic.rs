//! Bitwise operations. SDM vol. 2.

use crate::machine::BinOp;
use crate::x86_64::flags::set_logic_flags;
use crate::x86_64::operand::{operand_width, read, update};

extension! { "logic";
    /// Bitwise and.
    [And], exact (m, i) {
        let b = read(m, i, 1);
        let (_, result) = update(m, i, BinOp::And, b);
        set_logic_flags(m, result);
    }
    "and eax,ebx" = "21d8", "and rsp,-0x10" = "4883e4f0", "and [rdi],al" = "2007", "and cx,[rsi]" = "66230e",
    "lock and dword ptr [rdi],0x7f" = "f083277f";

    /// Bitwise or.
    [Or], exact (m, i) {
        let b = read(m, i, 1);
        let (_, result) = update(m, i, BinOp::Or, b);
        set_logic_flags(m, result);
    }
    "or rax,rbx" = "4809d8", "or dword ptr [rsp],0" = "830c2400", "or dh,cl" = "08ce",
    "or r10w,[rsi]" = "66440b16", "lock or qword ptr [rdi],1" = "f048830f01";

    /// Bitwise exclusive or.
    [Xor], exact (m, i) {
        let b = read(m, i, 1);
        let (_, result) = update(m, i, BinOp::Xor, b);
        set_logic_flags(m, result);
    }
    "xor eax,eax" = "31c0", "xor r8,r9" = "4d31c8", "xor [rdi],cx" = "66310f", "xor al,-0x80" = "3480",
    "lock xor [rsi],dl" = "f03016";

    /// Bitwise complement; no flags.
    [Not], exact (m, i) {
        let ones = m.int(operand_width(i, 0), u64::MAX);
        update(m, i, BinOp::Xor, ones);
    }
    "not eax" = "f7d0", "not byte ptr [rdi]" = "f617", "not rdx" = "48f7d2", "not cx" = "66f7d1",
    "lock not qword ptr [rsi]" = "f048f716";

    /// Bitwise and, for its flags only.
    [Test], exact (m, i) {
        let (a, b) = (read(m, i, 0), read(m, i, 1));
        let result = m.bin(BinOp::And, a, b);
        set_logic_flags(m, result);
    }
    "test eax,eax" = "85c0", "test byte ptr [rdi],1" = "f60701", "test rcx,rdx" = "4885d1",
    "test ax,-0x8000" = "66a90080", "test bl,ah" = "84e3";
}
