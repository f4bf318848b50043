//! Messages that bytes follow in their image, outside of them: contents of pipes, sockets and the like.

use crate::proto::bpfmap_data::Bpfmap_data_entry;
use crate::proto::ghost_file::Ghost_chunk_entry;
use crate::proto::ipc_msg::Ipc_msg;
use crate::proto::ipc_sem::Ipc_sem_entry;
use crate::proto::ipc_shm::Ipc_shm_entry;
use crate::proto::pipe_data::Pipe_data_entry;
use crate::proto::sk_packet::Sk_packet_entry;
use crate::proto::tcp_stream::Tcp_stream_entry;

/// Bytes of one semaphore's value.
const SEMAPHORE: u64 = 2;

/// A message that bytes follow.
pub(crate) trait Trailed {
    /// How many.
    fn trailer(&self) -> u64;
}

impl Trailed for Bpfmap_data_entry {
    fn trailer(&self) -> u64 {
        u64::from(self.keys_bytes()) + u64::from(self.values_bytes())
    }
}

impl Trailed for Pipe_data_entry {
    fn trailer(&self) -> u64 {
        self.bytes().into()
    }
}

impl Trailed for Sk_packet_entry {
    fn trailer(&self) -> u64 {
        self.length().into()
    }
}

impl Trailed for Tcp_stream_entry {
    fn trailer(&self) -> u64 {
        u64::from(self.inq_len()) + u64::from(self.outq_len())
    }
}

impl Trailed for Ipc_shm_entry {
    fn trailer(&self) -> u64 {
        if self.in_pagemaps() { 0 } else { padded(self.size(), 4) }
    }
}

impl Trailed for Ipc_sem_entry {
    fn trailer(&self) -> u64 {
        padded(u64::from(self.nsems()) * SEMAPHORE, 8)
    }
}

impl Trailed for Ipc_msg {
    fn trailer(&self) -> u64 {
        padded(self.msize().into(), 8)
    }
}

impl Trailed for Ghost_chunk_entry {
    fn trailer(&self) -> u64 {
        self.len()
    }
}

/// `bytes` rounded up to a multiple of `align`; what is too many stays so.
fn padded(bytes: u64, align: u64) -> u64 {
    bytes.checked_next_multiple_of(align).unwrap_or(u64::MAX)
}
