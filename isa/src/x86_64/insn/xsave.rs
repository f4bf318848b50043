//! XSAVE and its like. SDM vol. 1, chapter 13; vol. 2D. x87 and SSE always count as in use.
//!
//! They are interpreted also where code is compiled, being long and rare.

use super::float_state::{load_mxcsr, load_x87, load_xmm, store_mxcsr, store_x87, store_xmm};
use crate::machine::{BinOp, Trap, UnOp, Width};
use crate::x86_64::operand::{X86, gpr, memory_address, probe, read_part, write_part};
use crate::x86_64::vector::{BLOCK, bitwise};
use crate::x86_64::xsave::{COMPONENTS, Component, EXTENDED, HEADER, XCR0, feature};
use crate::x86_64::{Insn, Reg};
use BinOp::{Add, And, LShr, Or, Shl};
use Width::{W32, W64};

extension! { "xsave";
    /// What the operating system has enabled, or of it what is in use.
    [Xgetbv], approximate("XCR0 is that of the CPU this project presents: x87, SSE and AVX") (m, _i) {
        if !m.interpreted() {
            let number = read_part(m, gpr::RCX, W32);
            let limit = m.int(W32, 1);
            let unknown = m.cmp(crate::machine::CmpOp::Ult, limit, number);
            m.trap_if(unknown, Trap::GeneralProtection);
            let enabled = m.int(W64, XCR0);
            let used = in_use(m);
            let used = m.bin(And, used, enabled);
            let wants_used = m.is_nonzero(number);
            let value = m.select(wants_used, used, enabled);
            let (low, high) = (m.trunc(value, W32), m.bin_const(LShr, value, 32));
            let high = m.trunc(high, W32);
            write_part(m, gpr::RAX, low);
            write_part(m, gpr::RDX, high);
        }
    }
    "xgetbv" = "0f01d0";
    /// Store the components that edx:eax asks for.
    [Xsave, Xsave64], approximate("of x87 as FXSAVE; x87 and SSE always count as in use") (m, i) { save(m, i, Format::Standard) }
    "xsave [rdi]" = "0fae27", "xsave64 [rdi]" = "480fae27";
    /// Store those that are in use of the components that edx:eax asks for.
    [Xsaveopt, Xsaveopt64], approximate("of x87 as FXSAVE; x87 and SSE always count as in use") (m, i) { save(m, i, Format::Optimised) }
    "xsaveopt [rdi]" = "0fae37", "xsaveopt64 [rdi]" = "480fae37";
    /// Store those that are in use of the components that edx:eax asks for, one behind the other.
    [Xsavec, Xsavec64], approximate("of x87 as FXSAVE; x87 and SSE always count as in use") (m, i) { save(m, i, Format::Compacted) }
    "xsavec [rdi]" = "0fc727", "xsavec64 [rdi]" = "480fc727";
    /// Load the components that edx:eax asks for, or initialise those that were not in use.
    [Xrstor, Xrstor64], exact (m, i) { restore(m, i) }
    "xrstor [rdi]" = "0fae2f", "xrstor64 [rdi]" = "480fae2f";
    /// Privileged: #GP.
    [Xsetbv, Xsaves, Xsaves64, Xrstors, Xrstors64], exact (m, _i) {
        let always = m.bool(true);
        m.trap_if(always, Trap::GeneralProtection);
    }
    "xsetbv" = "0f01d1", "xsaves [rdi]" = "0fc72f", "xsaves64 [rdi]" = "480fc72f", "xrstors [rdi]" = "0fc71f", "xrstors64 [rdi]" = "480fc71f";
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Standard,
    Optimised,
    Compacted,
}

/// XCOMP_BV: the format is compacted.
const COMPACTED: u64 = 1 << 63;

/// The instruction's mask, edx:eax.
fn requested<M: X86>(m: &mut M) -> M::Int {
    let (low, high) = (read_part(m, gpr::RAX, W32), read_part(m, gpr::RDX, W32));
    let (low, high) = (m.zext(low, W64), m.zext(high, W64));
    let high = m.bin_const(Shl, high, 32);
    m.bin(Or, low, high)
}

/// Any bit of registers `numbers` from bit `from` on.
fn any_bit<M: X86>(m: &mut M, numbers: core::ops::Range<u32>, from: u32, bits: u32) -> M::Bool {
    let mut any = m.vec_zero(512);
    for n in numbers {
        let value = m.vec_reg(n, from + bits);
        let value = m.vec_resize(value, 512);
        any = bitwise(m, Or, any, value);
    }
    let zero = m.int(W64, 0);
    let any = (from / 64..(from + bits) / 64).fold(zero, |sum, n| {
        let lane = m.lane(any, W64, n);
        m.bin(Or, sum, lane)
    });
    m.is_nonzero(any)
}

/// XINUSE.
fn in_use<M: X86>(m: &mut M) -> M::Int {
    let masks = (0..8).map(Reg::Opmask).fold(m.int(W64, 0), |any, register| {
        let mask = m.reg(register);
        m.bin(Or, any, mask)
    });
    let used = [
        any_bit(m, 0..16, 128, 128),
        m.is_nonzero(masks),
        any_bit(m, 0..16, 256, 256),
        any_bit(m, 16..32, 0, 512),
    ];
    let legacy = m.int(W64, feature::X87 | feature::SSE);
    COMPONENTS.iter().zip(used).fold(legacy, |bits, (component, used)| {
        let bit = m.bool_to_int(used, W64);
        let bit = m.bin_const(Shl, bit, component.number.into());
        m.bin(Or, bits, bit)
    })
}

/// The bits of `set` that can be managed: what is enabled, and what is in use nevertheless.
fn managed<M: X86>(m: &mut M, set: M::Int, used: M::Int) -> M::Int {
    let all = m.bin_const(Or, used, XCR0);
    m.bin(And, set, all)
}

fn aligned_address<M: X86>(m: &mut M, i: &Insn) -> M::Int {
    let address = memory_address(m, i);
    m.require_aligned(address, 64);
    address
}

fn save<M: X86>(m: &mut M, i: &Insn, format: Format) {
    if m.interpreted() {
        return;
    }
    let address = aligned_address(m, i);
    probe(m, address, EXTENDED as u64);
    let (asked, used) = (requested(m), in_use(m));
    let asked = managed(m, asked, used);
    let saved = m.bin(And, asked, used);
    let written = if format == Format::Standard { asked } else { saved };
    let places = places(m, address, (format == Format::Compacted).then_some(asked));
    reach(m, written, &places);

    let [x87, sse] = [m.bit(asked, 0), m.bit(asked, 1)];
    m.when(x87, &mut |m| store_x87(m, i, address));
    m.when(sse, &mut |m| store_xmm(m, address));
    let avx = m.bit(asked, 2);
    let has_mxcsr = if format == Format::Compacted { sse } else { m.or(sse, avx) };
    m.when(has_mxcsr, &mut |m| store_mxcsr(m, address));
    for (component, at) in COMPONENTS.into_iter().zip(places) {
        let wanted = m.bit(written, component.number);
        m.when(wanted, &mut |m| store_component(m, component, at));
    }
    let header = m.bin_const(Add, address, HEADER as u64);
    if format == Format::Compacted {
        m.store(header, saved);
        let layout = m.bin_const(Or, asked, COMPACTED);
        let at = m.bin_const(Add, header, 8);
        m.store(at, layout);
    } else {
        let old = m.load(header, W64);
        let others = m.un(UnOp::Not, asked);
        let kept = m.bin(And, old, others);
        let new = m.bin(Or, kept, saved);
        m.store(header, new);
    }
}

/// Where each component is: at its offset, or behind those that the compacted format has before it.
fn places<M: X86>(m: &mut M, address: M::Int, compacted: Option<M::Int>) -> [M::Int; 4] {
    let mut next = m.bin_const(Add, address, EXTENDED as u64);
    COMPONENTS.map(|component| {
        let Some(present) = compacted else {
            return m.bin_const(Add, address, component.offset as u64);
        };
        let (here, has) = (next, m.bit(present, component.number));
        let behind = m.bin_const(Add, here, component.bytes as u64);
        next = m.select(has, behind, here);
        here
    })
}

/// Fault now if the components `wanted` are not all there.
fn reach<M: X86>(m: &mut M, wanted: M::Int, places: &[M::Int; 4]) {
    for (component, &at) in COMPONENTS.iter().zip(places) {
        let wanted = m.bit(wanted, component.number);
        m.when(wanted, &mut |m| probe(m, at, component.bytes as u64));
    }
}

fn restore<M: X86>(m: &mut M, i: &Insn) {
    if m.interpreted() {
        return;
    }
    let address = aligned_address(m, i);
    probe(m, address, EXTENDED as u64);
    let header = |m: &mut M, offset: u64| {
        let at = m.bin_const(Add, address, HEADER as u64 + offset);
        m.load(at, W64)
    };
    let (present, layout, reserved) = (header(m, 0), header(m, 8), header(m, 16));
    let compacted = m.is_negative(layout);
    let known = feature::X87 | feature::SSE | feature::AVX | feature::AVX512;
    let listed = m.bin_const(And, layout, !COMPACTED);
    let all = m.int(W64, known);
    let allowed = m.select(compacted, listed, all);
    let strange = m.un(UnOp::Not, allowed);
    let strange = m.bin(And, present, strange);
    let unknown = m.bin_const(And, listed, !known);
    let zero = m.int(W64, 0);
    let listed_alone = m.select(compacted, zero, listed);
    let wrong = [strange, unknown, reserved, listed_alone].into_iter().fold(zero, |a, b| m.bin(Or, a, b));
    let wrong = m.is_nonzero(wrong);
    m.trap_if(wrong, Trap::GeneralProtection);

    let asked = requested(m);
    let asked = m.bin_const(And, asked, known);
    let loaded = m.bin(And, asked, present);
    let (plain, dense) = (places(m, address, None), places(m, address, Some(listed)));
    let places: [M::Int; 4] = core::array::from_fn(|n| m.select(compacted, dense[n], plain[n]));
    reach(m, loaded, &places);

    let [sse, avx] = [m.bit(asked, 1), m.bit(asked, 2)];
    let either = m.or(sse, avx);
    let standard = m.not(compacted);
    let always = m.and(either, standard);
    let sse_there = m.bit(loaded, 1);
    let loads_mxcsr = m.or(always, sse_there);
    m.when(loads_mxcsr, &mut |m| load_mxcsr(m, address));
    let missing = m.not(sse_there);
    let initial = m.and(sse, missing);
    let initial = m.and(initial, compacted);
    m.when(initial, &mut |m| {
        let value = m.int(W32, 0x1f80);
        m.set_reg(Reg::Mxcsr, value);
    });
    let [x87_asked, x87_there] = [m.bit(asked, 0), m.bit(loaded, 0)];
    m.when(x87_asked, &mut |m| super::float_state::initialise(m));
    m.when(x87_there, &mut |m| load_x87(m, i, address));
    m.when(sse, &mut |m| {
        let zero = m.vec_zero(BLOCK);
        (0..16).for_each(|n| m.set_vec_reg(n, zero));
    });
    m.when(sse_there, &mut |m| load_xmm(m, address));
    for (component, at) in COMPONENTS.into_iter().zip(places) {
        let (asked, there) = (m.bit(asked, component.number), m.bit(loaded, component.number));
        m.when(asked, &mut |m| load_component(m, component, at, false));
        m.when(there, &mut |m| load_component(m, component, at, true));
    }
}

/// The registers of a component, and which of their bits: first and how many.
fn registers(component: Component) -> (core::ops::Range<u32>, u32, u32) {
    match 1 << component.number {
        feature::AVX => (0..16, 128, 128),
        feature::ZMM_HI256 => (0..16, 256, 256),
        _ => (16..32, 0, 512),
    }
}

/// The part of a register from bit `from` on.
fn part<M: X86>(m: &mut M, number: u32, from: u32, bits: u32) -> M::Vec {
    let value = m.vec_reg(number, from + bits);
    if from == 0 {
        return value;
    }
    let lanes = (from / 64) as u8;
    let indices: [u8; 8] = core::array::from_fn(|n| (n as u8 + lanes) % (2 * lanes));
    let high = m.shuffle(W64, value, value, &indices[..2 * usize::from(lanes)]);
    m.vec_resize(high, bits)
}

fn store_component<M: X86>(m: &mut M, component: Component, at: M::Int) {
    if 1 << component.number == feature::OPMASK {
        for n in 0..8 {
            let mask = m.reg(Reg::Opmask(n));
            let at = m.bin_const(Add, at, 8 * u64::from(n));
            m.store(at, mask);
        }
        return;
    }
    let (numbers, from, bits) = registers(component);
    for (n, number) in numbers.enumerate() {
        let value = part(m, number, from, bits);
        let at = m.bin_const(Add, at, n as u64 * u64::from(bits / 8));
        m.store_vec(at, value);
    }
}

/// Load a component, or initialise it.
fn load_component<M: X86>(m: &mut M, component: Component, at: M::Int, there: bool) {
    if 1 << component.number == feature::OPMASK {
        for n in 0..8 {
            let at = m.bin_const(Add, at, 8 * u64::from(n));
            let mask = if there { m.load(at, W64) } else { m.int(W64, 0) };
            m.set_reg(Reg::Opmask(n), mask);
        }
        return;
    }
    let (numbers, from, bits) = registers(component);
    for (n, number) in numbers.enumerate() {
        let at = m.bin_const(Add, at, n as u64 * u64::from(bits / 8));
        let value = if there { m.load_vec(at, bits) } else { m.vec_zero(bits) };
        let whole = if from == 0 {
            value
        } else {
            let (low, high) = (m.vec_reg(number, from), m.vec_resize(value, 2 * from));
            let low = m.vec_resize(low, 2 * from);
            let lanes = (from / 64) as u8;
            let count = 2 * lanes;
            let indices: [u8; 8] =
                core::array::from_fn(|n| if (n as u8) < lanes { n as u8 } else { count + n as u8 - lanes });
            m.shuffle(W64, low, high, &indices[..count.into()])
        };
        m.set_vec_reg(number, whole);
    }
}
