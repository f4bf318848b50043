//! The object's header and entry table ([`tranship_abi::block::ObjectHeader`]), as constants whose offsets the
//! linker resolves.

use super::{Entry, Host, stubs};
use crate::bitcode::Bitcode;
use crate::ir::Ir;
use crate::lift::BIAS;
use crate::region::Faults;
use inkwell::GlobalVisibility;
use inkwell::module::Linkage;
use inkwell::types::BasicType;
use inkwell::values::{BasicValueEnum, GlobalValue, IntValue, PointerValue};
use tranship_abi::block::{FAULTS_EXACT, FAULTS_FATAL, OBJECT_MAGIC, Source, VERSION};

/// The exported symbol, which is the ELF entry point.
pub(super) const SYMBOL: &str = "tranship_object";
const SECTION: &str = ".tranship";
/// The section of [`tranship_abi::block::FaultEdge`]s, which code adds to as it is emitted, so in its order. With such a
/// name the linker says where it begins and ends.
pub(super) const FAULT_EDGES: &str = "tranship_fault_edges";

/// Define header, entry table and bias slot.
pub(super) fn define_header<'c>(
    ir: &Ir<'c>,
    bitcode: &Bitcode,
    entries: &[Entry],
    faults: Faults,
    host: &Host,
) {
    let word = ir.context.i32_type();
    let long = ir.context.i64_type();
    let bytes = |b: &[u8]| -> BasicValueEnum<'c> { ir.context.const_string(b, false).into() };
    let number = |n: u32| -> BasicValueEnum<'c> { word.const_int(n.into(), false).into() };

    let fields = [
        ir.context.i8_type().array_type(16).into(),
        word.into(),
        word.into(),
        word.into(),
        word.into(),
        ir.context.i8_type().array_type(32).into(),
        long.into(),
        long.into(),
        long.into(),
        long.into(),
        long.into(),
        long.into(),
        long.into(),
        long.into(),
        long.into(),
    ];
    let faults = match faults {
        Faults::Fatal => FAULTS_FATAL,
        Faults::Exact => FAULTS_EXACT,
    };
    let header = global(ir, SYMBOL, ir.context.struct_type(&fields, false));
    header.set_section(Some(SECTION));
    header.set_constant(true);
    header.set_alignment(16);
    let from_header = |to: PointerValue<'c>| offset(ir, to, header.as_pointer_value());

    let bias = global(ir, BIAS, long);
    bias.set_initializer(&long.const_zero());
    let table = entry_table(ir, entries, header);
    let sources = source_table(ir, &bitcode.sources);
    let [first_edge, last_edge] = fault_edges(ir);
    let enter = ir.module.get_function(stubs::ENTER).map(|f| f.as_global_value().as_pointer_value());
    let interpret = ir.region(stubs::INTERPRET_CALL).as_global_value().as_pointer_value();
    header.set_initializer(&ir.context.const_struct(
        &[
            bytes(&OBJECT_MAGIC),
            number(VERSION),
            number(bitcode.guest),
            number(host.machine),
            number(entries.len() as u32),
            bytes(&bitcode.guest_digest),
            from_header(table.as_pointer_value()).into(),
            from_header(enter.expect("the stubs come first")).into(),
            from_header(bias.as_pointer_value()).into(),
            from_header(interpret).into(),
            ir.i64(bitcode.sources.len() as u64).into(),
            from_header(sources.as_pointer_value()).into(),
            ir.i64(faults).into(),
            from_header(first_edge.as_pointer_value()).into(),
            from_header(last_edge.as_pointer_value()).into(),
        ],
        false,
    ));
}

fn global<'c>(ir: &Ir<'c>, name: &str, kind: impl BasicType<'c>) -> GlobalValue<'c> {
    let global = ir.module.add_global(kind, None, name);
    global.set_linkage(Linkage::External);
    global.set_visibility(GlobalVisibility::Hidden);
    global
}

/// The distance between two symbols.
fn offset<'c>(ir: &Ir<'c>, to: PointerValue<'c>, from: PointerValue<'c>) -> IntValue<'c> {
    let long = ir.context.i64_type();
    to.const_to_int(long).const_sub(from.const_to_int(long))
}

/// The bounds of the section, which is there even if it is empty.
fn fault_edges<'c>(ir: &Ir<'c>) -> [GlobalValue<'c>; 2] {
    let none = ir.context.i32_type().array_type(0);
    let section = global(ir, "tranship.no_fault_edges", none);
    section.set_initializer(&none.const_zero());
    section.set_section(Some(FAULT_EDGES));
    section.set_constant(true);
    ["start", "stop"].map(|bound| global(ir, &format!("__{bound}_{FAULT_EDGES}"), none))
}

fn entry_table<'c>(ir: &Ir<'c>, entries: &[Entry], header: GlobalValue<'c>) -> GlobalValue<'c> {
    let long = ir.context.i64_type();
    let kind = ir.context.struct_type(&[long.into(), long.into()], false);
    let rows: Vec<_> = entries
        .iter()
        .map(|entry| {
            let code = ir.region(&entry.symbol).as_global_value().as_pointer_value();
            let host = offset(ir, code, header.as_pointer_value());
            kind.const_named_struct(&[ir.i64(entry.guest).into(), host.into()])
        })
        .collect();
    let table = global(ir, "tranship.entries", kind.array_type(rows.len() as u32));
    table.set_initializer(&kind.const_array(&rows));
    table.set_section(Some(SECTION));
    table.set_constant(true);
    table
}

fn source_table<'c>(ir: &Ir<'c>, sources: &[Source]) -> GlobalValue<'c> {
    let row = ir.context.i64_type().array_type(3);
    let rows: Vec<_> = sources
        .iter()
        .map(|s| ir.context.i64_type().const_array(&[s.start, s.end, s.digest].map(|word| ir.i64(word))))
        .collect();
    let table = global(ir, "tranship.sources", row.array_type(rows.len() as u32));
    table.set_initializer(&row.const_array(&rows));
    table.set_section(Some(SECTION));
    table.set_constant(true);
    table
}
