//! A container's seccomp profile (OCI runtime specification, "Seccomp") as a filter for a machine (seccomp(2)): what
//! runc has libseccomp make at home, for hosts that the container gets to later.

use crate::error::{OciError, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tranship_abi::host::Host;
use tranship_abi::syscall::ROWS;

/// Instructions of classic BPF (uapi/linux/bpf_common.h).
mod bpf {
    pub(super) const LOAD: u16 = 0x20;
    pub(super) const AND: u16 = 0x54;
    pub(super) const JUMP: u16 = 0x05;
    pub(super) const JUMP_EQUAL: u16 = 0x15;
    pub(super) const JUMP_GREATER: u16 = 0x25;
    pub(super) const JUMP_GREATER_EQUAL: u16 = 0x35;
    pub(super) const RETURN: u16 = 0x06;
    /// Longest program (BPF_MAXINSNS).
    pub(super) const LONGEST: usize = 4096;
}

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// What a filter returns (uapi/linux/seccomp.h).
const KILL_PROCESS: u32 = 0x8000_0000;
const ERRNO: u32 = 0x0005_0000;
const EPERM: u32 = 1;
const ENOSYS: u32 = 38;
/// A system call of x32, which no program here makes.
const X32: u32 = 0x4000_0000;

/// Where a jump goes.
#[derive(Clone, Copy)]
enum To {
    /// Over so many instructions.
    Over(u8),
    /// The condition holds.
    Holds,
    /// It does not, and so the rule does not.
    Fails,
}

#[derive(Clone, Copy)]
struct Instruction {
    code: u16,
    operand: u32,
    jump: [To; 2],
}

fn plain(code: u16, operand: u32) -> Instruction {
    Instruction { code, operand, jump: [To::Over(0); 2] }
}

fn jump(code: u16, operand: u32, yes: To, no: To) -> Instruction {
    Instruction { code, operand, jump: [yes, no] }
}

/// A condition on an argument.
#[derive(Clone, Copy)]
struct Condition {
    index: u32,
    comparison: Comparison,
    value: u64,
    second: u64,
}

#[derive(Clone, Copy)]
enum Comparison {
    Equal,
    NotEqual,
    /// Where `value` is the mask, and `second` what is left.
    MaskedEqual,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
}

/// What happens to a system call.
#[derive(Default)]
struct Rules {
    /// If these hold, all of each list; the first list decides.
    conditional: Vec<(Vec<Condition>, u32)>,
    /// Else.
    always: Option<u32>,
}

/// The filter that `profile` is on machine `host`.
pub(crate) fn compile(profile: &Value, host: Host) -> Result<Vec<u8>> {
    let default = action(profile, "defaultAction", "defaultErrnoRet")?;
    let mut rules: BTreeMap<u32, Rules> = BTreeMap::new();
    let mut known = BTreeSet::new();
    for entry in list(profile, "syscalls") {
        let action = action(entry, "action", "errnoRet")?;
        let conditions: Vec<Condition> = list(entry, "args").iter().map(condition).collect::<Result<_>>()?;
        for number in list(entry, "names").iter().filter_map(|name| number_on(name.as_str()?, host)) {
            known.insert(number);
            add(rules.entry(number).or_default(), &conditions, action);
        }
    }
    // What is newer than the profile is unknown, as to an older kernel, so that a C library does without it.
    let newer = if default & 0xffff_0000 == ERRNO { ERRNO | ENOSYS } else { default };
    let program = program(&rules, host, default, (known.last().copied().unwrap_or(u32::MAX - 1), newer));
    match program.len() {
        0..=bpf::LONGEST => Ok(program.iter().flat_map(encode).collect()),
        _ => Err(OciError::Seccomp("it is longer than the kernel allows".to_owned())),
    }
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn number_on(name: &str, host: Host) -> Option<u32> {
    ROWS.iter().find(|row| row.name == name)?.number_on(host)
}

/// As runc has libseccomp do it: conditions on the same argument are alternatives.
fn add(rules: &mut Rules, conditions: &[Condition], action: u32) {
    let indices: BTreeSet<u32> = conditions.iter().map(|condition| condition.index).collect();
    match conditions {
        [] => rules.always = rules.always.or(Some(action)),
        _ if indices.len() == conditions.len() => rules.conditional.push((conditions.to_vec(), action)),
        _ => rules.conditional.extend(conditions.iter().map(|condition| (vec![*condition], action))),
    }
}

fn action(from: &Value, name: &str, errno: &str) -> Result<u32> {
    let errno = from.get(errno).and_then(Value::as_u64).unwrap_or(EPERM.into()) as u32 & 0xffff;
    let name = from.get(name).and_then(Value::as_str).unwrap_or_default();
    Ok(match name {
        "SCMP_ACT_ALLOW" => 0x7fff_0000,
        "SCMP_ACT_LOG" => 0x7ffc_0000,
        "SCMP_ACT_TRACE" => 0x7ff0_0000 | errno,
        "SCMP_ACT_ERRNO" => ERRNO | errno,
        "SCMP_ACT_TRAP" => 0x0003_0000,
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => 0,
        "SCMP_ACT_KILL_PROCESS" => KILL_PROCESS,
        other => return Err(OciError::Seccomp(format!("action {other:?} cannot be taken along"))),
    })
}

fn condition(from: &Value) -> Result<Condition> {
    let number = |name| from.get(name).and_then(Value::as_u64).unwrap_or(0);
    let comparison = match from.get("op").and_then(Value::as_str).unwrap_or_default() {
        "SCMP_CMP_EQ" => Comparison::Equal,
        "SCMP_CMP_NE" => Comparison::NotEqual,
        "SCMP_CMP_MASKED_EQ" => Comparison::MaskedEqual,
        "SCMP_CMP_GT" => Comparison::Greater,
        "SCMP_CMP_GE" => Comparison::GreaterEqual,
        "SCMP_CMP_LT" => Comparison::Less,
        "SCMP_CMP_LE" => Comparison::LessEqual,
        other => return Err(OciError::Seccomp(format!("there is no comparison {other:?}"))),
    };
    match number("index") {
        index @ 0..=5 => Ok(Condition {
            index: index as u32,
            comparison,
            value: number("value"),
            second: number("valueTwo"),
        }),
        index => Err(OciError::Seccomp(format!("there is no argument {index}"))),
    }
}

/// The program; calls above `newest.0` get `newest.1`.
fn program(rules: &BTreeMap<u32, Rules>, host: Host, default: u32, newest: (u32, u32)) -> Vec<Instruction> {
    let mut program = vec![
        plain(bpf::LOAD, ARCHITECTURE),
        jump(bpf::JUMP_EQUAL, architecture(host), To::Over(1), To::Over(0)),
        plain(bpf::RETURN, KILL_PROCESS),
        plain(bpf::LOAD, NUMBER),
    ];
    if host == Host::X86_64 {
        program.push(jump(bpf::JUMP_GREATER_EQUAL, X32, To::Over(0), To::Over(1)));
        program.push(plain(bpf::RETURN, default));
    }
    for (number, rules) in rules.iter().filter(|(_, rules)| !rules.conditional.is_empty()) {
        let mut body = Vec::new();
        for (conditions, action) in &rules.conditional {
            body.extend(rule(conditions, *action));
        }
        body.push(plain(bpf::RETURN, rules.always.unwrap_or(default)));
        program.push(jump(bpf::JUMP_EQUAL, *number, To::Over(1), To::Over(0)));
        program.push(plain(bpf::JUMP, body.len() as u32));
        program.extend(body);
    }
    for (first, last, action) in ranges(rules) {
        program.push(jump(bpf::JUMP_GREATER, last, To::Over(3), To::Over(0)));
        program.push(jump(bpf::JUMP_GREATER_EQUAL, first, To::Over(0), To::Over(1)));
        program.push(plain(bpf::RETURN, action));
        program.push(plain(bpf::RETURN, default));
    }
    program.push(jump(bpf::JUMP_GREATER, newest.0, To::Over(0), To::Over(1)));
    program.push(plain(bpf::RETURN, newest.1));
    program.push(plain(bpf::RETURN, default));
    program
}

/// AUDIT_ARCH_* (uapi/linux/audit.h): the ELF machine, and marks for 64 bits and little-endian.
fn architecture(host: Host) -> u32 {
    host.machine_id() | 0xc000_0000
}

/// Numbers, first and last, of calls to which the same happens whatever their arguments are.
fn ranges(rules: &BTreeMap<u32, Rules>) -> Vec<(u32, u32, u32)> {
    let mut ranges: Vec<(u32, u32, u32)> = Vec::new();
    for (&number, rules) in rules {
        let Some(action) = rules.always.filter(|_| rules.conditional.is_empty()) else { continue };
        match ranges.last_mut() {
            Some((_, last, same)) if *last + 1 == number && *same == action => *last = number,
            _ => ranges.push((number, number, action)),
        }
    }
    ranges
}

/// Return `action` if all conditions hold; else go on behind it.
/// (A condition has six instructions at most and there are six arguments: no jump is too long.)
fn rule(conditions: &[Condition], action: u32) -> Vec<Instruction> {
    let mut rule = Vec::new();
    for condition in conditions {
        let start = rule.len();
        let tests = condition.tests();
        let end = start + tests.len();
        rule.extend(tests);
        for (at, instruction) in rule.iter_mut().enumerate().skip(start) {
            for to in instruction.jump.iter_mut().filter(|to| matches!(to, To::Holds)) {
                *to = To::Over((end - at - 1) as u8);
            }
        }
    }
    rule.push(plain(bpf::RETURN, action));
    let length = rule.len();
    for (at, instruction) in rule.iter_mut().enumerate() {
        for to in instruction.jump.iter_mut().filter(|to| matches!(to, To::Fails)) {
            *to = To::Over((length - at - 1) as u8);
        }
    }
    rule
}

impl Condition {
    fn tests(&self) -> Vec<Instruction> {
        use Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, MaskedEqual, NotEqual};
        let (yes, no) = match self.comparison {
            NotEqual | Less | LessEqual => (To::Fails, To::Holds),
            _ => (To::Holds, To::Fails),
        };
        let low = ARGUMENTS + 8 * self.index;
        let high = low + 4;
        let [low_value, high_value] = halves(self.value);
        match self.comparison {
            Equal | NotEqual => vec![
                plain(bpf::LOAD, high),
                jump(bpf::JUMP_EQUAL, high_value, To::Over(0), no),
                plain(bpf::LOAD, low),
                jump(bpf::JUMP_EQUAL, low_value, yes, no),
            ],
            MaskedEqual => {
                let [low_left, high_left] = halves(self.second);
                vec![
                    plain(bpf::LOAD, high),
                    plain(bpf::AND, high_value),
                    jump(bpf::JUMP_EQUAL, high_left, To::Over(0), no),
                    plain(bpf::LOAD, low),
                    plain(bpf::AND, low_value),
                    jump(bpf::JUMP_EQUAL, low_left, yes, no),
                ]
            }
            // The last two are what does not hold if these do.
            Greater | GreaterEqual | Less | LessEqual => {
                let strict = matches!(self.comparison, Greater | LessEqual);
                let code = if strict { bpf::JUMP_GREATER } else { bpf::JUMP_GREATER_EQUAL };
                vec![
                    plain(bpf::LOAD, high),
                    jump(bpf::JUMP_GREATER, high_value, yes, To::Over(0)),
                    jump(bpf::JUMP_EQUAL, high_value, To::Over(0), no),
                    plain(bpf::LOAD, low),
                    jump(code, low_value, yes, no),
                ]
            }
        }
    }
}

/// The low and the high 32 bits.
fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// `struct sock_filter`.
fn encode(instruction: &Instruction) -> [u8; 8] {
    let [yes, no] = instruction.jump.map(|to| if let To::Over(count) = to { count } else { 0 });
    let [code, operand] = [u64::from(instruction.code), u64::from(instruction.operand)];
    (code | u64::from(yes) << 16 | u64::from(no) << 24 | operand << 32).to_le_bytes()
}
