//! Single flags. SDM vol. 2.

use crate::x86_64::Flag;

extension! { "flag";
    /// Clear CF.
    [Clc], exact (m, _i) { m.put_known(&[Flag::Cf], false); }
    "clc" = "f8";

    /// Set CF.
    [Stc], exact (m, _i) { m.put_known(&[Flag::Cf], true); }
    "stc" = "f9";

    /// Complement CF.
    [Cmc], exact (m, _i) {
        let carry = m.get(Flag::Cf);
        let carry = m.not(carry);
        m.put(Flag::Cf, carry);
    }
    "cmc" = "f5";

    /// Clear DF.
    [Cld], exact (m, _i) { m.put_known(&[Flag::Df], false); }
    "cld" = "fc";

    /// Set DF.
    [Std], exact (m, _i) { m.put_known(&[Flag::Df], true); }
    "std" = "fd";
}
