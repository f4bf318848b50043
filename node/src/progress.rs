//! How far a long operation is; shared between the thread that works and the one that reports.

use crate::error::{NodeError, Result};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A long operation's counters.
#[derive(Debug, Default)]
pub struct Progress {
    phase: Mutex<String>,
    done: AtomicU64,
    total: AtomicU64,
    cancelled: AtomicBool,
}

/// [`Progress`] at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressReport {
    /// What is being done.
    pub phase: String,
    /// Bytes done.
    pub done: u64,
    /// Bytes in all; 0 if unknown.
    pub total: u64,
}

impl Progress {
    /// Start a phase of `total` bytes (0: unknown).
    pub fn enter(&self, phase: &str, total: u64) {
        let mut name = self.phase.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *name = phase.to_owned();
        self.done.store(0, Relaxed);
        self.total.store(total, Relaxed);
    }

    /// Count `bytes` as done.
    pub fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Relaxed);
    }

    /// Ask the working thread to give up.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// [`NodeError::Cancelled`] if it has been asked to.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Relaxed) { Err(NodeError::Cancelled) } else { Ok(()) }
    }

    /// The counters now.
    pub fn report(&self) -> ProgressReport {
        let phase = self.phase.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        ProgressReport { phase, done: self.done.load(Relaxed), total: self.total.load(Relaxed) }
    }
}
