//! What can go wrong with one object or one process; the service itself goes on.

use tranship_node::NodeError;
use tranship_translate::cache::CacheError;
use tranship_translate::compile::CompileError;
use tranship_translate::elf::ElfError;

/// Why code could not be supplied.
#[derive(Debug)]
pub enum ServiceError {
    /// The process cannot be looked at, or is gone.
    Process(NodeError),
    /// A file that the process executes is none that we understand.
    Guest {
        /// The file.
        file: String,
        /// Why.
        why: ElfError,
    },
    /// It could not be compiled.
    Compile(CompileError),
    /// It could not be kept.
    Cache(CacheError),
    /// What was compiled is no object of the right shape.
    Object {
        /// Why.
        why: String,
    },
}

/// With [`ServiceError`].
pub type Result<T> = std::result::Result<T, ServiceError>;

impl std::fmt::Display for ServiceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ServiceError::Process(why) => why.fmt(f),
            ServiceError::Guest { file, why } => write!(f, "{file}: {why}"),
            ServiceError::Compile(why) => why.fmt(f),
            ServiceError::Cache(why) => why.fmt(f),
            ServiceError::Object { why } => write!(f, "translated object: {why}"),
        }
    }
}

impl std::error::Error for ServiceError {}

impl From<NodeError> for ServiceError {
    fn from(why: NodeError) -> Self {
        ServiceError::Process(why)
    }
}

impl From<CompileError> for ServiceError {
    fn from(why: CompileError) -> Self {
        ServiceError::Compile(why)
    }
}

impl From<CacheError> for ServiceError {
    fn from(why: CacheError) -> Self {
        ServiceError::Cache(why)
    }
}

impl From<object::Error> for ServiceError {
    fn from(why: object::Error) -> Self {
        ServiceError::Object { why: why.to_string() }
    }
}
