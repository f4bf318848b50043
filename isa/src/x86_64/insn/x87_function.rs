//! x87 functions without exact results. SDM vol. 2A.

use super::x87::on_register;
use crate::x86_64::x87::Operation;

extension! { "x87_function";
    /// 2^x - 1.
    [F2xm1], approximate("within 1 unit in the last place of the true value; CPU models differ in the last bit and in C1") (m, i) { on_register(m, i, Operation::Exp2Minus1, 0) }
    "f2xm1" = "d9f0";
    /// y log2 x.
    [Fyl2x], approximate("within 1 unit in the last place of the true value; CPU models differ in the last bit and in C1") (m, i) { on_register(m, i, Operation::YLog2X, 0) }
    "fyl2x" = "d9f1";
    /// y log2 (x + 1).
    [Fyl2xp1], approximate("within 1 unit in the last place of the true value; CPU models differ in the last bit and in C1") (m, i) { on_register(m, i, Operation::YLog2XPlus1, 0) }
    "fyl2xp1" = "d9f9";
    /// Sine.
    [Fsin], approximate("within 1 unit in the last place of the true value; CPU models differ in the last bit and in C1") (m, i) { on_register(m, i, Operation::Sine, 0) }
    "fsin" = "d9fe";
    /// Cosine.
    [Fcos], approximate("within 1 unit in the last place of the true value; CPU models differ in the last bit and in C1") (m, i) { on_register(m, i, Operation::Cosine, 0) }
    "fcos" = "d9ff";
    /// Sine and cosine.
    [Fsincos], approximate("within 1 unit in the last place of the true value; CPU models differ in the last bit and in C1") (m, i) { on_register(m, i, Operation::SineCosine, 0) }
    "fsincos" = "d9fb";
    /// Tangent.
    [Fptan], approximate("within 1 unit in the last place of the true value; CPU models differ in the last bit and in C1") (m, i) { on_register(m, i, Operation::Tangent, 0) }
    "fptan" = "d9f2";
    /// Arctangent.
    [Fpatan], approximate("within 1 unit in the last place of the true value; CPU models differ in the last bit and in C1") (m, i) { on_register(m, i, Operation::Arctangent, 0) }
    "fpatan" = "d9f3";
}
