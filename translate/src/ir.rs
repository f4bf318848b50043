//! One LLVM module under construction: its context, a builder, the types in use, and the few shapes of
//! instruction that lifting and compiling share. LLVM's own names are used throughout.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::ContextRef;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::{Linkage, Module};
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum, FunctionType, IntType, VectorType};
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue, BasicValueEnum, CallSiteValue, FunctionValue, InstructionValue,
    IntValue, MetadataValue, PointerValue,
};
use inkwell::{AddressSpace, IntPredicate};
use tranship_isa::machine::Width;

/// LLVM's number of the convention that marks a region function in host-neutral bitcode (`fastcc`): what
/// [`crate::hostconv`] gives a host's own convention. Everything else there has the C convention.
pub(crate) const REGION_CALL_CONV: u32 = 8;

/// What the names begin with of accesses that a fault leads away from, and of the question whether it did. Nothing defines
/// them: compiling makes access, question and the branch on it one instruction.
pub(crate) const FAULTING: &str = "tranship.faulting.";

/// What an operation of the builder made. It fails only when the builder is not positioned or types do not
/// fit, and those are bugs of ours, not the guest's.
pub(crate) fn built<T>(result: Result<T, BuilderError>) -> T {
    result.expect("the builder is positioned and the types fit")
}

/// What memory an access touches. The guest's and our own never overlap: a guest has no pointer into the hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// The guest's, where other threads may look: the access is `volatile`, so it is neither left out nor made twice,
    /// nor exchanged with another one that is.
    Guest,
    /// The guest's, private to the thread.
    Frame,
    /// The thread block and the object's own data.
    State,
    /// The thread block, where somebody looks while compiled code runs: as volatile as [`Memory::Guest`].
    SharedState,
}

impl Memory {
    const fn is_guests(self) -> bool {
        matches!(self, Memory::Guest | Memory::Frame)
    }
}

/// A module and what building in it needs.
pub(crate) struct Ir<'c> {
    pub(crate) context: ContextRef<'c>,
    pub(crate) module: Module<'c>,
    pub(crate) builder: Builder<'c>,
    tags: [MetadataValue<'c>; 2],
    tag_kind: u32,
    unlikely: MetadataValue<'c>,
    weights_kind: u32,
}

impl<'c> Ir<'c> {
    /// Build in `module`.
    pub(crate) fn new(module: Module<'c>) -> Ir<'c> {
        let context = module.get_context();
        let zero = context.i64_type().const_zero();
        let root = context.metadata_node(&[context.metadata_string("tranship memory").into()]);
        let tag = |name| {
            let kind =
                context.metadata_node(&[context.metadata_string(name).into(), root.into(), zero.into()]);
            context.metadata_node(&[kind.into(), kind.into(), zero.into()])
        };
        let weight = |n| context.i32_type().const_int(n, false).into();
        let weights = [context.metadata_string("branch_weights").into(), weight(1), weight(4000)];
        Ir {
            context,
            builder: context.create_builder(),
            tags: [tag("guest"), tag("state")],
            tag_kind: context.get_kind_id("tbaa"),
            unlikely: context.metadata_node(&weights),
            weights_kind: context.get_kind_id("prof"),
            module,
        }
    }

    // ---- types and constants ----

    pub(crate) fn int_type(&self, width: Width) -> IntType<'c> {
        match width {
            Width::W8 => self.context.i8_type(),
            Width::W16 => self.context.i16_type(),
            Width::W32 => self.context.i32_type(),
            Width::W64 => self.context.i64_type(),
            Width::W128 => self.context.i128_type(),
        }
    }

    /// `bits` in lanes of `lane`.
    pub(crate) fn vec_type(&self, lane: Width, bits: u32) -> VectorType<'c> {
        self.int_type(lane).vec_type(bits / lane.bits())
    }

    pub(crate) fn ptr_type(&self) -> inkwell::types::PointerType<'c> {
        self.context.ptr_type(AddressSpace::default())
    }

    pub(crate) fn i64(&self, value: u64) -> IntValue<'c> {
        self.context.i64_type().const_int(value, false)
    }

    /// The type of a region function in neutral form: the thread block in, the guest PC out.
    pub(crate) fn region_type(&self) -> FunctionType<'c> {
        self.context.i64_type().fn_type(&[self.ptr_type().into()], false)
    }

    // ---- functions ----

    /// The function `name`, declared if it is not yet in the module.
    pub(crate) fn function(&self, name: &str, kind: FunctionType<'c>) -> FunctionValue<'c> {
        self.module.get_function(name).unwrap_or_else(|| {
            let function = self.module.add_function(name, kind, Some(Linkage::External));
            self.add_attribute(function, "nounwind");
            self.add_attribute(function, "strictfp");
            // Two registers that are next to each other in the thread block are not to be loaded as one vector:
            // they were stored one by one, and a CPU waits for such stores.
            self.add_attribute(function, "noimplicitfloat");
            function
        })
    }

    /// The region function `name` in neutral form.
    pub(crate) fn region(&self, name: &str) -> FunctionValue<'c> {
        let function = self.function(name, self.region_type());
        function.set_call_conventions(REGION_CALL_CONV);
        function
    }

    pub(crate) fn attribute(&self, name: &str) -> Attribute {
        self.context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), 0)
    }

    pub(crate) fn string_attribute(&self, name: &str) -> Attribute {
        self.context.create_string_attribute(name, "")
    }

    pub(crate) fn add_attribute(&self, function: FunctionValue<'c>, name: &str) {
        function.add_attribute(AttributeLoc::Function, self.attribute(name));
    }

    pub(crate) fn block(&self, function: FunctionValue<'c>, name: &str) -> BasicBlock<'c> {
        self.context.append_basic_block(function, name)
    }

    // ---- calls ----

    /// Call an LLVM intrinsic overloaded on `types`.
    pub(crate) fn intrinsic(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'c>],
        arguments: &[BasicMetadataValueEnum<'c>],
    ) -> CallSiteValue<'c> {
        let function = Intrinsic::find(name).and_then(|i| i.get_declaration(&self.module, types));
        let function = function.expect("LLVM has the intrinsic");
        self.call(function, arguments)
    }

    /// Call `function` in its own convention.
    pub(crate) fn call(
        &self,
        function: FunctionValue<'c>,
        arguments: &[BasicMetadataValueEnum<'c>],
    ) -> CallSiteValue<'c> {
        let call = built(self.builder.build_direct_call(function, arguments, ""));
        call.set_call_convention(function.get_call_conventions());
        call.add_attribute(AttributeLoc::Function, self.attribute("strictfp"));
        call
    }

    /// Call the code at `function`.
    pub(crate) fn call_pointer(
        &self,
        kind: FunctionType<'c>,
        convention: u32,
        function: PointerValue<'c>,
        arguments: &[BasicMetadataValueEnum<'c>],
    ) -> CallSiteValue<'c> {
        let call = built(self.builder.build_indirect_call(kind, function, arguments, ""));
        call.set_call_convention(convention);
        call.add_attribute(AttributeLoc::Function, self.attribute("strictfp"));
        call
    }

    /// The value of an intrinsic or helper that returns one.
    pub(crate) fn result(call: CallSiteValue<'c>) -> BasicValueEnum<'c> {
        call.try_as_basic_value().expect_basic("the function returns a value")
    }

    /// Call an operation of the prelude ([`crate::compile`] defines them per host).
    pub(crate) fn prelude(
        &self,
        name: &str,
        result: BasicTypeEnum<'c>,
        arguments: &[BasicValueEnum<'c>],
    ) -> BasicValueEnum<'c> {
        Self::result(self.call_named(name, Some(result), arguments))
    }

    /// Call the function `name`, of the type that this takes.
    fn call_named(
        &self,
        name: &str,
        result: Option<BasicTypeEnum<'c>>,
        arguments: &[BasicValueEnum<'c>],
    ) -> CallSiteValue<'c> {
        let types: Vec<BasicMetadataTypeEnum<'c>> = arguments.iter().map(|a| a.get_type().into()).collect();
        let values: Vec<BasicMetadataValueEnum<'c>> = arguments.iter().map(|&a| a.into()).collect();
        let kind = match result {
            Some(result) => result.fn_type(&types, false),
            None => self.context.void_type().fn_type(&types, false),
        };
        self.call(self.function(name, kind), &values)
    }

    // ---- accesses that a fault leads away from ----

    /// Load `bits`: of an integer up to 64, zero-extended to them, or a vector of 128.
    pub(crate) fn faulting_load(&self, bits: u32, from: PointerValue<'c>) -> BasicValueEnum<'c> {
        let kind: BasicTypeEnum<'c> = match bits {
            8..=64 => self.context.i64_type().into(),
            _ => self.vec_type(Width::W64, bits).into(),
        };
        let value = Self::result(self.faulting(&format!("load.{bits}"), Some(kind), &[from.into()]));
        if let (8..=32, Some(load)) = (bits, value.as_instruction_value()) {
            let range = self.context.metadata_node(&[self.i64(0).into(), self.i64(1 << bits).into()]);
            load.set_metadata(range, self.context.get_kind_id("range")).expect("the range is a node");
        }
        value
    }

    /// Store an integer, or a vector of 128 bits.
    pub(crate) fn faulting_store(&self, bits: u32, to: PointerValue<'c>, value: BasicValueEnum<'c>) {
        self.faulting(&format!("store.{bits}"), None, &[to.into(), value]);
    }

    /// Whether the access before this has faulted: LLVM takes both for possible.
    pub(crate) fn has_faulted(&self) -> IntValue<'c> {
        Self::result(self.faulting("outcome", Some(self.context.bool_type().into()), &[])).into_int_value()
    }

    fn faulting(
        &self,
        name: &str,
        result: Option<BasicTypeEnum<'c>>,
        arguments: &[BasicValueEnum<'c>],
    ) -> CallSiteValue<'c> {
        let call = self.call_named(&format!("{FAULTING}{name}"), result, arguments);
        self.keeps_order_only(call);
        call
    }

    /// The call is left where it is, among others of its kind; of the thread block it sees nothing.
    pub(crate) fn keeps_order_only(&self, call: CallSiteValue<'c>) {
        // `llvm/Support/ModRef.h`: reads and writes what no program sees.
        const INACCESSIBLE_MEMORY: u64 = 3 << 2;
        for (name, value) in [("nounwind", 0), ("willreturn", 0), ("memory", INACCESSIBLE_MEMORY)] {
            let attribute =
                self.context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), value);
            call.add_attribute(AttributeLoc::Function, attribute);
        }
    }

    // ---- memory ----

    /// `base + offset` bytes.
    pub(crate) fn byte_offset(&self, base: PointerValue<'c>, offset: IntValue<'c>) -> PointerValue<'c> {
        // SAFETY: without `inbounds` an offset has no precondition; what is out of range is just an address.
        built(unsafe { self.builder.build_gep(self.context.i8_type(), base, &[offset], "") })
    }

    /// A plain load with any alignment.
    pub(crate) fn load(
        &self,
        memory: Memory,
        kind: impl BasicType<'c>,
        from: PointerValue<'c>,
    ) -> BasicValueEnum<'c> {
        let value = built(self.builder.build_load(kind, from, ""));
        if let Some(load) = value.as_instruction_value() {
            self.tag_access(load, memory, 1);
        }
        value
    }

    /// A plain store with any alignment.
    pub(crate) fn store(&self, memory: Memory, to: PointerValue<'c>, value: impl BasicValue<'c>) {
        let store = built(self.builder.build_store(to, value));
        self.tag_access(store, memory, 1);
    }

    pub(crate) fn tag_access(&self, access: InstructionValue<'c>, memory: Memory, alignment: u32) {
        access.set_alignment(alignment).expect("loads and stores have an alignment");
        access
            .set_volatile(matches!(memory, Memory::Guest | Memory::SharedState))
            .expect("loads and stores can be volatile");
        access.set_metadata(self.tag(memory), self.tag_kind).expect("the tag is a node");
    }

    /// Whether [`Ir::tag_access`] has told LLVM that `access` is to `memory`.
    pub(crate) fn is_tagged(&self, access: InstructionValue<'c>, memory: Memory) -> bool {
        access.get_metadata(self.tag_kind) == Some(self.tag(memory))
    }

    fn tag(&self, memory: Memory) -> MetadataValue<'c> {
        self.tags[usize::from(!memory.is_guests())]
    }

    // ---- control ----

    /// Go to `rare` where `condition` holds, which it almost never does, else to `usual`.
    pub(crate) fn branch_unlikely(
        &self,
        condition: IntValue<'c>,
        rare: BasicBlock<'c>,
        usual: BasicBlock<'c>,
    ) {
        let branch = built(self.builder.build_conditional_branch(condition, rare, usual));
        branch.set_metadata(self.unlikely, self.weights_kind).expect("the weights are a node");
    }

    pub(crate) fn branch(&self, to: BasicBlock<'c>) {
        built(self.builder.build_unconditional_branch(to));
    }

    pub(crate) fn return_value(&self, value: impl BasicValue<'c>) {
        built(self.builder.build_return(Some(&value)));
    }

    pub(crate) fn compare(&self, predicate: IntPredicate, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        built(self.builder.build_int_compare(predicate, a, b, ""))
    }

    /// Whether the current block has its terminator.
    pub(crate) fn is_terminated(&self) -> bool {
        self.builder.get_insert_block().is_none_or(|b| b.get_terminator().is_some())
    }

    /// All instructions of the module's functions, as they are now: it may be changed while they are gone through.
    pub(crate) fn instructions(&self) -> Vec<InstructionValue<'c>> {
        let blocks = self.module.get_functions().flat_map(|function| function.get_basic_blocks());
        blocks.flat_map(|block| block.get_instructions()).collect()
    }

    /// The block that is being filled.
    pub(crate) fn here(&self) -> BasicBlock<'c> {
        self.builder.get_insert_block().expect("the builder is positioned")
    }
}
