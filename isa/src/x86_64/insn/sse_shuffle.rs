//! Lanes put elsewhere: shuffles, interleaving, packing, widening, insertion, extraction, blending, whole-vector
//! shifts (MMX, SSE to SSE4.1, AVX, AVX2). SDM vol. 2.

use crate::machine::{BinOp, CmpOp, LaneOp, Width};
use crate::x86_64::Insn;
use crate::x86_64::operand::{X86, memory_address, read, write};
use crate::x86_64::mmx;
use crate::x86_64::vector::{
    BLOCK, bitwise, blend, in_memory, is_legacy, is_mmx, lanes_at, last, left, operand, pair, right, set, set_lane, set_lanes, shuffle, splat,
    zero,
};
use Width::{W8, W16, W32, W64};

extension! { "sse_shuffle";
    /// Two singles of each operand.
    [Shufps, Vshufps], exact (m, i) {
        let [a, b, c, d] = fields(i.immediate8());
        rearrange(m, i, W32, &[a, b, 4 + c, 4 + d]);
    }
    "shufps xmm1,xmm2,0x1b" = "0fc6ca1b", "shufps xmm1,[rdi],-0x1c" = "0fc60fe4",
    "vshufps ymm1,ymm2,ymm3,0x1b" = "c5ecc6cb1b",
    "vshufps zmm1{k1},zmm2,zmm3,0x1b" = "62f16c49c6cb1b";
    /// A double of each operand.
    [Shufpd, Vshufpd], exact (m, i) { choose_doubles(m, i) }
    "shufpd xmm1,xmm2,1" = "660fc6ca01", "shufpd xmm1,[rdi],2" = "660fc60f02",
    "vshufpd ymm1,ymm2,ymm3,1" = "c5edc6cb01",
    "vshufpd zmm1{k1},zmm2,zmm3,1" = "62f1ed49c6cb01";
    /// Any double words.
    [Pshufd, Vpshufd], exact (m, i) { permute(m, i, W32, &fields(i.immediate8())) }
    "pshufd xmm1,xmm2,0x1b" = "660f70ca1b", "pshufd xmm1,[rdi],0x4e" = "660f700f4e",
    "vpshufd ymm1,ymm2,0x1b" = "c5fd70ca1b",
    "vpshufd zmm1{k1},zmm2,0x1b" = "62f17d4970ca1b";
    /// Any of the low words.
    [Pshuflw, Vpshuflw], exact (m, i) {
        let [a, b, c, d] = fields(i.immediate8());
        permute(m, i, W16, &[a, b, c, d, 4, 5, 6, 7]);
    }
    "pshuflw xmm1,xmm2,0x1b" = "f20f70ca1b", "pshuflw xmm1,[rdi],-0x6d" = "f20f700f93",
    "vpshuflw ymm1,ymm2,0x1b" = "c5ff70ca1b",
    "vpshuflw zmm1{k1},zmm2,0x1b" = "62f17f4970ca1b";
    /// Any of the high words.
    [Pshufhw, Vpshufhw], exact (m, i) {
        let [a, b, c, d] = fields(i.immediate8());
        permute(m, i, W16, &[0, 1, 2, 3, 4 + a, 4 + b, 4 + c, 4 + d]);
    }
    "pshufhw xmm1,xmm2,0x1b" = "f30f70ca1b",
    "vpshufhw ymm1,ymm2,0x1b" = "c5fe70ca1b",
    "vpshufhw zmm1{k1},zmm2,0x1b" = "62f17e4970ca1b";
    /// Any words of an MMX register.
    [Pshufw], exact (m, i) {
        let [a, b, c, d] = fields(i.immediate8());
        permute(m, i, W16, &[a, b, c, d, 4, 5, 6, 7]);
    }
    "pshufw mm1,mm2,0x1b" = "0f70ca1b", "pshufw mm1,[rdi],0x4e" = "0f700f4e";
    /// Any bytes, or zeros, as the second operand says.
    [Pshufb, Vpshufb], exact (m, i) {
        let (table, indices) = pair(m, i);
        let used = splat(m, table, W8, if is_mmx(i) { 0x87 } else { 0x8f });
        let indices = bitwise(m, BinOp::And, indices, used);
        let result = m.lookup(table, indices);
        set(m, i, result);
    }
    "pshufb xmm1,xmm2" = "660f3800ca", "pshufb xmm1,[rdi]" = "660f38000f", "pshufb mm1,mm2" = "0f3800ca",
    "vpshufb ymm1,ymm2,ymm3" = "c4e26d00cb",
    "vpshufb zmm1{k1},zmm2,zmm3" = "62f26d4900cb";

    /// Low bytes interleaved.
    [Punpcklbw, Vpunpcklbw], exact (m, i) { interleave(m, i, W8, false) }
    "punpcklbw xmm1,xmm2" = "660f60ca", "punpcklbw xmm1,[rdi]" = "660f600f", "punpcklbw mm1,mm2" = "0f60ca", "punpcklbw mm1,[rdi]" = "0f600f",
    "vpunpcklbw ymm1,ymm2,ymm3" = "c5ed60cb",
    "vpunpcklbw zmm1{k1},zmm2,zmm3" = "62f16d4960cb";
    /// Low words interleaved.
    [Punpcklwd, Vpunpcklwd], exact (m, i) { interleave(m, i, W16, false) }
    "punpcklwd xmm1,xmm2" = "660f61ca", "punpcklwd mm1,mm2" = "0f61ca",
    "vpunpcklwd ymm1,ymm2,ymm3" = "c5ed61cb",
    "vpunpcklwd zmm1{k1},zmm2,zmm3" = "62f16d4961cb";
    /// Low double words interleaved.
    [Punpckldq, Unpcklps, Vpunpckldq, Vunpcklps], exact (m, i) { interleave(m, i, W32, false) }
    "punpckldq xmm1,xmm2" = "660f62ca", "punpckldq mm1,mm2" = "0f62ca", "unpcklps xmm1,xmm2" = "0f14ca",
    "vpunpckldq ymm1,ymm2,ymm3" = "c5ed62cb", "vunpcklps ymm1,ymm2,ymm3" = "c5ec14cb",
    "vpunpckldq zmm1{k1},zmm2,zmm3" = "62f16d4962cb", "vunpcklps zmm1{k1},zmm2,zmm3" = "62f16c4914cb";
    /// Low quad words side by side.
    [Punpcklqdq, Unpcklpd, Vpunpcklqdq, Vunpcklpd], exact (m, i) { interleave(m, i, W64, false) }
    "punpcklqdq xmm1,xmm2" = "660f6cca", "unpcklpd xmm1,[rdi]" = "660f140f",
    "vpunpcklqdq ymm1,ymm2,ymm3" = "c5ed6ccb", "vunpcklpd ymm1,ymm2,[rdi]" = "c5ed140f",
    "vpunpcklqdq zmm1{k1},zmm2,zmm3" = "62f1ed496ccb", "vunpcklpd zmm1{k1},zmm2,[rdi]" = "62f1ed49140f";
    /// High bytes interleaved.
    [Punpckhbw, Vpunpckhbw], exact (m, i) { interleave(m, i, W8, true) }
    "punpckhbw xmm1,xmm2" = "660f68ca", "punpckhbw mm1,mm2" = "0f68ca",
    "vpunpckhbw ymm1,ymm2,ymm3" = "c5ed68cb",
    "vpunpckhbw zmm1{k1},zmm2,zmm3" = "62f16d4968cb";
    /// High words interleaved.
    [Punpckhwd, Vpunpckhwd], exact (m, i) { interleave(m, i, W16, true) }
    "punpckhwd xmm1,xmm2" = "660f69ca", "punpckhwd mm1,[rdi]" = "0f690f",
    "vpunpckhwd ymm1,ymm2,ymm3" = "c5ed69cb",
    "vpunpckhwd zmm1{k1},zmm2,zmm3" = "62f16d4969cb";
    /// High double words interleaved.
    [Punpckhdq, Unpckhps, Vpunpckhdq, Vunpckhps], exact (m, i) { interleave(m, i, W32, true) }
    "punpckhdq xmm1,xmm2" = "660f6aca", "punpckhdq mm1,mm2" = "0f6aca", "unpckhps xmm1,xmm2" = "0f15ca",
    "vpunpckhdq ymm1,ymm2,ymm3" = "c5ed6acb", "vunpckhps ymm1,ymm2,ymm3" = "c5ec15cb",
    "vpunpckhdq zmm1{k1},zmm2,zmm3" = "62f16d496acb", "vunpckhps zmm1{k1},zmm2,zmm3" = "62f16c4915cb";
    /// High quad words side by side.
    [Punpckhqdq, Unpckhpd, Vpunpckhqdq, Vunpckhpd], exact (m, i) { interleave(m, i, W64, true) }
    "punpckhqdq xmm1,xmm2" = "660f6dca", "unpckhpd xmm1,xmm2" = "660f15ca",
    "vpunpckhqdq ymm1,ymm2,ymm3" = "c5ed6dcb", "vunpckhpd ymm1,ymm2,ymm3" = "c5ed15cb",
    "vpunpckhqdq zmm1{k1},zmm2,zmm3" = "62f1ed496dcb", "vunpckhpd zmm1{k1},zmm2,zmm3" = "62f1ed4915cb";

    /// Words clamped to signed bytes.
    [Packsswb, Vpacksswb], exact (m, i) { pack(m, i, W16, true) }
    "packsswb xmm1,xmm2" = "660f63ca", "packsswb mm1,mm2" = "0f63ca",
    "vpacksswb ymm1,ymm2,ymm3" = "c5ed63cb",
    "vpacksswb zmm1{k1},zmm2,zmm3" = "62f16d4963cb";
    /// Words clamped to unsigned bytes.
    [Packuswb, Vpackuswb], exact (m, i) { pack(m, i, W16, false) }
    "packuswb xmm1,xmm2" = "660f67ca", "packuswb xmm1,[rdi]" = "660f670f", "packuswb mm1,mm2" = "0f67ca",
    "vpackuswb ymm1,ymm2,ymm3" = "c5ed67cb",
    "vpackuswb zmm1{k1},zmm2,zmm3" = "62f16d4967cb";
    /// Double words clamped to signed words.
    [Packssdw, Vpackssdw], exact (m, i) { pack(m, i, W32, true) }
    "packssdw xmm1,xmm2" = "660f6bca", "packssdw mm1,mm2" = "0f6bca",
    "vpackssdw ymm1,ymm2,ymm3" = "c5ed6bcb",
    "vpackssdw zmm1{k1},zmm2,zmm3" = "62f16d496bcb";
    /// Double words clamped to unsigned words.
    [Packusdw, Vpackusdw], exact (m, i) { pack(m, i, W32, false) }
    "packusdw xmm1,xmm2" = "660f382bca",
    "vpackusdw ymm1,ymm2,ymm3" = "c4e26d2bcb",
    "vpackusdw zmm1{k1},zmm2,zmm3" = "62f26d492bcb";

    /// Signed bytes to words.
    [Pmovsxbw, Vpmovsxbw], exact (m, i) { widen(m, i, &[W8], true) }
    "pmovsxbw xmm1,xmm2" = "660f3820ca", "pmovsxbw xmm1,[rdi]" = "660f38200f",
    "vpmovsxbw ymm1,xmm2" = "c4e27d20ca",
    "vpmovsxbw ymm1{k1},xmm22" = "62b27d2920ce";
    /// Signed bytes to double words.
    [Pmovsxbd, Vpmovsxbd], exact (m, i) { widen(m, i, &[W8, W16], true) }
    "pmovsxbd xmm1,xmm2" = "660f3821ca", "pmovsxbd xmm1,[rdi]" = "660f38210f",
    "vpmovsxbd ymm1,xmm2" = "c4e27d21ca",
    "vpmovsxbd zmm1{k1},xmm2" = "62f27d4921ca";
    /// Signed bytes to quad words.
    [Pmovsxbq, Vpmovsxbq], exact (m, i) { widen(m, i, &[W8, W16, W32], true) }
    "pmovsxbq xmm1,xmm2" = "660f3822ca", "pmovsxbq xmm1,[rdi]" = "660f38220f",
    "vpmovsxbq ymm1,xmm2" = "c4e27d22ca",
    "vpmovsxbq zmm1{k1},xmm2" = "62f27d4922ca";
    /// Signed words to double words.
    [Pmovsxwd, Vpmovsxwd], exact (m, i) { widen(m, i, &[W16], true) }
    "pmovsxwd xmm1,xmm2" = "660f3823ca",
    "vpmovsxwd ymm1,xmm2" = "c4e27d23ca",
    "vpmovsxwd ymm1{k1},xmm22" = "62b27d2923ce";
    /// Signed words to quad words.
    [Pmovsxwq, Vpmovsxwq], exact (m, i) { widen(m, i, &[W16, W32], true) }
    "pmovsxwq xmm1,xmm2" = "660f3824ca",
    "vpmovsxwq ymm1,xmm2" = "c4e27d24ca",
    "vpmovsxwq zmm1{k1},xmm2" = "62f27d4924ca";
    /// Signed double words to quad words.
    [Pmovsxdq, Vpmovsxdq], exact (m, i) { widen(m, i, &[W32], true) }
    "pmovsxdq xmm1,xmm2" = "660f3825ca",
    "vpmovsxdq ymm1,xmm2" = "c4e27d25ca",
    "vpmovsxdq ymm1{k1},xmm22" = "62b27d2925ce";
    /// Unsigned bytes to words.
    [Pmovzxbw, Vpmovzxbw], exact (m, i) { widen(m, i, &[W8], false) }
    "pmovzxbw xmm1,xmm2" = "660f3830ca", "pmovzxbw xmm1,[rdi]" = "660f38300f",
    "vpmovzxbw ymm1,xmm2" = "c4e27d30ca",
    "vpmovzxbw ymm1{k1},xmm22" = "62b27d2930ce";
    /// Unsigned bytes to double words.
    [Pmovzxbd, Vpmovzxbd], exact (m, i) { widen(m, i, &[W8, W16], false) }
    "pmovzxbd xmm1,xmm2" = "660f3831ca",
    "vpmovzxbd ymm1,xmm2" = "c4e27d31ca",
    "vpmovzxbd zmm1{k1},xmm2" = "62f27d4931ca";
    /// Unsigned bytes to quad words.
    [Pmovzxbq, Vpmovzxbq], exact (m, i) { widen(m, i, &[W8, W16, W32], false) }
    "pmovzxbq xmm1,xmm2" = "660f3832ca",
    "vpmovzxbq ymm1,xmm2" = "c4e27d32ca",
    "vpmovzxbq zmm1{k1},xmm2" = "62f27d4932ca";
    /// Unsigned words to double words.
    [Pmovzxwd, Vpmovzxwd], exact (m, i) { widen(m, i, &[W16], false) }
    "pmovzxwd xmm1,xmm2" = "660f3833ca",
    "vpmovzxwd ymm1,xmm2" = "c4e27d33ca",
    "vpmovzxwd ymm1{k1},xmm22" = "62b27d2933ce";
    /// Unsigned words to quad words.
    [Pmovzxwq, Vpmovzxwq], exact (m, i) { widen(m, i, &[W16, W32], false) }
    "pmovzxwq xmm1,xmm2" = "660f3834ca", "pmovzxwq xmm1,[rdi]" = "660f38340f",
    "vpmovzxwq ymm1,xmm2" = "c4e27d34ca",
    "vpmovzxwq zmm1{k1},xmm2" = "62f27d4934ca";
    /// Unsigned double words to quad words.
    [Pmovzxdq, Vpmovzxdq], exact (m, i) { widen(m, i, &[W32], false) }
    "pmovzxdq xmm1,xmm2" = "660f3835ca",
    "vpmovzxdq ymm1,xmm2" = "c4e27d35ca",
    "vpmovzxdq ymm1{k1},xmm22" = "62b27d2935ce";

    /// Put a byte in.
    [Pinsrb, Vpinsrb], exact (m, i) { insert(m, i, W8) }
    "pinsrb xmm1,eax,5" = "660f3a20c805", "pinsrb xmm1,[rdi],0x1f" = "660f3a200f1f",
    "vpinsrb xmm1,xmm2,eax,5" = "c4e36920c805",
    "vpinsrb xmm21,xmm22,eax,5" = "62e34d0020e805";
    /// Put a word in.
    [Pinsrw, Vpinsrw], exact (m, i) { insert(m, i, W16) }
    "pinsrw xmm1,eax,5" = "660fc4c805", "pinsrw xmm1,[rdi],9" = "660fc40f09", "pinsrw mm1,eax,2" = "0fc4c802", "pinsrw mm1,[rdi],7" = "0fc40f07",
    "vpinsrw xmm1,xmm2,eax,5" = "c5e9c4c805",
    "vpinsrw xmm21,xmm22,eax,5" = "62e14d00c4e805";
    /// Put a double word in.
    [Pinsrd, Vpinsrd], exact (m, i) { insert(m, i, W32) }
    "pinsrd xmm1,eax,2" = "660f3a22c802", "pinsrd xmm1,[rdi],7" = "660f3a220f07",
    "vpinsrd xmm1,xmm2,eax,2" = "c4e36922c802",
    "vpinsrd xmm21,xmm22,eax,2" = "62e34d0022e802";
    /// Put a quad word in.
    [Pinsrq, Vpinsrq], exact (m, i) { insert(m, i, W64) }
    "pinsrq xmm1,rax,1" = "66480f3a22c801", "pinsrq xmm1,[rdi],0" = "66480f3a220f00",
    "vpinsrq xmm1,xmm2,rax,1" = "c4e3e922c801",
    "vpinsrq xmm21,xmm22,rax,1" = "62e3cd0022e801";
    /// Take a byte out.
    [Pextrb, Vpextrb], exact (m, i) { extract(m, i, W8) }
    "pextrb eax,xmm2,5" = "660f3a14d005", "pextrb [rdi],xmm2,0xf" = "660f3a14170f",
    "vpextrb eax,xmm2,5" = "c4e37914d005",
    "vpextrb eax,xmm22,5" = "62e37d0814f005";
    /// Take a word out.
    [Pextrw, Vpextrw], exact (m, i) { extract(m, i, W16) }
    "pextrw eax,xmm2,5" = "660fc5c205", "pextrw [rdi],xmm2,7" = "660f3a151707", "pextrw eax,mm2,6" = "0fc5c206",
    "vpextrw eax,xmm2,5" = "c5f9c5c205",
    "vpextrw eax,xmm22,5" = "62b17d08c5c605";
    /// Take a double word out.
    [Pextrd, Extractps, Vpextrd, Vextractps], exact (m, i) { extract(m, i, W32) }
    "pextrd eax,xmm2,3" = "660f3a16d003", "pextrd [rdi],xmm2,1" = "660f3a161701", "extractps eax,xmm2,2" = "660f3a17d002",
    "extractps [rdi],xmm2,3" = "660f3a171703",
    "vpextrd eax,xmm2,3" = "c4e37916d003", "vextractps eax,xmm2,2" = "c4e37917d002",
    "vpextrd eax,xmm22,3" = "62e37d0816f003", "vextractps eax,xmm22,2" = "62e37d0817f002";
    /// Take a quad word out.
    [Pextrq, Vpextrq], exact (m, i) { extract(m, i, W64) }
    "pextrq rax,xmm2,1" = "66480f3a16d001", "pextrq [rdi],xmm2,0" = "66480f3a161700",
    "vpextrq rax,xmm2,1" = "c4e3f916d001",
    "vpextrq rax,xmm22,1" = "62e3fd0816f001";
    /// Put a single in, and zeros.
    [Insertps, Vinsertps], exact (m, i) { insert_single(m, i) }
    "insertps xmm1,xmm2,-0x64" = "660f3a21ca9c", "insertps xmm1,[rdi],0x13" = "660f3a210f13", "insertps xmm1,xmm2,0x6f" = "660f3a21ca6f",
    "vinsertps xmm1,xmm2,xmm3,-0x64" = "c4e36921cb9c",
    "vinsertps xmm21,xmm22,xmm23,-0x64" = "62a34d0021ef9c";

    /// Words of either operand.
    [Pblendw, Vpblendw], exact (m, i) { choose(m, i, W16) }
    "pblendw xmm1,xmm2,0x5a" = "660f3a0eca5a", "pblendw xmm1,[rdi],-0x10" = "660f3a0e0ff0",
    "vpblendw ymm1,ymm2,ymm3,0x5a" = "c4e36d0ecb5a";
    /// Singles of either operand.
    [Blendps, Vblendps], exact (m, i) { choose(m, i, W32) }
    "blendps xmm1,xmm2,6" = "660f3a0cca06",
    "vblendps ymm1,ymm2,ymm3,6" = "c4e36d0ccb06";
    /// Doubles of either operand.
    [Blendpd, Vblendpd], exact (m, i) { choose(m, i, W64) }
    "blendpd xmm1,xmm2,1" = "660f3a0dca01",
    "vblendpd ymm1,ymm2,ymm3,1" = "c4e36d0dcb01";
    /// Bytes of either operand, as the signs in xmm0 or the last operand say.
    [Pblendvb, Vpblendvb], exact (m, i) { choose_by_signs(m, i, W8) }
    "pblendvb xmm1,xmm2" = "660f3810ca", "pblendvb xmm1,[rdi]" = "660f38100f",
    "vpblendvb xmm1,xmm2,xmm3,xmm4" = "c4e3694ccb40";
    /// Singles of either operand, as the signs in xmm0 or the last operand say.
    [Blendvps, Vblendvps], exact (m, i) { choose_by_signs(m, i, W32) }
    "blendvps xmm1,xmm2" = "660f3814ca",
    "vblendvps xmm1,xmm2,xmm3,xmm4" = "c4e3694acb40";
    /// Doubles of either operand, as the signs in xmm0 or the last operand say.
    [Blendvpd, Vblendvpd], exact (m, i) { choose_by_signs(m, i, W64) }
    "blendvpd xmm1,xmm2" = "660f3815ca",
    "vblendvpd xmm1,xmm2,xmm3,xmm4" = "c4e3694bcb40";

    /// Both operands as one vector, shifted right by bytes.
    [Palignr, Vpalignr], exact (m, i) { align_right(m, i) }
    "palignr xmm1,xmm2,5" = "660f3a0fca05", "palignr xmm1,xmm2,0x13" = "660f3a0fca13", "palignr xmm1,[rdi],0x20" = "660f3a0f0f20", "palignr mm1,mm2,3" = "0f3a0fca03",
    "palignr mm1,mm2,0xb" = "0f3a0fca0b",
    "vpalignr ymm1,ymm2,ymm3,5" = "c4e36d0fcb05",
    "vpalignr zmm1{k1},zmm2,zmm3,5" = "62f36d490fcb05";
    /// Left shift by bytes.
    [Pslldq, Vpslldq], exact (m, i) { shift_bytes(m, i, |n, by| n.checked_sub(by)) }
    "pslldq xmm1,3" = "660f73f903", "pslldq xmm1,0x10" = "660f73f910",
    "vpslldq ymm1,ymm2,3" = "c5f573fa03",
    "vpslldq zmm1,zmm2,3" = "62f1754873fa03";
    /// Right shift by bytes.
    [Psrldq, Vpsrldq], exact (m, i) { shift_bytes(m, i, |n, by| n.checked_add(by)) }
    "psrldq xmm1,3" = "660f73d903", "psrldq xmm1,-1" = "660f73d9ff",
    "vpsrldq ymm1,ymm2,3" = "c5f573da03",
    "vpsrldq zmm1,zmm2,3" = "62f1754873da03";
}

/// The four two-bit fields of a shuffle's immediate.
fn fields(immediate: u8) -> [u8; 4] {
    core::array::from_fn(|n| immediate >> (2 * n) & 3)
}

/// Lanes of both operands together.
fn rearrange<M: X86>(m: &mut M, i: &Insn, lane: Width, indices: &[u8]) {
    let (a, b) = pair(m, i);
    let result = shuffle(m, lane, a, b, indices);
    set(m, i, result);
}

/// Lanes of one operand.
fn permute<M: X86>(m: &mut M, i: &Insn, lane: Width, indices: &[u8]) {
    let a = right(m, i);
    let result = shuffle(m, lane, a, a, indices);
    set(m, i, result);
}

/// SHUFPD: each double of a block has a bit of its own in the immediate.
fn choose_doubles<M: X86>(m: &mut M, i: &Insn) {
    let (a, b) = pair(m, i);
    let count = (m.vec_bits(a) / 64) as u8;
    let indices: [u8; 8] =
        core::array::from_fn(|n| n as u8 % 2 * count + (n as u8 & !1) + (i.immediate8() >> n & 1));
    let result = m.shuffle(W64, a, b, &indices[..count.into()]);
    set(m, i, result);
}

/// The upper half of what interleaving the low halves of two vectors gives is what MMX calls the high
/// halves interleaved.
fn interleave<M: X86>(m: &mut M, i: &Insn, lane: Width, high: bool) {
    let (a, b) = pair(m, i);
    let count = (BLOCK / lane.bits()) as u8;
    let from = if high && !is_mmx(i) { count / 2 } else { 0 };
    let indices: [u8; 16] = core::array::from_fn(|n| from + n as u8 / 2 + n as u8 % 2 * count);
    let mut result = shuffle(m, lane, a, b, &indices[..count.into()]);
    if high && is_mmx(i) {
        result = m.shuffle(W64, result, result, &[1, 0]);
    }
    set(m, i, result);
}

/// MMX registers stand side by side in one vector.
fn pack<M: X86>(m: &mut M, i: &Insn, lane: Width, to_signed: bool) {
    let (mut a, mut b) = pair(m, i);
    if is_mmx(i) {
        a = shuffle(m, W64, a, b, &[0, 2]);
        b = a;
    }
    let result = m.narrow_saturating(a, b, lane, to_signed);
    set_lanes(m, i, lane.half(), result);
}

fn widen<M: X86>(m: &mut M, i: &Insn, steps: &[Width], signed: bool) {
    let mut value = lanes_at(m, i, 1);
    for &lane in steps {
        value = m.widen_low(value, lane, signed);
    }
    set_lanes(m, i, steps[steps.len() - 1].double(), value);
}

/// The lane that the last operand, an immediate, counts; modulo as many as the register has.
fn lane_index(i: &Insn, mmx: bool, lane: Width) -> u32 {
    let bits = if mmx { 64 } else { BLOCK };
    u32::from(i.immediate8()) % (bits / lane.bits())
}

fn insert<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let value = read(m, i, last(i));
    let value = m.trunc(value, lane);
    set_lane(m, i, lane_index(i, is_mmx(i), lane), value);
}

fn extract<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let from = right(m, i);
    let value = m.lane(from, lane, lane_index(i, i.op1_register().is_mm(), lane));
    if i.op1_register().is_mm() {
        mmx::enter(m);
    }
    if in_memory(i, 0) {
        let address = memory_address(m, i);
        m.store(address, value);
    } else {
        let wide = m.zext(value, if i.op0_register().is_gpr64() { W64 } else { W32 });
        write(m, i, 0, wide);
    }
}

/// INSERTPS.
fn insert_single<M: X86>(m: &mut M, i: &Insn) {
    let [from, to] = [i.immediate8() >> 6, i.immediate8() >> 4 & 3];
    let from = if in_memory(i, last(i)) { 0 } else { from };
    let value = right(m, i);
    let value = m.lane(value, W32, from.into());
    let mut result = left(m, i);
    result = m.set_lane(result, to.into(), value);
    let zero = m.int(W32, 0);
    for n in (0..4).filter(|n| i.immediate8() >> n & 1 != 0) {
        result = m.set_lane(result, n, zero);
    }
    set(m, i, result);
}

fn choose<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let (a, b) = pair(m, i);
    let count = m.vec_bits(a) / lane.bits();
    // The immediate goes round: the words of all blocks have the same eight bits.
    let indices: [u8; 16] = core::array::from_fn(|n| n as u8 + (i.immediate8() >> (n % 8) & 1) * count as u8);
    let result = m.shuffle(lane, a, b, &indices[..count as usize]);
    set(m, i, result);
}

fn choose_by_signs<M: X86>(m: &mut M, i: &Insn, lane: Width) {
    let [a, b, signs] = if is_legacy(i) {
        let (a, b) = pair(m, i);
        [a, b, m.vec_reg(0, BLOCK)]
    } else {
        [1, 2, 3].map(|op| operand(m, i, op))
    };
    let zero = zero(m, a);
    let mask = m.lanes(LaneOp::Cmp(CmpOp::Slt), lane, signs, zero);
    let result = blend(m, mask, a, b);
    set(m, i, result);
}

/// PALIGNR: the first operand above the second, zeros above both.
fn align_right<M: X86>(m: &mut M, i: &Insn) {
    let (mut high, mut low) = pair(m, i);
    let zero = zero(m, low);
    if is_mmx(i) {
        low = shuffle(m, W64, low, high, &[0, 2]);
        high = zero;
    }
    let by = i.immediate8();
    let result = match by {
        0..16 => shuffle(m, W8, low, high, &consecutive(by)),
        16..32 => shuffle(m, W8, high, zero, &consecutive(by - 16)),
        _ => zero,
    };
    set(m, i, result);
}

fn consecutive(from: u8) -> [u8; 16] {
    core::array::from_fn(|n| from + n as u8)
}

/// PSLLDQ, PSRLDQ: byte `n` comes from byte `from(n, count)`, or is zero.
fn shift_bytes<M: X86>(m: &mut M, i: &Insn, from: fn(u8, u8) -> Option<u8>) {
    let value = right(m, i);
    let zero = zero(m, value);
    let indices: [u8; 16] =
        core::array::from_fn(|n| from(n as u8, i.immediate8()).filter(|&n| n < 16).unwrap_or(16));
    let result = shuffle(m, W8, value, zero, &indices);
    set(m, i, result);
}
