//! Fused multiplication and addition (FMA), and half precision (F16C). SDM vol. 2C.

use super::sse_float::{NAN, invert_signs};
use super::avx512::{probe_narrowed, set_narrowed};
use crate::machine::{BinOp, FloatFormat, Negated, Rounding, Width};
use crate::x86_64::Insn;
use crate::x86_64::operand::X86;
use crate::x86_64::vector::{
    bitwise, chosen, lanes_at, numbers, scalar_number, set, set_lanes, set_scalar_over,
};
use FloatFormat::{F32, F64};

extension! { "fma";
    /// Products and sums of singles, in the order 132.
    [Vfmadd132ps], exact (m, i) { packed(m, i, F32, O132, Negated { product: false, addend: false }) }
    "vfmadd132ps ymm1,ymm2,ymm3" = "c4e26d98cb",
    "vfmadd132ps zmm1{k1},zmm2,zmm3" = "62f26d4998cb";
    /// Products and sums of singles, in the order 213.
    [Vfmadd213ps], exact (m, i) { packed(m, i, F32, O213, Negated { product: false, addend: false }) }
    "vfmadd213ps ymm1,ymm2,ymm3" = "c4e26da8cb",
    "vfmadd213ps zmm1{k1},zmm2,zmm3" = "62f26d49a8cb";
    /// Products and sums of singles, in the order 231.
    [Vfmadd231ps], exact (m, i) { packed(m, i, F32, O231, Negated { product: false, addend: false }) }
    "vfmadd231ps ymm1,ymm2,ymm3" = "c4e26db8cb",
    "vfmadd231ps zmm1{k1},zmm2,zmm3" = "62f26d49b8cb";
    /// Products and sums of doubles, in the order 132.
    [Vfmadd132pd], exact (m, i) { packed(m, i, F64, O132, Negated { product: false, addend: false }) }
    "vfmadd132pd ymm1,ymm2,ymm3" = "c4e2ed98cb",
    "vfmadd132pd zmm1{k1},zmm2,zmm3" = "62f2ed4998cb";
    /// Products and sums of doubles, in the order 213.
    [Vfmadd213pd], exact (m, i) { packed(m, i, F64, O213, Negated { product: false, addend: false }) }
    "vfmadd213pd ymm1,ymm2,ymm3" = "c4e2eda8cb",
    "vfmadd213pd zmm1{k1},zmm2,zmm3" = "62f2ed49a8cb", "vfmadd213pd zmm1{k1}{rne-sae},zmm2,zmm3" = "62f2ed19a8cb";
    /// Products and sums of doubles, in the order 231.
    [Vfmadd231pd], exact (m, i) { packed(m, i, F64, O231, Negated { product: false, addend: false }) }
    "vfmadd231pd ymm1,ymm2,ymm3" = "c4e2edb8cb",
    "vfmadd231pd zmm1{k1},zmm2,zmm3" = "62f2ed49b8cb";
    /// Products and sums of the lowest singles, in the order 132.
    [Vfmadd132ss], exact (m, i) { single(m, i, F32, O132, Negated { product: false, addend: false }) }
    "vfmadd132ss xmm1,xmm2,xmm3" = "c4e26999cb",
    "vfmadd132ss xmm21,xmm22,xmm23" = "62a24d0099ef";
    /// Products and sums of the lowest singles, in the order 213.
    [Vfmadd213ss], exact (m, i) { single(m, i, F32, O213, Negated { product: false, addend: false }) }
    "vfmadd213ss xmm1,xmm2,xmm3" = "c4e269a9cb",
    "vfmadd213ss xmm21,xmm22,xmm23" = "62a24d00a9ef";
    /// Products and sums of the lowest singles, in the order 231.
    [Vfmadd231ss], exact (m, i) { single(m, i, F32, O231, Negated { product: false, addend: false }) }
    "vfmadd231ss xmm1,xmm2,xmm3" = "c4e269b9cb",
    "vfmadd231ss xmm21,xmm22,xmm23" = "62a24d00b9ef";
    /// Products and sums of the lowest doubles, in the order 132.
    [Vfmadd132sd], exact (m, i) { single(m, i, F64, O132, Negated { product: false, addend: false }) }
    "vfmadd132sd xmm1,xmm2,xmm3" = "c4e2e999cb",
    "vfmadd132sd xmm21,xmm22,xmm23" = "62a2cd0099ef";
    /// Products and sums of the lowest doubles, in the order 213.
    [Vfmadd213sd], exact (m, i) { single(m, i, F64, O213, Negated { product: false, addend: false }) }
    "vfmadd213sd xmm1,xmm2,xmm3" = "c4e2e9a9cb",
    "vfmadd213sd xmm21,xmm22,xmm23" = "62a2cd00a9ef";
    /// Products and sums of the lowest doubles, in the order 231.
    [Vfmadd231sd], exact (m, i) { single(m, i, F64, O231, Negated { product: false, addend: false }) }
    "vfmadd231sd xmm1,xmm2,xmm3" = "c4e2e9b9cb",
    "vfmadd231sd xmm21,xmm22,xmm23" = "62a2cd00b9ef";
    /// Products less a third of singles, in the order 132.
    [Vfmsub132ps], exact (m, i) { packed(m, i, F32, O132, Negated { product: false, addend: true }) }
    "vfmsub132ps ymm1,ymm2,ymm3" = "c4e26d9acb",
    "vfmsub132ps zmm1{k1},zmm2,zmm3" = "62f26d499acb";
    /// Products less a third of singles, in the order 213.
    [Vfmsub213ps], exact (m, i) { packed(m, i, F32, O213, Negated { product: false, addend: true }) }
    "vfmsub213ps ymm1,ymm2,ymm3" = "c4e26daacb",
    "vfmsub213ps zmm1{k1},zmm2,zmm3" = "62f26d49aacb";
    /// Products less a third of singles, in the order 231.
    [Vfmsub231ps], exact (m, i) { packed(m, i, F32, O231, Negated { product: false, addend: true }) }
    "vfmsub231ps ymm1,ymm2,ymm3" = "c4e26dbacb",
    "vfmsub231ps zmm1{k1},zmm2,zmm3" = "62f26d49bacb";
    /// Products less a third of doubles, in the order 132.
    [Vfmsub132pd], exact (m, i) { packed(m, i, F64, O132, Negated { product: false, addend: true }) }
    "vfmsub132pd ymm1,ymm2,ymm3" = "c4e2ed9acb",
    "vfmsub132pd zmm1{k1},zmm2,zmm3" = "62f2ed499acb";
    /// Products less a third of doubles, in the order 213.
    [Vfmsub213pd], exact (m, i) { packed(m, i, F64, O213, Negated { product: false, addend: true }) }
    "vfmsub213pd ymm1,ymm2,ymm3" = "c4e2edaacb",
    "vfmsub213pd zmm1{k1},zmm2,zmm3" = "62f2ed49aacb";
    /// Products less a third of doubles, in the order 231.
    [Vfmsub231pd], exact (m, i) { packed(m, i, F64, O231, Negated { product: false, addend: true }) }
    "vfmsub231pd ymm1,ymm2,ymm3" = "c4e2edbacb",
    "vfmsub231pd zmm1{k1},zmm2,zmm3" = "62f2ed49bacb";
    /// Products less a third of the lowest singles, in the order 132.
    [Vfmsub132ss], exact (m, i) { single(m, i, F32, O132, Negated { product: false, addend: true }) }
    "vfmsub132ss xmm1,xmm2,xmm3" = "c4e2699bcb",
    "vfmsub132ss xmm21,xmm22,xmm23" = "62a24d009bef";
    /// Products less a third of the lowest singles, in the order 213.
    [Vfmsub213ss], exact (m, i) { single(m, i, F32, O213, Negated { product: false, addend: true }) }
    "vfmsub213ss xmm1,xmm2,xmm3" = "c4e269abcb",
    "vfmsub213ss xmm21,xmm22,xmm23" = "62a24d00abef";
    /// Products less a third of the lowest singles, in the order 231.
    [Vfmsub231ss], exact (m, i) { single(m, i, F32, O231, Negated { product: false, addend: true }) }
    "vfmsub231ss xmm1,xmm2,xmm3" = "c4e269bbcb",
    "vfmsub231ss xmm21,xmm22,xmm23" = "62a24d00bbef";
    /// Products less a third of the lowest doubles, in the order 132.
    [Vfmsub132sd], exact (m, i) { single(m, i, F64, O132, Negated { product: false, addend: true }) }
    "vfmsub132sd xmm1,xmm2,xmm3" = "c4e2e99bcb",
    "vfmsub132sd xmm21,xmm22,xmm23" = "62a2cd009bef";
    /// Products less a third of the lowest doubles, in the order 213.
    [Vfmsub213sd], exact (m, i) { single(m, i, F64, O213, Negated { product: false, addend: true }) }
    "vfmsub213sd xmm1,xmm2,xmm3" = "c4e2e9abcb",
    "vfmsub213sd xmm21,xmm22,xmm23" = "62a2cd00abef";
    /// Products less a third of the lowest doubles, in the order 231.
    [Vfmsub231sd], exact (m, i) { single(m, i, F64, O231, Negated { product: false, addend: true }) }
    "vfmsub231sd xmm1,xmm2,xmm3" = "c4e2e9bbcb",
    "vfmsub231sd xmm21,xmm22,xmm23" = "62a2cd00bbef";
    /// A third less products of singles, in the order 132.
    [Vfnmadd132ps], exact (m, i) { packed(m, i, F32, O132, Negated { product: true, addend: false }) }
    "vfnmadd132ps ymm1,ymm2,ymm3" = "c4e26d9ccb",
    "vfnmadd132ps zmm1{k1},zmm2,zmm3" = "62f26d499ccb";
    /// A third less products of singles, in the order 213.
    [Vfnmadd213ps], exact (m, i) { packed(m, i, F32, O213, Negated { product: true, addend: false }) }
    "vfnmadd213ps ymm1,ymm2,ymm3" = "c4e26daccb",
    "vfnmadd213ps zmm1{k1},zmm2,zmm3" = "62f26d49accb";
    /// A third less products of singles, in the order 231.
    [Vfnmadd231ps], exact (m, i) { packed(m, i, F32, O231, Negated { product: true, addend: false }) }
    "vfnmadd231ps ymm1,ymm2,ymm3" = "c4e26dbccb",
    "vfnmadd231ps zmm1{k1},zmm2,zmm3" = "62f26d49bccb";
    /// A third less products of doubles, in the order 132.
    [Vfnmadd132pd], exact (m, i) { packed(m, i, F64, O132, Negated { product: true, addend: false }) }
    "vfnmadd132pd ymm1,ymm2,ymm3" = "c4e2ed9ccb",
    "vfnmadd132pd zmm1{k1},zmm2,zmm3" = "62f2ed499ccb";
    /// A third less products of doubles, in the order 213.
    [Vfnmadd213pd], exact (m, i) { packed(m, i, F64, O213, Negated { product: true, addend: false }) }
    "vfnmadd213pd ymm1,ymm2,ymm3" = "c4e2edaccb",
    "vfnmadd213pd zmm1{k1},zmm2,zmm3" = "62f2ed49accb";
    /// A third less products of doubles, in the order 231.
    [Vfnmadd231pd], exact (m, i) { packed(m, i, F64, O231, Negated { product: true, addend: false }) }
    "vfnmadd231pd ymm1,ymm2,ymm3" = "c4e2edbccb",
    "vfnmadd231pd zmm1{k1},zmm2,zmm3" = "62f2ed49bccb";
    /// A third less products of the lowest singles, in the order 132.
    [Vfnmadd132ss], exact (m, i) { single(m, i, F32, O132, Negated { product: true, addend: false }) }
    "vfnmadd132ss xmm1,xmm2,xmm3" = "c4e2699dcb",
    "vfnmadd132ss xmm21,xmm22,xmm23" = "62a24d009def";
    /// A third less products of the lowest singles, in the order 213.
    [Vfnmadd213ss], exact (m, i) { single(m, i, F32, O213, Negated { product: true, addend: false }) }
    "vfnmadd213ss xmm1,xmm2,xmm3" = "c4e269adcb",
    "vfnmadd213ss xmm21,xmm22,xmm23" = "62a24d00adef";
    /// A third less products of the lowest singles, in the order 231.
    [Vfnmadd231ss], exact (m, i) { single(m, i, F32, O231, Negated { product: true, addend: false }) }
    "vfnmadd231ss xmm1,xmm2,xmm3" = "c4e269bdcb",
    "vfnmadd231ss xmm21,xmm22,xmm23" = "62a24d00bdef", "vfnmadd231ss xmm1{k1}{rz-sae},xmm2,xmm3" = "62f26d79bdcb";
    /// A third less products of the lowest doubles, in the order 132.
    [Vfnmadd132sd], exact (m, i) { single(m, i, F64, O132, Negated { product: true, addend: false }) }
    "vfnmadd132sd xmm1,xmm2,xmm3" = "c4e2e99dcb",
    "vfnmadd132sd xmm21,xmm22,xmm23" = "62a2cd009def";
    /// A third less products of the lowest doubles, in the order 213.
    [Vfnmadd213sd], exact (m, i) { single(m, i, F64, O213, Negated { product: true, addend: false }) }
    "vfnmadd213sd xmm1,xmm2,xmm3" = "c4e2e9adcb",
    "vfnmadd213sd xmm21,xmm22,xmm23" = "62a2cd00adef";
    /// A third less products of the lowest doubles, in the order 231.
    [Vfnmadd231sd], exact (m, i) { single(m, i, F64, O231, Negated { product: true, addend: false }) }
    "vfnmadd231sd xmm1,xmm2,xmm3" = "c4e2e9bdcb",
    "vfnmadd231sd xmm21,xmm22,xmm23" = "62a2cd00bdef";
    /// Negated products less a third of singles, in the order 132.
    [Vfnmsub132ps], exact (m, i) { packed(m, i, F32, O132, Negated { product: true, addend: true }) }
    "vfnmsub132ps ymm1,ymm2,ymm3" = "c4e26d9ecb",
    "vfnmsub132ps zmm1{k1},zmm2,zmm3" = "62f26d499ecb";
    /// Negated products less a third of singles, in the order 213.
    [Vfnmsub213ps], exact (m, i) { packed(m, i, F32, O213, Negated { product: true, addend: true }) }
    "vfnmsub213ps ymm1,ymm2,ymm3" = "c4e26daecb",
    "vfnmsub213ps zmm1{k1},zmm2,zmm3" = "62f26d49aecb";
    /// Negated products less a third of singles, in the order 231.
    [Vfnmsub231ps], exact (m, i) { packed(m, i, F32, O231, Negated { product: true, addend: true }) }
    "vfnmsub231ps ymm1,ymm2,ymm3" = "c4e26dbecb",
    "vfnmsub231ps zmm1{k1},zmm2,zmm3" = "62f26d49becb";
    /// Negated products less a third of doubles, in the order 132.
    [Vfnmsub132pd], exact (m, i) { packed(m, i, F64, O132, Negated { product: true, addend: true }) }
    "vfnmsub132pd ymm1,ymm2,ymm3" = "c4e2ed9ecb",
    "vfnmsub132pd zmm1{k1},zmm2,zmm3" = "62f2ed499ecb";
    /// Negated products less a third of doubles, in the order 213.
    [Vfnmsub213pd], exact (m, i) { packed(m, i, F64, O213, Negated { product: true, addend: true }) }
    "vfnmsub213pd ymm1,ymm2,ymm3" = "c4e2edaecb",
    "vfnmsub213pd zmm1{k1},zmm2,zmm3" = "62f2ed49aecb";
    /// Negated products less a third of doubles, in the order 231.
    [Vfnmsub231pd], exact (m, i) { packed(m, i, F64, O231, Negated { product: true, addend: true }) }
    "vfnmsub231pd ymm1,ymm2,ymm3" = "c4e2edbecb",
    "vfnmsub231pd zmm1{k1},zmm2,zmm3" = "62f2ed49becb";
    /// Negated products less a third of the lowest singles, in the order 132.
    [Vfnmsub132ss], exact (m, i) { single(m, i, F32, O132, Negated { product: true, addend: true }) }
    "vfnmsub132ss xmm1,xmm2,xmm3" = "c4e2699fcb",
    "vfnmsub132ss xmm21,xmm22,xmm23" = "62a24d009fef";
    /// Negated products less a third of the lowest singles, in the order 213.
    [Vfnmsub213ss], exact (m, i) { single(m, i, F32, O213, Negated { product: true, addend: true }) }
    "vfnmsub213ss xmm1,xmm2,xmm3" = "c4e269afcb",
    "vfnmsub213ss xmm21,xmm22,xmm23" = "62a24d00afef";
    /// Negated products less a third of the lowest singles, in the order 231.
    [Vfnmsub231ss], exact (m, i) { single(m, i, F32, O231, Negated { product: true, addend: true }) }
    "vfnmsub231ss xmm1,xmm2,xmm3" = "c4e269bfcb",
    "vfnmsub231ss xmm21,xmm22,xmm23" = "62a24d00bfef";
    /// Negated products less a third of the lowest doubles, in the order 132.
    [Vfnmsub132sd], exact (m, i) { single(m, i, F64, O132, Negated { product: true, addend: true }) }
    "vfnmsub132sd xmm1,xmm2,xmm3" = "c4e2e99fcb",
    "vfnmsub132sd xmm21,xmm22,xmm23" = "62a2cd009fef";
    /// Negated products less a third of the lowest doubles, in the order 213.
    [Vfnmsub213sd], exact (m, i) { single(m, i, F64, O213, Negated { product: true, addend: true }) }
    "vfnmsub213sd xmm1,xmm2,xmm3" = "c4e2e9afcb",
    "vfnmsub213sd xmm21,xmm22,xmm23" = "62a2cd00afef";
    /// Negated products less a third of the lowest doubles, in the order 231.
    [Vfnmsub231sd], exact (m, i) { single(m, i, F64, O231, Negated { product: true, addend: true }) }
    "vfnmsub231sd xmm1,xmm2,xmm3" = "c4e2e9bfcb",
    "vfnmsub231sd xmm21,xmm22,xmm23" = "62a2cd00bfef";
    /// Products of singles, and differences in even, sums in odd lanes, in the order 132.
    [Vfmaddsub132ps], exact (m, i) { alternating(m, i, F32, O132, false) }
    "vfmaddsub132ps ymm1,ymm2,ymm3" = "c4e26d96cb",
    "vfmaddsub132ps zmm1{k1},zmm2,zmm3" = "62f26d4996cb";
    /// Products of singles, and differences in even, sums in odd lanes, in the order 213.
    [Vfmaddsub213ps], exact (m, i) { alternating(m, i, F32, O213, false) }
    "vfmaddsub213ps ymm1,ymm2,ymm3" = "c4e26da6cb",
    "vfmaddsub213ps zmm1{k1},zmm2,zmm3" = "62f26d49a6cb";
    /// Products of singles, and differences in even, sums in odd lanes, in the order 231.
    [Vfmaddsub231ps], exact (m, i) { alternating(m, i, F32, O231, false) }
    "vfmaddsub231ps ymm1,ymm2,ymm3" = "c4e26db6cb",
    "vfmaddsub231ps zmm1{k1},zmm2,zmm3" = "62f26d49b6cb";
    /// Products of doubles, and differences in even, sums in odd lanes, in the order 132.
    [Vfmaddsub132pd], exact (m, i) { alternating(m, i, F64, O132, false) }
    "vfmaddsub132pd ymm1,ymm2,ymm3" = "c4e2ed96cb",
    "vfmaddsub132pd zmm1{k1},zmm2,zmm3" = "62f2ed4996cb";
    /// Products of doubles, and differences in even, sums in odd lanes, in the order 213.
    [Vfmaddsub213pd], exact (m, i) { alternating(m, i, F64, O213, false) }
    "vfmaddsub213pd ymm1,ymm2,ymm3" = "c4e2eda6cb",
    "vfmaddsub213pd zmm1{k1},zmm2,zmm3" = "62f2ed49a6cb";
    /// Products of doubles, and differences in even, sums in odd lanes, in the order 231.
    [Vfmaddsub231pd], exact (m, i) { alternating(m, i, F64, O231, false) }
    "vfmaddsub231pd ymm1,ymm2,ymm3" = "c4e2edb6cb",
    "vfmaddsub231pd zmm1{k1},zmm2,zmm3" = "62f2ed49b6cb";
    /// Products of singles, and sums in even, differences in odd lanes, in the order 132.
    [Vfmsubadd132ps], exact (m, i) { alternating(m, i, F32, O132, true) }
    "vfmsubadd132ps ymm1,ymm2,ymm3" = "c4e26d97cb",
    "vfmsubadd132ps zmm1{k1},zmm2,zmm3" = "62f26d4997cb";
    /// Products of singles, and sums in even, differences in odd lanes, in the order 213.
    [Vfmsubadd213ps], exact (m, i) { alternating(m, i, F32, O213, true) }
    "vfmsubadd213ps ymm1,ymm2,ymm3" = "c4e26da7cb",
    "vfmsubadd213ps zmm1{k1},zmm2,zmm3" = "62f26d49a7cb";
    /// Products of singles, and sums in even, differences in odd lanes, in the order 231.
    [Vfmsubadd231ps], exact (m, i) { alternating(m, i, F32, O231, true) }
    "vfmsubadd231ps ymm1,ymm2,ymm3" = "c4e26db7cb",
    "vfmsubadd231ps zmm1{k1},zmm2,zmm3" = "62f26d49b7cb";
    /// Products of doubles, and sums in even, differences in odd lanes, in the order 132.
    [Vfmsubadd132pd], exact (m, i) { alternating(m, i, F64, O132, true) }
    "vfmsubadd132pd ymm1,ymm2,ymm3" = "c4e2ed97cb",
    "vfmsubadd132pd zmm1{k1},zmm2,zmm3" = "62f2ed4997cb";
    /// Products of doubles, and sums in even, differences in odd lanes, in the order 213.
    [Vfmsubadd213pd], exact (m, i) { alternating(m, i, F64, O213, true) }
    "vfmsubadd213pd ymm1,ymm2,ymm3" = "c4e2eda7cb",
    "vfmsubadd213pd zmm1{k1},zmm2,zmm3" = "62f2ed49a7cb";
    /// Products of doubles, and sums in even, differences in odd lanes, in the order 231.
    [Vfmsubadd231pd], exact (m, i) { alternating(m, i, F64, O231, true) }
    "vfmsubadd231pd ymm1,ymm2,ymm3" = "c4e2edb7cb",
    "vfmsubadd231pd zmm1{k1},zmm2,zmm3" = "62f2ed49b7cb";
    /// Half precision to singles.
    [Vcvtph2ps], exact (m, i) {
        let a = lanes_at(m, i, 1);
        let a = match chosen(m, i, Width::W16, m.vec_bits(a)) {
            None => a,
            Some(mask) => bitwise(m, BinOp::And, mask, a),
        };
        let result = m.half_to_single_lanes(NAN, a);
        set_lanes(m, i, Width::W32, result);
    }
    "vcvtph2ps ymm1,xmm2" = "c4e27d13ca", "vcvtph2ps xmm1,[rdi]" = "c4e279130f",
    "vcvtph2ps zmm1{k1},ymm2" = "62f27d4913ca", "vcvtph2ps ymm21{k1}{z},[rdi]" = "62e27da9132f", "vcvtph2ps zmm1{sae},ymm2" = "62f27d1813ca";
    /// Singles to half precision, rounded as an immediate says.
    [Vcvtps2ph], exact (m, i) { to_half(m, i) }
    "vcvtps2ph xmm1,ymm2,0" = "c4e37d1dd100", "vcvtps2ph [rdi],xmm2,4" = "c4e3791d1704", "vcvtps2ph xmm1,xmm2,3" = "c4e3791dd103", "vcvtps2ph [rdi],ymm2,1" = "c4e37d1d1701",
    "vcvtps2ph ymm1{k1},zmm2,0" = "62f37d491dd100", "vcvtps2ph xmm21{k1}{z},ymm2,1" = "62b37da91dd501", "vcvtps2ph [rdi]{k1},zmm2,4" = "62f37d491d1704", "vcvtps2ph ymm1{sae},zmm2,2" = "62f37d181dd102", "vcvtps2ph [rdi]{k1},xmm2,3" = "62f37d091d1703", "vcvtps2ph xmm1{k1},xmm2,0" = "62f37d091dd100";
}

fn to_half<M: X86>(m: &mut M, i: &Insn) {
    let a = numbers(m, i, 1, F32);
    let count = m.vec_bits(a) / 32;
    probe_narrowed(m, i, Width::W16, count);
    let rounding = match i.immediate8() & 7 {
        0 => Rounding::NearestEven,
        1 => Rounding::Down,
        2 => Rounding::Up,
        3 => Rounding::Zero,
        _ => Rounding::Current,
    };
    let result = m.single_to_half_lanes(rounding, NAN, a);
    set_narrowed(m, i, Width::W16, count, result);
}

/// The places of the factors and of the addend among the operands, by the number in the name.
type Order = [u32; 3];
const O132: Order = [0, 2, 1];
const O213: Order = [1, 0, 2];
const O231: Order = [1, 2, 0];

fn packed<M: X86>(m: &mut M, i: &Insn, format: FloatFormat, order: Order, negated: Negated) {
    let operands = order.map(|op| numbers(m, i, op, format));
    let result = m.float_fma_lanes(format, negated, NAN, operands);
    set(m, i, result);
}

fn single<M: X86>(m: &mut M, i: &Insn, format: FloatFormat, order: Order, negated: Negated) {
    let operands = order.map(|op| scalar_number(m, i, op, format));
    let result = m.float_fma(format, negated, NAN, operands);
    set_scalar_over(m, i, 0, result);
}

/// Additions and subtractions in turn: `subtracted` are the lanes of the latter, even or odd.
fn alternating<M: X86>(m: &mut M, i: &Insn, format: FloatFormat, order: Order, odd_subtracted: bool) {
    let [a, b, c] = order.map(|op| numbers(m, i, op, format));
    let c = invert_signs(m, format, c, odd_subtracted);
    let result = m.float_fma_lanes(format, Negated { product: false, addend: false }, NAN, [a, b, c]);
    set(m, i, result);
}
