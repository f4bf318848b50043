//! The guest's vDSO abroad: the kernel's data that its code reads is not there, so each function that reads any starts with the
//! system call that it stands for.

use crate::elf::Elf;
use crate::error::{RecodeError, Result};
use std::ops::Range;
use tranship_abi::host::Host;

/// What becomes of a function abroad.
#[derive(Clone, Copy)]
enum Abroad {
    /// It makes the system call of this number.
    Calls(u32),
    /// It fails with ENOSYS.
    Fails,
    /// It reads nothing of the kernel's, and stays as it is.
    Stays,
}

/// The functions that x86-64 vDSOs export (`arch/x86/entry/vdso/vdso64/vdso64.lds.S` of Linux 7.2), without the `__vdso_` that each
/// name may have.
const FUNCTIONS: &[(&str, Abroad)] = &[
    ("clock_gettime", Abroad::Calls(228)),
    ("clock_getres", Abroad::Calls(229)),
    ("gettimeofday", Abroad::Calls(96)),
    ("getcpu", Abroad::Calls(309)),
    ("time", Abroad::Calls(201)),
    ("getrandom", Abroad::Calls(318)),
    ("sgx_enter_enclave", Abroad::Fails),
    // Of a thread that ends in the middle of these, the kernel at home would finish the unlocking.
    ("futex_robust_list64_try_unlock", Abroad::Stays),
    ("futex_robust_list32_try_unlock", Abroad::Stays),
];

/// `getrandom`'s fifth argument when the caller asks about the state it should allocate; such a caller gets ENOSYS and
/// goes on to use the system call.
const CMP_R8_MINUS_1: [u8; 4] = [0x49, 0x83, 0xf8, 0xff];
const SYSCALL: [u8; 2] = [0x0f, 0x05];
const RET: u8 = 0xc3;
const ENOSYS: u32 = 38;

/// Code that was put in the place of a function.
struct Stub {
    /// Offset of the function in the vDSO.
    at: usize,
    code: Vec<u8>,
}

/// Where a guest that is in a stub is, seen from home, where the function is the kernel's own again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The function is still to be executed: at its first instruction, at this offset.
    Entry(u64),
    /// It is done and is about to return.
    Return,
}

/// The stubs of a vDSO.
pub(crate) struct Stubs(Vec<Stub>);

impl Stubs {
    /// Those of the one that is `original` at home, of process `pid`.
    pub(crate) fn of(original: &[u8], pid: u32) -> Result<Stubs> {
        stubs(original, pid).map(Stubs)
    }

    /// Put them into `image`, the pages of the vDSO.
    pub(crate) fn put(&self, image: &mut [u8], pid: u32) -> Result<()> {
        for stub in &self.0 {
            let place = image.get_mut(stub.range());
            place.ok_or_else(|| unknown(pid, "has a function at its very end"))?.copy_from_slice(&stub.code);
        }
        Ok(())
    }

    /// Where offset `at` in the vDSO with stubs is in the one without; `None` if it is in no stub.
    pub(crate) fn place_at_home(&self, at: u64) -> Option<Place> {
        let at = usize::try_from(at).ok()?;
        let stub = self.0.iter().find(|stub| stub.range().contains(&at))?;
        Some(match stub.code[at - stub.at] {
            RET => Place::Return,
            _ => Place::Entry(stub.at as u64),
        })
    }

    /// Whether a thread that is at offset `at` in `original` can go on in the vDSO with stubs: at a function's start, or where it
    /// is about to make a system call. The functions read nothing more of the kernel's data after one.
    pub(crate) fn let_go_on(&self, original: &[u8], at: u64) -> bool {
        let Ok(at) = usize::try_from(at) else { return false };
        let is_call = original.get(at..).is_some_and(|code| code.starts_with(&SYSCALL));
        let is_outside = |stub: &Stub| at.saturating_add(SYSCALL.len()) <= stub.at || stub.range().end <= at;
        self.0.iter().any(|stub| stub.at == at) || is_call && self.0.iter().all(is_outside)
    }
}

impl Stub {
    fn range(&self) -> Range<usize> {
        self.at..self.at.saturating_add(self.code.len())
    }
}

fn unknown(pid: u32, what: &str) -> RecodeError {
    RecodeError::refused(format!("process {pid}"), format!("its vDSO {what}"))
}

fn stubs(image: &[u8], pid: u32) -> Result<Vec<Stub>> {
    let elf = Elf::of(Host::X86_64, "[vdso]", &image)?;
    let first = elf.segments()?.first().map_or(0, |segment| segment.address);
    let mut stubs: Vec<Stub> = Vec::new();
    for symbols in elf.symbols()? {
        for symbol in symbols?.defined() {
            let (symbol, address) = symbol?;
            let at = usize::try_from(address.wrapping_sub(first)).unwrap_or(usize::MAX);
            if !stubs.iter().any(|stub| stub.at == at) {
                stubs.extend(stub(&String::from_utf8_lossy(symbol), at, pid)?);
            }
        }
    }
    Ok(stubs)
}

/// The stub of the function `symbol` at `at`; none of one that stays, and of what is not a function.
fn stub(symbol: &str, at: usize, pid: u32) -> Result<Option<Stub>> {
    let name = symbol.strip_prefix("__vdso_").unwrap_or(symbol);
    if name.is_empty() || name == "LINUX_2.6" {
        return Ok(None);
    }
    let known = FUNCTIONS.iter().find(|(function, _)| *function == name);
    let (_, abroad) = known.ok_or_else(|| unknown(pid, &format!("exports {name}, which is not known")))?;
    Ok(code(name, *abroad).map(|code| Stub { at, code }))
}

fn code(name: &str, abroad: Abroad) -> Option<Vec<u8>> {
    let fail = [&mov_eax(ENOSYS.wrapping_neg())[..], &[0x48, 0x98, RET]].concat(); // cdqe: -ENOSYS in 64 bits
    let number = match abroad {
        Abroad::Calls(number) => number,
        Abroad::Fails => return Some(fail),
        Abroad::Stays => return None,
    };
    let call = [&mov_eax(number)[..], &SYSCALL, &[RET]].concat();
    if name == "getrandom" {
        let je = [0x74, call.len() as u8];
        return Some([&CMP_R8_MINUS_1[..], &je, &call, &fail].concat());
    }
    Some(call)
}

fn mov_eax(value: u32) -> [u8; 5] {
    let [a, b, c, d] = value.to_le_bytes();
    [0xb8, a, b, c, d]
}
