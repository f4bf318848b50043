//! Regions of a few lines of assembly each.

use crate::guest::assemble;
use tranship_translate::discover::discover;
use tranship_translate::elf::GuestElf;
use tranship_translate::region::{Discovery, Edge, Exit};

fn discovered(name: &str, source: &str) -> Discovery {
    discover(&GuestElf::parse(assemble(name, source)).unwrap())
}

#[test]
fn text_form_is_stable() {
    let found = discovered(
        "sum",
        "
        .globl _start
        .type _start, @function
        _start: mov $10, %ecx
                xor %eax, %eax
        1:      add %rcx, %rax
                dec %ecx
                jnz 1b
                call leaf
                hlt
                .size _start, . - _start
        .type leaf, @function
        leaf:   cmp $3, %rdi
                ja 2f
                jmp *table(,%rdi,8)
        2:      ret
        3:      movq %xmm1, %rbx
                jmp tail
                .size leaf, . - leaf
        .type tail, @function
        tail:   adc $0, %rax
                ret
                .size tail, . - tail
                .section .rodata
        table:  .quad 2b, 3b, 2b, 3b",
    );
    let text: String = found.regions.iter().map(|region| region.to_string()).collect();
    assert_eq!(text, include_str!("sum.cfg"), "\n{text}");
}

#[test]
fn a_jump_into_another_function_makes_an_entry() {
    let found = discovered(
        "tail",
        "
        .globl _start
        .type _start, @function
        _start: test %edi, %edi
                jz middle
                call other
                hlt
                .size _start, . - _start
        .type other, @function
        other:  nop
        middle: xor %eax, %eax
                ret
                .size other, . - other",
    );
    let start = &found.regions[0];
    let Exit::Branch { taken: Edge::Region(middle), .. } = start.blocks[&start.entry].exit else {
        panic!("{start}")
    };
    assert!(found.region(middle).is_some());
}

#[test]
fn every_cycle_of_an_irreducible_graph_has_a_header() {
    let found = discovered(
        "irreducible",
        "
        .globl _start
        .type _start, @function
        _start: test %edi, %edi
                jz 2f
        1:      dec %eax
                jz 3f
        2:      dec %ecx
                jnz 1b
        3:      ret
                .size _start, . - _start",
    );
    let region = &found.regions[0];
    assert_eq!(region.loop_headers.len(), 1, "{region}");
}

#[test]
fn jumps_between_instructions_do_not_damage_the_blocks_around() {
    // `eb ff c0`: a jump into its own second byte, which is `inc eax`.
    let found = discovered(
        "overlap",
        "
        .globl _start
        .type _start, @function
        _start: .byte 0xeb, 0xff, 0xc0
                ret
                .size _start, . - _start",
    );
    let region = &found.regions[0];
    let Exit::Jump(Edge::Block(inner)) = region.blocks[&region.entry].exit else { panic!("{region}") };
    assert_eq!(inner, region.entry + 1);
    assert_eq!(region.blocks[&inner].exit, Exit::Return);
}

#[test]
fn bytes_that_are_no_instruction_are_reported() {
    let found = discovered(
        "garbage",
        "
        .globl _start
        .type _start, @function
        _start: nop
                .byte 0x06
                .size _start, . - _start",
    );
    let region = &found.regions[0];
    assert_eq!(region.blocks[&region.entry].exit, Exit::Undecodable);
    assert_eq!(found.report.undecodable, [region.entry + 1]);
}

/// The jump at `middle` is in another region than the code that knows its index.
#[test]
fn a_region_that_starts_behind_an_index_does_not_use_it() {
    let found = discovered(
        "open",
        "
        .globl _start
        .type _start, @function
        _start: .cfi_startproc
                call other
                cmp $1, %rdi
                ja 1f
                mov table(,%rdi,8), %rax
                jmp middle
        1:      ret
        2:      nop
                ret
                .cfi_endproc
                .size _start, . - _start
        .type other, @function
        other:  .cfi_startproc
                ret
        middle: jmp *%rax
                .cfi_endproc
                .size other, . - other
                .section .rodata
        table:  .quad 1b, 2b",
    );
    assert_eq!(found.report.jump_tables, 1);
    let jumps = found.regions.iter().flat_map(|r| r.blocks.values());
    let jumps: Vec<&Exit> =
        jumps.map(|b| &b.exit).filter(|e| matches!(e, Exit::Switch(_) | Exit::IndirectJump)).collect();
    assert_eq!(jumps, [&Exit::IndirectJump]);
}

#[test]
fn flags_that_cross_a_call_or_a_return_stay_live() {
    let found = discovered(
        "carry",
        "
        .globl _start
        .type _start, @function
        _start: stc
                call takes
                call gives
                jc 1f
                hlt
        1:      ud2
                .size _start, . - _start
        .type takes, @function
        takes:  adc $0, %eax
                ret
                .size takes, . - takes
        .type gives, @function
        gives:  cmp %eax, %ecx
                ret
                .size gives, . - gives",
    );
    let names = |flags: tranship_translate::region::FlagSet| flags.to_string();
    let region = |name: &str| found.regions.iter().find(|r| r.name.as_deref() == Some(name)).unwrap();
    let (start, takes, gives) = (region("_start"), region("takes"), region("gives"));
    assert_eq!(names(takes.blocks[&takes.entry].flags_live_in), "CF DF");
    assert_eq!(names(gives.blocks[&gives.entry].flags_live_in), "DF");
    assert_eq!(names(gives.blocks[&gives.entry].flags_live_out), "CF DF");
    assert_eq!(names(start.blocks[&start.entry].flags_live_out), "CF DF");
}

#[test]
fn shifts_by_zero_leave_flags_live() {
    let found = discovered(
        "shift",
        "
        .globl _start
        .type _start, @function
        _start: shl %cl, %eax
                jc 1f
                ret
        1:      shl $1, %eax
                ret
                .size _start, . - _start",
    );
    let region = &found.regions[0];
    assert_eq!(region.blocks[&region.entry].flags_live_in.to_string(), "CF DF");
}
